//===- StateCalls.cpp - What remains of the bodies of tasks ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A body becomes the list of its calls with the buffers that they get, read off
// the body and not off the device functions: the proof compares the two.
//===----------------------------------------------------------------------===//

#include "passes/Program/Devices/StateCalls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

class Stater {
public:
  Stater(TaskOp task, const Storage &storage)
      : task(task), storage(storage), context(task.getContext()) {}

  LogicalResult run();

private:
  LogicalResult addCall(func::CallOp call);
  FailureOr<Attribute> describe(Value value, AccessKind access);
  Attribute describeNumber(Value value);
  int64_t getField(const Buffer &buffer);

  TaskOp task;
  const Storage &storage;
  MLIRContext *context;
  SmallVector<Attribute> calls, puts;
};

} // namespace

/// A device that also receives has slots of their own for messages it sends.
int64_t Stater::getField(const Buffer &buffer) {
  auto channel = dyn_cast<ChannelOp>(buffer.symbol);
  if (!buffer.staging || !channel)
    return buffer.field;
  auto stage = storage.lookup<StageOp>(task, task.getStageAttr());
  bool hasBoth =
      stage && llvm::any_of(stage.getDevices().value_or(ArrayRef<int64_t>()),
                            [&](int64_t device) {
                              return storage.hasBothEnds(channel, device);
                            });
  return hasBoth ? getStagingField(channel) : buffer.field;
}

FailureOr<Attribute> Stater::describe(Value value, AccessKind access) {
  FailureOr<Buffer> buffer = storage.getBuffer(value);
  if (failed(buffer))
    return failure();
  std::optional<int64_t> lag;
  if (auto read = value.getDefiningOp<ReadOp>(); read && read.getLag())
    lag = static_cast<int64_t>(*read.getLag());
  return Attribute(OperandAttr::get(
      context, access,
      FlatSymbolRefAttr::get(SymbolTable::getSymbolName(buffer->symbol)),
      getField(*buffer), lag));
}

Attribute Stater::describeNumber(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return UnitAttr::get(context);
  if (auto number = dyn_cast<HyperparameterOp>(op))
    return number.getNameAttr();
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return constant.getValue();
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands())
    if (!isa<TensorType>(operand.getType()))
      operands.push_back(describeNumber(operand));
  Attribute by = StringAttr::get(context, op->getName().getStringRef());
  auto attributes = DictionaryAttr::get(context);
  if (auto call = dyn_cast<func::CallOp>(op))
    by = call.getCalleeAttr();
  else if (auto own =
               dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute()))
    attributes = own;
  return ComputedAttr::get(context, by, cast<OpResult>(value).getResultNumber(),
                           value.getType(), ArrayAttr::get(context, operands),
                           attributes);
}

/// As bufferised: operands, and then results that are in none of their places.
LogicalResult Stater::addCall(func::CallOp call) {
  auto callee = storage.lookup<func::FuncOp>(call, call.getCalleeAttr());
  if (!callee)
    return failure();
  SmallVector<Attribute> terms;
  llvm::SmallDenseSet<int64_t> inPlace;
  for (auto [i, operand] : llvm::enumerate(call.getOperands())) {
    if (!isa<TensorType>(operand.getType())) {
      terms.push_back(describeNumber(operand));
      continue;
    }
    auto into = callee.getArgAttrOfType<IntegerAttr>(i, kIntoAttr);
    if (into)
      inPlace.insert(into.getInt());
    FailureOr<Attribute> term =
        describe(operand, into ? AccessKind::Update : AccessKind::Read);
    if (failed(term))
      return failure();
    terms.push_back(*term);
  }
  for (OpResult result : call.getResults()) {
    if (!isa<TensorType>(result.getType()) ||
        inPlace.contains(result.getResultNumber()))
      continue;
    FailureOr<Attribute> term = describe(result, AccessKind::Write);
    if (failed(term))
      return failure();
    terms.push_back(*term);
  }
  calls.push_back(CallAttr::get(context, call.getCalleeAttr(),
                                ArrayAttr::get(context, terms)));
  return success();
}

LogicalResult Stater::run() {
  for (Operation &op : task.getBody().front()) {
    if (auto call = dyn_cast<func::CallOp>(op)) {
      if (failed(addCall(call)))
        return failure();
      continue;
    }
    auto put = dyn_cast<PutOp>(op);
    auto channel = put ? storage.lookup<ChannelOp>(put, put.getChannelAttr())
                       : ChannelOp();
    if (!channel || !storage.isSent(channel))
      continue;
    FailureOr<Buffer> buffer = storage.getSendBuffer(channel);
    if (failed(buffer))
      return failure();
    puts.push_back(PutAttr::get(
        context, put.getChannelAttr(),
        FlatSymbolRefAttr::get(SymbolTable::getSymbolName(buffer->symbol)),
        getField(*buffer)));
  }
  task.setCallsAttr(ArrayAttr::get(context, calls));
  if (!puts.empty())
    task.setPutsAttr(ArrayAttr::get(context, puts));
  return success();
}

LogicalResult penstock::stateCalls(TaskOp task, const Storage &storage) {
  return Stater(task, storage).run();
}
