//===- Packing.cpp - Places for blocks that live for some time ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// First fit is as good as its order. Some orders are good by themselves. From
// the best of them, something in the stack below what ends last is tried
// earlier, again and again, and the stack is reversed: things placed anew, in
// the order of their ends from the last down, as if reversed, end no later.
// The numbers are drawn by a generator of our own, so that plans do not change.
//===----------------------------------------------------------------------===//

#include "penstock/Memory/Packing.h"

#include <algorithm>

using namespace penstock;

size_t Placement::getHighest() const {
  size_t highest = 0;
  for (size_t thing = 1; thing < extents.size(); ++thing)
    if (extents[thing].end > extents[highest].end)
      highest = thing;
  return highest;
}

namespace {

class OrderSearch {
public:
  OrderSearch(int64_t bound, unsigned attempts,
              llvm::function_ref<Placement(llvm::ArrayRef<size_t>)> place)
      : bound(bound), left(attempts), place(place) {}

  std::vector<size_t> run(llvm::ArrayRef<std::vector<size_t>> orders);

private:
  struct Tried {
    std::vector<size_t> order;
    Placement placement;
    int64_t end = 0;
  };

  Tried tryOrder(std::vector<size_t> order);
  void turnOver(Tried &tried);
  size_t pickFromPile(const Placement &placement);
  std::vector<size_t> change(const Tried &tried);
  size_t draw(size_t count);
  bool isOver(const Tried &best) const {
    return best.end <= bound || left == 0;
  }

  int64_t bound;
  unsigned left;
  llvm::function_ref<Placement(llvm::ArrayRef<size_t>)> place;
  uint64_t state = 1;
};

} // namespace

size_t OrderSearch::draw(size_t count) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (state >> 33) % count;
}

OrderSearch::Tried OrderSearch::tryOrder(std::vector<size_t> order) {
  Tried tried{std::move(order), {}, 0};
  tried.placement = place(tried.order);
  tried.end = tried.placement.getEnd();
  return tried;
}

/// Packs again, upper ends first, while that gains. A thing of several parts
/// may end later for it; then the packing stays as it is.
void OrderSearch::turnOver(Tried &tried) {
  // It may take two turns to win something.
  for (int vain = 0; vain < 2 && !isOver(tried); --left) {
    const auto &extents = tried.placement.extents;
    Tried turned = tryOrder(orderByFalling(
        extents.size(), [&](size_t thing) { return extents[thing].end; }));
    if (turned.end > tried.end)
      return;
    vain = turned.end < tried.end ? 0 : vain + 1;
    tried = std::move(turned);
  }
}

/// Things that stand on each other, from the one that ends last down: unless
/// one of them moves, the end stays where it is.
size_t OrderSearch::pickFromPile(const Placement &placement) {
  std::vector<size_t> stack = {placement.getHighest()};
  while (int64_t begin = placement.extents[stack.back()].begin) {
    std::vector<size_t> below;
    for (auto [thing, extent] : llvm::enumerate(placement.extents))
      if (extent.end == begin && extent.begin < begin)
        below.push_back(thing);
    if (below.empty())
      break;
    stack.push_back(below[draw(below.size())]);
  }
  return stack[draw(stack.size())];
}

std::vector<size_t> OrderSearch::change(const Tried &tried) {
  std::vector<size_t> order = tried.order;
  // Now and then something else.
  size_t thing =
      draw(3) == 0 ? draw(order.size()) : pickFromPile(tried.placement);
  auto late = llvm::find(order, thing);
  auto early = order.begin() + draw(late - order.begin() + 1);
  std::rotate(early, late, late + 1);
  return order;
}

std::vector<size_t>
OrderSearch::run(llvm::ArrayRef<std::vector<size_t>> orders) {
  // Some are searched from in turn: the best start need not lead furthest.
  constexpr size_t kStarts = 2;
  std::vector<Tried> starts, tried;
  for (const std::vector<size_t> &order : orders) {
    starts.push_back(tryOrder(order));
    if (starts.back().end <= bound)
      return order;
  }
  for (Tried &start : starts) {
    turnOver(start);
    if (start.end <= bound)
      return start.order;
  }
  for (size_t start : orderByFalling(
           starts.size(), [&](size_t start) { return -starts[start].end; }))
    if (tried.size() < kStarts)
      tried.push_back(std::move(starts[start]));
  Tried best = tried.front();
  for (size_t turn = 0; !isOver(best); ++turn) {
    Tried &current = tried[turn % tried.size()];
    --left;
    Tried next = tryOrder(change(current));
    // What has become much worse is not worth it.
    constexpr int64_t kWorse = 32;
    if (next.end <= current.end + current.end / kWorse)
      turnOver(next);
    if (next.end > current.end)
      continue;
    current = std::move(next);
    if (current.end < best.end)
      best = current;
  }
  return best.order;
}

void penstock::searchOrder(
    llvm::ArrayRef<std::vector<size_t>> orders, int64_t bound,
    unsigned attempts,
    llvm::function_ref<Placement(llvm::ArrayRef<size_t>)> place) {
  if (!orders.empty() && !orders.front().empty())
    place(OrderSearch(bound, attempts, place).run(orders));
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
    Placement result;
    result.extents.resize(blocks.size());
    std::vector<const MemoryBlock *> placed;
    for (size_t index : order) {
      MemoryBlock &block = blocks[index];
      int64_t offset = 0;
      for (const MemoryBlock *other : placed)
        if (block.meets(*other) && other->offset < offset + block.bytes)
          offset = std::max(offset, other->offset + other->bytes);
      block.offset = offset;
      placed.insert(llvm::upper_bound(placed, &block, byOffset), &block);
      result.extents[index] = {offset, offset + block.bytes};
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
    end = placed.getEnd();
    return placed;
  });
  return end;
}
