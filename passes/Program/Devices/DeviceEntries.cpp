//===- DeviceEntries.cpp - Entries of a device function -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A send or receive becomes its start; a run the waits for what it takes and
// overwrites, a mark, and calls of bufferized functions on slots.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/ArgumentAttributes.h"
#include "passes/Program/Devices/DeviceBuilder.h"
#include "passes/Program/Passes.h"
#include "penstock/Support/Assert.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

Value DeviceBuilder::getSlot(const Buffer &buffer, Value number) {
  Value &slot =
      slots[{buffer.symbol, 2 * buffer.field + buffer.staging, number}];
  if (slot)
    return slot;
  RankedTensorType type;
  int64_t field = buffer.field;
  if (auto variable = dyn_cast<VariableOp>(buffer.symbol)) {
    type = variable.getTensorType();
  } else {
    auto channel = cast<ChannelOp>(buffer.symbol);
    type = channel.getTensorType(field);
    if (buffer.staging && storage.hasBothEnds(channel, device))
      field = getStagingField(channel);
  }
  auto optional = [&](int64_t value, int64_t unset) {
    return value == unset ? IntegerAttr() : builder.getI64IntegerAttr(value);
  };
  slot = SlotOp::create(
      builder, loc, getMemRefType(type),
      FlatSymbolRefAttr::get(SymbolTable::getSymbolName(buffer.symbol)), number,
      optional(field, 0), optional(buffer.ring, 1), IntegerAttr(),
      IntegerAttr(), DenseI64ArrayAttr());
  return slot;
}

void DeviceBuilder::awaitSends(const Buffer &buffer, Value local) {
  for (ChannelOp channel : storage.getSends(buffer))
    AwaitOp::create(builder, loc, FlatSymbolRefAttr::get(channel),
                    toGlobal(add(local, -buffer.ring),
                             storage.getSendShare(channel, device)));
}

Value DeviceBuilder::getNewest() {
  if (!newest) {
    newest = function.front().addArgument(builder.getIndexType(), loc);
    nameArgument(newest, "version");
    function.setFunctionType(builder.getFunctionType(
        function.front().getArgumentTypes(), TypeRange()));
  }
  return newest;
}

/// Updates per wave where the program trains: what evaluates is told how many
/// waves there were.
static int64_t getTrainedWave(ScheduleOp schedule) {
  int64_t wave = 1;
  for (auto other : schedule->getParentOfType<ModuleOp>().getOps<ScheduleOp>())
    wave = std::max(wave, static_cast<int64_t>(other.getWave()));
  return wave;
}

FailureOr<Value> DeviceBuilder::getVersion(VariableOp variable, TaskOp task,
                                           Value number,
                                           std::optional<int64_t> lag) {
  if (task.countsWaves())
    return getVersionOfWave(variable, task, number, lag);
  bool single = storage.getVersions(variable) == 1;
  if (!storage.isUpdated(variable))
    return single ? constant(0) : scale(getNewest(), getTrainedWave(schedule));
  // Norms come before the update that uses what they make.
  if (!task.countsMicrobatches() && lag.value_or(0) > 0)
    // first + max(0, number + 1 - first - lag)
    return emit<arith::MaxSIOp>(add(number, 1 - *lag), first);
  if (!task.countsMicrobatches())
    return task.getKind() == TaskKind::Update && storage.isOfNorm(variable)
               ? add(number, 1)
               : number;
  if (!lag && !single)
    return task.emitError() << "reads " << FlatSymbolRefAttr::get(variable)
                            << " without a lag: run pipeline-assign-versions";
  // first + max(0, floor((k - first * M - lag) / M)), without negative numbers
  // in the division.
  int64_t behind = lag.value_or(0);
  if (update && behind % microbatches == 0) {
    if (!behind)
      return update;
    return emit<arith::MaxSIOp>(add(update, -behind / microbatches), first);
  }
  Value microbatch = number;
  if (behind)
    microbatch =
        emit<arith::MaxSIOp>(add(number, -behind), scale(first, microbatches));
  if (microbatches == 1)
    return microbatch;
  return emit<arith::DivUIOp>(microbatch, constant(microbatches));
}

/// Every wave that the segment has, as far as this iteration knows: a segment
/// that becomes shorter later has all that has been done.
Value DeviceBuilder::getWavesOfSegment() {
  Value waves =
      wave > 1 ? emit<arith::DivUIOp>(length, constant(wave)) : length;
  return emit<arith::AddIOp>(firstWave, waves);
}

Value DeviceBuilder::getVersionOfWave(VariableOp variable, TaskOp task,
                                      Value number,
                                      std::optional<int64_t> lag) {
  bool isPush = task.getKind() == TaskKind::Push;
  if (storage.isFoldedInto(variable)) {
    // What the wave ends with, or, in a fold, the last one that is known.
    Value end = add(number, isPush ? 1 : 1 + distance);
    if (!isPush)
      end = emit<arith::MinSIOp>(end, getWavesOfSegment());
    return add(scale(end, wave), -lag.value_or(0));
  }
  if (isPush || !lag)
    return number;
  return emit<arith::MinSIOp>(add(number, 1 + distance - *lag),
                              getWavesOfSegment());
}

FailureOr<Value> DeviceBuilder::getValueSlot(Value value, Value local,
                                             Value number, IRMapping &values) {
  if (Value known = values.lookupOrNull(value))
    return known;
  FailureOr<Buffer> buffer = storage.getBuffer(value);
  if (failed(buffer))
    return failure();
  Operation *op = value.getDefiningOp();
  auto task = op->getParentOfType<TaskOp>();
  Value place = local;
  if (auto variable = dyn_cast<VariableOp>(buffer->symbol);
      variable && getParts(variable) > 1) {
    buffer->ring = getParts(variable);
    place = getPart(task, number);
  } else if (variable) {
    // Read, or written as a new version. In-place results are their operands.
    auto read = dyn_cast<ReadOp>(op);
    std::optional<int64_t> lag;
    if (!read)
      lag = 0;
    else if (read.getLag())
      lag = static_cast<int64_t>(*read.getLag());
    FailureOr<Value> version = getVersion(variable, task, number, lag);
    if (failed(version))
      return failure();
    bool isRewritten = task.countsWaves() && storage.isFoldedInto(variable);
    if (!read && !task.countsMicrobatches() && storage.isUpdated(variable) &&
        !isRewritten)
      place = add(*version, 1);
    else
      place = *version;
  }
  Value slot = getSlot(*buffer, place);
  values.map(value, slot);
  return slot;
}

/// Parts count like microbatches; an update uses the first.
Value DeviceBuilder::getPart(TaskOp task, Value number) {
  return task.countsMicrobatches() ? number : scale(number, microbatches);
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

LogicalResult DeviceBuilder::emitSend(SendOp send, Value local) {
  auto channel = storage.lookup<ChannelOp>(send, send.getChannelAttr());
  if (!channel)
    return failure();
  FailureOr<Buffer> buffer = storage.getSendBuffer(channel);
  if (failed(buffer))
    return failure();
  StartSendOp::create(builder, loc, send.getChannelAttr(),
                      toGlobal(local, storage.getSendShare(channel, device)),
                      getSlot(*buffer, local));
  return success();
}

LogicalResult DeviceBuilder::emitRecv(RecvOp recv, Value local) {
  auto channel = storage.lookup<ChannelOp>(recv, recv.getChannelAttr());
  if (!channel)
    return failure();
  FailureOr<Buffer> buffer = storage.getReceiveBuffer(channel);
  if (failed(buffer))
    return failure();
  awaitSends(*buffer, local);
  StartRecvOp::create(builder, loc, recv.getChannelAttr(),
                      toGlobal(local, storage.getReceiveShare(channel, device)),
                      getSlot(*buffer, local));
  return success();
}

/// The members on this device, in their order, each with all its parts.
LogicalResult DeviceBuilder::emitAllReduce(AllReduceOp sum, Value number) {
  auto group = storage.lookup<GroupOp>(sum, sum.getGroupAttr());
  if (!group)
    return failure();
  SmallVector<Value> buffers;
  for (auto member : group.getMembers().getAsRange<ArrayAttr>()) {
    SmallVector<VariableOp> variables;
    for (auto name : member.getAsRange<FlatSymbolRefAttr>()) {
      variables.push_back(storage.lookup<VariableOp>(group, name));
      if (!variables.back())
        return failure();
    }
    auto stage = storage.lookup<StageOp>(variables.front(),
                                         variables.front().getStageAttr());
    if (!stage)
      return failure();
    if (!llvm::is_contained(*stage.getDevices(), device))
      continue;
    int64_t parts = getParts(variables.front());
    for (int64_t part = 0; part < parts; ++part)
      for (VariableOp variable : variables)
        buffers.push_back(getSlot(
            Buffer{variable, 0, std::max(parts, storage.getVersions(variable))},
            parts > 1 ? add(scale(number, microbatches), part)
                      : add(number, storage.isOfNorm(variable))));
  }
  StartAllReduceOp::create(builder, loc, sum.getGroupAttr(), number, buffers);
  return success();
}

LogicalResult DeviceBuilder::awaitSums(TaskOp task, Value number) {
  if (task.countsMicrobatches())
    return success();
  llvm::SmallDenseSet<Attribute> read;
  for (auto op : task.getBody().getOps<ReadOp>())
    read.insert(op.getVariableAttr());
  for (auto group : task->getParentOfType<ModuleOp>().getOps<GroupOp>())
    if (llvm::any_of(group.getMembers().getAsRange<ArrayAttr>(),
                     [&](ArrayAttr member) {
                       return llvm::any_of(member, [&](Attribute name) {
                         return read.contains(name);
                       });
                     }))
      AwaitOp::create(builder, loc, FlatSymbolRefAttr::get(group), number);
  return success();
}

/// Emits the staleness of the version that an update makes, in relation to the
/// one behind the lag. The bound of the iteration decides which update is the
/// last: a method that blends runs forwards ahead, so that a segment which
/// becomes shorter later has a further update.
Value DeviceBuilder::emitStaleness(StalenessOp op, Value number) {
  Value made = emit<arith::SubIOp>(add(number, 1), first);
  Value staleness =
      emit<arith::MinSIOp>(made, constant(static_cast<int64_t>(op.getLag())));
  Value isLast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                       made, length);
  return arith::SelectOp::create(builder, loc, isLast, constant(0), staleness);
}

LogicalResult DeviceBuilder::emitRun(RunOp run, Value local) {
  auto task = storage.lookup<TaskOp>(run, run.getTaskAttr());
  if (!task)
    return failure();
  Block &body = task.getBody().front();
  // Updates are made by all replicas.
  Value number = task.countsMicrobatches()
                     ? toGlobal(local, storage.getShare(task, device))
                     : local;

  // Wait for what is taken, and until what is overwritten has left.
  llvm::SmallSetVector<Operation *, 4> filled;
  for (auto take : body.getOps<TakeOp>()) {
    auto channel = storage.lookup<ChannelOp>(take, take.getChannelAttr());
    if (!channel)
      return failure();
    if (storage.isReceived(channel))
      AwaitOp::create(builder, loc, take.getChannelAttr(), number);
  }
  llvm::SmallDenseSet<std::pair<Operation *, int64_t>> overwritten;
  for (auto put : body.getOps<PutOp>()) {
    for (Value value : put.getValues()) {
      FailureOr<Buffer> buffer = storage.getBuffer(value);
      if (failed(buffer))
        return failure();
      if (!value.getDefiningOp<TakeOp>() &&
          overwritten.insert(buffer->getRing()).second)
        awaitSends(*buffer, local);
    }
  }

  if (failed(awaitSums(task, number)))
    return failure();
  MarkOp::create(builder, loc, run.getTaskAttr(), number);
  IRMapping values;
  values.map(task.getCounter(), number);
  for (Operation &op : body) {
    if (isa<TakeOp, ReadOp, PutOp, WriteOp>(op))
      continue;
    if (auto call = dyn_cast<func::CallOp>(op)) {
      if (failed(emitCall(call, local, number, values)))
        return failure();
      continue;
    }
    if (auto later = dyn_cast<LaterWavesOp>(op)) {
      Value behind = emit<arith::SubIOp>(getWavesOfSegment(), add(number, 1));
      values.map(later.getWaves(),
                 emit<arith::MinSIOp>(behind, constant(static_cast<int64_t>(
                                                  later.getDistance()))));
      continue;
    }
    if (auto staleness = dyn_cast<StalenessOp>(op)) {
      values.map(staleness.getUpdates(), emitStaleness(staleness, number));
      continue;
    }
    if (llvm::any_of(op.getResultTypes(), llvm::IsaPred<TensorType>))
      return op.emitError("is not lowered to device programs yet");
    PENSTOCK_ASSERT(
        llvm::all_of(op.getOperands(),
                     [&](Value operand) { return values.contains(operand); }),
        "what is left in a task computes scalars from scalars");
    builder.clone(op, values);
  }
  return success();
}

LogicalResult DeviceBuilder::emitCall(func::CallOp call, Value local,
                                      Value number, IRMapping &values) {
  auto callee = storage.lookup<func::FuncOp>(call, call.getCalleeAttr());
  if (!callee)
    return failure();
  auto isTensor = llvm::IsaPred<TensorType>;
  bool scalar = llvm::none_of(callee.getArgumentTypes(), isTensor) &&
                llvm::none_of(callee.getResultTypes(), isTensor);
  func::FuncOp kernel = callee;
  if (!scalar) {
    kernel = symbols.lookupSymbolIn<func::FuncOp>(
        root, builder.getStringAttr(callee.getSymName() + kKernelSuffix));
    if (!kernel)
      return call.emitError()
             << call.getCalleeAttr()
             << " has no bufferized form: run pipeline-bufferize-functions";
  }

  SmallVector<Value> operands;
  for (Value operand : call.getOperands()) {
    if (!isa<TensorType>(operand.getType())) {
      operands.push_back(values.lookup(operand));
      continue;
    }
    FailureOr<Value> slot = getValueSlot(operand, local, number, values);
    if (failed(slot))
      return failure();
    operands.push_back(*slot);
  }
  llvm::SmallDenseMap<unsigned, unsigned> inPlace;
  for (unsigned i : llvm::seq(callee.getNumArguments()))
    if (auto into = callee.getArgAttrOfType<IntegerAttr>(i, kIntoAttr))
      inPlace[into.getInt()] = i;
  SmallVector<Type> resultTypes;
  llvm::SmallDenseSet<unsigned> out;
  for (OpResult result : call.getResults()) {
    if (!isa<TensorType>(result.getType())) {
      resultTypes.push_back(result.getType());
      continue;
    }
    auto into = inPlace.find(result.getResultNumber());
    if (into != inPlace.end()) {
      if (failed(storage.getBuffer(result)))
        return failure();
      values.map(result, operands[into->second]);
      continue;
    }
    FailureOr<Value> slot = getValueSlot(result, local, number, values);
    if (failed(slot))
      return failure();
    out.insert(operands.size());
    operands.push_back(*slot);
  }
  if (!out.empty())
    changeArgAttrs(kernel, [&](unsigned index, NamedAttrList &attributes) {
      if (out.contains(index))
        attributes.set(kOutAttr, builder.getUnitAttr());
    });
  unsigned arguments = kernel.getNumArguments();
  if (arguments == operands.size() + 1 &&
      kernel.getArgAttr(arguments - 1, kScratchAttr))
    operands.push_back(ScratchOp::create(
        builder, loc, kernel.getArgumentTypes().back(), IntegerAttr()));
  if (ValueRange(operands).getTypes() != kernel.getArgumentTypes() ||
      resultTypes != kernel.getResultTypes())
    return call.emitError()
           << "does not fit the bufferized form of " << call.getCalleeAttr()
           << ", which is " << kernel.getFunctionType();
  auto lowered = func::CallOp::create(
      builder, call.getLoc(), callee.getSymName(), resultTypes, operands);
  unsigned next = 0;
  for (OpResult result : call.getResults())
    if (!isa<TensorType>(result.getType()))
      values.map(result, lowered.getResult(next++));
  return success();
}
