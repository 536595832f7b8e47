//===- WaveRule.h - When waves are pushed and folded ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// S10: the fold of a wave writes the version of a weight anew that its update
// has just made, `distance` waves later, and nobody reads that version before.
// So version v of a worker's weights has max(0, floor(v / wave) - distance)
// whole waves of every other worker, and no more.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_SCHEDULE_WAVERULE_H
#define PENSTOCK_LIB_SCHEDULE_WAVERULE_H

#include "penstock/Schedule/Engine.h"

namespace penstock::schedule {

class WaveRule {
public:
  /// `updates` of the segment.
  WaveRule(const Model &model, int64_t updates);

  /// Says what is wrong with a run, the next of its task here, after so many
  /// runs of each task; empty if nothing is.
  std::string check(const Event &event, llvm::ArrayRef<int64_t> runs) const;
  /// The same for a read of a version of a weight that is folded into.
  std::string checkRead(const Event &event, int variable, int64_t version,
                        llvm::ArrayRef<int64_t> runs) const;

private:
  struct StageTasks {
    int update = -1, push = -1, fold = -1;
  };

  const Model &model;
  int64_t updates;
  /// The tasks of each stage; empty if no stage folds.
  std::vector<StageTasks> stages;
};

} // namespace penstock::schedule

#endif // PENSTOCK_LIB_SCHEDULE_WAVERULE_H
