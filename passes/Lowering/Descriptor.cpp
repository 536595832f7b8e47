//===- Descriptor.cpp - The constant penstock_program ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Field for field the structs of penstock/abi.h.
//===----------------------------------------------------------------------===//

#include "passes/Lowering/Descriptor.h"

#include "dialects/Pipeline/Replicas.h"
#include "penstock/Import/Import.h"
#include "penstock/Support/MappedFile.h"
#include "penstock/Training/MethodSpec.h"
#include "penstock/Training/RateSchedule.h"
#include "penstock/sha256.h"
#include "runtime/include/penstock/abi.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

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
              PENSTOCK_ROLE_SCALAR == static_cast<int>(Role::Scalar));

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

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

LogicalResult FileTable::add(Operation *op, StringRef name) {
  if (files.contains(name))
    return success();
  File file;
  SmallString<256> path(name);
  std::error_code error = llvm::sys::fs::make_absolute(path);
  llvm::sys::path::remove_dots(path, /*remove_dot_dot=*/true);
  file.path = path.str().str();
  file.digest.fill(0);
  if (files.empty()) {
    auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                              /*RequiresNullTerminator=*/false);
    if (!buffer)
      return op->emitError()
             << "cannot read '" << name << "': " << buffer.getError().message();
    file.size = static_cast<int64_t>((*buffer)->getBufferSize());
    // The memory of the compiler does not grow with the weights.
    auto giveBack = [](void *mapped) {
      giveBackPages(*static_cast<llvm::MemoryBuffer *>(mapped));
    };
    penstock_sha256_in_parts((*buffer)->getBufferStart(),
                             (*buffer)->getBufferSize(), file.digest.data(),
                             giveBack, buffer->get());
  } else {
    uint64_t size = 0;
    if (!error)
      error = llvm::sys::fs::file_size(path, size);
    if (error)
      return op->emitError()
             << "cannot read '" << name << "': " << error.message();
    file.size = static_cast<int64_t>(size);
  }
  files[name] = file;
  return success();
}

LogicalResult FileTable::collect(ModuleOp root) {
  if (auto model = root->getAttrOfType<BytesAttr>(kModelAttr))
    if (failed(add(root, model.getFile())))
      return failure();
  for (auto variable : root.getOps<VariableOp>()) {
    if (BytesAttr init = variable.getInitAttr())
      if (failed(add(variable, init.getFile())))
        return failure();
    if (auto tied = variable->getAttrOfType<DictionaryAttr>(kTiedAttr))
      for (NamedAttribute other : tied)
        if (failed(add(variable, cast<BytesAttr>(other.getValue()).getFile())))
          return failure();
  }
  return success();
}

int64_t FileTable::getIndex(StringRef name) const {
  return files.find(name) - files.begin();
}

std::vector<Constant> FileTable::getTable(ConstantBuilder &constants) const {
  std::vector<Constant> table;
  for (auto &[name, file] : files)
    table.push_back(
        Constant::fields({constants.string(file.path), Constant::i64(file.size),
                          Constant::bytes(file.digest)}));
  return table;
}

//===----------------------------------------------------------------------===//
// Library products
//===----------------------------------------------------------------------===//

ArrayAttr GemmTable::getKey(GemmOp gemm, int64_t device) {
  auto element = cast<MemRefType>(gemm.getA().getType()).getElementType();
  Builder builder(gemm.getContext());
  return builder.getArrayAttr({TypeAttr::get(element), gemm.getSizesAttr(),
                               gemm.getStridesAAttr(), gemm.getStridesBAttr(),
                               gemm.getStridesCAttr(),
                               builder.getBoolAttr(gemm.getAccumulate()),
                               builder.getI64IntegerAttr(device)});
}

LogicalResult GemmTable::add(GemmOp gemm, int64_t device) {
  size_t rank = gemm.getSizes().size();
  auto element = cast<MemRefType>(gemm.getA().getType()).getElementType();
  if (rank < 3 || rank - 3 > PENSTOCK_MAX_BATCH_RANK || !element.isF32() ||
      gemm.getStridesA().size() + 1 != rank ||
      gemm.getStridesB().size() + 1 != rank ||
      gemm.getStridesC().size() + 1 != rank)
    return gemm.emitError() << "the library multiplies f32 matrices with up to "
                            << PENSTOCK_MAX_BATCH_RANK << " batch dimensions";
  // Equal products of two devices stay apart: a third one has not planned the
  // scratch that they need. Only a kernel of several devices shares its own.
  if (auto number = numbers.find(gemm); number != numbers.end()) {
    Product &product = (products.begin() + number->second)->second;
    if (product.device != device)
      product.shared = true;
    return success();
  }
  auto it = products.insert({getKey(gemm, device), Product{device}}).first;
  numbers[gemm] = it - products.begin();
  return success();
}

LogicalResult GemmTable::addUnused(GemmOp gemm) {
  return numbers.contains(gemm) ? success() : add(gemm, 0);
}

uint32_t GemmTable::getIndex(GemmOp gemm) const { return numbers.at(gemm); }

std::vector<Constant> GemmTable::getTable(std::optional<int64_t> device) const {
  std::vector<Constant> table;
  for (auto &[key, product] : products) {
    auto field = [&](unsigned i) {
      return cast<DenseI64ArrayAttr>(key[i]).asArrayRef();
    };
    ArrayRef<int64_t> sizes = field(1);
    size_t batchRank = sizes.size() - 3;
    SmallVector<int64_t> batch(sizes.take_front(batchRank));
    batch.resize(PENSTOCK_MAX_BATCH_RANK, 0);
    auto strides = [&](ArrayRef<int64_t> values) {
      SmallVector<int64_t> padded(values);
      padded.resize(PENSTOCK_MAX_BATCH_RANK + 2, 0);
      return Constant::integers(padded);
    };
    int64_t where = device ? *device
                    : product.shared
                        ? static_cast<int32_t>(PENSTOCK_EVERY_DEVICE)
                        : product.device;
    table.push_back(Constant::fields(
        {Constant::i32(PENSTOCK_F32), Constant::i32(batchRank),
         Constant::integers(batch), Constant::i64(sizes[batchRank]),
         Constant::i64(sizes[batchRank + 1]),
         Constant::i64(sizes[batchRank + 2]), strides(field(2)),
         strides(field(3)), strides(field(4)),
         Constant::i32(cast<BoolAttr>(key[5]).getValue()),
         Constant::i32(where)}));
  }
  return table;
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// Whether a transfer's channel joins replicas.
static bool isReplicated(Operation *op) {
  auto name = op->getAttrOfType<FlatSymbolRefAttr>("channel");
  auto channel = SymbolTable::lookupNearestSymbolFrom<ChannelOp>(op, name);
  return channel && pipeline::getWays(channel) > 1;
}

LogicalResult ProgramTable::setEnd(Operation *op, int64_t &end,
                                   int64_t device) {
  if (end >= 0 && end != device && !isReplicated(op))
    return op->emitError() << "device " << device
                           << " is an end of this channel, but device " << end
                           << " is the same end elsewhere";
  end = device;
  return success();
}

LogicalResult ProgramTable::collect(ModuleOp programModule) {
  module = programModule;
  for (auto arena : module.getOps<ArenaOp>())
    arenas[arena.getDevice()] = arena;
  for (auto stage : module.getOps<StageOp>())
    stages.insert(stage.getSymName());
  for (auto task : module.getOps<TaskOp>())
    tasks[task.getSymName()] = task;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function->hasAttr(kRateAttr) && !function.isDeclaration())
      rate = function.getSymName().str();
    auto number = function->getAttrOfType<IntegerAttr>(kDeviceAttr);
    auto schedule = function->getAttrOfType<FlatSymbolRefAttr>(kScheduleAttr);
    if (!number || !schedule)
      continue;
    int64_t device = number.getInt();
    if (!arenas.count(device))
      return function.emitError() << "device " << device
                                  << " has no pipeline.arena: run "
                                     "pipeline-plan-memory";
    functions[schedule.getValue()][device] = function.getSymName().str();
    WalkResult result = function.walk([&](Operation *op) {
      LogicalResult ok = success();
      if (auto slot = dyn_cast<SlotOp>(op)) {
        if (!slot.getAt())
          ok = slot.emitError("has no place: run pipeline-plan-memory");
        else if (module.lookupSymbol<VariableOp>(slot.getSymbolAttr()))
          placements[slot.getSymbol()][device] = {*slot.getAt(),
                                                  slot.getStride().value_or(0),
                                                  slot.getRing().value_or(1)};
      } else if (auto send = dyn_cast<StartSendOp>(op)) {
        ok = setEnd(op, channels[send.getChannel()].sender, device);
      } else if (auto recv = dyn_cast<StartRecvOp>(op)) {
        ok = setEnd(op, channels[recv.getChannel()].receiver, device);
      } else if (auto sum = dyn_cast<StartAllReduceOp>(op)) {
        groups.insert(sum.getGroup());
      } else if (auto await = dyn_cast<AwaitOp>(op)) {
        if (!module.lookupSymbol<GroupOp>(await.getChannelAttr()))
          channels.insert({await.getChannel(), Ends()});
      } else if (auto parameter = dyn_cast<HyperparameterOp>(op)) {
        double value = 0;
        if (auto given = parameter.getDefaultValue())
          value = given->convertToDouble();
        auto [it, inserted] =
            hyperparameters.insert({parameter.getName(), value});
        if (!inserted && it->second != value)
          ok = parameter.emitError() << "has the value " << value << ", but "
                                     << it->second << " elsewhere";
      } else if (auto mark = dyn_cast<MarkOp>(op)) {
        if (!tasks.contains(mark.getTask()))
          ok = mark.emitError() << "names no task: @" << mark.getTask();
      }
      return failed(ok) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
  }
  for (auto &[name, ends] : channels) {
    auto channel = module.lookupSymbol<ChannelOp>(name);
    if (!channel)
      return module.emitError() << "there is no channel @" << name;
    if (channel.getTypes().size() != 1)
      return channel.emitError("is transferred, but carries several tensors");
    ends.ways = pipeline::getWays(channel);
  }
  return success();
}

uint32_t ProgramTable::getEndpoint(StringRef name) const {
  uint32_t number = 0;
  for (auto &[channel, ends] : channels) {
    if (channel == name)
      return number;
    number += ends.ways == 1 ? 1 : ends.ways + 1;
  }
  return number + getGroup(name);
}

int64_t ProgramTable::getWays(StringRef name) const {
  auto channel = channels.find(name);
  return channel == channels.end() ? 1 : channel->second.ways;
}

uint32_t ProgramTable::getGroup(StringRef name) const {
  return llvm::find(groups, name) - groups.begin();
}

uint32_t ProgramTable::getTask(StringRef name) const {
  return tasks.find(name) - tasks.begin();
}

uint32_t ProgramTable::getHyperparameter(StringRef name) const {
  return hyperparameters.find(name) - hyperparameters.begin();
}

int64_t ProgramTable::getStage(StringRef name) const {
  auto stage = llvm::find(stages, name);
  return stage == stages.end() ? 0 : stage - stages.begin();
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
                                              GroupOp group, StringRef prefix) {
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
  std::string suffix = ("." + name).str();
  Constant typeTable = constants.table((prefix + "penstock.sum" + suffix).str(),
                                       std::move(types));
  Constant deviceTable = constants.table(
      (prefix + "penstock.summands" + suffix).str(), std::move(devices));
  Constant resetTable = constants.table(
      (prefix + "penstock.resets" + suffix).str(), std::move(resets));
  return Constant::fields({constants.string(name), Constant::i32(typeCount),
                           typeTable, Constant::i32(deviceCount), deviceTable,
                           resetTable});
}

LogicalResult ProgramTable::emit(ConstantBuilder &constants, StringRef name,
                                 StringRef prefix, const FileTable &files,
                                 const GemmTable &gemms,
                                 const ConvolutionTable &convs,
                                 const ProgramTexts &texts, StringRef replay) {
  auto symbol = [&](StringRef table) {
    return (prefix + "penstock." + table).str();
  };

  int64_t deviceCount = arenas.empty() ? 0 : arenas.rbegin()->first + 1;
  std::vector<Constant> deviceTable;
  for (int64_t device : llvm::seq<int64_t>(0, deviceCount)) {
    auto arena = arenas.find(device);
    bool used = arena != arenas.end();
    auto field = [&](auto getter) -> int64_t {
      return used ? (arena->second.*getter)() : 0;
    };
    deviceTable.push_back(Constant::fields(
        {Constant::i64(field(&ArenaOp::getBytes)),
         Constant::i64(used ? arena->second.getAlignment() : 64),
         Constant::i64(field(&ArenaOp::getLibraryAt)),
         Constant::i64(field(&ArenaOp::getLibraryBytes)),
         Constant::i32(used ? arena->second.getThreads() : 1)}));
  }

  std::vector<Constant> variableTable;
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
    Constant copyTable =
        constants.table(symbol(("placements." + variable.getSymName()).str()),
                        std::move(copies));
    BytesAttr init = variable.getInitAttr();
    StringRef stage = variable.getStage().value_or("");
    auto addVariable = [&](StringRef name, BytesAttr bytes) {
      variableTable.push_back(Constant::fields(
          {constants.string(name),
           Constant::i32(static_cast<int64_t>(variable.getRole())),
           Constant::i32(getStage(stage)), Constant::i32(variable.getFrozen()),
           *tensor, Constant::i32(bytes ? files.getIndex(bytes.getFile()) : -1),
           Constant::i64(bytes ? bytes.getOffset() : 0),
           Constant::i32(versions), Constant::i32(copyCount), copyTable}));
    };
    addVariable(variable.getSymName(), init);
    // One place, and several initialisers that are saved from it. A copy on
    // another stage need not say so again.
    auto tied = variable->getAttrOfType<DictionaryAttr>(kTiedAttr);
    if (tied && !variable->hasAttr(kParameterAttr))
      for (NamedAttribute other : tied)
        addVariable(other.getName(), cast<BytesAttr>(other.getValue()));
  }

  std::vector<Constant> channelTable;
  for (auto &[channelName, ends] : channels) {
    auto channel = module.lookupSymbol<ChannelOp>(channelName);
    FailureOr<Constant> tensor =
        getTensor(constants, channel, channel.getTensorType(0));
    if (failed(tensor))
      return failure();
    auto text = [&](std::optional<StringRef> value) {
      return value ? constants.string(*value) : Constant::null();
    };
    auto add = [&](int64_t sender, int64_t receiver, int64_t stride,
                   int64_t offset) {
      channelTable.push_back(Constant::fields(
          {constants.string(channelName), text(channel.getSource()),
           text(channel.getSink()), *tensor, Constant::i32(sender),
           Constant::i32(receiver),
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
    add(end(kSendersAttr, 0), end(kReceiversAttr, 0), 1, 0);
  }

  std::vector<Constant> taskTable;
  for (auto &[taskName, op] : tasks) {
    TaskOp task = op;
    auto stage = module.lookupSymbol<StageOp>(task.getStageAttr());
    int64_t device = 0;
    if (stage && stage.getDevices() && !stage.getDevices()->empty())
      device = stage.getDevices()->front();
    taskTable.push_back(Constant::fields(
        {constants.string(taskName), Constant::i32(task.getLetter()),
         Constant::i32(getStage(task.getStage())), Constant::i32(device)}));
  }

  std::vector<Constant> hyperparameterTable;
  for (auto &[parameter, value] : hyperparameters)
    hyperparameterTable.push_back(
        Constant::fields({constants.string(parameter), Constant::f64(value)}));

  std::vector<Constant> scheduleTable;
  for (auto &[scheduleName, byDevice] : functions) {
    auto schedule = module.lookupSymbol<ScheduleOp>(scheduleName);
    if (!schedule)
      return module.emitError() << "there is no schedule @" << scheduleName;
    std::vector<Constant> entries;
    for (int64_t device : llvm::seq<int64_t>(0, deviceCount)) {
      auto function = byDevice.find(device);
      entries.push_back(
          function == byDevice.end()
              ? Constant::null()
              : Constant::address(prefix.str() + function->second));
    }
    double bubble = 0;
    if (auto predicted = schedule.getPredictedBubble())
      bubble = predicted->convertToDouble();
    scheduleTable.push_back(Constant::fields(
        {constants.string(schedule.getRole()),
         Constant::i32(schedule.getMicrobatches()), Constant::f64(bubble),
         constants.table(symbol(("functions." + scheduleName).str()),
                         std::move(entries))}));
  }

  int64_t microbatchSize = 0;
  for (auto channel : module.getOps<ChannelOp>())
    if (channel.getSource() && channel.getTensorType(0).getRank() &&
        !microbatchSize)
      microbatchSize = channel.getTensorType(0).getDimSize(0);

  std::vector<Constant> fields = {
      Constant::i32(PENSTOCK_ABI_VERSION), Constant::i32(stages.size()),
      constants.string(texts.cpu),         constants.string(texts.features),
      Constant::i64(microbatchSize),       constants.string(texts.method),
      constants.string(texts.schedule),    constants.string(texts.plan)};
  auto addTable = [&](StringRef table, std::vector<Constant> elements) {
    fields.push_back(Constant::i32(elements.size()));
    fields.push_back(constants.table(symbol(table), std::move(elements)));
  };
  addTable("files", files.getTable(constants));
  addTable("devices", std::move(deviceTable));
  addTable("variables", std::move(variableTable));
  addTable("channels", std::move(channelTable));
  addTable("tasks", std::move(taskTable));
  bool isReplay = !prefix.empty();
  std::optional<int64_t> oneDevice;
  if (isReplay)
    oneDevice = 0;
  addTable("gemms", gemms.getTable(oneDevice));
  addTable("convs", convs.getTable(oneDevice));
  addTable("hyperparameters", std::move(hyperparameterTable));
  addTable("schedules", std::move(scheduleTable));
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
        getSummands(constants, module.lookupSymbol<GroupOp>(name), prefix);
    if (failed(group))
      return failure();
    groupTable.push_back(*group);
  }
  addTable("groups", std::move(groupTable));
  constants.add(name, Constant::fields(std::move(fields)),
                /*exported=*/!isReplay);
  return success();
}
