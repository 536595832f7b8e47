//===- RingPlacer.h - Places by one way of placing slots --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fields of a channel that are alive together form one record per message.
// Records, and the temporaries of kernels, are placed first fit, in an order
// that is searched for; a slot may share bytes with what is never in use when
// it is.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_MEMORY_RINGPLACER_H
#define PENSTOCK_PASSES_PROGRAM_MEMORY_RINGPLACER_H

#include "passes/Program/Memory/PlaceRings.h"
#include "penstock/Memory/Packing.h"

#include <optional>

namespace penstock {

class RingPlacer {
public:
  /// Slots of a ring as one progression, each for itself, each for itself with
  /// nearly equal sizes made equal, so that any takes the place of any other,
  /// or every field of a slot for itself.
  enum class Slots { Ring, Single, Rounded, Fields };

  RingPlacer(llvm::MutableArrayRef<MessageRing> rings,
             llvm::ArrayRef<DeviceLives> schedules, Slots howSlots)
      : rings(rings), uses(getRingUses(rings, schedules)), slots(howSlots) {
    formRecords();
    if (slots == Slots::Rounded)
      roundUp();
    conflicts.assign(slotUses.size() * slotUses.size(), kUnknown);
  }

  /// Places all from `base` on; an n-th of the usual effort. Returns the end.
  int64_t run(int64_t base, unsigned shares);

private:
  /// Rings that are placed together: slot i is at `at + i * bytes`.
  struct Record {
    llvm::SmallVector<size_t> rings;
    int64_t bytes = 0, count = 1;
    /// The only slot of the rings that it is, where each is a record.
    std::optional<int64_t> slot;
    /// The first slot of all.
    size_t firstSlot = 0;
    int64_t at = 0;

    int64_t getEnd() const { return at + count * bytes; }
  };

  void formRecords();
  void roundUp();
  std::vector<int64_t>
  getLive(llvm::function_ref<bool(const Record &)> counts) const;
  std::vector<int64_t> getPressures(std::vector<int64_t> live) const;
  Placement place(llvm::ArrayRef<size_t> order);
  int64_t findPlace(const Record &record,
                    llvm::ArrayRef<const Record *> placed);
  int64_t findSinglePlace(const Record &record,
                          llvm::ArrayRef<const Record *> placed);
  bool conflict(size_t a, size_t b);

  enum : char { kUnknown, kNo, kYes };
  llvm::MutableArrayRef<MessageRing> rings;
  std::vector<RingUse> uses;
  Slots slots;
  std::vector<Record> records;
  /// Uses by slot of all records; one for a record that is placed as a whole.
  std::vector<const llvm::BitVector *> slotUses;
  std::vector<char> conflicts;
};

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_MEMORY_RINGPLACER_H
