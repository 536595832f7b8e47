//===- PlanReplicas.cpp - Stages with replicas, planned -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See PlanSearch.h. The dynamic program is as published; which stages it may
// use is up to who asks.
//===----------------------------------------------------------------------===//

#include "PlanSearch.h"
#include "penstock/Partition/Units.h"
#include "penstock/Planner/PipeDream.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <set>

using namespace mlir;
using namespace penstock;

ReplicaPlanner::ReplicaPlanner(ForwardProgram &program, const Units &units,
                               const ReplicaRequest &request)
    : units(units), request(request) {
  LayerGraph graph = units.getLayerGraph(program);
  // Gradients are summed once per update.
  for (Layer &layer : graph.layers)
    layer.weightBytes /= static_cast<double>(request.microbatches);
  states = buildStates(graph, /*limit=*/0).states;
}

/// Where a device has several stages, each of them counts it.
std::optional<StagePlan>
ReplicaPlanner::solve(int64_t count, StageShapeFilter isAllowed) const {
  PipeDreamOptions options;
  options.devices = {count * request.chunks};
  options.bandwidths = {units.rates.getLink()};
  options.microbatches = request.microbatches;
  options.countsMemory = false; // Of a compiled program, it is known.
  options.allows = [&](int64_t first, int64_t last, int64_t replicas,
                       int64_t after) {
    return request.allowsStage(replicas, after) &&
           isAllowed({first, last + 1, replicas, after});
  };
  std::optional<Plan> solved = planPipeDream(states, options);
  if (!solved)
    return std::nullopt;
  StagePlan result;
  result.seconds = solved->slowestSeconds;
  for (const PlanStage &stage : solved->stages) {
    if (stage.first > 0)
      result.cuts.push_back(stage.first);
    result.replicas.push_back(stage.replicas);
  }
  return result;
}

std::optional<StagePlan>
ReplicaPlanner::solveEqual(int64_t count, int64_t width,
                           StageShapeFilter isAllowed) const {
  if (count % width != 0 || request.microbatches % width != 0 ||
      !request.isAllowed(width, count / width))
    return std::nullopt;
  return solve(count, [&](const StageShape &shape) {
    return shape.replicas == width && isAllowed(shape);
  });
}

std::optional<StagePlan>
ReplicaPlanner::plan(StageShapeFilter isAllowed) const {
  if (request.widths.size() > 1) {
    // How many devices are behind a stage says which it is.
    std::set<std::pair<int64_t, int64_t>> stages;
    int64_t after = 0;
    for (int64_t width : llvm::reverse(request.widths)) {
      stages.insert({width, after});
      after += width;
    }
    return solve(after, [&](const StageShape &shape) {
      return stages.count({shape.replicas, shape.after}) && isAllowed(shape);
    });
  }
  // What schedule or method refuse of given widths is not made to fit.
  if (!request.widths.empty() &&
      !request.isAllowed(request.widths.front(),
                         request.devices / request.widths.front()))
    return std::nullopt;
  std::optional<StagePlan> best;
  for (int64_t count = request.devices; count > 0 && !best; --count) {
    if (!request.areEqual && request.widths.empty()) {
      best = solve(count, isAllowed);
      continue;
    }
    for (int64_t width = 1; width <= count; ++width) {
      if (!request.widths.empty() && width != request.widths.front())
        continue;
      std::optional<StagePlan> found = solveEqual(count, width, isAllowed);
      if (found && (!best || found->seconds < best->seconds))
        best = std::move(found);
    }
  }
  return best;
}

ReplicaProposals ReplicaPlanner::propose() const {
  ReplicaProposals proposals;
  proposals.total = states.back().seconds;
  proposals.chunks = request.chunks;
  proposals.units = static_cast<int64_t>(states.size());
  auto all = [](const StageShape &) { return true; };
  auto add = [&](const std::optional<StagePlan> &plan) {
    if (plan && llvm::none_of(proposals.plans, [&](const StagePlan &other) {
          return other.replicas == plan->replicas;
        }))
      proposals.plans.push_back(*plan);
  };
  for (int64_t count = request.devices; count > 0; --count) {
    if (!request.areEqual)
      add(solve(count, all));
    for (int64_t width = 1; width <= count; ++width)
      add(solveEqual(count, width, all));
  }
  return proposals;
}

StageTimes ReplicaPlanner::getTimes(int64_t begin, int64_t end,
                                    int64_t width) const {
  auto share = static_cast<double>(width);
  auto sum = [&](double PlanState::*total) {
    return states[end - 1].*total - (begin > 0 ? states[begin - 1].*total : 0);
  };
  auto carry = [&](int64_t cut) {
    return 2 * units.rates.getTransferSeconds(states[cut - 1].cutBytes);
  };
  StageTimes times;
  times.compute = sum(&PlanState::seconds) / share;
  times.allReduce = 2 * (share - 1) * sum(&PlanState::weightBytes) /
                    units.rates.getLink() / share;
  times.input = begin > 0 ? carry(begin) : 0;
  times.output = end < static_cast<int64_t>(states.size()) ? carry(end) : 0;
  return times;
}

double ReplicaPlanner::getSeconds(int64_t begin, int64_t end,
                                  int64_t width) const {
  StageTimes times = getTimes(begin, end, width);
  return std::max({times.compute, times.allReduce, times.input, times.output});
}

void ReplicaPlanner::explain(ModuleOp module, const StagePlan &plan) const {
  for (auto [index, shape] :
       llvm::enumerate(plan.getShapes(static_cast<int64_t>(states.size())))) {
    StageTimes times = getTimes(shape.begin, shape.end, shape.replicas);
    module.emitRemark() << llvm::formatv(
                               "stage {0} on {1} device{2}, from '{3}' on: "
                               "{4:F2} us of work per microbatch and device, "
                               "{5:F2} us of sums over replicas",
                               index, shape.replicas,
                               shape.replicas == 1 ? "" : "s",
                               units.units[shape.begin].name,
                               times.compute * 1e6, times.allReduce * 1e6)
                               .str();
  }
  units.explain(plan.cuts, [&](int64_t stage, int64_t begin, int64_t end) {
    return getSeconds(begin, end, plan.replicas[stage]);
  });
}

/// Calls `ask` with a planner for the nodes of the module.
template <typename Result>
static FailureOr<Result>
askPlanner(ModuleOp module, const ReplicaRequest &request,
           llvm::function_ref<Result(const ReplicaPlanner &)> ask) {
  FailureOr<ForwardProgram> program = ForwardProgram::find(module);
  if (failed(program))
    return failure();
  Units units = Units::collect(*program);
  if (units.units.empty())
    return module.emitError("has no node that computes");
  return ask(ReplicaPlanner(*program, units, request));
}

FailureOr<std::optional<StagePlan>>
penstock::planReplicas(ModuleOp module, const ReplicaRequest &request) {
  return askPlanner<std::optional<StagePlan>>(
      module, request, [](const ReplicaPlanner &planner) {
        return planner.plan([](const StageShape &) { return true; });
      });
}

FailureOr<ReplicaProposals>
penstock::proposeReplicas(ModuleOp module, const ReplicaRequest &request) {
  return askPlanner<ReplicaProposals>(
      module, request,
      [](const ReplicaPlanner &planner) { return planner.propose(); });
}
