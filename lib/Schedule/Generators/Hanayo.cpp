//===- Hanayo.cpp - Waves -------------------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Liu et al. (SC 2023). Chunks go down and up the devices, W times; a device
// takes the backward that is there, else the forward of the oldest microbatch.
// At most p microbatches are in flight.
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

static std::vector<Order> generateWaves(const Problem &problem) {
  Greedy greedy(problem, Greedy::Clock::Unit);
  int first = problem.task('F', 0), last = problem.task('B', 0);
  greedy.run([&](int device) {
    Greedy::Choice best;
    int64_t number = 0;
    bool isForward = false;
    for (int stage : problem.stagesOf(device))
      for (char letter : {'B', 'F'}) {
        Greedy::Choice choice = greedy.choose(problem.task(letter, stage));
        if (choice.start == Greedy::kNever ||
            (choice.task == first &&
             greedy.done(first) - greedy.done(last) >= problem.devices))
          continue;
        int64_t mine = greedy.done(choice.task);
        bool forward = letter == 'F';
        if (std::tie(choice.start, forward, mine) <
            std::tie(best.start, isForward, number)) {
          best = choice;
          number = mine;
          isForward = forward;
        }
      }
    return best;
  });
  std::vector<Order> orders;
  for (int i = 0; i < problem.devices; ++i)
    orders.push_back(orderOf(problem, i, greedy.runs[i]));
  return orders;
}

static constexpr Parameter kParameters[] = {{"waves", 1, 1, true}};

const Family kHanayo = {"hanayo",     Placement::Wave, false,
                        kParameters,  chunksOfWaves,   nullptr,
                        generateWaves};

} // namespace penstock::schedule
