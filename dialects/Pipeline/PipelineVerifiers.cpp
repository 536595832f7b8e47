//===- PipelineVerifiers.cpp - Rules of single ops ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules that one op can check by itself or with its parent. Rules about
// several ops of a module, and those that hold from a level on, are checked by
// the pass pipeline-verify.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Support/ByteSize.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace penstock::pipeline;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

LogicalResult BytesAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                StringRef file, int64_t offset,
                                int64_t length) {
  if (file.empty())
    return emitError() << "a byte range needs a file name";
  if (offset < 0 || length < 0)
    return emitError() << "a byte range cannot be negative, got offset "
                       << offset << " and length " << length;
  return success();
}

LogicalResult
TransposedAttr::verify(function_ref<InFlightDiagnostic()> emitError, BytesAttr,
                       ArrayRef<int64_t> order) {
  if (!isPermutationVector(order))
    return emitError() << "the order of a transpose must have each axis once";
  return success();
}

LogicalResult SourceAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 SourceKind kind, StringAttr name) {
  if ((kind == SourceKind::Input) != !!name)
    return emitError() << "a source that is " << stringifySourceKind(kind)
                       << (name ? " has no name" : " has the input's name");
  return success();
}

LogicalResult SinkAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               SinkKind kind, StringAttr name) {
  bool isNamed = kind == SinkKind::Output || kind == SinkKind::Metric;
  if (isNamed != !!name)
    return emitError() << "a sink that is " << stringifySinkKind(kind)
                       << (name ? StringRef(" has no name")
                                : StringRef(kind == SinkKind::Metric
                                                ? " has the metric's name"
                                                : " has the output's name"));
  return success();
}

LogicalResult RangeAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t low, int64_t high,
                                std::optional<int64_t> ignored) {
  if (low >= high)
    return emitError() << "a range holds some integer, this is " << low
                       << " to " << high;
  if (ignored && *ignored >= low && *ignored < high)
    return emitError() << "the range from " << low << " to " << high
                       << " holds " << *ignored << " already";
  return success();
}

//===----------------------------------------------------------------------===//
// What there is
//===----------------------------------------------------------------------===//

LogicalResult VariableOp::verify() {
  RankedTensorType type = getTensorType();
  if (!type.hasStaticShape() || !type.getElementType().isIntOrFloat())
    return emitOpError("C3: needs a static shape of numbers, got ") << type;
  if (!getInit())
    return success();
  int64_t length = getInit()->getLength();
  bool isRounded =
      type.getElementType().isBF16() && length == 2 * getByteSize(type);
  if (length != getByteSize(type) && !isRounded)
    return emitOpError("C3: init has ")
           << length << " bytes, " << type << " takes " << getByteSize(type);
  return success();
}

LogicalResult TrainingOp::verify() {
  if (!getInfers())
    return getOptimizer() ? success()
                          : emitOpError("C32: trains without an optimizer");
  if (getOptimizer() || getRate() || getClipping() || getMethod() ||
      getMicrobatches() != 1 || getBatchNorm() != BatchNorm::Train)
    return emitOpError("C32: says how to train, and infers");
  return success();
}

LogicalResult WeightStashOp::verify() {
  if (getDepth() < 2)
    return emitOpError("C2: needs a depth of 2 or more, got ") << getDepth();
  return success();
}

LogicalResult DoubleBufferOp::verify() { return success(); }

LogicalResult ChannelOp::verify() {
  if (getTypes().empty())
    return emitOpError("C6: carries nothing");
  for (Attribute type : getTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(cast<TypeAttr>(type).getValue());
    if (!tensor || !tensor.hasStaticShape())
      return emitOpError("C6: carries tensors of static shape, got ") << type;
  }
  if (getSource() && getSink())
    return emitOpError("C6: has both a source and a sink");
  if ((getSource() || getSink()) && getTypes().size() != 1)
    return emitOpError("C6: with a source or a sink carries one tensor, got ")
           << getTypes().size();
  if ((getSource() || getSink()) && getOwnQueue())
    return emitOpError(
        "C6: with a source or a sink is in no queue of a device");
  return success();
}

LogicalResult StageOp::verify() {
  llvm::SmallSet<int64_t, 8> seen;
  for (int64_t device : getDevices().value_or(ArrayRef<int64_t>())) {
    if (device < 0)
      return emitOpError("C7: has a negative device ") << device;
    if (!seen.insert(device).second)
      return emitOpError("C7: has device ") << device << " twice";
  }
  return success();
}

LogicalResult GroupOp::verify() {
  if (getMembers().size() < 1)
    return emitOpError("C8: has no members");
  size_t count = 0;
  for (Attribute member : getMembers()) {
    auto names = dyn_cast<ArrayAttr>(member);
    if (!names || names.empty() ||
        !llvm::all_of(names, llvm::IsaPred<FlatSymbolRefAttr>))
      return emitOpError("C8: members are lists of variables");
    if (count && names.size() != count)
      return emitOpError("C8: members have ")
             << count << " and " << names.size() << " variables";
    count = names.size();
  }
  return success();
}

/// C9 and C10.
LogicalResult TaskOp::verify() {
  if (isBodyless())
    return success();
  Block &block = getBody().front();
  if (block.getNumArguments() != 1 || !getCounter().getType().isIndex())
    return emitOpError("C9: has one argument, an index that counts");
  llvm::SmallDenseSet<Attribute> taken, put, written;
  for (Operation &op : block) {
    if (auto take = dyn_cast<TakeOp>(op)) {
      if (!taken.insert(take.getChannelAttr()).second)
        return take.emitOpError("C10: is the second take from ")
               << take.getChannelAttr() << " in one task";
    } else if (auto putOp = dyn_cast<PutOp>(op)) {
      if (!put.insert(putOp.getChannelAttr()).second)
        return putOp.emitOpError("C10: is the second put to ")
               << putOp.getChannelAttr() << " in one task";
    } else if (auto write = dyn_cast<WriteOp>(op)) {
      if (!written.insert(write.getVariableAttr()).second)
        return write.emitOpError("C10: is the second write to ")
               << write.getVariableAttr() << " in one task";
    } else if (auto read = dyn_cast<ReadOp>(op)) {
      if (written.contains(read.getVariableAttr()))
        return read.emitOpError("C10: reads ")
               << read.getVariableAttr() << " after the task wrote it";
    } else if (!isa<HyperparameterOp, CompensateOp, PredictOp, BlendOp,
                    StalenessOp, LaterWavesOp, func::CallOp>(op)) {
      bool scalar =
          isa_and_nonnull<arith::ArithDialect, math::MathDialect>(
              op.getDialect()) &&
          llvm::none_of(op.getResultTypes(), llvm::IsaPred<TensorType>);
      if (!scalar)
        return op.emitOpError(
            "C9: does not belong into a task, which takes, reads, "
            "calls functions, puts and writes");
    }
  }
  return success();
}

LogicalResult BoundaryOp::verify() { return success(); }

//===----------------------------------------------------------------------===//
// What a task does
//===----------------------------------------------------------------------===//

LogicalResult TakeOp::verify() { return success(); }
LogicalResult PutOp::verify() { return success(); }
LogicalResult ReadOp::verify() { return success(); }
LogicalResult WriteOp::verify() { return success(); }

/// A variable's value: as it was, or as a function of the task makes it.
static bool isReadOrResult(Value value) {
  return isa_and_nonnull<ReadOp, func::CallOp>(value.getDefiningOp());
}

/// An adjusted weight has the type of the weight, or is rounded to bf16.
static LogicalResult verifyAdjusted(Operation *op, Type weight, Type result) {
  auto from = cast<RankedTensorType>(weight),
       to = cast<RankedTensorType>(result);
  if (from == to ||
      (from.getElementType().isF32() && to.getElementType().isBF16()))
    return success();
  return op->emitOpError(isa<CompensateOp>(op) ? "C17: makes " : "C18: makes ")
         << to << " of " << from << ", which only f32 to bf16 may round";
}

/// C17, the part that needs no other op.
LogicalResult CompensateOp::verify() {
  if (failed(verifyAdjusted(*this, getWeight().getType(), getType())))
    return failure();
  if (!(getTau().convertToDouble() > 0))
    return emitOpError("C17: needs a positive tau");
  if (!isReadOrResult(getWeight()) || !isReadOrResult(getDelta()))
    return emitOpError(
        "C17: needs a parameter and its delta, as they are read or as "
        "an update makes them");
  return success();
}

/// C18, the part that needs no other op.
LogicalResult PredictOp::verify() {
  if (failed(verifyAdjusted(*this, getWeight().getType(), getType())))
    return failure();
  if (!(getSteps().convertToDouble() > 0))
    return emitOpError("C18: needs a positive number of steps");
  auto weight = getWeight().getDefiningOp<ReadOp>();
  auto velocity = getVelocity().getDefiningOp<ReadOp>();
  if (!isReadOrResult(getWeight()) || !isReadOrResult(getVelocity()))
    return emitOpError(
        "C18: needs a parameter and optimizer state, as they are read "
        "or as an update makes them");
  if (weight && velocity && weight.getLag() != velocity.getLag())
    return emitOpError(
        "C18: reads the weight and the direction at different lags");
  return success();
}

/// C35, the part that needs no other op.
LogicalResult BlendOp::verify() {
  auto older = getOlder().getDefiningOp<ReadOp>();
  if (!isReadOrResult(getWeight()) || !older || !older.getLag())
    return emitOpError(
        "C35: needs a parameter as an update makes it, and an older "
        "version that is read with a lag");
  return success();
}

LogicalResult StalenessOp::verify() {
  if (cast<TaskOp>((*this)->getParentOp()).getKind() != TaskKind::Update)
    return emitOpError("C35: stands in a task that is no update");
  return success();
}

LogicalResult LaterWavesOp::verify() {
  if (cast<TaskOp>((*this)->getParentOp()).getKind() != TaskKind::Fold)
    return emitOpError("C31: stands in a task that is no fold");
  return success();
}

LogicalResult HyperparameterOp::verify() {
  if (getName().empty())
    return emitOpError("C19: needs a name");
  if (getDefaultValue() && getType().isInteger())
    return emitOpError("C19: is an integer, which has no default but 0");
  return success();
}

//===----------------------------------------------------------------------===//
// When
//===----------------------------------------------------------------------===//

/// C20, the part about orders.
LogicalResult ScheduleOp::verify() {
  if (getDistance() > 0 && getRole() != ScheduleRole::Train)
    return emitOpError("C31: folds waves, and does not train");
  if (isBodyless())
    return success();
  llvm::SmallSet<int64_t, 8> devices;
  for (Operation &op : getBody().front()) {
    auto order = dyn_cast<OrderOp>(op);
    if (!order)
      return op.emitOpError(
          "C20: does not belong into a schedule, which holds orders");
    if (!devices.insert(order.getDevice()).second)
      return order.emitOpError("C20: is the second order of device ")
             << order.getDevice();
  }
  return success();
}

/// C21: what stands outside of the loop over updates or microbatches would run
/// once per segment, however long it is.
LogicalResult OrderOp::verify() {
  for (Operation &op : getBody().front())
    if (!isa<RepeatOp>(op) || &op != &getBody().front().front())
      return op.emitOpError(
          "C21: does not belong into an order, which is one loop "
          "over updates or microbatches");
  return success();
}

/// C21.
LogicalResult RepeatOp::verify() {
  auto outer = dyn_cast<RepeatOp>((*this)->getParentOp());
  if (getKind() == RepeatKind::Times) {
    if (!getCount())
      return emitOpError("C21: times needs a count");
    if (!outer)
      return emitOpError(
          "C21: times is outermost; an order is one loop over updates "
          "or microbatches");
    if (outer && outer.getKind() == RepeatKind::Microbatches)
      return emitOpError("C21: times may nest in updates, not in microbatches");
  } else {
    if (getCount() && getKind() == RepeatKind::Updates)
      return emitOpError("C21: counts by itself, without a number");
    if (outer)
      return emitOpError("C21: over updates or microbatches is outermost");
  }
  for (Operation &op : getBody().front())
    if (!isa<RepeatOp, RunOp, SendOp, RecvOp, AllReduceOp>(op))
      return op.emitOpError("C21: does not belong into a schedule's loop");
  return success();
}

/// C23, the part that needs no other op.
static LogicalResult verifyEvery(Operation *op, bool hasEvery) {
  auto repeat = cast<RepeatOp>(op->getParentOp());
  if (hasEvery && repeat.getKind() != RepeatKind::Microbatches)
    return op->emitOpError(
        "C23: has every(m) outside of a loop over microbatches");
  return success();
}

LogicalResult RunOp::verify() {
  return verifyEvery(*this, getEvery().has_value());
}
LogicalResult SendOp::verify() {
  return verifyEvery(*this, getEvery().has_value());
}
LogicalResult RecvOp::verify() {
  return verifyEvery(*this, getEvery().has_value());
}
LogicalResult AllReduceOp::verify() {
  return verifyEvery(*this, getEvery().has_value());
}

//===----------------------------------------------------------------------===//
// Device programs
//===----------------------------------------------------------------------===//

/// C26, the part that needs no other op.
static LogicalResult verifyBuffer(Operation *op, Type type) {
  auto buffer = dyn_cast<MemRefType>(type);
  if (!buffer || !buffer.hasStaticShape() || !buffer.getLayout().isIdentity())
    return op->emitOpError(
               "C26: needs a buffer of static shape and identity layout, "
               "got ")
           << type;
  return success();
}

LogicalResult SlotOp::verify() {
  if (std::optional<ArrayRef<int64_t>> places = getPlaces())
    if (places->empty() || places->size() != getRing().value_or(1) ||
        !getAt() || static_cast<uint64_t>(places->front()) != *getAt())
      return emitOpError(
          "C26: has a place for each of its ring, and its address is "
          "the first");
  if (getRing().value_or(1) > 1 && getAt() && getStride().value_or(0) == 0)
    return emitOpError("C26: of a ring of ")
           << *getRing() << " needs a stride where it has an address";
  return verifyBuffer(*this, getBuffer().getType());
}

LogicalResult ScratchOp::verify() {
  return verifyBuffer(*this, getBuffer().getType());
}
LogicalResult StartRecvOp::verify() {
  return verifyBuffer(*this, getBuffer().getType());
}
LogicalResult StartSendOp::verify() {
  return verifyBuffer(*this, getBuffer().getType());
}
LogicalResult StartAllReduceOp::verify() {
  for (Type type : getBuffers().getTypes())
    if (failed(verifyBuffer(*this, type)))
      return failure();
  return success();
}
LogicalResult AwaitOp::verify() { return success(); }
LogicalResult BoundOp::verify() {
  auto loop = dyn_cast<scf::ForOp>((*this)->getParentOp());
  if (!loop || !isa<func::FuncOp>(loop->getParentOp()))
    return emitOpError("C28: stands in an outermost loop of a function");
  return success();
}
LogicalResult MarkOp::verify() { return success(); }
