//===- Passes.h - Kernels on a GPU ------------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declarations generated from Passes.td, and the pipeline.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_CUDA_PASSES_H
#define PENSTOCK_PASSES_CUDA_PASSES_H

#include "dialects/Kernel/Kernel.h"
#include "dialects/Pipeline/Pipeline.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"

namespace penstock {

#define GEN_PASS_DECL
#include "passes/Cuda/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Cuda/Passes.h.inc"

/// Returns whether devices of this kind, the dialect of their targets, run the
/// function as a part of a task. All functions with a body are of kind "".
bool isStageFunction(mlir::func::FuncOp function, llvm::StringRef kind);

/// Lowers the kernels of CUDA targets to a gpu.module in the NVVM dialect; the
/// host launches them.
void buildCudaKernelPipeline(mlir::OpPassManager &manager);

/// Registers the named pipeline `pipeline-lower-kernels-cuda`.
void registerCudaPipelines();

/// Registers the same pipeline for the kernels of CUDA targets.
void registerCudaKernelPipeline();

} // namespace penstock

#endif // PENSTOCK_PASSES_CUDA_PASSES_H
