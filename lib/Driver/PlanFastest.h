//===- PlanFastest.h - The fastest of several settings ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `--microbatch-size=auto` and `--replicas=auto` decide.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_DRIVER_PLANFASTEST_H
#define PENSTOCK_LIB_DRIVER_PLANFASTEST_H

#include "penstock/Driver/Options.h"

namespace penstock {

/// Compiles with the setting whose updates are the fastest by simulation, of
/// all with which every stage fits: the exit status.
int compileFastest(const CompileOptions &options);

} // namespace penstock

#endif // PENSTOCK_LIB_DRIVER_PLANFASTEST_H
