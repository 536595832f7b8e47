//===- ClassRows.h - Generics over classes and over rows --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What softmax, its logarithm and cross-entropy are made of: bodies for every
// element of a tensor, for every row of it, and sums over either.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_KERNELS_CLASSROWS_H
#define PENSTOCK_PASSES_KERNELS_CLASSROWS_H

#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/Builders.h"

namespace penstock {

/// Builds generics over a tensor of classes and over its rows: the same tensor
/// without the axis of the classes.
class ClassRows {
public:
  /// A scalar body: gets one value per input and the accumulator or old value
  /// of the output.
  using Body = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location,
                                              mlir::ValueRange, mlir::Value)>;

  ClassRows(mlir::OpBuilder &builder, mlir::Location loc,
            mlir::RankedTensorType full, int64_t axis);

  /// Constants in front of the generics; without a type, of the elements'.
  mlir::Value constant(mlir::Type type, double value);
  mlir::Value constant(double value) { return constant(elementType(), value); }
  mlir::Value integer(mlir::Type type, int64_t value);

  /// A constant tensor with a value per class, for `elements` and `reduce`.
  mlir::Value perClass(llvm::ArrayRef<double> values);

  /// body(inputs) for every element; inputs are full tensors or rows.
  mlir::Value elements(mlir::ValueRange inputs, Body body);

  /// Folds the classes of each row, beginning with `start`.
  mlir::Value reduce(mlir::ValueRange inputs, double start, Body body);

  /// body(inputs) for every row; inputs are rows or scalars.
  mlir::Value perRow(mlir::ValueRange inputs, Body body);

  /// Folds all rows into a scalar tensor that begins with `start`.
  mlir::Value total(mlir::ValueRange inputs, mlir::Value start, Body body);

  /// The number of rows.
  int64_t count() { return row.getNumElements(); }
  mlir::Type elementType() { return full.getElementType(); }
  int64_t classes() { return full.getDimSize(axis); }

  /// The class of the current element, as an integer of `type`.
  mlir::Value classNumber(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Type type);

private:
  mlir::Value filled(mlir::RankedTensorType type, mlir::Value start);
  mlir::Value generic(mlir::ValueRange inputs, mlir::Value output,
                      mlir::AffineMap outputMap,
                      llvm::ArrayRef<mlir::utils::IteratorType> iterators,
                      Body body);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::RankedTensorType full, row;
  int64_t axis;
  mlir::AffineMap fullMap, rowMap;
  /// What `perClass` made.
  mlir::Value classValues;
};

/// exp(x - max), and per row the maximum and the sum: what softmax, its
/// logarithm and cross-entropy have in common. NaN anywhere in a row reaches
/// the sum: the maximum skips it, the exponentials do not.
struct StableExp {
  mlir::Value exponentials, maximum, sum;
};

StableExp computeStableExp(ClassRows &rows, mlir::Value x);

/// One division per row: a vector of them takes as long as its exponentials.
/// The sum is at least 1, so that its inverse is as exact as a quotient.
mlir::Value divideBySum(ClassRows &rows, const StableExp &parts);

} // namespace penstock

#endif // PENSTOCK_PASSES_KERNELS_CLASSROWS_H
