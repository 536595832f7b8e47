//===- PlanReplicas.cpp - Stages with replicas, planned -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// --replicas=auto: PipeDream's dynamic programme over cuts and replicas, on the
// line of nodes and one level of devices.
//===----------------------------------------------------------------------===//

#include "PlanSearch.h"
#include "passes/Partition/Units.h"
#include "penstock/Planner/PipeDream.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace penstock;

FailureOr<ReplicaPlan> penstock::planReplicas(ModuleOp module, int64_t devices,
                                              int64_t microbatches) {
  FailureOr<ForwardProgram> program = ForwardProgram::find(module);
  if (failed(program))
    return failure();
  Units units = Units::collect(*program);
  LayerGraph graph = units.getLayerGraph(*program);
  if (graph.layers.empty())
    return module.emitError("has no node that computes");
  // Gradients are summed once per update.
  for (Layer &layer : graph.layers)
    layer.weightBytes /= static_cast<double>(microbatches);
  std::vector<PlanState> states = buildStates(graph, /*limit=*/0).states;

  PipeDreamOptions options;
  options.bandwidths = {units.rates.bytesPerSecond};
  options.microbatches = microbatches;
  std::optional<Plan> plan;
  for (; devices > 0 && !plan; --devices) {
    options.devices = {devices};
    plan = planPipeDream(states, options);
  }
  ReplicaPlan result;
  for (const PlanStage &stage : plan->stages) {
    if (stage.first > 0)
      result.cuts.push_back(stage.first);
    result.widths.push_back(stage.replicas);
    result.devices += stage.replicas;
    module.emitRemark() << llvm::formatv(
                               "stage {0} on {1} device{2}, from '{3}' on: "
                               "{4:F2} us of work per microbatch and device, "
                               "{5:F2} us of sums over replicas",
                               result.widths.size() - 1, stage.replicas,
                               stage.replicas == 1 ? "" : "s",
                               units.units[stage.first].name,
                               stage.times.compute * 1e6,
                               stage.times.allReduce * 1e6)
                               .str();
  }
  return result;
}
