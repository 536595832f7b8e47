//===- Simulator.cpp - How long a schedule takes --------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each run starts when the one before it has ended and what it takes is there,
// a transfer later if that comes from another device.
//===----------------------------------------------------------------------===//

#include "penstock/Schedule/Simulator.h"

#include "Dataflow.h"
#include "penstock/Schedule/Timeline.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace llvm;

namespace penstock::schedule {

/// F takes a microbatch's activations, I gives up those that W does not need.
static double heldAfter(const Problem &problem, int task) {
  double share = 1.0 / problem.spec.chunks();
  switch (problem.letterOf(task)) {
  case 'F':
    return share;
  case 'B':
    return -share;
  case 'I':
    return -share * (1 - problem.weightMemory);
  case 'W':
    return -share * problem.weightMemory;
  default:
    return 0;
  }
}

Simulation simulate(const Problem &problem, ArrayRef<Order> orders) {
  Dataflow result = flow(
      problem.model, orders, [&](int task) { return problem.timeOf(task); },
      problem.times.transfer);
  Simulation simulation;
  simulation.circle = std::move(result.circle);
  simulation.stuck = std::move(result.stuck);
  double begin = 0, end = 0;
  bool any = false;
  for (std::vector<Interval> &runs : result.runs) {
    double held = 0, most = 0;
    for (const Interval &run : runs) {
      held += heldAfter(problem, run.task);
      most = std::max(most, held);
    }
    // Sums of shares are not exact.
    simulation.peaks.push_back(std::round(most * 1e9) / 1e9);
    if (runs.empty())
      continue;
    double first = runs.front().start, last = runs.back().end;
    begin = any ? std::min(begin, first) : first;
    end = std::max(end, last);
    any = true;
    simulation.makespan = std::max(simulation.makespan, last - first);
  }
  simulation.withBarrier = end - begin;
  const Times &t = problem.times;
  double ideal =
      double(problem.microbatches) * (t.forward + t.backward + t.weight);
  auto bubbleOf = [&](double makespan) {
    return makespan > 0 ? (makespan - ideal) / makespan : 0;
  };
  simulation.bubble = bubbleOf(simulation.makespan);
  simulation.bubbleWithBarrier = bubbleOf(simulation.withBarrier);
  simulation.runs = std::move(result.runs);
  return simulation;
}

Simulation simulateRuns(const Problem &problem,
                        ArrayRef<std::vector<int>> runs) {
  std::vector<Order> orders;
  for (auto [device, list] : llvm::enumerate(runs)) {
    Order order;
    order.device = device;
    order.loops.push_back({LoopKind::Updates, 1, {}});
    for (int task : list) {
      Item item;
      item.id = task;
      order.loops.front().items.push_back(item);
    }
    orders.push_back(std::move(order));
  }
  return simulate(problem, orders);
}

bool Simulation::isShorterThan(const Simulation &other) const {
  constexpr double kSlack = 1 + 1e-9;
  if (makespan * kSlack < other.makespan)
    return true;
  return makespan <= other.makespan * kSlack &&
         withBarrier * kSlack < other.withBarrier;
}

bool keepsLimit(const Problem &problem, const Simulation &simulation) {
  return problem.memoryLimit == 0 ||
         *llvm::max_element(simulation.peaks) <= problem.memoryLimit + 1e-9;
}

std::vector<std::string> drawTimeline(const Problem &problem,
                                      const Simulation &simulation) {
  Execution execution;
  execution.makespan = simulation.withBarrier;
  for (ArrayRef<Interval> runs : simulation.runs)
    for (const Interval &run : runs)
      if (problem.letterOf(run.task) != 'U')
        execution.runs.push_back(run);
  return drawTimeline(problem.model, execution);
}

} // namespace penstock::schedule
