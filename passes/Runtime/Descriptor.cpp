//===- Descriptor.cpp - The constant penstock_program ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The structs of penstock/abi.def, from what is known of the module.
//===----------------------------------------------------------------------===//

#include "passes/Runtime/AbiStructs.h"
#include "passes/Runtime/ProgramTable.h"

#include "dialects/Onnx/DiscardableAttributes.h"
#include "dialects/Pipeline/ParameterGroups.h"
#include "dialects/Pipeline/Summands.h"
#include "penstock/Support/ByteSize.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

static_assert(PENSTOCK_SCHEDULE_TRAIN ==
                  static_cast<int>(ScheduleRole::Train) &&
              PENSTOCK_SCHEDULE_EVALUATE ==
                  static_cast<int>(ScheduleRole::Evaluate) &&
              PENSTOCK_SCHEDULE_INFER == static_cast<int>(ScheduleRole::Infer));
static_assert(PENSTOCK_ROLE_PARAMETER == static_cast<int>(Role::Parameter) &&
              PENSTOCK_ROLE_GRADIENT == static_cast<int>(Role::Gradient) &&
              PENSTOCK_ROLE_OPTIMIZER == static_cast<int>(Role::Optimizer) &&
              PENSTOCK_ROLE_COMPENSATION ==
                  static_cast<int>(Role::Compensation) &&
              PENSTOCK_ROLE_STATISTIC == static_cast<int>(Role::Statistic) &&
              PENSTOCK_ROLE_MASTER == static_cast<int>(Role::Master) &&
              PENSTOCK_ROLE_SCALAR == static_cast<int>(Role::Scalar) &&
              PENSTOCK_ROLE_PREPACKED == static_cast<int>(Role::Prepacked));

/// Returns the runtime's role of a channel.
static int64_t getRole(ChannelOp channel) {
  if (auto source = channel.getSource())
    return source->getKind() == SourceKind::Labels ? PENSTOCK_CHANNEL_LABELS
                                                   : PENSTOCK_CHANNEL_INPUT;
  if (auto sink = channel.getSink()) {
    switch (sink->getKind()) {
    case SinkKind::Loss:
      return PENSTOCK_CHANNEL_LOSS;
    case SinkKind::Correct:
      return PENSTOCK_CHANNEL_CORRECT;
    case SinkKind::Count:
      return PENSTOCK_CHANNEL_COUNT;
    case SinkKind::Output:
      return PENSTOCK_CHANNEL_OUTPUT;
    case SinkKind::Metric:
      return PENSTOCK_CHANNEL_METRIC;
    }
  }
  return PENSTOCK_CHANNEL_TRANSFER;
}

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

static FailureOr<abi::tensor> getTensor(ConstantBuilder &constants,
                                        Operation *op, RankedTensorType type) {
  uint32_t element = getElement(type.getElementType());
  if (!element || !type.hasStaticShape())
    return op->emitError() << "the runtime knows no tensors of type " << type;
  unsigned bits = type.getElementType().getIntOrFloatBitWidth();
  return abi::tensor{.element = element,
                     .rank = type.getRank(),
                     .shape = constants.shape(type.getShape()),
                     .bytes = type.getNumElements() * ((bits + 7) / 8)};
}

/// The devices of the summands, in the order (stage, replica).
FailureOr<Constant> ProgramTable::getSummands(ConstantBuilder &constants,
                                              const Symbols &symbol,
                                              GroupOp group) {
  std::vector<Constant> devices, resets, types;
  for (VariableOp variable : listSummedVariables(module, group)) {
    FailureOr<abi::tensor> tensor =
        getTensor(constants, variable, variable.getTensorType());
    if (failed(tensor))
      return failure();
    types.push_back(tensor->get());
  }
  for (const Summand &summand : listSummands(module, group)) {
    devices.push_back(Constant::i32(summand.device));
    resets.push_back(Constant::i32(
        summand.kind == Summand::Kind::Receives ? PENSTOCK_SUM_RECEIVES
        : summand.kind == Summand::Kind::Resets ? PENSTOCK_SUM_RESETS
                                                : PENSTOCK_SUM_ADDS));
  }
  StringRef name = group.getSymName();
  int64_t typeCount = types.size(), deviceCount = devices.size();
  Constant typeTable =
      constants.table(symbol.table("sum." + name), std::move(types));
  Constant deviceTable =
      constants.table(symbol.table("summands." + name), std::move(devices));
  Constant resetTable =
      constants.table(symbol.table("resets." + name), std::move(resets));
  return abi::group{.name = constants.string(name),
                    .type_count = typeCount,
                    .types = typeTable,
                    .summand_count = deviceCount,
                    .devices = deviceTable,
                    .resets = resetTable}
      .get();
}

int64_t ProgramTable::countWorkers() {
  int64_t count = 1;
  for (auto stage : module.getOps<StageOp>())
    count = std::max(count, static_cast<int64_t>(stage.getWorker()) + 1);
  return count;
}

/// The updates of a worker that are one of the program.
int64_t ProgramTable::countWave() {
  int64_t wave = 1;
  for (auto schedule : module.getOps<ScheduleOp>())
    wave = std::max(wave, static_cast<int64_t>(schedule.getWave()));
  return wave;
}

std::vector<Constant> ProgramTable::getDevices(ConstantBuilder &constants) {
  std::vector<Constant> table;
  for (int64_t device : llvm::seq<int64_t>(0, getDeviceCount())) {
    auto arena = arenas.find(device);
    bool used = arena != arenas.end();
    // A number without functions stands for an empty device of some kind.
    auto found = descriptions.find(device);
    if (found == descriptions.end())
      found = descriptions.begin();
    DeviceDescription description;
    if (found != descriptions.end())
      description = found->second;
    table.push_back(abi::device_descriptor{
        .arena_bytes =
            used ? static_cast<int64_t>(arena->second.getBytes()) : 0,
        .arena_alignment =
            static_cast<int64_t>(used ? arena->second.getAlignment() : 64),
        .threads = used ? description.threads : 1,
        .kind = constants.string(description.kind),
        .processor = constants.string(description.processor),
        .features = constants.string(description.features)}
                        .get());
  }
  return table;
}

/// The parameter that a variable belongs to, whatever copy of it that is of; a
/// frozen copy only shares where it starts.
static VariableOp
getOwner(const SymbolTable &symbols, VariableOp variable,
         const llvm::DenseMap<Attribute, VariableOp> &firstOfBytes) {
  while (auto name =
             variable->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr)) {
    auto parameter = symbols.lookup<VariableOp>(name.getValue());
    if (!parameter || parameter == variable)
      break;
    variable = parameter;
  }
  if (llvm::is_contained({Role::Parameter, Role::Statistic},
                         variable.getRole()) &&
      variable.getInit())
    return firstOfBytes.lookup(variable.getInitAttr());
  return variable;
}

/// A wave that a worker has pushed, which its folds take in the same segment.
static bool isWave(VariableOp variable) {
  auto kind = variable->getAttrOfType<StringAttr>(kKindAttr);
  return variable.getRole() == Role::Compensation && kind &&
         kind.getValue() == "wave";
}

FailureOr<std::vector<Constant>>
ProgramTable::getVariables(ConstantBuilder &constants, const Symbols &symbol,
                           const FileTable &files, const CallTable &gemms,
                           const CallTable &convs) {
  std::vector<Constant> table;
  // By name; an initializer of another name with the value of the first has an
  // entry of its own behind it.
  llvm::StringMap<int64_t> numbers;
  SymbolTable symbols(module);
  auto getTies = [&](VariableOp variable) {
    // A copy on another stage need not say so again.
    auto whose = variable->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr);
    if (whose && llvm::is_contained({Role::Master, Role::Compensation},
                                    variable.getRole()))
      whose = symbols.lookup<VariableOp>(whose.getAttr())
                  ->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr);
    return whose ? DictionaryAttr()
                 : variable->getAttrOfType<DictionaryAttr>(kTiedAttr);
  };
  int64_t count = 0, wave = countWave();
  llvm::DenseMap<Attribute, VariableOp> firstOfBytes;
  for (auto variable : module.getOps<VariableOp>()) {
    if (variable.getInit() && variable.getRole() != Role::Compensation &&
        variable.getRole() != Role::Master)
      firstOfBytes.try_emplace(variable.getInitAttr(), variable);
    numbers[variable.getSymName()] = count++;
    if (DictionaryAttr ties = getTies(variable))
      count += static_cast<int64_t>(ties.size());
  }
  for (auto variable : module.getOps<VariableOp>()) {
    FailureOr<abi::tensor> tensor =
        getTensor(constants, variable, variable.getTensorType());
    if (failed(tensor))
      return failure();
    std::vector<Constant> copies;
    uint64_t versions = 1;
    bool isParted = getParts(variable) > 1;
    for (auto &[device, placement] : placements[variable.getSymName()]) {
      copies.push_back(
          abi::placement{.device = device,
                         .offset = static_cast<int64_t>(placement.at),
                         .stride = static_cast<int64_t>(placement.stride)}
              .get());
      // The first part is the variable.
      if (!isParted)
        versions = std::max(versions, placement.versions);
    }
    auto copyCount = static_cast<int64_t>(copies.size());
    Constant copyTable = constants.table(
        symbol.table("placements." + variable.getSymName()), std::move(copies));
    BytesAttr init = variable.getInitAttr();
    bool isRounded =
        init && init.getLength() != getByteSize(variable.getTensorType());
    StringRef stage = variable.getStage().value_or("");
    auto line = symbols.lookup<StageOp>(stage);
    int64_t worker = line ? static_cast<int64_t>(line.getWorker()) : 0;
    int64_t weights = 0, prepacking = 0;
    if (variable.getRole() == Role::Prepacked) {
      weights = numbers.lookup(
          variable->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr)
              .getValue());
      auto order = variable->getAttrOfType<kernel::PackingAttrInterface>(
          kernel::kPackingAttr);
      prepacking = gemms.contains(order) ? convs.size() + gemms.getIndex(order)
                                         : convs.getIndex(order);
    }
    VariableOp parameter = getOwner(symbols, variable, firstOfBytes);
    auto scale = parameter->getAttrOfType<FloatAttr>(kRateScaleAttr);
    int64_t owner = numbers.lookup(parameter.getSymName());
    auto kind = variable->getAttrOfType<StringAttr>(kKindAttr);
    auto addVariable = [&](StringRef name, BytesAttr bytes,
                           Constant fileOrder) {
      table.push_back(abi::variable{
          .name = constants.string(name),
          .kind = constants.string(kind ? kind.getValue() : ""),
          .of = bytes && bytes != init ? static_cast<int64_t>(table.size())
                                       : owner,
          .role = static_cast<int64_t>(variable.getRole()),
          .stage = getStage(stage),
          .frozen = variable.getFrozen(),
          .file_element = isRounded ? PENSTOCK_F32 : 0,
          .worker = worker,
          .type = *tensor,
          .file = bytes ? files.getIndex(bytes.getFile()) : -1,
          .transient = isWave(variable),
          .file_offset = bytes ? bytes.getOffset() : 0,
          .file_order = fileOrder,
          .versions = static_cast<int64_t>(versions),
          .version_step = llvm::is_contained(
                              {Role::Parameter, Role::Master, Role::Prepacked},
                              variable.getRole())
                              ? wave
                              : 1,
          .placement_count = copyCount,
          .placements = copyTable,
          .prepacked_from = weights,
          .prepacked_by = prepacking,
          .rate_scale = scale ? scale.getValueAsDouble() : 1}
                          .get());
    };
    addVariable(variable.getSymName(), init, Constant::null());
    // One place, and several initializers that are saved from it.
    if (DictionaryAttr ties = getTies(variable))
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
  Ends first;
  SymbolTable symbols(module);
  llvm::DenseMap<StringAttr, int64_t> putBy;
  for (auto task : module.getOps<TaskOp>())
    if (task.getKind() == TaskKind::Forward && task.getPutsAttr())
      for (auto put : task.getPutsAttr().getAsRange<PutAttr>())
        putBy[put.getChannel().getAttr()] = getStage(task.getStage());
  for (auto &[name, ends] : channels) {
    auto channel = symbols.lookup<ChannelOp>(name);
    FailureOr<abi::tensor> tensor =
        getTensor(constants, channel, channel.getTensorType(0));
    if (failed(tensor))
      return failure();
    Constant endpoint = Constant::null();
    if (auto source = channel.getSource())
      endpoint = constants.string(source->getEndpoint());
    else if (auto sink = channel.getSink(); sink && sink->getName())
      endpoint = constants.string(sink->getName());
    auto stage = putBy.find(channel.getSymNameAttr());
    auto add = [&, name = StringRef(name)](int64_t sender, int64_t receiver,
                                           int64_t stride, int64_t offset) {
      table.push_back(abi::channel{
          .name = constants.string(name),
          .role = getRole(channel),
          .endpoint = endpoint,
          .type = *tensor,
          .sender = sender,
          .receiver = receiver,
          .slots = static_cast<int64_t>(channel.getSlots().value_or(1)),
          .staging = static_cast<int64_t>(channel.getStaging().value_or(1)),
          .stride = stride,
          .offset = offset,
          .own_queue = channel.getOwnQueue(),
          .stage = stage == putBy.end() ? -1 : stage->second}
                          .get());
    };
    if (ends.ways == 1) {
      add(ends.sender, ends.receiver, ends.turns, ends.turn);
      if (ends.turn == 0)
        first = ends;
      // The first worker evaluates.
      if (trains && ends.isBeforeEvaluation())
        add(first.sender, first.receiver, 1, 0);
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
    table.push_back(abi::task{.name = constants.string(name),
                              .letter = task.getLetter(),
                              .stage = getStage(task.getStage()),
                              .device = device}
                        .get());
  }
  return table;
}

std::vector<Constant>
ProgramTable::getHyperparameters(ConstantBuilder &constants) const {
  std::vector<Constant> table;
  for (auto &[name, value] : hyperparameters)
    table.push_back(abi::hyperparameter_descriptor{
        .name = constants.string(name), .value = value}
                        .get());
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
    table.push_back(abi::schedule{
        .role = static_cast<int64_t>(schedule.getRole()),
        .microbatches =
            static_cast<int64_t>(schedule.getMicrobatches() *
                                 schedule.getWave()) *
            (schedule.getRole() == ScheduleRole::Train ? countWorkers() : 1),
        .predicted_bubble = bubble,
        .functions = constants.table(symbol.table("functions." + name),
                                     std::move(entries))}
                        .get());
  }
  return table;
}

/// Replicas and stages share a source: it has one range.
std::vector<Constant> ProgramTable::getRanges(ConstantBuilder &constants) {
  std::vector<Constant> table;
  llvm::SmallSetVector<StringRef, 4> sources;
  for (auto channel : module.getOps<ChannelOp>()) {
    auto range = channel->getAttrOfType<RangeAttr>(kRangeAttr);
    if (!range || !sources.insert(channel.getSource()->getEndpoint()))
      continue;
    table.push_back(abi::range{.endpoint = constants.string(sources.back()),
                               .low = range.getLow(),
                               .high = range.getHigh(),
                               .ignores = range.getIgnored().has_value(),
                               .ignored = range.getIgnored().value_or(0)}
                        .get());
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

/// The devices that each stage has.
std::vector<Constant> ProgramTable::getReplicas() {
  std::vector<Constant> table;
  for (StringRef name : stages) {
    std::optional<ArrayRef<int64_t>> devices =
        module.lookupSymbol<StageOp>(name).getDevices();
    table.push_back(Constant::i32(devices ? devices->size() : 1));
  }
  return table;
}

LogicalResult ProgramTable::emit(ConstantBuilder &constants, StringRef name,
                                 StringRef prefix, const FileTable &files,
                                 const CallTable &gemms, const CallTable &convs,
                                 const LaunchTable &launches,
                                 const ActionTable &actions,
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

  // 2. The tables.
  abi::program program;
  auto setTable = [&](abi::Field<uint32_t> &count, auto &address,
                      StringRef table, std::vector<Constant> elements) {
    count = static_cast<int64_t>(elements.size());
    address = constants.table(symbol.table(table), std::move(elements));
  };
  bool isReplay = !prefix.empty();
  auto calls = isReplay ? CallTable::Of::Replay : CallTable::Of::Program;
  setTable(program.file_count, program.files, "files",
           files.getTable(constants));
  setTable(program.device_count, program.devices, "devices",
           getDevices(constants));
  setTable(program.variable_count, program.variables, "variables",
           std::move(*variableTable));
  setTable(program.channel_count, program.channels, "channels",
           std::move(*channelTable));
  setTable(program.task_count, program.tasks, "tasks", std::move(taskTable));
  setTable(program.gemm_count, program.gemms, "gemms",
           gemms.getTable(constants, calls));
  setTable(program.conv_count, program.convs, "convs",
           convs.getTable(constants, calls));
  setTable(program.hyperparameter_count, program.hyperparameters,
           "hyperparameters", std::move(hyperparameterTable));
  setTable(program.schedule_count, program.schedules, "schedules",
           std::move(*scheduleTable));
  std::vector<Constant> unused;
  if (auto inputs = module->getAttrOfType<ArrayAttr>(onnx::kUnusedInputsAttr))
    for (StringAttr input : inputs.getAsRange<StringAttr>())
      unused.push_back(constants.string(input));
  setTable(program.unused_input_count, program.unused_inputs, "unused_inputs",
           std::move(unused));
  std::vector<Constant> groupTable;
  for (StringRef name : groups) {
    FailureOr<Constant> group =
        getSummands(constants, symbol, module.lookupSymbol<GroupOp>(name));
    if (failed(group))
      return failure();
    groupTable.push_back(*group);
  }
  setTable(program.group_count, program.groups, "groups",
           std::move(groupTable));
  setTable(program.range_count, program.ranges, "ranges", getRanges(constants));
  setTable(program.kernel_count, program.kernels, "kernels",
           launches.getKernels(constants));
  if (launches.hasKernels())
    program.code = constants.declare(kDeviceCodeSymbol);
  setTable(program.constant_count, program.constants, "constants",
           launches.getConstants(constants));
  setTable(program.action_count, program.actions, "actions",
           actions.getActions(constants));

  // 3. The rest.
  program.abi_version = PENSTOCK_ABI_VERSION;
  program.stage_count = static_cast<int64_t>(stages.size());
  program.worker_count = countWorkers();
  program.wave = countWave();
  program.microbatch_size = getMicrobatchSize();
  program.method = constants.string(texts.method);
  program.optimizer = constants.string(texts.optimizer);
  program.schedule = constants.string(texts.schedule);
  program.plan = constants.string(texts.plan);
  program.replicas = constants.table(symbol.table("replicas"), getReplicas());
  program.precision =
      texts.precision == Precision::BF16 ? PENSTOCK_BF16 : PENSTOCK_F32;
  program.replay = Constant::address(replay);
  program.rate = Constant::address(rate.empty() ? "" : kRateFunction);
  program.flushed_updates = texts.flushedUpdates;
  constants.add(name, program.get(), /*exported=*/!isReplay);
  return success();
}
