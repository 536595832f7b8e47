//===- Timeline.h - Executions as text --------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One line per device, one cell per unit of time, and the idle share.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SCHEDULE_TIMELINE_H
#define PENSTOCK_SCHEDULE_TIMELINE_H

#include "penstock/Schedule/Engine.h"

namespace penstock::schedule {

/// Idle share of the devices that have something to do.
double computeBubble(const Model &model, const Execution &execution);

/// `F0 F1 .  .  B0 F2`: one line per device, without its number. A task longer
/// than a cell goes on as `-`, a task without duration joins the one before.
std::vector<std::string> drawTimeline(const Model &model,
                                      const Execution &execution);

} // namespace penstock::schedule

#endif // PENSTOCK_SCHEDULE_TIMELINE_H
