//===- PipeDream.h - Stages with replicas on a hierarchy --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dynamic program of PipeDream (SOSP 2019, section 3.1) over cuts,
// replicas and several levels of bandwidth: as published, and as the planner
// computes that its authors released.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PLANNER_PIPEDREAM_H
#define PENSTOCK_PLANNER_PIPEDREAM_H

#include "penstock/Planner/Plan.h"

#include <functional>

namespace penstock {

enum class PipeDreamForm {
  /// A replicated stage takes the longer of its compute and its all-reduce,
  /// which moves 2 (m-1) / m of the weights; a cut moves the activation and its
  /// gradient over one link.
  Paper,
  /// The sum of compute and all-reduce, which counts 4 (m-1) / m of the
  /// weights;
  /// a cut's transfer is shared by the replicas to its right, and counted with
  /// a compression ratio only.
  Released,
};

struct PipeDreamOptions {
  PipeDreamForm form = PipeDreamForm::Paper;
  /// Components per level and the bandwidth between them in bytes per second,
  /// from the lowest level up.
  std::vector<int64_t> devices;
  std::vector<double> bandwidths;
  double latencySeconds = 0; ///< Of a message between stages.
  bool straight = false;     ///< No replicas.
  /// A number that all numbers of replicas divide; 0: they need not.
  int64_t microbatches = 0;
  /// The compression ratio of transfers, Released only; 0: transfers are not
  /// counted.
  double compressionRatio = 1;
  MemoryModel memory;
  bool countsMemory = true; ///< Also without a limit.
  /// Which states may be a stage on how many devices of the lowest level, with
  /// how many of their group behind it; all, unless set.
  std::function<bool(int64_t first, int64_t last, int64_t replicas,
                     int64_t after)>
      allows;
};

/// Plans over the states; nothing when no plan fits in the memory.
std::optional<Plan> planPipeDream(const std::vector<PlanState> &states,
                                  const PipeDreamOptions &options);

} // namespace penstock

#endif // PENSTOCK_PLANNER_PIPEDREAM_H
