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

#include "penstock/Support/Structured.h"

#include <functional>

namespace penstock {

/// Emits for one gather or scatter: `space` is what it iterates over, `data`
/// where the positions are.
class IndexWalker : public Structured {
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
  Position find(Scalars &s, mlir::ValueRange iteration, mlir::ValueRange values,
                Unit unit);
  /// With the index tensors' elements at the iteration.
  Position find(Scalars &s, mlir::ValueRange iteration, Unit unit);

  /// `into` with another row at a position `to` of the leading axes: `body` has
  /// the elements of the row of `from`, and those that are there.
  mlir::Value combineRows(Structured &s, mlir::Value from,
                          mlir::ValueRange position, mlir::Value into,
                          mlir::ValueRange to, Body body);

  /// A loop over the first `rank` axes of the space, through which `start` is
  /// carried.
  using LoopBody =
      std::function<mlir::Value(Structured &, mlir::ValueRange, mlir::Value)>;
  mlir::Value loop(int64_t rank, mlir::Value start, const LoopBody &body);

  mlir::RankedTensorType space, data;
  mlir::ValueRange indices;
  mlir::AffineMap at;
  llvm::SmallVector<mlir::AffineMap> indexMaps;
  int64_t rowAxes = 0;

private:
  void countRowAxes();
  struct Slice {
    llvm::SmallVector<mlir::OpFoldResult> offsets, sizes, strides;
  };
  Slice getRow(mlir::ValueRange position);
};

} // namespace penstock

#endif // PENSTOCK_PASSES_KERNELS_INDEXWALKER_H
