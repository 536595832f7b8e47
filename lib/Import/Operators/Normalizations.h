//===- Normalizations.h - What normalizations share -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading their attributes, and the normalization of trailing axes that layer
// normalization and the fused forms around it end in.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_OPERATORS_NORMALIZATIONS_H
#define PENSTOCK_LIB_IMPORT_OPERATORS_NORMALIZATIONS_H

#include "Emitter.h"
#include "NodeBinder.h"

namespace penstock::onnx {

llvm::LogicalResult bindEpsilon(NodeBinder &node, double &epsilon);

/// Statistics are computed in the type that `stash_type` names, unless the
/// operand's own is wider.
llvm::LogicalResult bindStashType(NodeBinder &node, mlir::Type &stash);

mlir::Type widest(mlir::Type a, mlir::Type b);

mlir::Value castTo(Emitter &emitter, mlir::Value value, mlir::Type element);

/// A normalization of the trailing axes of x, brought to rows.
struct TrailingNorm {
  double epsilon = 1e-5;
  int64_t axis = -1;
  mlir::Type stash;
  /// The type that is normalized, its rows, and the elements of a row.
  mlir::RankedTensorType full;
  int64_t rows, size;
  mlir::RankedTensorType statistics;

  /// Reads the attributes, for an x that is operand 0.
  llvm::LogicalResult bind(NodeBinder &node);
  /// The same, for an x of this type that the node computes.
  llvm::LogicalResult bind(NodeBinder &node, mlir::RankedTensorType x);
  /// Checks a scale or bias, which must broadcast to x. It may be left out.
  llvm::LogicalResult bindAffine(NodeBinder &node, unsigned operand);
};

/// The mean is null where none was taken away.
struct Normalized {
  mlir::Value result, mean, rstd;
};

/// x of any shape with `rows * size` elements; scale and bias (null: none) in
/// any that broadcasts to `norm.full`.
Normalized emitTrailing(Emitter &emitter, const TrailingNorm &norm,
                        mlir::Value x, mlir::Value scale, mlir::Value bias,
                        bool centered);

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_OPERATORS_NORMALIZATIONS_H
