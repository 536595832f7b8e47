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
#include "mlir/Pass/PassOptions.h"

namespace penstock {

#define GEN_PASS_DECL
#include "passes/Runtime/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Runtime/Passes.h.inc"

struct LowerProgramToLlvmOptions
    : mlir::PassPipelineOptions<LowerProgramToLlvmOptions> {
  Option<std::string> plan{
      *this, "plan", llvm::cl::desc("The compiler's report, as JSON text")};
  ListOption<std::string> kinds{
      *this, "kinds",
      llvm::cl::desc("Kinds of the program's devices (default: all)")};
};

/// From device programs and kernels to the LLVM dialect, through the kernel
/// pipelines of the kinds of devices.
void buildLowerProgramToLlvmPipeline(mlir::OpPassManager &manager,
                                     const LowerProgramToLlvmOptions &options);

/// The first part: kernels, and device functions that call the runtime.
void buildLowerProgramToRuntimePipeline(
    mlir::OpPassManager &manager, const LowerProgramToLlvmOptions &options);

/// Lowers everything that is left to the LLVM dialect.
void buildConvertToLlvmPipeline(mlir::OpPassManager &manager);

/// Registers the named pipeline `lower-program-to-llvm`.
void registerRuntimePipelines();

} // namespace penstock

#endif // PENSTOCK_PASSES_RUNTIME_PASSES_H
