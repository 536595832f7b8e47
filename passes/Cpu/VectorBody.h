//===- VectorBody.h - The body of a linalg.generic on vectors ---*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What stands within the loops of a vectorized op; the loops are the caller's,
// who says where they stand.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_CPU_VECTORBODY_H
#define PENSTOCK_PASSES_CPU_VECTORBODY_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace penstock {

class VectorBody {
public:
  VectorBody(mlir::OpBuilder &builder, mlir::linalg::GenericOp op,
             unsigned dimension, int64_t width);

  /// Outputs that are folded along the dimension.
  llvm::ArrayRef<unsigned> getReductions() const { return reductions; }

  /// Per operand without the dimension, its value in the current row.
  using RowValues = llvm::DenseMap<unsigned, mlir::Value>;
  /// Begins a loop over another dimension: loads what does not change along
  /// ours, as soon as the loops that it depends on are there. Returns what was
  /// loaded outside, for `leave`.
  RowValues enter(unsigned dim, mlir::Value counter);
  void leave(unsigned dim, RowValues outside);

  /// The body on `lanes` elements from `counter` on; takes and returns one
  /// partial result for each reduction.
  llvm::SmallVector<mlir::Value> step(mlir::Value counter,
                                      llvm::ArrayRef<mlir::Value> accumulators,
                                      int64_t lanes);
  /// Returns the initial value of the partial results of a reduction.
  mlir::Value start(unsigned output);
  /// Joins them in pairs, then the halves of the vector, then what was there.
  void finish(unsigned output, llvm::ArrayRef<mlir::Value> parts);

private:
  void loadRowValues();
  bool isVector(mlir::OpOperand &operand) {
    return op.getMatchingIndexingMap(&operand).isFunctionOfDim(dimension);
  }
  /// Returns true if the elements along the dimension lie side by side in
  /// memory, one per `element` (booleans are bytes in memory but bits in a
  /// vector).
  bool isContiguous(mlir::Value buffer);
  llvm::SmallVector<mlir::Value> indices(mlir::OpOperand &operand,
                                         int64_t lane = 0);
  mlir::Value load(mlir::OpOperand &operand, int64_t lanes);
  void store(mlir::OpOperand &operand, mlir::Value value, int64_t lanes);
  mlir::Value loadScalar(mlir::OpOperand &operand);
  mlir::Value mask(int64_t lanes);
  mlir::VectorType getVectorType(mlir::Type element) {
    return mlir::VectorType::get({width}, element);
  }
  mlir::Value broadcast(mlir::Value scalar) {
    return mlir::vector::BroadcastOp::create(
        builder, loc, getVectorType(scalar.getType()), scalar);
  }
  mlir::Value index(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(builder, loc, value);
  }
  /// The same op of the body on these operands; its results have types made
  /// from those of the body.
  mlir::Operation *clone(mlir::Operation &inner, mlir::ValueRange operands,
                         llvm::function_ref<mlir::Type(mlir::Type)> getType);
  /// Joins a value, or a partial result, with a partial result.
  mlir::Value combine(unsigned output, mlir::Value value,
                      mlir::Value accumulator);
  mlir::Value fold(unsigned output, mlir::Value vector);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::linalg::GenericOp op;
  unsigned dimension;
  int64_t width;
  /// Per loop dimension, its current index.
  llvm::SmallVector<mlir::Value> counters;
  RowValues rowValues;
  llvm::SmallVector<unsigned> reductions;
};

} // namespace penstock

#endif // PENSTOCK_PASSES_CPU_VECTORBODY_H
