//===- Compress.cpp - Loops in orders that are written out ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A schedule has a fill, a steady state and a drain. A loop that covers some
// anchor in the middle is found and extended both ways; what is left on both
// sides is treated likewise.
//===----------------------------------------------------------------------===//

#include "Compress.h"

#include <algorithm>

using namespace llvm;

namespace penstock::schedule {

namespace {

struct Period {
  size_t first = 0, length = 0, count = 0;
  size_t saved() const { return count > 1 ? (count - 1) * length : 0; }
};

class Compressor {
public:
  Compressor(Order &order, ArrayRef<Item> items) : order(order), items(items) {
    for (const Item &item : items)
      keys.push_back(int64_t(item.kind) << 32 | uint32_t(item.id));
  }

  void emit(size_t first, size_t last);

private:
  Period findAt(size_t anchor, size_t first, size_t last) const;

  Order &order;
  ArrayRef<Item> items;
  std::vector<int64_t> keys;
};

} // namespace

/// The period that saves most of those that hold at the anchor. The shortest
/// may be a few entries in each turn of a loop.
Period Compressor::findAt(size_t anchor, size_t first, size_t last) const {
  // No schedule that is of use repeats itself less often.
  constexpr size_t kLongest = 4096;
  size_t most = std::min(kLongest, (last - anchor) / 2);
  Period best;
  for (size_t length = 1; length <= most; ++length) {
    auto from = keys.begin() + anchor;
    if (!std::equal(from, from + length, from + length))
      continue;
    size_t left = anchor, right = anchor + length;
    while (left > first && keys[left - 1] == keys[left - 1 + length])
      --left;
    while (right < last && keys[right] == keys[right - length])
      ++right;
    Period found{left, length, (right - left) / length};
    if (found.saved() > best.saved())
      best = found;
    // Where two periods hold over the length of both, so does what divides
    // them: until then there are only multiples of this one.
    length = std::max(length, right - anchor - length);
  }
  return best;
}

void Compressor::emit(size_t first, size_t last) {
  Period best;
  size_t size = last - first;
  if (size >= 4)
    for (size_t quarter : {2, 1, 3, 0}) {
      Period found = findAt(first + size * quarter / 4, first, last);
      if (found.saved() > best.saved())
        best = found;
    }
  // A loop costs some index arithmetic: two entries are shorter written out.
  constexpr size_t kWorthIt = 4;
  std::vector<Item> &body = order.loops.front().items;
  if (best.saved() < kWorthIt) {
    body.insert(body.end(), items.begin() + first, items.begin() + last);
    return;
  }
  if (best.first > first)
    emit(first, best.first);
  Loop loop{LoopKind::Times, int64_t(best.count), {}};
  loop.items.assign(items.begin() + best.first,
                    items.begin() + best.first + best.length);
  Item item;
  item.loop = order.loops.size();
  order.loops.front().items.push_back(item);
  order.loops.push_back(std::move(loop));
  size_t end = best.first + best.length * best.count;
  if (end < last)
    emit(end, last);
}

void appendCompressed(Order &order, ArrayRef<Item> items) {
  Compressor(order, items).emit(0, items.size());
}

} // namespace penstock::schedule
