//===- Descriptor.cpp - The constant penstock_program ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Field for field the structs of penstock/abi.h.
//===----------------------------------------------------------------------===//

#include "passes/Runtime/ProgramTable.h"

#include "dialects/Onnx/DiscardableAttributes.h"
#include "dialects/Pipeline/Replicas.h"
#include "penstock/Methods/MethodSpec.h"
#include "penstock/abi.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

static_assert(PENSTOCK_ROLE_PARAMETER == static_cast<int>(Role::Parameter) &&
              PENSTOCK_ROLE_GRADIENT == static_cast<int>(Role::Gradient) &&
              PENSTOCK_ROLE_OPTIMIZER == static_cast<int>(Role::Optimizer) &&
              PENSTOCK_ROLE_COMPENSATION ==
                  static_cast<int>(Role::Compensation) &&
              PENSTOCK_ROLE_STATISTIC == static_cast<int>(Role::Statistic) &&
              PENSTOCK_ROLE_MASTER == static_cast<int>(Role::Master) &&
              PENSTOCK_ROLE_SCALAR == static_cast<int>(Role::Scalar) &&
              PENSTOCK_ROLE_PREPACKED == static_cast<int>(Role::Prepacked));

/// The number of an element type in the ABI, or 0.
static uint32_t getElement(Type type) {
  if (type.isF32())
    return PENSTOCK_F32;
  if (type.isF64())
    return PENSTOCK_F64;
  if (type.isF16())
    return PENSTOCK_F16;
  if (type.isBF16())
    return PENSTOCK_BF16;
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return 0;
  bool isUnsigned = integer.isUnsigned();
  switch (integer.getWidth()) {
  case 1:
    return PENSTOCK_BOOL;
  case 8:
    return isUnsigned ? PENSTOCK_U8 : PENSTOCK_I8;
  case 16:
    return isUnsigned ? PENSTOCK_U16 : PENSTOCK_I16;
  case 32:
    return isUnsigned ? PENSTOCK_U32 : PENSTOCK_I32;
  case 64:
    return isUnsigned ? PENSTOCK_U64 : PENSTOCK_I64;
  default:
    return 0;
  }
}

/// Names of globals.
struct ProgramTable::Symbols {
  /// Tells the replay's from the program's.
  StringRef prefix;

  std::string of(const Twine &name) const { return (prefix + name).str(); }
  std::string table(const Twine &name) const { return of("penstock." + name); }
};

int64_t ProgramTable::getDeviceCount() const {
  return arenas.empty() ? 0 : arenas.rbegin()->first + 1;
}

FailureOr<Constant> ProgramTable::getTensor(ConstantBuilder &constants,
                                            Operation *op,
                                            RankedTensorType type) {
  uint32_t element = getElement(type.getElementType());
  if (!element || !type.hasStaticShape())
    return op->emitError() << "the runtime knows no tensors of type " << type;
  unsigned bits = type.getElementType().getIntOrFloatBitWidth();
  return Constant::fields(
      {Constant::i32(element), Constant::i32(type.getRank()),
       constants.shape(type.getShape()),
       Constant::i64(type.getNumElements() * ((bits + 7) / 8))});
}

/// The devices of the summands, in the order (stage, replica).
FailureOr<Constant> ProgramTable::getSummands(ConstantBuilder &constants,
                                              const Symbols &symbol,
                                              GroupOp group) {
  std::vector<Constant> devices, resets, types;
  for (auto member : group.getMembers().getAsRange<ArrayAttr>()) {
    for (auto name : member.getAsRange<FlatSymbolRefAttr>()) {
      auto variable = module.lookupSymbol<VariableOp>(name);
      if (types.size() == member.size())
        break;
      FailureOr<Constant> tensor =
          getTensor(constants, variable, variable.getTensorType());
      if (failed(tensor))
        return failure();
      types.push_back(*tensor);
    }
    auto variable =
        module.lookupSymbol<VariableOp>(cast<FlatSymbolRefAttr>(member[0]));
    auto stage = module.lookupSymbol<StageOp>(variable.getStageAttr());
    ArrayRef<int64_t> places = *stage.getDevices();
    for (int64_t device : places)
      for (int64_t part : llvm::seq<int64_t>(0, getParts(variable))) {
        bool receives = device != places.front() && group->hasAttr(kOnceAttr);
        devices.push_back(Constant::i32(device));
        resets.push_back(Constant::i32(receives   ? PENSTOCK_SUM_RECEIVES
                                       : part > 0 ? PENSTOCK_SUM_RESETS
                                                  : PENSTOCK_SUM_ADDS));
      }
  }
  StringRef name = group.getSymName();
  int64_t typeCount = types.size(), deviceCount = devices.size();
  Constant typeTable =
      constants.table(symbol.table("sum." + name), std::move(types));
  Constant deviceTable =
      constants.table(symbol.table("summands." + name), std::move(devices));
  Constant resetTable =
      constants.table(symbol.table("resets." + name), std::move(resets));
  return Constant::fields({constants.string(name), Constant::i32(typeCount),
                           typeTable, Constant::i32(deviceCount), deviceTable,
                           resetTable});
}

std::vector<Constant> ProgramTable::getDevices() {
  std::vector<Constant> table;
  for (int64_t device : llvm::seq<int64_t>(0, getDeviceCount())) {
    auto arena = arenas.find(device);
    bool used = arena != arenas.end();
    auto field = [&](auto getter) -> int64_t {
      return used ? (arena->second.*getter)() : 0;
    };
    table.push_back(Constant::fields(
        {Constant::i64(field(&ArenaOp::getBytes)),
         Constant::i64(used ? arena->second.getAlignment() : 64),
         Constant::i32(used ? arena->second.getThreads() : 1)}));
  }
  return table;
}

FailureOr<std::vector<Constant>>
ProgramTable::getVariables(ConstantBuilder &constants, const Symbols &symbol,
                           const FileTable &files, const GemmTable &gemms,
                           const ConvolutionTable &convs) {
  std::vector<Constant> table;
  // By name; an initialiser of another name with the value of the first has an
  // entry of its own behind it.
  llvm::StringMap<int64_t> numbers;
  auto tiesOf = [](VariableOp variable) {
    // A copy on another stage need not say so again.
    return variable->hasAttr(kParameterAttr)
               ? DictionaryAttr()
               : variable->getAttrOfType<DictionaryAttr>(kTiedAttr);
  };
  int64_t count = 0;
  for (auto variable : module.getOps<VariableOp>()) {
    numbers[variable.getSymName()] = count++;
    if (DictionaryAttr ties = tiesOf(variable))
      count += static_cast<int64_t>(ties.size());
  }
  for (auto variable : module.getOps<VariableOp>()) {
    FailureOr<Constant> tensor =
        getTensor(constants, variable, variable.getTensorType());
    if (failed(tensor))
      return failure();
    std::vector<Constant> copies;
    uint64_t versions = 1;
    bool isParted = getParts(variable) > 1;
    for (auto &[device, placement] : placements[variable.getSymName()]) {
      copies.push_back(
          Constant::fields({Constant::i32(device), Constant::i64(placement.at),
                            Constant::i64(placement.stride)}));
      // The first part is the variable.
      if (!isParted)
        versions = std::max(versions, placement.versions);
    }
    auto copyCount = static_cast<int64_t>(copies.size());
    Constant copyTable = constants.table(
        symbol.table("placements." + variable.getSymName()), std::move(copies));
    BytesAttr init = variable.getInitAttr();
    StringRef stage = variable.getStage().value_or("");
    int64_t weights = 0, prepacking = 0;
    if (variable.getRole() == Role::Prepacked) {
      weights = numbers.lookup(
          variable->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr)
              .getValue());
      Attribute form = variable->getAttr(kPrepackingAttr);
      if (auto panels = dyn_cast<PanelsAttr>(form))
        prepacking = convs.size() + gemms.getIndex(panels);
      else
        prepacking = convs.getIndex(cast<nn::PrepackingAttr>(form));
    }
    auto addVariable = [&](StringRef name, BytesAttr bytes,
                           Constant fileOrder) {
      table.push_back(Constant::fields(
          {constants.string(name),
           Constant::i32(static_cast<int64_t>(variable.getRole())),
           Constant::i32(getStage(stage)), Constant::i32(variable.getFrozen()),
           *tensor, Constant::i32(bytes ? files.getIndex(bytes.getFile()) : -1),
           Constant::i64(bytes ? bytes.getOffset() : 0), fileOrder,
           Constant::i32(versions), Constant::i32(copyCount), copyTable,
           Constant::i32(weights), Constant::i32(prepacking)}));
    };
    addVariable(variable.getSymName(), init, Constant::null());
    // One place, and several initialisers that are saved from it.
    if (DictionaryAttr ties = tiesOf(variable))
      for (NamedAttribute other : ties) {
        StringRef name = other.getName();
        Constant order = Constant::null();
        if (auto transposed = dyn_cast<TransposedAttr>(other.getValue())) {
          std::vector<Constant> axes;
          for (int64_t axis : transposed.getOrder())
            axes.push_back(Constant::i32(axis));
          order =
              constants.table(symbol.table("order." + name), std::move(axes));
        }
        addVariable(name, getBytes(other.getValue()), order);
      }
  }
  return table;
}

FailureOr<std::vector<Constant>>
ProgramTable::getChannels(ConstantBuilder &constants) {
  std::vector<Constant> table;
  for (auto &[name, ends] : channels) {
    auto channel = module.lookupSymbol<ChannelOp>(name);
    FailureOr<Constant> tensor =
        getTensor(constants, channel, channel.getTensorType(0));
    if (failed(tensor))
      return failure();
    auto text = [&](std::optional<StringRef> value) {
      return value ? constants.string(*value) : Constant::null();
    };
    auto add = [&, name = StringRef(name)](int64_t sender, int64_t receiver,
                                           int64_t stride, int64_t offset) {
      table.push_back(
          Constant::fields({constants.string(name), text(channel.getSource()),
                            text(channel.getSink()), *tensor,
                            Constant::i32(sender), Constant::i32(receiver),
                            Constant::i32(channel.getSlots().value_or(1)),
                            Constant::i32(channel.getStaging().value_or(1)),
                            Constant::i32(stride), Constant::i32(offset)}));
    };
    if (ends.ways == 1) {
      add(ends.sender, ends.receiver, 1, 0);
      continue;
    }
    auto end = [&](StringRef attribute, int64_t k) {
      ArrayRef<int64_t> devices = getEnds(channel, attribute);
      return devices.empty() ? -1 : devices[k % devices.size()];
    };
    for (int64_t k : llvm::seq<int64_t>(0, ends.ways))
      add(end(kSendersAttr, k), end(kReceiversAttr, k), ends.ways, k);
    if (trains)
      add(end(kSendersAttr, 0), end(kReceiversAttr, 0), 1, 0);
  }
  return table;
}

std::vector<Constant> ProgramTable::getTasks(ConstantBuilder &constants) {
  std::vector<Constant> table;
  for (auto &[name, op] : tasks) {
    TaskOp task = op;
    auto stage = module.lookupSymbol<StageOp>(task.getStageAttr());
    int64_t device = 0;
    if (stage && stage.getDevices() && !stage.getDevices()->empty())
      device = stage.getDevices()->front();
    table.push_back(Constant::fields(
        {constants.string(name), Constant::i32(task.getLetter()),
         Constant::i32(getStage(task.getStage())), Constant::i32(device)}));
  }
  return table;
}

std::vector<Constant>
ProgramTable::getHyperparameters(ConstantBuilder &constants) const {
  std::vector<Constant> table;
  for (auto &[name, value] : hyperparameters)
    table.push_back(
        Constant::fields({constants.string(name), Constant::f64(value)}));
  return table;
}

FailureOr<std::vector<Constant>>
ProgramTable::getSchedules(ConstantBuilder &constants, const Symbols &symbol) {
  std::vector<Constant> table;
  for (auto &[name, byDevice] : functions) {
    auto schedule = module.lookupSymbol<ScheduleOp>(name);
    if (!schedule)
      return module.emitError() << "there is no schedule @" << name;
    std::vector<Constant> entries;
    for (int64_t device : llvm::seq<int64_t>(0, getDeviceCount())) {
      auto function = byDevice.find(device);
      entries.push_back(function == byDevice.end()
                            ? Constant::null()
                            : Constant::address(symbol.of(function->second)));
    }
    double bubble = 0;
    if (auto predicted = schedule.getPredictedBubble())
      bubble = predicted->convertToDouble();
    table.push_back(Constant::fields(
        {constants.string(stringifyScheduleRole(schedule.getRole())),
         Constant::i32(schedule.getMicrobatches()), Constant::f64(bubble),
         constants.table(symbol.table("functions." + name),
                         std::move(entries))}));
  }
  return table;
}

/// Replicas and stages share a source: it has one range.
std::vector<Constant> ProgramTable::getRanges(ConstantBuilder &constants) {
  std::vector<Constant> table;
  llvm::SmallSetVector<StringRef, 4> sources;
  for (auto channel : module.getOps<ChannelOp>()) {
    auto range = channel->getAttrOfType<RangeAttr>(kRangeAttr);
    if (!range || !sources.insert(*channel.getSource()))
      continue;
    table.push_back(Constant::fields(
        {constants.string(*channel.getSource()), Constant::i64(range.getLow()),
         Constant::i64(range.getHigh()),
         Constant::i32(range.getIgnored().has_value()),
         Constant::i64(range.getIgnored().value_or(0))}));
  }
  return table;
}

int64_t ProgramTable::getMicrobatchSize() {
  for (auto channel : module.getOps<ChannelOp>())
    if (channel.getSource() && channel.getTensorType(0).getRank())
      if (int64_t size = channel.getTensorType(0).getDimSize(0))
        return size;
  return 0;
}

LogicalResult ProgramTable::emit(ConstantBuilder &constants, StringRef name,
                                 StringRef prefix, const FileTable &files,
                                 const GemmTable &gemms,
                                 const ConvolutionTable &convs,
                                 const ProgramTexts &texts, StringRef replay) {
  // 1. What needs a look at the module.
  Symbols symbol{prefix};
  FailureOr<std::vector<Constant>> variableTable =
      getVariables(constants, symbol, files, gemms, convs);
  if (failed(variableTable))
    return failure();
  FailureOr<std::vector<Constant>> channelTable = getChannels(constants);
  if (failed(channelTable))
    return failure();
  std::vector<Constant> taskTable = getTasks(constants);
  std::vector<Constant> hyperparameterTable = getHyperparameters(constants);
  FailureOr<std::vector<Constant>> scheduleTable =
      getSchedules(constants, symbol);
  if (failed(scheduleTable))
    return failure();

  // 2. The fields, in their order.
  std::vector<Constant> fields = {
      Constant::i32(PENSTOCK_ABI_VERSION), Constant::i32(stages.size()),
      constants.string(texts.cpu),         constants.string(texts.features),
      Constant::i64(getMicrobatchSize()),  constants.string(texts.method),
      constants.string(texts.schedule),    constants.string(texts.plan)};
  auto addTable = [&](StringRef table, std::vector<Constant> elements) {
    fields.push_back(Constant::i32(elements.size()));
    fields.push_back(constants.table(symbol.table(table), std::move(elements)));
  };
  addTable("files", files.getTable(constants));
  addTable("devices", getDevices());
  addTable("variables", std::move(*variableTable));
  addTable("channels", std::move(*channelTable));
  addTable("tasks", std::move(taskTable));
  bool isReplay = !prefix.empty();
  std::optional<int64_t> oneDevice;
  if (isReplay)
    oneDevice = 0;
  addTable("gemms", gemms.getTable(constants, oneDevice));
  addTable("convs", convs.getTable(constants, oneDevice));
  addTable("hyperparameters", std::move(hyperparameterTable));
  addTable("schedules", std::move(*scheduleTable));
  fields.push_back(Constant::address(replay));
  fields.push_back(Constant::address(rate.empty() ? "" : kRateFunction));
  std::string ignored;
  FailureOr<MethodSpec> method = parseMethodSpec(texts.method, ignored);
  fields.push_back(Constant::i64(succeeded(method) ? method->warmupSteps : 0));
  std::vector<Constant> unused;
  if (auto inputs = module->getAttrOfType<ArrayAttr>(onnx::kUnusedInputsAttr))
    for (StringAttr input : inputs.getAsRange<StringAttr>())
      unused.push_back(constants.string(input));
  addTable("unused_inputs", std::move(unused));
  std::vector<Constant> groupTable;
  for (StringRef name : groups) {
    FailureOr<Constant> group =
        getSummands(constants, symbol, module.lookupSymbol<GroupOp>(name));
    if (failed(group))
      return failure();
    groupTable.push_back(*group);
  }
  addTable("groups", std::move(groupTable));
  addTable("ranges", getRanges(constants));
  constants.add(name, Constant::fields(std::move(fields)),
                /*exported=*/!isReplay);
  return success();
}
