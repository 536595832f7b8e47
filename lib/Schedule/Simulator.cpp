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
  switch (problem.getLetter(task)) {
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
      problem.model, orders, [&](int task) { return problem.getTime(task); },
      problem.times.transfer, problem.updates);
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
  double ideal = double(problem.microbatches * problem.updates) *
                 (t.forward + t.backward + t.weight);
  auto computeBubble = [&](double makespan) {
    return makespan > 0 ? (makespan - ideal) / makespan : 0;
  };
  simulation.bubble = computeBubble(simulation.makespan);
  simulation.bubbleWithBarrier = computeBubble(simulation.withBarrier);
  simulation.runs = std::move(result.runs);
  return simulation;
}

double simulateSteadyBubble(const Problem &problem, ArrayRef<Order> orders) {
  Problem shorter = problem, longer = problem;
  // A device that is ahead of the slowest one loses a microbatch or more of
  // that per update, until it waits for it at every update.
  constexpr int64_t kMostRuns = 1 << 20;
  int64_t runs = problem.microbatches * problem.devices;
  shorter.updates = getFillUpdates(problem.model, orders) + 2 +
                    std::min(runs, kMostRuns / runs);
  longer.updates = 2 * shorter.updates;
  const Times &t = problem.times;
  double work = double(problem.microbatches * shorter.updates) *
                (t.forward + t.backward + t.weight);
  double time = simulate(longer, orders).withBarrier -
                simulate(shorter, orders).withBarrier;
  return time > 0 ? std::max(0.0, 1 - work / time) : 0;
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
      if (problem.getLetter(run.task) != 'U')
        execution.runs.push_back(run);
  return drawTimeline(problem.model, execution);
}

} // namespace penstock::schedule
