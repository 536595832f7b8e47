//===- PackingTest.cpp - Placements against all there are -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random small instances, where every order can be tried, and large ones.
//===----------------------------------------------------------------------===//

#include "penstock/Memory/Packing.h"

#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace penstock;

namespace {

class Packing : public testing::Test {
protected:
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }

  std::vector<MemoryBlock> draw(size_t count, int64_t positions) {
    std::vector<MemoryBlock> blocks(count);
    for (MemoryBlock &block : blocks) {
      block.bytes = 64 * pick(1, 12);
      block.first = pick(0, positions - 1);
      block.last =
          std::min(positions - 1, block.first + pick(0, positions / 2));
    }
    return blocks;
  }

  std::mt19937_64 random{7};
};

} // namespace

/// Returns the most bytes that are alive at once.
static int64_t boundOf(const std::vector<MemoryBlock> &blocks) {
  int64_t most = 0;
  for (const MemoryBlock &block : blocks) {
    int64_t live = 0;
    for (const MemoryBlock &other : blocks)
      if (other.first <= block.first && block.first <= other.last)
        live += other.bytes;
    most = std::max(most, live);
  }
  return most;
}

/// Returns the least bytes of first fit over all orders: the best packing, in
/// the order of its offsets, is one of them.
static int64_t leastOf(std::vector<MemoryBlock> blocks) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t least = std::numeric_limits<int64_t>::max();
  do {
    int64_t end = 0;
    for (size_t i = 0; i < order.size() && end < least; ++i) {
      MemoryBlock &block = blocks[order[i]];
      block.offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t k = 0; k < i; ++k) {
          const MemoryBlock &other = blocks[order[k]];
          if (block.meets(other) && other.offset < block.offset + block.bytes &&
              block.offset < other.offset + other.bytes) {
            block.offset = other.offset + other.bytes;
            moved = true;
          }
        }
      }
      end = std::max(end, block.offset + block.bytes);
    }
    least = std::min(least, end);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

static void expectValid(const std::vector<MemoryBlock> &blocks, int64_t end) {
  int64_t last = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_GE(blocks[i].offset, 0);
    last = std::max(last, blocks[i].offset + blocks[i].bytes);
    for (size_t k = 0; k < i; ++k)
      EXPECT_TRUE(!blocks[i].meets(blocks[k]) ||
                  blocks[i].offset + blocks[i].bytes <= blocks[k].offset ||
                  blocks[k].offset + blocks[k].bytes <= blocks[i].offset)
          << i << " and " << k;
  }
  EXPECT_EQ(last, end);
  EXPECT_GE(end, boundOf(blocks));
}

TEST_F(Packing, FindsTheBestOfSmallOnes) {
  for (int round = 0; round < 300; ++round) {
    std::vector<MemoryBlock> blocks = draw(pick(1, 7), pick(2, 9));
    int64_t end = packBlocks(blocks);
    expectValid(blocks, end);
    EXPECT_EQ(end, leastOf(blocks)) << "round " << round;
  }
}

TEST_F(Packing, ComesNearTheBoundOfLargeOnes) {
  double sum = 0;
  constexpr int kRounds = 5;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<MemoryBlock> blocks = draw(120, 60);
    int64_t end = packBlocks(blocks);
    expectValid(blocks, end);
    sum += double(end) / double(boundOf(blocks)) - 1;
  }
  RecordProperty("above", std::to_string(sum / kRounds));
  EXPECT_LE(sum / kRounds, 0.03);
}

TEST_F(Packing, SaysTheSameAgain) {
  std::vector<MemoryBlock> first = draw(60, 30), second = first;
  EXPECT_EQ(packBlocks(first), packBlocks(second));
  for (size_t i = 0; i < first.size(); ++i)
    EXPECT_EQ(first[i].offset, second[i].offset);
}

TEST_F(Packing, TriesNoMoreThanItMay) {
  // A bound that cannot be met, and things that all meet.
  constexpr size_t kCount = 40;
  constexpr unsigned kAttempts = 100;
  unsigned calls = 0;
  std::vector<size_t> order(kCount), last;
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::vector<size_t>> orders = {order,
                                             {order.rbegin(), order.rend()}};
  searchOrder(orders, 0, kAttempts, [&](llvm::ArrayRef<size_t> given) {
    ++calls;
    last = given.vec();
    Placement placement;
    placement.extents.resize(kCount);
    int64_t end = 0;
    for (size_t thing : given) {
      placement.extents[thing] = {end, end + int64_t(thing) + 1};
      end += int64_t(thing) + 1;
    }
    return placement;
  });
  // The orders, what it may try, and the one that it settles on.
  EXPECT_EQ(calls, orders.size() + kAttempts + 1);
  EXPECT_EQ(last, order);
}
