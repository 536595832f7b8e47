//===- Widening.h - Tensors between bf16 and f32 ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recognizes the ops that pipeline-lower-precision puts between others: one
// that takes a tensor of bf16 as f32, and one that rounds f32 to bf16.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_KERNELS_WIDENING_H
#define PENSTOCK_PASSES_KERNELS_WIDENING_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace penstock {

/// Returns true if an op converts elements by one op `Conversion` and does
/// nothing else.
template <typename Conversion> bool isConversion(mlir::Operation *op) {
  auto generic = llvm::dyn_cast<mlir::linalg::GenericOp>(op);
  if (!generic || generic.getNumReductionLoops() != 0 ||
      generic.getNumDpsInputs() != 1 || generic.getNumDpsInits() != 1 ||
      !llvm::all_of(generic.getIndexingMapsArray(),
                    [](mlir::AffineMap map) { return map.isIdentity(); }) ||
      !llvm::hasNItems(*generic.getBody(), 2))
    return false;
  auto conversion = llvm::dyn_cast<Conversion>(generic.getBody()->front());
  return conversion &&
         conversion.getIn() == generic.getBody()->getArgument(0) &&
         generic.getBody()->getTerminator()->getOperand(0) == conversion;
}

/// Returns true if an op extends bf16 to f32.
inline bool isWidening(mlir::Operation *op) {
  return isConversion<mlir::arith::ExtFOp>(op) &&
         getElementTypeOrSelf(op->getOperand(0).getType()).isBF16() &&
         getElementTypeOrSelf(op->getOperand(1).getType()).isF32();
}

/// Returns true if an op rounds f32 to bf16.
inline bool isRounding(mlir::Operation *op) {
  return isConversion<mlir::arith::TruncFOp>(op) &&
         getElementTypeOrSelf(op->getOperand(0).getType()).isF32() &&
         getElementTypeOrSelf(op->getOperand(1).getType()).isBF16();
}

/// The tensor of bf16 that `value` is as f32; null if it is none.
inline mlir::Value findNarrow(mlir::Value value) {
  mlir::Operation *op = value.getDefiningOp();
  return op && isWidening(op) ? op->getOperand(0) : mlir::Value();
}

/// Returns true if an op is a contraction of factors in bf16 with sums in f32.
inline bool isNarrowProduct(mlir::Operation *op) {
  auto contract = llvm::dyn_cast_or_null<mlir::linalg::ContractOp>(op);
  return contract &&
         llvm::all_of(contract.getInputs(),
                      [](mlir::Value factor) {
                        return getElementTypeOrSelf(factor.getType()).isBF16();
                      }) &&
         getElementTypeOrSelf(contract.getOutputs().front().getType()).isF32();
}

} // namespace penstock

#endif // PENSTOCK_PASSES_KERNELS_WIDENING_H
