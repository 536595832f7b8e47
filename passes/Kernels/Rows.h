//===- Rows.h - Generics over tensors and over their rows -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What softmax, its logarithm, cross-entropy and normalizations are made of:
// bodies for every element of a tensor, for every row of it, and sums over
// either.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_KERNELS_ROWS_H
#define PENSTOCK_PASSES_KERNELS_ROWS_H

#include "penstock/Support/Structured.h"

namespace penstock {

/// Builds generics over a tensor and over its rows: the same tensor without the
/// axes along which a row is summed.
class Rows {
public:
  /// A scalar body: gets one value per input and the accumulator or old value
  /// of the output.
  using Body =
      llvm::function_ref<mlir::Value(Scalars &, mlir::ValueRange, mlir::Value)>;
  /// The same with several outputs.
  using Bodies = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      Scalars &, mlir::ValueRange, mlir::ValueRange)>;

  Rows(mlir::OpBuilder &builder, mlir::Location loc,
       mlir::RankedTensorType full, llvm::ArrayRef<int64_t> axes);

  /// Constants in front of the generics; without a type, of the elements'.
  mlir::Value constant(double value) {
    return emit.constant(elementType(), value);
  }
  mlir::Value integer(mlir::Type type, int64_t value) {
    return emit.integer(type, value);
  }
  /// The number of elements of a row, as a constant.
  mlir::Value size() {
    return constant(static_cast<double>(full.getNumElements()) /
                    static_cast<double>(row.getNumElements()));
  }

  /// A constant tensor with a value per class, for `elements` and `reduce`.
  mlir::Value perClass(llvm::ArrayRef<double> values);

  /// body(inputs) for every element; inputs are full tensors or rows.
  mlir::Value elements(mlir::ValueRange inputs, Body body);

  /// Folds each row, beginning with `start`.
  mlir::Value reduce(mlir::ValueRange inputs, double start, Body body);
  /// Folds each row into `outputs` numbers that begin with zero.
  llvm::SmallVector<mlir::Value> sums(mlir::ValueRange inputs, unsigned outputs,
                                      Bodies body);

  /// body(inputs) for every row; inputs are rows or scalars.
  mlir::Value perRow(mlir::ValueRange inputs, Body body);

  /// Folds all rows into a scalar tensor that begins with `start`.
  mlir::Value total(mlir::ValueRange inputs, mlir::Value start, Body body);

  /// The number of rows.
  int64_t count() { return row.getNumElements(); }
  mlir::Type elementType() { return full.getElementType(); }
  int64_t classes() { return full.getDimSize(axes.front()); }

  /// The class of the current element, as an integer of `type`.
  mlir::Value classNumber(Scalars &inside, mlir::Type type);

private:
  llvm::SmallVector<mlir::Value>
  generics(mlir::ValueRange inputs, mlir::ValueRange outputs,
           mlir::AffineMap outputMap, const Structured::Iterators &iterators,
           Bodies body);
  mlir::Value generic(mlir::ValueRange inputs, mlir::Value output,
                      mlir::AffineMap outputMap,
                      const Structured::Iterators &iterators, Body body);

  Structured emit;
  mlir::RankedTensorType full, row;
  llvm::SmallVector<int64_t> axes;
  mlir::AffineMap fullMap, rowMap;
  Structured::Iterators reducing;
  /// Holds the results of `perClass`.
  mlir::Value classValues;
};

/// exp(x - max), and per row the maximum and the sum: what softmax, its
/// logarithm and cross-entropy have in common. NaN anywhere in a row reaches
/// the sum: the maximum skips it, the exponentials do not.
struct StableExp {
  mlir::Value exponentials, maximum, sum;
};

StableExp computeStableExp(Rows &rows, mlir::Value x);

/// One division per row: a vector of them takes as long as its exponentials.
/// The sum is at least 1, so that its inverse is as exact as a quotient.
mlir::Value divideBySum(Rows &rows, const StableExp &parts);

} // namespace penstock

#endif // PENSTOCK_PASSES_KERNELS_ROWS_H
