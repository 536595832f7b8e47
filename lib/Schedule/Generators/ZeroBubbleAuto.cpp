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
// out; the handcrafted schedules compete.
//
// F 18.5, I 18.1, W 9.3, transfers 0.6, p = 8, M = 24, the last two devices:
//   6: F F F I F I F I F I ... I W W I W W I W W W ...
//   7: F I F I F I F I F I ... F I W W W W W W W ...
//===----------------------------------------------------------------------===//

#include "Greedy.h"
#include "penstock/Schedule/Simulator.h"

#include <algorithm>

using namespace llvm;

namespace penstock::schedule {

namespace {

/// What is tried out.
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

/// What a device does before its first backward.
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
    arrival = starts[i] + problem.timeOf(problem.task('F', i));
  }
  for (int i = p - 1; i >= 0; --i) {
    double forward = problem.timeOf(problem.task('F', i));
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
              problem.timeOf(problem.task('I', i)) + transfer;
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
    double now = greedy.timeOf(i);
    auto mayWait = [&](double until) {
      return knobs.patient &&
             greedy.idleOf(i) + until - now <=
                 std::max(greedy.mostIdle(), warmUp.longest) + 1e-9;
    };

    // 1. What is next of forward and backward?
    Greedy::Choice next = greedy.choose(b), other = greedy.choose(f);
    double held = double(forward - backward) + problem.weightMemory * pending;
    bool full = held + 1 > limit + 1e-9;
    bool backwardsTurn = greedy.laterOf(f, b) == f;
    if (full || (backwardsTurn && other.start < next.start &&
                 next.start != Greedy::kNever && mayWait(next.start)))
      other = {};
    if (other.start < next.start ||
        (other.start == next.start && !backwardsTurn && !knobs.backwardFirst))
      next = other;

    // 2. A gap? Room to make? Then a weight gradient.
    if (pending == 0 || next.start <= now + 1e-9)
      return next;
    bool fits = next.start - now >= problem.timeOf(w);
    bool makesRoom = full && problem.weightMemory > 0;
    if (fits || makesRoom || !mayWait(next.start))
      return greedy.choose(w);
    return next;
  };
  return greedy.run(rule, most);
}

static std::vector<Order> ordersOf(const Problem &problem,
                                   ArrayRef<std::vector<int>> runs) {
  std::vector<Order> orders;
  for (int i = 0; i < problem.devices; ++i)
    orders.push_back(orderOf(problem, i, runs[i]));
  return orders;
}

static std::vector<Order> generateAuto(const Problem &problem) {
  // 1. What is tried: everything, on as many microbatches as make up for
  // fill and drain; what is best there is best for more.
  Problem trial = problem;
  constexpr int64_t kMost = 1 << 14;
  if (problem.microbatches * problem.devices > kMost)
    trial = Problem(problem.spec, problem.devices,
                    std::min(problem.microbatches,
                             std::max<int64_t>(4 * problem.devices,
                                               kMost / problem.devices)),
                    problem.times);
  trial.memoryLimit = problem.memoryLimit;
  trial.weightMemory = problem.weightMemory;
  trial.stageTimes = problem.stageTimes;

  // 2. The best of the search. Gaps that are filled alike are tried once.
  Search search(trial);
  std::optional<Knobs> best;
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
        Greedy greedy(trial, Greedy::Clock::Problem);
        if (search.schedule(greedy, knobs, warmUp, least) &&
            (!best || greedy.makespan() < least)) {
          best = knobs;
          least = greedy.makespan();
        }
      }
    tried.push_back(std::move(warmUp));
  }

  // 3. The handcrafted ones, where they fit.
  std::vector<Order> result;
  for (const Family *family : {&kZeroBubbleH1, &kZeroBubbleH2}) {
    std::vector<Order> orders = family->generate(trial);
    Simulation simulation = simulate(trial, orders);
    double peak =
        *std::max_element(simulation.peaks.begin(), simulation.peaks.end());
    if ((problem.memoryLimit == 0 || peak <= problem.memoryLimit + 1e-9) &&
        simulation.makespan < least) {
      least = simulation.makespan;
      result = family->generate(problem);
    }
  }
  if (!result.empty())
    return result;
  Search whole(problem);
  Greedy greedy(problem, Greedy::Clock::Problem);
  whole.schedule(greedy, *best, whole.warmUp(*best), Greedy::kNever);
  return ordersOf(problem, greedy.runs);
}

static std::string refuseAuto(const Problem &problem) {
  if (problem.memoryLimit != 0 && problem.memoryLimit < 1)
    return "schedule zb-auto needs memory for at least one microbatch";
  return "";
}

static constexpr Parameter kParameters[] = {{"memory-limit", 0, 0, false}};

const Family kZeroBubbleAuto = {"zb-auto",   Placement::Line, true,
                                kParameters, oneChunk,        refuseAuto,
                                generateAuto};

} // namespace penstock::schedule
