//===- PlaceRings.h - Places for messages and temporaries -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which slots may share bytes follows from when their messages are alive. Slot
// n of a ring is at a + (n mod count) stride; where rings as such leave too
// much unused, every message of an update gets a place of its own.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_MEMORY_PLACERINGS_H
#define PENSTOCK_PASSES_PROGRAM_MEMORY_PLACERINGS_H

#include "passes/Program/Memory/Lifetimes.h"

#include "llvm/ADT/BitVector.h"

namespace penstock {

/// The slots of one field of a channel, in one schedule of a device; or the
/// temporaries of a kernel, which are in use while it runs, in all of them.
struct MessageRing {
  bool isScratch = false;
  size_t schedule = 0;
  /// Or the kernel.
  mlir::StringAttr channel;
  int64_t field = 0;
  int64_t bytes = 0; ///< Of a slot, aligned.
  int64_t count = 1;
  int64_t at = 0, stride = 0;
  /// Places by message of an update, instead of the two before.
  std::vector<int64_t> places;
};

/// When the slots of a ring are in use, over the events of all schedules of a
/// device, one after the other, and one event more for what is always in use.
struct RingUse {
  llvm::BitVector any;
  /// Bits by slot; empty where slots are not told apart.
  std::vector<llvm::BitVector> slots;

  const llvm::BitVector &of(int64_t slot) const {
    return slots.empty() ? any : slots[slot];
  }
};

/// In the order of `rings`. One of no message, or of a kernel that is never
/// called, is always in use. Slots are told apart where a message has the same
/// one in every update.
std::vector<RingUse> getRingUses(llvm::ArrayRef<MessageRing> rings,
                                 llvm::ArrayRef<DeviceLives> schedules);

/// Gives every ring its place, from `base` on. Returns the end of all; of those
/// that get `places`, the count becomes their number.
int64_t placeRings(llvm::MutableArrayRef<MessageRing> rings,
                   llvm::ArrayRef<DeviceLives> schedules, int64_t base);

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_MEMORY_PLACERINGS_H
