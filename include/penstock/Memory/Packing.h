//===- Packing.h - Places for blocks that live for some time ----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What temporaries of a kernel and queues of a device have in common: blocks
// are placed first fit, in an order that is searched for.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_MEMORY_PACKING_H
#define PENSTOCK_MEMORY_PACKING_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallVectorExtras.h"

#include <cstdint>
#include <vector>

namespace penstock {

/// Bytes that are taken from position `first` to position `last`, both
/// included.
struct MemoryBlock {
  int64_t bytes = 0;
  int64_t first = 0, last = 0;
  int64_t offset = 0;

  bool meets(const MemoryBlock &other) const {
    return first <= other.last && other.first <= last;
  }
};

/// Gives each of `blocks` an offset such that blocks that meet share no byte.
/// Returns the end of all.
int64_t packBlocks(llvm::MutableArrayRef<MemoryBlock> blocks);

/// Where things are that were placed in some order.
struct Placement {
  struct Extent {
    int64_t begin = 0, end = 0;
  };
  /// The extents, indexed by thing.
  std::vector<Extent> extents;

  /// The first of those that end last.
  size_t getHighest() const;
  int64_t getEnd() const {
    return extents.empty() ? 0 : extents[getHighest()].end;
  }
};

/// Looks for an order of things for which `place` ends early; it places them
/// from 0 on. The first of `orders` counts among equals; looks no further once
/// `bound` is reached, or after so many placements beside those of `orders`.
/// Calls `place` for the order that it returns last of all.
void searchOrder(llvm::ArrayRef<std::vector<size_t>> orders, int64_t bound,
                 unsigned attempts,
                 llvm::function_ref<Placement(llvm::ArrayRef<size_t>)> place);

/// The numbers up to `count`, those with the greatest key first.
template <typename Key>
std::vector<size_t> orderByFalling(size_t count, Key key) {
  std::vector<size_t> order;
  llvm::append_range(order, llvm::seq<size_t>(0, count));
  // Each key once: some take a walk over all events.
  auto keys = llvm::map_to_vector(order, key);
  llvm::sort(order, [&](size_t a, size_t b) {
    return keys[a] != keys[b] ? keys[a] > keys[b] : a < b;
  });
  return order;
}

} // namespace penstock

#endif // PENSTOCK_MEMORY_PACKING_H
