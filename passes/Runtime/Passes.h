//===- Passes.h - Calls and tables of the runtime ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declarations generated from Passes.td, and the pipelines.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_RUNTIME_PASSES_H
#define PENSTOCK_PASSES_RUNTIME_PASSES_H

#include "dialects/Pipeline/Pipeline.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

namespace penstock {

#define GEN_PASS_DECL
#include "passes/Runtime/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Runtime/Passes.h.inc"

/// Everything that is left to the LLVM dialect.
void buildConvertToLlvmPipeline(mlir::OpPassManager &manager);

} // namespace penstock

#endif // PENSTOCK_PASSES_RUNTIME_PASSES_H
