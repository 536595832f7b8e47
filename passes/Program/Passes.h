//===- Passes.h - Program passes -------------------------------------*- C++
//-*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From schedules to one function per device over one arena.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_PASSES_H
#define PENSTOCK_PASSES_PROGRAM_PASSES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace penstock {

#define GEN_PASS_DECL
#include "passes/Program/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Program/Passes.h.inc"

/// Registers the named pipeline `lower-schedule-to-program`.
void registerProgramPipelines();

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_PASSES_H
