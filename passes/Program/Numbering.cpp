//===- Numbering.cpp - Which message an entry of a loop handles -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs through one iteration of the outermost loop, counting, and reads off the
// linear function of the loop indices that gives the same counts.
//===----------------------------------------------------------------------===//

#include "passes/Program/Numbering.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

int64_t penstock::getAhead(Operation *entry) {
  auto ahead = entry->getAttrOfType<IntegerAttr>("ahead");
  return ahead ? ahead.getInt() : 0;
}

std::optional<int64_t> penstock::getEvery(Operation *entry) {
  if (auto every = entry->getAttrOfType<IntegerAttr>("every"))
    return every.getInt();
  return std::nullopt;
}

LoopRange LoopRange::get(Block &body) {
  LoopRange range;
  for (Operation &entry : body) {
    range.furthest = std::max(range.furthest, getAhead(&entry));
    range.nearest = std::min(range.nearest, getAhead(&entry));
  }
  return range;
}

namespace {
/// What counts together: runs of a task, sends or receives of a channel.
using Key = std::pair<StringAttr, Attribute>;

Key getKey(Operation *entry) {
  StringAttr kind = entry->getName().getIdentifier();
  if (auto run = dyn_cast<RunOp>(entry))
    return {kind, run.getTaskAttr()};
  if (auto send = dyn_cast<SendOp>(entry))
    return {kind, send.getChannelAttr()};
  if (auto recv = dyn_cast<RecvOp>(entry))
    return {kind, recv.getChannelAttr()};
  return {kind, cast<AllReduceOp>(entry).getGroupAttr()};
}

class Numbering {
public:
  LogicalResult run(RepeatOp outermost);

  llvm::MapVector<Operation *, Number> numbers;

private:
  LogicalResult visitLoop(Block &body, int64_t count);
  LogicalResult visitEntry(Operation *entry);

  /// The indices of the inner loops, and by how much the outermost one is
  /// ahead.
  SmallVector<int64_t, 2> indices;
  int64_t outerAhead = 0;
  llvm::DenseMap<Key, int64_t> counts;
  llvm::DenseMap<Key, int64_t> aheads;
};
} // namespace

LogicalResult Numbering::visitEntry(Operation *entry) {
  Key key = getKey(entry);
  int64_t number = counts[key]++;
  auto [ahead, first] = aheads.insert({key, outerAhead});
  if (!first && ahead->second != outerAhead)
    return entry->emitError() << "two entries of " << key.second
                              << " run ahead by different numbers of updates";

  auto [it, inserted] = numbers.insert({entry, Number()});
  Number &fit = it->second;
  if (inserted) {
    // The first visit is at index 0 of every loop.
    fit.base = number;
    fit.factors.assign(indices.size(), 0);
    return success();
  }
  int64_t expected = fit.base;
  for (auto [index, factor] : llvm::zip_equal(indices, fit.factors))
    expected += index * factor;
  if (expected == number)
    return success();
  // The first time that an index is 1, with zeros elsewhere, gives its factor.
  auto one = llvm::find(indices, 1);
  bool unit = one != indices.end() && llvm::count(indices, 0) + 1 ==
                                          static_cast<int64_t>(indices.size());
  int64_t &factor = fit.factors[unit ? one - indices.begin() : 0];
  if (!unit || factor)
    return entry->emitError()
           << "does not handle evenly spaced microbatches: give entries of "
           << key.second
           << " in one loop the same 'ahead', or write the loop out";
  factor = number - fit.base;
  return success();
}

LogicalResult Numbering::visitLoop(Block &body, int64_t count) {
  LoopRange range = LoopRange::get(body);
  indices.push_back(0);
  for (int64_t j : llvm::seq<int64_t>(0, count + range.getExtra())) {
    for (Operation &entry : body) {
      int64_t index = j - range.getShift(getAhead(&entry));
      if (index < 0 || index >= count)
        continue;
      indices.back() = index;
      if (auto inner = dyn_cast<RepeatOp>(entry)) {
        if (failed(visitLoop(inner.getBody().front(), *inner.getCount())))
          return failure();
      } else if (failed(visitEntry(&entry))) {
        return failure();
      }
    }
  }
  indices.pop_back();
  return success();
}

LogicalResult Numbering::run(RepeatOp outermost) {
  for (Operation &entry : outermost.getBody().front()) {
    outerAhead = getAhead(&entry);
    if (auto inner = dyn_cast<RepeatOp>(entry)) {
      if (failed(visitLoop(inner.getBody().front(), *inner.getCount())))
        return failure();
    } else if (failed(visitEntry(&entry))) {
      return failure();
    }
  }
  for (auto &[entry, number] : numbers)
    number.perIteration = counts[getKey(entry)];
  return success();
}

FailureOr<llvm::MapVector<Operation *, Number>>
penstock::numberEntries(RepeatOp outermost) {
  Numbering numbering;
  if (failed(numbering.run(outermost)))
    return failure();
  return std::move(numbering.numbers);
}
