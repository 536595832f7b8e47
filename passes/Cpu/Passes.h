//===- Passes.h - Kernels on a CPU ------------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declarations generated from Passes.td, and the pipelines.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_CPU_PASSES_H
#define PENSTOCK_PASSES_CPU_PASSES_H

#include "dialects/Pipeline/Pipeline.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace penstock {

#define GEN_PASS_DECL
#include "passes/Cpu/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Cpu/Passes.h.inc"

struct LowerProgramToLlvmOptions
    : mlir::PassPipelineOptions<LowerProgramToLlvmOptions> {
  Option<int64_t> threads{*this, "threads",
                          llvm::cl::desc("Threads of a device"),
                          llvm::cl::init(1)};
  Option<int64_t> threshold{
      *this, "threshold",
      llvm::cl::desc("Loop iterations from which on an op uses all threads"),
      llvm::cl::init(131072)};
  Option<int64_t> vectorWidth{
      *this, "vector-width",
      llvm::cl::desc("Lanes of f32 in the CPU's vectors"), llvm::cl::init(16)};
  Option<std::string> cpu{*this, "cpu",
                          llvm::cl::desc("The CPU that the code is for")};
  Option<std::string> features{
      *this, "features",
      llvm::cl::desc("Features that it must have, as +avx2,+fma")};
  Option<std::string> plan{
      *this, "plan", llvm::cl::desc("The compiler's report, as JSON text")};
};

/// Kernels become loops over vectors, and all functions get the device.
void buildLowerKernelsCpuPipeline(mlir::OpPassManager &manager,
                                  const LowerProgramToLlvmOptions &options);

void buildLowerProgramToLlvmPipeline(mlir::OpPassManager &manager,
                                     const LowerProgramToLlvmOptions &options);

void registerCpuPipelines();

} // namespace penstock

#endif // PENSTOCK_PASSES_CPU_PASSES_H
