//===- IndexWalker.h - Where a gather or scatter goes -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Index tensors say at which positions of the data an op reads or writes. Here
// is the arithmetic of these positions, kept in range, and the loops over them.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_KERNELS_INDEXWALKER_H
#define PENSTOCK_PASSES_KERNELS_INDEXWALKER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace penstock {

/// Emits for one gather or scatter: `space` is what it iterates over, `data`
/// where the positions are.
class IndexWalker {
public:
  IndexWalker(mlir::OpBuilder &builder, mlir::Location loc,
              mlir::RankedTensorType space, mlir::RankedTensorType data,
              mlir::ValueRange indices, mlir::AffineMap at,
              mlir::ArrayAttr indexMaps);

  /// Nothing is at any position.
  bool hasNoPositions() const {
    return llvm::is_contained(data.getShape(), 0) ||
           llvm::is_contained(space.getShape(), 0);
  }
  int64_t outerRank() const { return space.getRank() - rowAxes; }
  /// Rows that are worth a vector loop.
  bool hasRows() const;
  mlir::RankedTensorType rowType() const {
    return mlir::RankedTensorType::get(space.getShape().take_back(rowAxes),
                                       space.getElementType());
  }

  /// What is read or written at a time.
  enum class Unit { Element, Row };

  struct Position {
    /// Indices into the data, in range.
    llvm::SmallVector<mlir::Value> at;
    /// Whether they are the ones that were meant; null if they always are.
    mlir::Value valid;
  };
  /// The position of an iteration; `values` are its index tensors' elements.
  /// That of a row has no index for the row's own axes.
  Position find(mlir::OpBuilder &b, mlir::ValueRange iteration,
                mlir::ValueRange values, Unit unit);
  /// The elements of the index tensors at an iteration.
  llvm::SmallVector<mlir::Value> loadIndices(mlir::OpBuilder &b,
                                             mlir::ValueRange iteration);

  /// The row at a position of the leading axes.
  struct Slice {
    llvm::SmallVector<mlir::OpFoldResult> offsets, sizes, strides;
  };
  Slice rowAt(mlir::ValueRange position);

  /// A loop over the first `rank` axes of the space, through which `start` is
  /// carried.
  mlir::Value
  loop(int64_t rank, mlir::Value start,
       llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange,
                                      mlir::Value)>
           body);

  mlir::Value select(mlir::OpBuilder &b, mlir::Value condition, mlir::Value a,
                     mlir::Value other) {
    return mlir::arith::SelectOp::create(b, loc, condition, a, other);
  }
  mlir::Value index(mlir::OpBuilder &b, int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, loc, value);
  }

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::RankedTensorType space, data;
  mlir::ValueRange indices;
  mlir::AffineMap at;
  llvm::SmallVector<mlir::AffineMap> indexMaps;
  int64_t rowAxes = 0;

private:
  void countRowAxes();
};

} // namespace penstock

#endif // PENSTOCK_PASSES_KERNELS_INDEXWALKER_H
