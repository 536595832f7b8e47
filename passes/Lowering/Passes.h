//===- Passes.h - Lowering passes -------------------------------------*- C++
//-*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From device programs and kernels to LLVM IR.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_LOWERING_PASSES_H
#define PENSTOCK_PASSES_LOWERING_PASSES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace penstock {

#define GEN_PASS_DECL
#include "passes/Lowering/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Lowering/Passes.h.inc"

/// From device programs and lowered kernels to the LLVM dialect.
void addRuntimeConversion(mlir::OpPassManager &manager,
                          const ConvertPipelineToRuntimeOptions &options = {});

/// Registers the named pipeline `lower-program-to-llvm`.
void registerLoweringPipelines();

} // namespace penstock

#endif // PENSTOCK_PASSES_LOWERING_PASSES_H
