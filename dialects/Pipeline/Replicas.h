//===- Replicas.h - Who handles which microbatch ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replica q of r of a stage handles the microbatches n * r + q. Evaluation of a
// program that trains runs on the first replica of every stage.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_PIPELINE_REPLICAS_H
#define PENSTOCK_DIALECTS_PIPELINE_REPLICAS_H

#include "dialects/Pipeline/Pipeline.h"

#include "llvm/ADT/STLExtras.h"

#include <numeric>

namespace penstock::pipeline {

/// Every count-th microbatch, from `index` on.
struct Share {
  int64_t index = 0, count = 1;
  int64_t getNumber(int64_t n) const { return n * count + index; }
};

/// Returns true if a program trains; one that does not has evaluate tasks
/// alone, for which all replicas are there.
inline bool trains(mlir::ModuleOp module) {
  return llvm::any_of(module.getOps<TaskOp>(), [](TaskOp task) {
    return task.getKind() != TaskKind::Evaluate;
  });
}

/// The devices on which the tasks of a stage run; `onFirst` those of evaluation
/// in a program that trains.
inline llvm::ArrayRef<int64_t> getPlaces(StageOp stage, bool onFirst) {
  llvm::ArrayRef<int64_t> devices =
      stage.getDevices().value_or(llvm::ArrayRef<int64_t>());
  return onFirst ? devices.take_front(1) : devices;
}

/// Returns the share of a stage's microbatches that a device has.
inline Share getShare(StageOp stage, int64_t device, bool onFirst) {
  llvm::ArrayRef<int64_t> places = getPlaces(stage, onFirst);
  Share share;
  share.count = std::max<int64_t>(1, places.size());
  share.index = llvm::find(places, device) - places.begin();
  if (share.index == share.count)
    share.index = 0;
  return share;
}

/// The devices at an end of a channel, if it joins replicas.
inline llvm::ArrayRef<int64_t> getEnds(ChannelOp channel,
                                       llvm::StringRef attribute) {
  auto devices = channel->getAttrOfType<mlir::DenseI64ArrayAttr>(attribute);
  return devices ? devices.asArrayRef() : llvm::ArrayRef<int64_t>();
}

/// Returns the share of a channel's messages that a device has: of those that
/// it receives, or else of those that it sends.
inline Share getShare(ChannelOp channel, int64_t device, bool receives) {
  llvm::ArrayRef<int64_t> ends =
      getEnds(channel, receives ? kReceiversAttr : kSendersAttr);
  const auto *place = llvm::find(ends, device);
  if (place == ends.end())
    return {};
  return {place - ends.begin(), static_cast<int64_t>(ends.size())};
}

/// Returns true if a device sends some messages of a channel and receives
/// others.
inline bool hasBothEnds(ChannelOp channel, int64_t device) {
  return llvm::is_contained(getEnds(channel, kSendersAttr), device) &&
         llvm::is_contained(getEnds(channel, kReceiversAttr), device);
}

/// The field of slots in which such a device keeps what it sends; in field 0 it
/// has what it receives.
inline int64_t getStagingField(ChannelOp channel) {
  return channel.getTypes().size();
}

/// Into how many sequences of one sender and one receiver its messages part.
inline int64_t getWays(ChannelOp channel) {
  auto count = [&](llvm::StringRef attribute) {
    return std::max<int64_t>(1, getEnds(channel, attribute).size());
  };
  return std::lcm(count(kSendersAttr), count(kReceiversAttr));
}

/// Parts of a variable; 1 without the attribute.
inline int64_t getParts(VariableOp variable) {
  auto parts = variable->getAttrOfType<mlir::IntegerAttr>(kPartsAttr);
  return parts ? parts.getInt() : 1;
}

} // namespace penstock::pipeline

#endif // PENSTOCK_DIALECTS_PIPELINE_REPLICAS_H
