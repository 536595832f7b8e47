//===- Numbering.cpp - Which message an entry of a loop handles -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs through one iteration of the outermost loop, counting, and reads off the
// linear function of the loop indices that gives the same counts.
//===----------------------------------------------------------------------===//

#include "passes/Program/Devices/Numbering.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

int64_t penstock::getAhead(Operation *item) {
  auto entry = dyn_cast<ScheduleEntryOpInterface>(item);
  return entry ? entry.getAheadOr0() : 0;
}

std::optional<int64_t> penstock::getPeriod(Operation *item) {
  auto entry = dyn_cast<ScheduleEntryOpInterface>(item);
  return entry ? entry.getPeriod() : std::nullopt;
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
/// A class of entries with one count: runs of a task, sends or receives of a
/// channel.
using Key = std::pair<StringAttr, Attribute>;

Key getKey(Operation *entry) {
  return {entry->getName().getIdentifier(),
          cast<ScheduleEntryOpInterface>(entry).getSubjectAttr()};
}

class Numbering {
public:
  LogicalResult run(RepeatOp outermost);

  llvm::MapVector<Operation *, Number> numbers;

private:
  LogicalResult visitLoop(Block &body, int64_t count);
  LogicalResult visitEntry(Operation *entry);

  /// The indices of the inner loops.
  SmallVector<int64_t, 2> indices;
  llvm::DenseMap<Key, int64_t> counts;
};
} // namespace

LogicalResult Numbering::visitEntry(Operation *entry) {
  Key key = getKey(entry);
  int64_t number = counts[key]++;
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

/// Entries of a task or channel that run further ahead than others come first
/// in the numbers of an iteration. One iteration further, they stand behind
/// those; else the numbers of iterations would mix.
static LogicalResult checkAheads(RepeatOp outermost) {
  llvm::DenseMap<Key, std::pair<int64_t, int64_t>> firstAndLast;
  for (Operation &item : outermost.getBody().front()) {
    int64_t ahead = getAhead(&item);
    WalkResult result = item.walk([&](Operation *entry) {
      if (isa<RepeatOp>(entry))
        return WalkResult::advance();
      auto [known, isNew] =
          firstAndLast.try_emplace(getKey(entry), ahead, ahead);
      auto &[first, last] = known->second;
      if (ahead < last || ahead > first + 1) {
        entry->emitError() << "entries of " << known->first.second
                           << " run ahead by " << first << " and " << ahead
                           << " iterations, so that their numbers mix";
        return WalkResult::interrupt();
      }
      last = ahead;
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
  }
  return success();
}

LogicalResult Numbering::run(RepeatOp outermost) {
  if (failed(checkAheads(outermost)))
    return failure();
  SmallVector<std::tuple<int64_t, size_t, Operation *>> entries;
  for (Operation &entry : outermost.getBody().front())
    entries.push_back({-getAhead(&entry), entries.size(), &entry});
  llvm::sort(entries);
  for (auto [ahead, place, entry] : entries) {
    if (auto inner = dyn_cast<RepeatOp>(entry)) {
      if (failed(visitLoop(inner.getBody().front(), *inner.getCount())))
        return failure();
    } else if (failed(visitEntry(entry))) {
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
