//===- ScalarBody.h - The body of a linalg.generic on scalars ---*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every mapping of an op to threads loads elements, computes with the body as
// it is, and stores. They differ in which thread does it for which indices.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_CUDA_SCALARBODY_H
#define PENSTOCK_PASSES_CUDA_SCALARBODY_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace penstock {

/// Elements that one thread loads and stores by one instruction of 128 bits, if
/// they are of f32. Where sums depend on it, those of other types also.
constexpr int64_t kVectorElements = 4;

/// Writes loads, stores and arithmetic of an op on buffers at the insertion
/// point of a builder. `indices` has the index of each loop of the op.
class ScalarBody {
public:
  /// `isAligned`: vectors of all operands are, whether their buffers say so or
  /// not.
  ScalarBody(mlir::OpBuilder &builder, mlir::linalg::GenericOp op,
             bool isAligned = false)
      : builder(builder), loc(op.getLoc()), op(op), isAligned(isAligned) {}

  /// Writes one iteration of an elementwise op, or a vector of `count` along
  /// loop `dim`.
  void writeElement(mlir::ArrayRef<mlir::Value> indices);
  void writeVector(mlir::ArrayRef<mlir::Value> indices, unsigned dim,
                   int64_t count = kVectorElements);

  mlir::Value load(mlir::OpOperand &operand,
                   mlir::ArrayRef<mlir::Value> indices);
  void store(mlir::OpOperand &init, mlir::Value value,
             mlir::ArrayRef<mlir::Value> indices);

  /// Loads `count` elements from `indices` on along loop `dim`, whose index is
  /// a multiple of `count`.
  llvm::SmallVector<mlir::Value> loadVector(mlir::OpOperand &operand,
                                            mlir::ArrayRef<mlir::Value> indices,
                                            unsigned dim,
                                            int64_t count = kVectorElements);
  void storeVector(mlir::OpOperand &init, mlir::ArrayRef<mlir::Value> values,
                   mlir::ArrayRef<mlir::Value> indices, unsigned dim);

  /// Returns the result for each init. `elements` has those of all operands;
  /// null where the body does not use it.
  llvm::SmallVector<mlir::Value> compute(mlir::ArrayRef<mlir::Value> elements,
                                         mlir::ArrayRef<mlir::Value> indices);

  /// Returns the indices of the iteration that is `by` further along loop
  /// `dim`.
  llvm::SmallVector<mlir::Value> advance(mlir::ArrayRef<mlir::Value> indices,
                                         unsigned dim, int64_t by);

  /// Returns whether the body reads the element of the operand.
  bool reads(mlir::OpOperand &operand) {
    return !op.getMatchingBlockArgument(&operand).use_empty();
  }

private:
  llvm::SmallVector<mlir::Value> locate(mlir::OpOperand &operand,
                                        mlir::ArrayRef<mlir::Value> indices);
  /// The alignment of vectors of `count` elements of a buffer.
  llvm::MaybeAlign getAlignment(mlir::Value buffer, int64_t count);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::linalg::GenericOp op;
  bool isAligned;
};

/// Returns whether the elements of the operand along loop `dim` lie side by
/// side, in whole bytes.
bool isDenseAlong(mlir::linalg::GenericOp op, mlir::OpOperand &operand,
                  unsigned dim);

/// Returns the indices of loops of these sizes in iteration `number`, the last
/// loop being the fastest.
llvm::SmallVector<mlir::Value> delinearize(mlir::OpBuilder &builder,
                                           mlir::Location loc,
                                           mlir::Value number,
                                           mlir::ArrayRef<int64_t> sizes);

} // namespace penstock

#endif // PENSTOCK_PASSES_CUDA_SCALARBODY_H
