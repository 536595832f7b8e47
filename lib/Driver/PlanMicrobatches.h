//===- PlanMicrobatches.h - How large microbatches are ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `--microbatch-size=auto` decides.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_DRIVER_PLANMICROBATCHES_H
#define PENSTOCK_LIB_DRIVER_PLANMICROBATCHES_H

#include "penstock/Driver/Options.h"

namespace penstock {

/// Compiles with the microbatches whose updates of options.globalBatch samples
/// are the fastest by simulation, of all sizes with which every stage fits: the
/// exit status.
int compileFastest(const CompileOptions &options);

} // namespace penstock

#endif // PENSTOCK_LIB_DRIVER_PLANMICROBATCHES_H
