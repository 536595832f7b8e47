//===- Passes.h - Kernels on a CPU ------------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declarations generated from Passes.td, and the pipelines.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_CPU_PASSES_H
#define PENSTOCK_PASSES_CPU_PASSES_H

#include "dialects/Cpu/Cpu.h"
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

struct CpuKernelOptions : mlir::PassPipelineOptions<CpuKernelOptions> {
  Option<int64_t> threshold{
      *this, "threshold",
      llvm::cl::desc("Loop iterations from which on an op uses all threads"),
      llvm::cl::init(131072)};
  Option<int64_t> vectorWidth{
      *this, "vector-width",
      llvm::cl::desc("Lanes of f32 in vectors; 0: as the target says"),
      llvm::cl::init(0)};
};

/// Lowers kernels of CPU targets, which have the device as first argument, to
/// loops over vectors.
void buildCpuKernelPipeline(mlir::OpPassManager &manager,
                            const CpuKernelOptions &options);

/// Registers the named pipeline `pipeline-lower-kernels-cpu`.
void registerCpuPipelines();

/// Registers the same pipeline for the kernels of CPU targets.
void registerCpuKernelPipeline();

/// Returns the target of a function that a CPU runs. Functions without a target
/// are host code, of one thread. Null for functions of other devices.
cpu::TargetAttr getCpuTarget(mlir::func::FuncOp function);

} // namespace penstock

#endif // PENSTOCK_PASSES_CPU_PASSES_H
