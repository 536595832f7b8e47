//===- StateCalls.h - What remains of the bodies of tasks -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The calls of a task by position, which rule S11 holds device functions to.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_DEVICES_STATECALLS_H
#define PENSTOCK_PASSES_PROGRAM_DEVICES_STATECALLS_H

#include "passes/Program/Devices/Storage.h"

namespace penstock {

/// Notes on a task what its body calls and puts; fails, with a diagnostic, on
/// values without storage.
mlir::LogicalResult stateCalls(pipeline::TaskOp task, const Storage &storage);

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_DEVICES_STATECALLS_H
