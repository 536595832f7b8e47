//===- DoubleBuffer.h - The planner of PipeDream-2BW ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parallel pipelines (Narayanan et al., ICML 2021, section 3.4): every stage
// has as many blocks and as many replicas as any other. The search goes over
// width, depth, microbatch and recomputation, and takes the highest throughput
// that fits in memory.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PLANNER_DOUBLEBUFFER_H
#define PENSTOCK_PLANNER_DOUBLEBUFFER_H

#include "penstock/Planner/Plan.h"

#include <functional>

namespace penstock {

enum class PipelineExecution { OneAtATime, Pipelined, Recomputed };

struct DoubleBufferPlan {
  Plan plan;
  int64_t width = 1, depth = 1, microbatch = 1;
  int64_t accumulation = 1; ///< Microbatches per batch and replica.
  PipelineExecution execution = PipelineExecution::OneAtATime;
  double samplesPerSecond = 0;
};

struct DoubleBufferOptions {
  int64_t devices = 1;
  int64_t devicesPerServer = 1;
  double bandwidthInside = 1e9, bandwidthBetween = 1e9; ///< Of servers.
  double latencySeconds = 0; ///< Of a message between stages.
  int64_t batch = 1;         ///< The largest global batch that still learns.
  int64_t profileBatch = 1;  ///< Samples that the times of the layers are for.
  int64_t blocks = 0;        ///< 0: every layer is one.
  double recomputeFactor = 4.0 / 3;
  MemoryModel memory;
  /// Where plans have programs: bytes of the stages, in place of sizes times
  /// counts; nothing if there is no such program. Several microbatches of a
  /// program's batch are always pipelined.
  std::function<std::optional<std::vector<int64_t>>(const DoubleBufferPlan &)>
      measure;
};

/// Searches; nothing when nothing fits. States must be those of a chain.
std::optional<DoubleBufferPlan>
planDoubleBuffer(const std::vector<PlanState> &states,
                 const DoubleBufferOptions &options);

} // namespace penstock

#endif // PENSTOCK_PLANNER_DOUBLEBUFFER_H
