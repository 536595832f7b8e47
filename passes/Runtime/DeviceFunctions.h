//===- DeviceFunctions.h - Device programs as LLVM functions ----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of pipeline-convert-pipeline-to-runtime that turns the program of a
// device into a function of the runtime.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_RUNTIME_DEVICEFUNCTIONS_H
#define PENSTOCK_PASSES_RUNTIME_DEVICEFUNCTIONS_H

#include "passes/Runtime/ProgramTable.h"
#include "passes/Runtime/RuntimeCalls.h"
#include "passes/Runtime/TaskRuns.h"

namespace penstock {

/// Puts the LLVM function `name` into the place of `function`, whose kernels
/// are called with the device as an additional first argument. Runs that stand
/// more than once become functions.
mlir::LogicalResult convertDeviceFunction(RuntimeCalls &runtime,
                                          const ProgramTable &table,
                                          TaskRuns &runs,
                                          mlir::func::FuncOp function,
                                          llvm::StringRef name);

} // namespace penstock

#endif // PENSTOCK_PASSES_RUNTIME_DEVICEFUNCTIONS_H
