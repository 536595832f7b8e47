//===- Greedy.cpp - Runs by the clock -------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The choice that starts first is executed first, so that no choice is made
// before what it depends on is known.
//===----------------------------------------------------------------------===//

#include "Greedy.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace llvm;

namespace penstock::schedule {

Greedy::Greedy(const Problem &problem, Clock clock)
    : runs(problem.devices), problem(problem), times(problem.devices),
      idle(problem.devices), begins(problem.devices), work(problem.devices),
      transfer(clock == Clock::Unit ? 0 : problem.times.transfer),
      turns(problem.model.tasks.size(), -1), ends(problem.model.tasks.size()) {
  for (size_t task = 0; task < problem.model.tasks.size(); ++task) {
    char letter = problem.getLetter(task);
    durations.push_back(clock == Clock::Problem ? problem.getTime(task)
                        : letter == 'U'         ? 0
                        : letter == 'B'         ? 2
                                                : 1);
    devices.push_back(
        problem.model.stages[problem.getStage(task)].devices.front());
    if (letter != 'U')
      work[devices.back()] += double(problem.microbatches) * durations.back();
  }
}

double Greedy::getStart(int task) const {
  int64_t number = done(task);
  if (number == problem.microbatches)
    return kNever;
  double start = times[devices[task]];
  for (int id : problem.model.tasks[task].takes) {
    const Channel &channel = problem.model.channels[id];
    if (channel.producer < 0)
      continue;
    if (done(channel.producer) <= number)
      return kNever;
    start = std::max(start, ends[channel.producer][number] +
                                (channel.local ? 0 : transfer));
  }
  return start;
}

double Greedy::makespan() const {
  double longest = 0;
  for (int device = 0; device < problem.devices; ++device)
    if (!runs[device].empty())
      longest = std::max(longest, times[device] - begins[device]);
  return longest;
}

bool Greedy::run(Rule rule, double most) {
  std::vector<Choice> choices;
  for (int device = 0; device < problem.devices; ++device)
    choices.push_back(rule(device));
  while (true) {
    auto first = std::min_element(
        choices.begin(), choices.end(),
        [](const Choice &a, const Choice &b) { return a.start < b.start; });
    if (first->start == kNever)
      return true;
    Choice choice = *first;
    int device = first - choices.begin();
    if (runs[device].empty()) {
      begins[device] = choice.start;
    } else {
      idle[device] += choice.start - times[device];
      longestIdle = std::max(longestIdle, idle[device]);
      // Sums of times are not exact.
      if (work[device] + idle[device] > most * (1 + 1e-9))
        return false;
    }
    times[device] = choice.start + durations[choice.task];
    ends[choice.task].push_back(times[device]);
    turns[choice.task] = static_cast<int64_t>(runs[device].size());
    runs[device].push_back(choice.task);
    choices[device] = rule(device);
    for (int id : problem.model.tasks[choice.task].puts)
      if (int consumer = problem.model.channels[id].consumer; consumer >= 0)
        choices[devices[consumer]] = rule(devices[consumer]);
  }
}

} // namespace penstock::schedule
