//===- PlaceRings.cpp - Places for messages and temporaries ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When slots are in use, and which way of placing them is taken: rings as such
// first, then messages for themselves in several ways.
//===----------------------------------------------------------------------===//

#include "passes/Program/Memory/PlaceRings.h"

#include "passes/Program/Memory/RingPlacer.h"

#include <map>

using namespace mlir;
using namespace penstock;

using Slots = RingPlacer::Slots;

/// Longer rings are placed as a whole.
static constexpr int64_t kMostSlots = 64;
/// Less than this share of an arena is not worth a place per message.
static constexpr int64_t kWasteShare = 64;

std::vector<RingUse> penstock::getRingUses(ArrayRef<MessageRing> rings,
                                           ArrayRef<DeviceLives> schedules) {
  size_t events = 1;
  for (const DeviceLives &lives : schedules)
    events += lives.trace.size();
  std::map<std::tuple<size_t, StringRef, int64_t>, size_t> indices;
  llvm::DenseMap<StringAttr, size_t> kernels;
  std::vector<RingUse> uses(rings.size());
  for (auto [index, ring] : llvm::enumerate(rings)) {
    RingUse &use = uses[index];
    use.any.resize(events);
    if (ring.isScratch) {
      kernels[ring.channel] = index;
      continue;
    }
    bool isSteady = ring.schedule < schedules.size() &&
                    schedules[ring.schedule].isSteady(ring.count);
    if (ring.count > 1 && ring.count <= kMostSlots && isSteady)
      use.slots.assign(ring.count, llvm::BitVector(events));
    indices[{ring.schedule, ring.channel.getValue(), ring.field}] = index;
  }
  size_t begin = 0;
  for (auto [schedule, lives] : llvm::enumerate(schedules)) {
    for (const MessageLife &life : lives.messages) {
      auto found = indices.find(
          {schedule, life.cell.symbol.getValue(), life.cell.field});
      if (found == indices.end())
        continue;
      RingUse &use = uses[found->second];
      size_t from = begin + life.first, to = begin + life.last + 1;
      use.any.set(from, to);
      if (!use.slots.empty())
        use.slots[life.cell.number % rings[found->second].count].set(from, to);
    }
    for (auto [index, event] : llvm::enumerate(lives.trace))
      if (event.kind == TraceEvent::Call)
        if (auto kernel = kernels.find(event.symbol); kernel != kernels.end())
          uses[kernel->second].any.set(begin + index);
    begin += lives.trace.size();
  }
  for (RingUse &use : uses)
    if (use.any.none()) {
      use.any.set();
      use.slots.clear();
    }
  return uses;
}

/// Returns the most bytes that messages and temporaries take at once.
static int64_t getPeak(ArrayRef<MessageRing> rings,
                       ArrayRef<DeviceLives> schedules) {
  std::map<std::tuple<size_t, StringRef, int64_t>, int64_t> bytesOf;
  llvm::DenseMap<StringAttr, int64_t> scratchOf;
  // What no call needs that is known is always needed.
  int64_t always = 0;
  for (const MessageRing &ring : rings)
    if (!ring.isScratch)
      bytesOf[{ring.schedule, ring.channel.getValue(), ring.field}] =
          ring.bytes;
    else if (ring.channel)
      scratchOf[ring.channel] = ring.bytes;
    else
      always += ring.bytes;
  int64_t peak = 0;
  for (auto [schedule, lives] : llvm::enumerate(schedules)) {
    std::vector<int64_t> change(lives.trace.size() + 1);
    for (const MessageLife &life : lives.messages) {
      int64_t bytes =
          bytesOf[{schedule, life.cell.symbol.getValue(), life.cell.field}];
      change[life.first] += bytes;
      change[life.last + 1] -= bytes;
    }
    int64_t live = 0;
    for (auto [index, event] : llvm::enumerate(lives.trace)) {
      live += change[index];
      int64_t scratch =
          event.kind == TraceEvent::Call ? scratchOf.lookup(event.symbol) : 0;
      peak = std::max(peak, live + scratch);
    }
  }
  return peak + always;
}

/// Returns true if no two messages that are alive together have the same slot.
static bool isInjective(ArrayRef<MessageRing> rings,
                        ArrayRef<DeviceLives> schedules) {
  std::map<std::tuple<size_t, StringRef, int64_t>, int64_t> countOf;
  for (const MessageRing &ring : rings)
    if (!ring.isScratch)
      countOf[{ring.schedule, ring.channel.getValue(), ring.field}] =
          ring.count;
  for (auto [schedule, lives] : llvm::enumerate(schedules)) {
    std::map<std::tuple<StringRef, int64_t, int64_t>, size_t> ends;
    for (const MessageLife &life : lives.messages) {
      StringRef name = life.cell.symbol.getValue();
      auto count = countOf.find({schedule, name, life.cell.field});
      if (count == countOf.end())
        continue;
      size_t &end =
          ends[{name, life.cell.field, life.cell.number % count->second}];
      // Past the end of the former one; none ends before the first event.
      if (life.first < end)
        return false;
      end = life.last + 1;
    }
  }
  return true;
}

int64_t penstock::placeRings(MutableArrayRef<MessageRing> rings,
                             ArrayRef<DeviceLives> schedules, int64_t base) {
  // A short search in every way; long ones where it does not lead far enough.
  constexpr unsigned kShort = 20, kLong = 1;
  int64_t bound = base + getPeak(rings, schedules);
  int64_t end = RingPlacer(rings, schedules, Slots::Ring).run(base, kShort);
  if ((end - bound) * kWasteShare <= end)
    return end;

  // A place per message of an update, where an update has few.
  std::vector<MessageRing> split(rings.begin(), rings.end());
  for (MessageRing &ring : split) {
    int64_t messages = !ring.isScratch && ring.schedule < schedules.size()
                           ? schedules[ring.schedule].microbatches
                           : 1;
    if (messages > 1 && messages <= kMostSlots)
      ring.count = messages;
  }
  if (!isInjective(split, schedules))
    return end;
  int64_t least = end - end / kWasteShare;
  for (unsigned shares : {kShort, kLong})
    for (Slots slots : {Slots::Single, Slots::Rounded, Slots::Fields}) {
      if (shares == kLong && (end - bound) * kWasteShare <= end)
        return end;
      std::vector<MessageRing> trial = split;
      int64_t trialEnd = RingPlacer(trial, schedules, slots).run(base, shares);
      if (trialEnd >= least)
        continue;
      least = end = trialEnd;
      llvm::copy(trial, rings.begin());
    }
  return end;
}
