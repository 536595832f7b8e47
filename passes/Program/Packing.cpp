//===- Packing.cpp - Places for blocks that live for some time ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// First fit is as good as its order. Some orders are good by themselves; from
// the best of them, what ends last is tried earlier, again and again. The
// numbers are drawn by a generator of our own, so that plans do not change.
//===----------------------------------------------------------------------===//

#include "passes/Program/Packing.h"

#include <algorithm>

using namespace penstock;

void penstock::searchOrder(
    llvm::ArrayRef<std::vector<size_t>> orders, int64_t bound,
    unsigned attempts,
    llvm::function_ref<Placement(llvm::ArrayRef<size_t>)> place) {
  std::vector<size_t> best;
  Placement least;
  for (const std::vector<size_t> &order : orders) {
    Placement placed = place(order);
    if (best.empty() || placed.end < least.end) {
      best = order;
      least = placed;
    }
    if (least.end <= bound)
      break;
  }
  uint64_t state = 1;
  for (unsigned attempt = 0; attempt < attempts && least.end > bound;
       ++attempt) {
    std::vector<size_t> order = best;
    auto late = llvm::find(order, least.highest);
    // Now and then another one than that which ends last.
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    if (late == order.begin() || (state >> 33) % 4 == 0)
      late = order.begin() + (state >> 35) % order.size();
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    auto early = order.begin() + (state >> 33) % (late - order.begin() + 1);
    std::rotate(early, late, late + 1);
    Placement placed = place(order);
    if (placed.end > least.end)
      continue;
    best = std::move(order);
    least = placed;
  }
  if (!best.empty())
    place(best);
}

int64_t penstock::packBlocks(llvm::MutableArrayRef<MemoryBlock> blocks) {
  if (blocks.empty())
    return 0;
  // 1. No end can be lower than what is alive at once.
  int64_t positions = 0;
  for (const MemoryBlock &block : blocks)
    positions = std::max(positions, block.last + 1);
  std::vector<int64_t> change(positions + 1);
  for (const MemoryBlock &block : blocks) {
    change[block.first] += block.bytes;
    change[block.last + 1] -= block.bytes;
  }
  int64_t live = 0, bound = 0;
  for (int64_t by : change)
    bound = std::max(bound, live += by);

  // 2. First fit, in any order.
  auto byOffset = [](const MemoryBlock *a, const MemoryBlock *b) {
    return a->offset < b->offset;
  };
  auto place = [&](llvm::ArrayRef<size_t> order) {
    Placement result{0, order.front()};
    std::vector<const MemoryBlock *> placed;
    for (size_t index : order) {
      MemoryBlock &block = blocks[index];
      int64_t offset = 0;
      for (const MemoryBlock *other : placed)
        if (block.meets(*other) && other->offset < offset + block.bytes)
          offset = std::max(offset, other->offset + other->bytes);
      block.offset = offset;
      placed.insert(llvm::upper_bound(placed, &block, byOffset), &block);
      if (offset + block.bytes > result.end)
        result = {offset + block.bytes, index};
    }
    return result;
  };

  // 3. Large ones first is a good start; so are long-lived ones.
  auto duration = [&](size_t i) {
    return blocks[i].last - blocks[i].first + 1;
  };
  std::vector<std::vector<size_t>> orders = {
      orderByFalling(blocks.size(), [&](size_t i) { return blocks[i].bytes; }),
      orderByFalling(blocks.size(),
                     [&](size_t i) { return blocks[i].bytes * duration(i); }),
      orderByFalling(blocks.size(), duration),
      orderByFalling(blocks.size(), [&](size_t i) { return -blocks[i].first; }),
      orderByFalling(blocks.size(), [&](size_t i) { return blocks[i].last; })};
  constexpr size_t kMostSteps = 30'000'000, kMostAttempts = 2000;
  auto attempts = static_cast<unsigned>(std::min(
      kMostAttempts, kMostSteps / (blocks.size() * blocks.size()) + 1));
  int64_t end = 0;
  searchOrder(orders, bound, attempts, [&](llvm::ArrayRef<size_t> order) {
    Placement placed = place(order);
    end = placed.end;
    return placed;
  });
  return end;
}
