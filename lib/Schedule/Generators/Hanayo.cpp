//===- Hanayo.cpp - Waves -------------------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Liu et al. (SC 2023). Chunks go down and up the devices, W times; a device
// takes the backward that is there, else a forward. At most 2p microbatches are
// in flight; how many are best is tried out.
//
// p = 2, one wave, M = 2 (a B takes two units):
//   0: 0F0 0F1 .   3F0 3B0 -   3F1 3B1 -   0B0 -   0B1 -
//   1: .   1F0 2F0 1F1 2F1 2B0 -   1B0 -   2B1 -   1B1 -
//===----------------------------------------------------------------------===//

#include "Greedy.h"

using namespace llvm;

namespace penstock::schedule {

static int chunksOfWaves(const ScheduleSpec &spec) {
  return 2 * static_cast<int>(spec.get("waves"));
}

namespace {

/// The settings that are tried: microbatches in flight, and which forward comes
/// first, the oldest or the deepest.
struct Knobs {
  int64_t inFlight;
  bool deepest;
};

} // namespace

static std::vector<std::vector<int>>
runWaves(const Problem &problem, const Knobs &knobs, double &makespan) {
  Greedy greedy(problem, Greedy::Clock::Unit);
  std::vector<SmallVector<int, 2>> stages;
  for (int device = 0; device < problem.devices; ++device)
    stages.push_back(problem.getStages(device));
  int first = problem.task('F', 0), last = problem.task('B', 0);
  greedy.run([&](int device) {
    Greedy::Choice best;
    int64_t rank = 0;
    bool isForward = false;
    for (int stage : stages[device])
      for (char letter : {'B', 'F'}) {
        Greedy::Choice choice = greedy.choose(problem.task(letter, stage));
        if (choice.start == Greedy::kNever ||
            (choice.task == first &&
             greedy.done(first) - greedy.done(last) >= knobs.inFlight))
          continue;
        int64_t mine = knobs.deepest ? -stage : greedy.done(choice.task);
        bool forward = letter == 'F';
        if (std::tie(choice.start, forward, mine) <
            std::tie(best.start, isForward, rank)) {
          best = choice;
          rank = mine;
          isForward = forward;
        }
      }
    return best;
  });
  makespan = 0;
  for (int device = 0; device < problem.devices; ++device)
    makespan = std::max(makespan, greedy.getTime(device));
  return greedy.runs;
}

static std::vector<Order> generateWaves(const Problem &problem) {
  // What is best for a few rounds is best for more.
  int64_t p = problem.devices;
  Problem trial(problem.spec, problem.devices,
                std::min(problem.microbatches, 8 * p));
  Knobs best{p, false};
  double least = 0, makespan = 0;
  for (int64_t inFlight : {p, p + (p + 1) / 2, 2 * p})
    for (bool deepest : {false, true}) {
      runWaves(trial, {inFlight, deepest}, makespan);
      if (least == 0 || makespan < least) {
        least = makespan;
        best = {inFlight, deepest};
      }
    }
  std::vector<std::vector<int>> runs = runWaves(problem, best, makespan);
  std::vector<Order> orders;
  for (int i = 0; i < problem.devices; ++i)
    orders.push_back(buildOrder(problem, i, runs[i]));
  return orders;
}

static constexpr SpecKey kParameters[] = {
    {.name = "waves",
     .type = SpecKey::Whole,
     .fallback = 1,
     .least = 1,
     .below = kMostOfKey,
     .wants = "a whole number of at least 1",
     .example = ""}};

const Family kHanayo = {
    {"hanayo", kParameters}, Placement::Wave, false,
    chunksOfWaves,           nullptr,         generateWaves};

} // namespace penstock::schedule
