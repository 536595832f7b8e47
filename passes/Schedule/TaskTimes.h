//===- TaskTimes.h - How long tasks and transfers take ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In seconds: measured where the module says so, or by the analytic costs of
// the ops in a task's functions.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_SCHEDULE_TASKTIMES_H
#define PENSTOCK_PASSES_SCHEDULE_TASKTIMES_H

#include "penstock/Schedule/FromIR.h"

namespace penstock {

/// Returns the seconds of each task of the model, on devices of these speeds
/// (none: all are 1). Halves of a measured backward have their shares of the
/// analytic one.
std::vector<double> getTaskSeconds(mlir::ModuleOp module,
                                   const schedule::Imported &imported,
                                   llvm::ArrayRef<double> speeds = {});

/// Returns the seconds of a sum over all devices of a group: each of them adds
/// up its share, and gathers those of the others.
double getSumSeconds(pipeline::GroupOp group);

/// Returns the seconds of a message between devices, which are threads: a copy.
double getTransferSeconds(pipeline::ChannelOp channel);

} // namespace penstock

#endif // PENSTOCK_PASSES_SCHEDULE_TASKTIMES_H
