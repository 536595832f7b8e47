//===- PlanReplicas.cpp - Stages with replicas, planned -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See PlanSearch.h. The programme is as published; which stages it may use is
// up to who asks.
//===----------------------------------------------------------------------===//

#include "PlanSearch.h"
#include "passes/Partition/Units.h"
#include "penstock/Planner/PipeDream.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace penstock;

ReplicaPlanner::ReplicaPlanner(ForwardProgram &program, const Units &units,
                               int64_t devices, int64_t microbatches)
    : units(units), devices(devices), microbatches(microbatches) {
  LayerGraph graph = units.getLayerGraph(program);
  // Gradients are summed once per update.
  for (Layer &layer : graph.layers)
    layer.weightBytes /= static_cast<double>(microbatches);
  if (!graph.layers.empty())
    states = buildStates(graph, /*limit=*/0).states;
}

std::optional<Plan> ReplicaPlanner::solve(int64_t count,
                                          StageShapeFilter isAllowed) const {
  PipeDreamOptions options;
  options.devices = {count};
  options.bandwidths = {units.rates.bytesPerSecond};
  options.microbatches = microbatches;
  options.allows = [&](int64_t first, int64_t last, int64_t replicas,
                       int64_t after) {
    return isAllowed({first, last + 1, replicas, after});
  };
  return planPipeDream(states, options);
}

std::optional<StagePlan>
ReplicaPlanner::plan(StageShapeFilter isAllowed) const {
  std::optional<Plan> solved;
  for (int64_t count = states.empty() ? 0 : devices; count > 0 && !solved;
       --count)
    solved = solve(count, isAllowed);
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

void ReplicaPlanner::explain(ModuleOp module, const StagePlan &plan) const {
  std::vector<StageShape> shapes =
      plan.getShapes(static_cast<int64_t>(states.size()));
  int64_t count = shapes.front().replicas + shapes.front().after;
  std::optional<Plan> solved = solve(count, [&](const StageShape &shape) {
    return llvm::is_contained(shapes, shape);
  });
  if (!solved)
    return;
  for (auto [index, stage] : llvm::enumerate(solved->stages))
    module.emitRemark() << llvm::formatv(
                               "stage {0} on {1} device{2}, from '{3}' on: "
                               "{4:F2} us of work per microbatch and device, "
                               "{5:F2} us of sums over replicas",
                               index, stage.replicas,
                               stage.replicas == 1 ? "" : "s",
                               units.units[stage.first].name,
                               stage.times.compute * 1e6,
                               stage.times.allReduce * 1e6)
                               .str();
}

FailureOr<StagePlan> penstock::planReplicas(ModuleOp module, int64_t devices,
                                            int64_t microbatches) {
  FailureOr<ForwardProgram> program = ForwardProgram::find(module);
  if (failed(program))
    return failure();
  Units units = Units::collect(*program);
  ReplicaPlanner planner(*program, units, devices, microbatches);
  std::optional<StagePlan> plan =
      planner.plan([](const StageShape &) { return true; });
  if (!plan)
    return module.emitError("has no node that computes");
  planner.explain(module, *plan);
  return *plan;
}
