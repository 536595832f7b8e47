//===- ZeroBubbleAuto.cpp - Zero bubble for given times and memory --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The heuristic search of Qi et al. (ICLR 2024). Before its first backward a
// device runs as many forwards as fit before that backward can arrive, and one
// more where the gap would be wide; then forward and backward in turn. A weight
// gradient fills a gap where it fits or where the device would become the most
// idle of all, or makes room when memory is full. How wide is wide is tried
// out, on a few microbatches that are stretched to all (see Stretching); the
// handcrafted schedules compete.
//
// F 18.5, I 18.1, W 9.3, transfers 0.6, p = 8, M = 24, the last two devices:
//   6: F F F I F I F I F I ... I W W I W W I W W W ...
//   7: F I F I F I F I F I ... F I W W W W W W W ...
//===----------------------------------------------------------------------===//

#include "Greedy.h"
#include "penstock/Schedule/Simulator.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>

using namespace llvm;

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
    if (trial.getLetter(run.task) == 'I')
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
  double load = double(more) * trial.getLoad(busiest);
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

/// Runs of a trial, one stage per device, with `more` microbatches: the best
/// way that was found within the memory limit.
static std::vector<std::vector<int>>
stretch(const Problem &trial, ArrayRef<std::vector<int>> runs, int64_t more) {
  Stretching stretching(trial, runs);
  // As many as make a turn that waits show, with the same part of a last turn.
  int64_t some = int64_t(llvm::alignTo(trial.microbatches, kAllTurns));
  Way way = stretching.find(std::min(more, some + more % kAllTurns));
  return stretching.stretch(way, more);
}

} // namespace penstock::schedule

namespace penstock::schedule {

namespace {

/// The settings that are tried.
struct Knobs {
  /// A gap before the first backward that is wider than this share of a forward
  /// is filled with one more.
  double warmUpGap;
  /// A gap is left open rather than a backward delayed, as long as this device
  /// has not been idle for longer than the one that has to be most.
  bool patient;
  /// Backward whenever there is one, instead of in turn with forward.
  bool backwardFirst;
};

/// The actions of each device before its first backward.
struct WarmUp {
  /// Forwards of each device.
  std::vector<int64_t> counts;
  /// The longest gap before a first backward.
  double longest = 0;

  bool operator==(const WarmUp &other) const {
    return counts == other.counts && longest == other.longest;
  }
};

class Search {
public:
  explicit Search(const Problem &problem)
      : problem(problem),
        limit(problem.memoryLimit > 0 ? problem.memoryLimit
                                      : double(problem.microbatches) + 1) {}

  WarmUp warmUp(const Knobs &knobs) const;
  /// Lets the greedy clock run, unless it cannot be done in less than `most`.
  bool schedule(Greedy &greedy, const Knobs &knobs, const WarmUp &warmUp,
                double most) const;

private:
  const Problem &problem;
  double limit;
};

} // namespace

WarmUp Search::warmUp(const Knobs &knobs) const {
  int p = problem.devices;
  double transfer = problem.times.transfer;
  auto most = static_cast<int64_t>(
      std::min<double>(double(problem.microbatches), limit + 1e-9));
  WarmUp result;
  std::vector<int64_t> &counts = result.counts;
  counts.resize(p);
  // When the first microbatch arrives at each device, then when it is back.
  std::vector<double> starts(p);
  double arrival = 0;
  for (int i = 0; i < p; ++i) {
    starts[i] = arrival + (i ? transfer : 0);
    arrival = starts[i] + problem.getTime(problem.task('F', i));
  }
  for (int i = p - 1; i >= 0; --i) {
    double forward = problem.getTime(problem.task('F', i));
    double fit =
        forward > 0 ? (arrival - starts[i]) / forward + 1e-9 : double(most);
    auto count = static_cast<int64_t>(std::clamp(fit, 1.0, double(most)));
    double gap = arrival - (starts[i] + count * forward);
    if (gap > knobs.warmUpGap * forward && count < most)
      ++count;
    counts[i] = count;
    result.longest =
        std::max(result.longest, arrival - (starts[i] + count * forward));
    arrival = std::max(arrival, starts[i] + count * forward) +
              problem.getTime(problem.task('I', i)) + transfer;
  }
  for (int i = 1; i < p; ++i)
    counts[i] = std::min(counts[i], counts[i - 1]);
  return result;
}

bool Search::schedule(Greedy &greedy, const Knobs &knobs, const WarmUp &warmUp,
                      double most) const {
  auto rule = [&](int i) -> Greedy::Choice {
    int f = problem.task('F', i), b = problem.task('I', i),
        w = problem.task('W', i);
    int64_t forward = greedy.done(f), backward = greedy.done(b);
    int64_t pending = backward - greedy.done(w);
    if (forward < warmUp.counts[i])
      return greedy.choose(f);
    if (backward == 0)
      return greedy.choose(b);
    double now = greedy.getTime(i);
    auto mayWait = [&](double until) {
      return knobs.patient &&
             greedy.getIdle(i) + until - now <=
                 std::max(greedy.mostIdle(), warmUp.longest) + 1e-9;
    };

    // 1. What is next of forward and backward?
    Greedy::Choice next = greedy.choose(b), other = greedy.choose(f);
    double held = double(forward - backward) + problem.weightMemory * pending;
    bool full = held + 1 > limit + 1e-9;
    bool backwardsTurn = greedy.getLater(f, b) == f;
    if (full || (backwardsTurn && other.start < next.start &&
                 next.start != Greedy::kNever && mayWait(next.start)))
      other = {};
    if (other.start < next.start ||
        (other.start == next.start && !backwardsTurn && !knobs.backwardFirst))
      next = other;

    // 2. A gap? Room to make? Then a weight gradient.
    if (pending == 0 || next.start <= now + 1e-9)
      return next;
    bool fits = next.start - now >= problem.getTime(w);
    bool makesRoom = full && problem.weightMemory > 0;
    if (fits || makesRoom || !mayWait(next.start))
      return greedy.choose(w);
    return next;
  };
  return greedy.run(rule, most);
}

static std::vector<Order> buildOrders(const Problem &problem,
                                      ArrayRef<std::vector<int>> runs) {
  std::vector<Order> orders;
  for (int i = 0; i < problem.devices; ++i)
    orders.push_back(buildOrder(problem, i, runs[i]));
  return orders;
}

/// The best of the search. Gaps that are filled alike are tried once.
static std::vector<std::vector<int>> searchRuns(const Problem &problem) {
  Search search(problem);
  std::vector<std::vector<int>> best;
  double least = Greedy::kNever;
  std::vector<WarmUp> tried;
  for (double warmUpGap :
       {0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0}) {
    WarmUp warmUp = search.warmUp({warmUpGap, false, false});
    if (llvm::is_contained(tried, warmUp))
      continue;
    for (bool patient : {false, true})
      for (bool backwardFirst : {false, true}) {
        Knobs knobs{warmUpGap, patient, backwardFirst};
        Greedy greedy(problem, Greedy::Clock::Problem);
        if (search.schedule(greedy, knobs, warmUp, least) &&
            (best.empty() || greedy.makespan() < least)) {
          least = greedy.makespan();
          best = std::move(greedy.runs);
        }
      }
    tried.push_back(std::move(warmUp));
  }
  return best;
}

static std::vector<Order> generateAuto(const Problem &problem) {
  std::vector<Order> result;
  Simulation least;
  least.makespan = Greedy::kNever;
  auto consider = [&](std::vector<Order> orders) {
    Simulation simulation = simulate(problem, orders);
    if (!simulation.isShorterThan(least) || !keepsLimit(problem, simulation))
      return;
    least = std::move(simulation);
    result = std::move(orders);
  };

  // 1. The search, on as many microbatches as make up for fill and drain,
  // stretched; on twice as many where there it leaves the busiest device idle.
  double ideal =
      problem.getLoad(problem.busiestDevice()) * double(problem.microbatches);
  constexpr int64_t kMost = 1 << 14;
  for (int64_t perDevice : {4, 8}) {
    int64_t count = perDevice * problem.devices;
    if (perDevice > 4 && count * problem.devices > kMost)
      break;
    Problem trial =
        problem.withMicrobatches(std::min(problem.microbatches, count));
    std::vector<std::vector<int>> runs = searchRuns(trial);
    int64_t more = problem.microbatches - trial.microbatches;
    consider(buildOrders(problem, more ? stretch(trial, runs, more) : runs));
    if (more == 0 || least.makespan <= ideal * (1 + 1e-9))
      break;
  }

  // 2. The handcrafted ones, where they fit.
  for (const Family *family : {&kZeroBubbleH1, &kZeroBubbleH2})
    consider(family->generate(problem));
  return result;
}

static std::string refuseAuto(const Problem &problem) {
  if (problem.memoryLimit != 0 && problem.memoryLimit < 1)
    return "schedule zb-auto needs memory for at least one microbatch";
  return "";
}

static constexpr SpecKey kParameters[] = {{.name = "memory-limit",
                                           .below = kMostOfKey,
                                           .wants = "a number of at least 0",
                                           .example = ""}};

const Family kZeroBubbleAuto = {{"zb-auto", kParameters},
                                Placement::Line,
                                true,
                                oneChunk,
                                refuseAuto,
                                generateAuto};

} // namespace penstock::schedule
