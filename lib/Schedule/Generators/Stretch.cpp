//===- Stretch.cpp - A steady state in runs of a few microbatches ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All devices are cut at one time. There each repeats a turn: its next forward,
// I and W, or its next few of each, as they followed in the trial. Then comes
// the rest of the trial.
//
//   F F F | F I W | F I F I I I W W W W
//     F F | I F W | I F I F I W I W W W
//
// A turn leaves every device as it was at the cut, so that what follows can be
// done as in the trial. No device waits in a circle: what a run of a turn takes
// comes from before the cut, from a former turn, or from the same turn and
// earlier in the trial, since at the cut nothing is ahead of what it takes. And
// no device holds more microbatches with each turn, as it may where a fast
// stage of the trial runs away from the next.
//===----------------------------------------------------------------------===//

#include "Stretch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>

using namespace llvm;

namespace penstock::schedule {

namespace {

/// How long turns may be, in microbatches, and what all of them divide.
constexpr int64_t kTurns[] = {1, 2, 3, 4}, kAllTurns = 12;

/// A cut, a time in the trial, and the microbatches of a turn.
struct Way {
  double cut;
  int64_t turn;
};

class Stretching {
public:
  Stretching(const Problem &trial, ArrayRef<std::vector<int>> runs)
      : trial(trial), simulation(simulateRuns(trial, runs)) {}

  /// The best way to add as many.
  Way find(int64_t more) const;
  /// Empty if some task has no runs left to repeat.
  std::vector<std::vector<int>> stretch(const Way &way, int64_t more) const;

private:
  std::vector<double> cuts(int device) const;

  const Problem &trial;
  Simulation simulation;
};

} // namespace

std::vector<double> Stretching::cuts(int device) const {
  // Backwards are what all devices keep step with.
  std::vector<double> ends;
  for (const Interval &run : simulation.runs[device])
    if (trial.letterOf(run.task) == 'I')
      ends.push_back(run.end);
  constexpr size_t kMost = 16;
  size_t step = std::max<size_t>(1, ends.size() / kMost);
  std::vector<double> result;
  for (size_t k = 0; k < ends.size(); k += step)
    result.push_back(ends[k]);
  // Before all runs: one microbatch after the other, which always fits.
  result.push_back(-1);
  return result;
}

std::vector<std::vector<int>> Stretching::stretch(const Way &way,
                                                  int64_t more) const {
  std::vector<std::vector<int>> result;
  for (ArrayRef<Interval> runs : simulation.runs) {
    const Interval *middle = llvm::partition_point(
        runs, [&](const Interval &run) { return run.end <= way.cut; });
    // The next `count` runs of each task.
    auto turnOf = [&](int64_t count) {
      std::vector<int> tasks;
      std::vector<int64_t> left(trial.model.tasks.size(), count);
      for (const Interval &run : llvm::make_range(middle, runs.end()))
        if (left[run.task]-- > 0)
          tasks.push_back(run.task);
      return tasks;
    };
    std::vector<int> &list = result.emplace_back();
    auto append = [&](const Interval *first, const Interval *last) {
      for (const Interval &run : llvm::make_range(first, last))
        list.push_back(run.task);
    };
    std::vector<int> turn = turnOf(way.turn);
    constexpr int64_t kTasks = 3;
    if (int64_t(turn.size()) < kTasks * way.turn)
      return {};
    append(runs.begin(), middle);
    for (int64_t k = 0; k < more / way.turn; ++k)
      llvm::append_range(list, turn);
    llvm::append_range(list, turnOf(more % way.turn));
    append(middle, runs.end());
  }
  return result;
}

Way Stretching::find(int64_t more) const {
  int busiest = trial.busiestDevice();
  double load = double(more) * trial.loadOf(busiest);
  Problem longer = trial.withMicrobatches(trial.microbatches + more);

  // Where it takes as long as in the trial, there is nothing better.
  Simulation ideal;
  ideal.makespan = simulation.makespan + load;
  ideal.withBarrier = simulation.withBarrier + load;

  Way best{-1, 1};
  Simulation least;
  least.makespan = std::numeric_limits<double>::infinity();
  std::vector<double> cuts = this->cuts(busiest);
  for (int64_t turn : kTurns)
    for (double cut : cuts) {
      std::vector<std::vector<int>> runs = stretch({cut, turn}, more);
      if (runs.empty())
        continue;
      Simulation found = simulateRuns(longer, runs);
      if (!found.isShorterThan(least) || !keepsLimit(trial, found))
        continue;
      least = std::move(found);
      best = {cut, turn};
      if (!ideal.isShorterThan(least))
        return best;
    }
  return best;
}

std::vector<std::vector<int>>
stretch(const Problem &trial, ArrayRef<std::vector<int>> runs, int64_t more) {
  Stretching stretching(trial, runs);
  // As many as make a turn that waits show, with the same part of a last turn.
  int64_t some = int64_t(llvm::alignTo(trial.microbatches, kAllTurns));
  Way way = stretching.find(std::min(more, some + more % kAllTurns));
  return stretching.stretch(way, more);
}

} // namespace penstock::schedule
