//===- Passes.h - Forming and fusing kernels --------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declarations generated from Passes.td.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_KERNELS_PASSES_H
#define PENSTOCK_PASSES_KERNELS_PASSES_H

#include "dialects/Pipeline/Pipeline.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"

namespace penstock {

#define GEN_PASS_DECL
#include "passes/Kernels/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Kernels/Passes.h.inc"

} // namespace penstock

#endif // PENSTOCK_PASSES_KERNELS_PASSES_H
