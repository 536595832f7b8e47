//===- VerifyProgramOps.cpp - Slots, transfers and marks ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules C26 to C28: what the ops of device functions name.
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include "dialects/Pipeline/Replicas.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

/// Returns true if a buffer holds a value of this tensor type.
static bool matches(Type buffer, RankedTensorType tensor) {
  auto memref = cast<MemRefType>(buffer);
  return memref.getShape() == tensor.getShape() &&
         memref.getElementType() == tensor.getElementType();
}

/// A device that also receives has slots of their own for messages it sends.
static bool isStaging(SlotOp slot, ChannelOp channel) {
  auto function = slot->getParentOfType<func::FuncOp>();
  auto device = function->getAttrOfType<IntegerAttr>(kDeviceAttr);
  return device && channel.getTypes().size() == 1 &&
         slot.getField() == getStagingField(channel) &&
         hasBothEnds(channel, device.getInt());
}

/// C26: the buffer of a variable or of a field of a channel.
static LogicalResult verifySlot(Subject &subject, SlotOp slot) {
  Operation *symbol = subject.symbols.lookup(slot.getSymbol());
  RankedTensorType type;
  if (auto variable = dyn_cast_or_null<VariableOp>(symbol)) {
    if (slot.getField())
      return slot.emitOpError("C26: names a field of a variable");
    type = variable.getTensorType();
  } else if (auto channel = dyn_cast_or_null<ChannelOp>(symbol)) {
    uint64_t field = slot.getField().value_or(0);
    if (isStaging(slot, channel))
      field = 0;
    if (field >= channel.getTypes().size())
      return slot.emitOpError("C26: names field ")
             << field << " of " << slot.getSymbolAttr() << ", which has "
             << channel.getTypes().size();
    type = channel.getTensorType(field);
  } else {
    return slot.emitOpError("C26: names ")
           << slot.getSymbolAttr()
           << ", which is no variable or channel of this module";
  }
  if (!matches(slot.getBuffer().getType(), type))
    return slot.emitOpError("C26: has buffer ")
           << slot.getBuffer().getType() << " for " << slot.getSymbolAttr()
           << " of " << type;
  return success();
}

/// C27: a message of the channel's type.
static LogicalResult verifyStart(Subject &subject, Operation *op,
                                 FlatSymbolRefAttr name, Type buffer) {
  auto channel = subject.resolve<ChannelOp>(op, name);
  if (!channel)
    return failure();
  if (channel.getTypes().size() != 1 ||
      !matches(buffer, channel.getTensorType(0)))
    return op->emitOpError("C27: moves ") << buffer << " over channel " << name
                                          << " of " << channel.getTypes();
  return success();
}

/// C27: the members' values on this device, position by position.
static LogicalResult verifySum(Subject &subject, StartAllReduceOp sum) {
  auto group = subject.resolve<GroupOp>(sum, sum.getGroupAttr());
  if (!group)
    return failure();
  auto member = cast<ArrayAttr>(group.getMembers()[0]);
  size_t count = sum.getBuffers().size();
  if (count == 0 || count % member.size() != 0)
    return sum.emitOpError("C27: sums ")
           << count << " buffers, group " << sum.getGroupAttr() << " has "
           << member.size() << " of each member";
  for (auto [index, buffer] : llvm::enumerate(sum.getBuffers())) {
    auto name = cast<FlatSymbolRefAttr>(member[index % member.size()]);
    auto variable = subject.symbols.lookup<VariableOp>(name.getValue());
    if (!matches(buffer.getType(), variable.getTensorType()))
      return sum.emitOpError("C27: sums ")
             << buffer.getType() << " where group " << sum.getGroupAttr()
             << " has " << variable.getTensorType();
  }
  return success();
}

LogicalResult penstock::verifyProgramOps(Subject &subject) {
  for (func::FuncOp function : subject.module.getOps<func::FuncOp>()) {
    auto result = function.walk([&](Operation *op) -> WalkResult {
      if (auto slot = dyn_cast<SlotOp>(op))
        return verifySlot(subject, slot);
      if (auto send = dyn_cast<StartSendOp>(op))
        return verifyStart(subject, op, send.getChannelAttr(),
                           send.getBuffer().getType());
      if (auto recv = dyn_cast<StartRecvOp>(op))
        return verifyStart(subject, op, recv.getChannelAttr(),
                           recv.getBuffer().getType());
      if (auto sum = dyn_cast<StartAllReduceOp>(op))
        return verifySum(subject, sum);
      if (auto await = dyn_cast<AwaitOp>(op)) {
        bool isSum = subject.symbols.lookup<GroupOp>(await.getChannel());
        return WalkResult(success(
            isSum || subject.resolve<ChannelOp>(op, await.getChannelAttr())));
      }
      if (auto bound = dyn_cast<BoundOp>(op))
        for (auto other : bound->getBlock()->getOps<BoundOp>())
          if (other != bound && other->isBeforeInBlock(bound))
            return WalkResult(
                bound.emitOpError("C28: is the second of its loop"));
      if (auto mark = dyn_cast<MarkOp>(op))
        return WalkResult(success(static_cast<bool>(
            subject.resolve<TaskOp>(op, mark.getTaskAttr()))));
      return success();
    });
    if (result.wasInterrupted())
      return failure();
  }
  return success();
}
