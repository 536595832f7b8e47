//===- Stretch.h - A steady state in runs of a few microbatches -*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a search finds for the times of real stages seldom repeats itself, and a
// program would grow with its microbatches. So it searches on a few, and what
// lies in the middle there is repeated.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_SCHEDULE_GENERATORS_STRETCH_H
#define PENSTOCK_LIB_SCHEDULE_GENERATORS_STRETCH_H

#include "penstock/Schedule/Simulator.h"

namespace penstock::schedule {

/// Runs of a trial, one stage per device, with `more` microbatches: the best
/// way that was found within the memory limit.
std::vector<std::vector<int>> stretch(const Problem &trial,
                                      llvm::ArrayRef<std::vector<int>> runs,
                                      int64_t more);

} // namespace penstock::schedule

#endif // PENSTOCK_LIB_SCHEDULE_GENERATORS_STRETCH_H
