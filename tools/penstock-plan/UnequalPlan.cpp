//===- UnequalPlan.cpp - Plans for devices of different speed -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See UnequalPlan.h.
//===----------------------------------------------------------------------===//

#include "UnequalPlan.h"
#include "penstock/Planner/PlanPrinter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace penstock;

/// Where `--split-at` cuts the model for this worker.
static std::string getCuts(const WorkerPlan &worker, const LayerGraph &graph) {
  return join(map_range(drop_end(worker.stages),
                        [&](const UnequalStage &stage) {
                          return graph.layers[stage.last].name;
                        }),
              ",");
}

void penstock::printUnequal(const UnequalPlan &plan, const LayerGraph &graph,
                            const UnequalOptions &options,
                            raw_ostream &stream) {
  stream
      << "worker  stage    layers  host   speed     compute       input      "
         "memory\n";
  for (auto [worker, own] : enumerate(plan.workers))
    for (auto [index, stage] : enumerate(own.stages))
      stream << formatv(
          "{0,6}{1,7}{2,10}{3,6}{4,8:F3}{5,12}{6,12}{7,12}\n", worker, index,
          formatv("{0}-{1}", stage.first, stage.last).str(), stage.device.host,
          stage.device.speed, formatSeconds(stage.computeSeconds),
          formatSeconds(stage.inputSeconds), formatBytes(stage.memoryBytes));
  for (auto [worker, own] : enumerate(plan.workers)) {
    stream << formatv("worker {0}: {1} per microbatch, a wave of {2} in {3}",
                      worker, formatSeconds(own.slowestSeconds), own.wave,
                      formatSeconds(own.getWaveSeconds()));
    if (plan.workers.size() > 1)
      stream << formatv("; waits for others {0:F1} % of the time",
                        100 * plan.clocks.waitingShare[worker]);
    if (own.stages.size() > 1)
      stream << "; cuts: " << getCuts(own, graph);
    stream << "\n";
  }
  stream << formatv("{0:F3} microbatches per second",
                    plan.clocks.microbatchesPerSecond);
  if (plan.workers.size() > 1)
    stream << formatv(", with clocks at most {0} of D + 1 = {1} waves apart",
                      plan.clocks.largestDistance, options.distance + 1);
  stream << "\n";
}

json::Value penstock::toJson(const UnequalPlan &plan, const LayerGraph &graph,
                             const UnequalOptions &options) {
  json::Array workers;
  for (auto [worker, own] : enumerate(plan.workers)) {
    json::Array stages;
    for (const UnequalStage &stage : own.stages)
      stages.push_back(json::Object{{"first", stage.first},
                                    {"last", stage.last},
                                    {"host", stage.device.host},
                                    {"speed", stage.device.speed},
                                    {"compute_seconds", stage.computeSeconds},
                                    {"input_seconds", stage.inputSeconds},
                                    {"memory_bytes", stage.memoryBytes}});
    workers.push_back(
        json::Object{{"stages", std::move(stages)},
                     {"cuts", getCuts(own, graph)},
                     {"slowest_seconds", own.slowestSeconds},
                     {"wave", own.wave},
                     {"wave_seconds", own.getWaveSeconds()},
                     {"waiting_share", plan.clocks.waitingShare[worker]}});
  }
  return json::Object{
      {"workers", std::move(workers)},
      {"distance", options.distance},
      {"largest_clock_distance", plan.clocks.largestDistance},
      {"microbatches_per_second", plan.clocks.microbatchesPerSecond}};
}
