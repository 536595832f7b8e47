//===- MatrixProduct.h - Contractions as matrix products --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads a batched product of strided matrices out of the maps and strides of a
// contraction. Whoever wants to change these can ask first whether the result
// is still one that the library takes.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TARGET_MATRIXPRODUCT_H
#define PENSTOCK_TARGET_MATRIXPRODUCT_H

#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/SmallVector.h"

namespace penstock {

struct MatrixProduct {
  enum Operand : unsigned { A, B, C };

  /// A loop dimension, or several that one counter can run over.
  struct Dimension {
    int64_t size;
    int64_t strides[3]; ///< Per operand, zero where it does not occur.
  };

  llvm::SmallVector<Dimension> batch;
  Dimension m, n, k;
  /// B and A where the transposed product is computed, whose result lies by
  /// rows.
  Operand left = A, right = B;
};

/// The product that loops of these sizes compute. `maps` and `strides` are
/// those of the operands A, B and C. Fails with a reason where the library
/// could not compute it.
llvm::FailureOr<MatrixProduct>
readMatrixProduct(llvm::ArrayRef<int64_t> sizes,
                  llvm::ArrayRef<mlir::AffineMap> maps,
                  llvm::ArrayRef<llvm::SmallVector<int64_t>> strides,
                  std::string *reason = nullptr);

} // namespace penstock

#endif // PENSTOCK_TARGET_MATRIXPRODUCT_H
