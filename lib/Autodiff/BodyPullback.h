//===- BodyPullback.h - Reverse mode in a structured body -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The body of one generic of the backward: the scalar reverse mode of the body
// of an op of the forward, towards some of its operands.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_AUTODIFF_BODYPULLBACK_H
#define PENSTOCK_LIB_AUTODIFF_BODYPULLBACK_H

#include "lib/Autodiff/ScalarRules.h"
#include "penstock/Autodiff/Pullback.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace penstock {

/// The dimensions that the map does not name.
llvm::SmallVector<unsigned> getAbsentDims(mlir::AffineMap map);

/// Returns true if the output combines several points of the iteration space.
bool isReduction(mlir::linalg::LinalgOp op, mlir::OpOperand *out);

/// The op that combines a reduction's partial result with the next element, if
/// that is all it does with it.
mlir::Operation *getCombiner(mlir::linalg::LinalgOp op, mlir::OpOperand *out);

/// Returns the operand of `combiner` that `partial` is combined with.
mlir::Value getOtherOperand(mlir::Operation *combiner, mlir::Value partial);

/// Adds to `active` what depends on scalars in it.
void propagateActivity(mlir::Block &body, llvm::DenseSet<mlir::Value> &active);

/// The shares, per result, that the elements of a maximum, a minimum or a
/// product have of its cotangent.
struct Reduced {
  /// How many elements are the extremum, or are zero.
  mlir::Value count;
  /// The product of the elements that are not zero; null for an extremum.
  mlir::Value product;
};

/// Builds the body of one backward generic.
class BodyPullback : public ScalarPullback {
public:
  BodyPullback(mlir::linalg::LinalgOp op, Pullback &pullback,
               mlir::OpBuilder &body, mlir::Block &block)
      : ScalarPullback(body, op.getLoc()), op(op), pullback(pullback),
        block(block), mayReuse(!pullback.mixesDataAndParameters(op)) {}

  /// An element of a tensor of the backward function.
  mlir::Value input(mlir::Value tensor, mlir::AffineMap map);

  mlir::Value value(mlir::Value scalar) override;

  /// Runs the scalar reverse mode towards the block arguments `targets`, whose
  /// cotangents sum to the result; null when nothing reaches them, failure
  /// (reported) when some op has no rule.
  llvm::FailureOr<mlir::Value>
  pullBackTo(llvm::ArrayRef<mlir::BlockArgument> targets);

  mlir::linalg::LinalgOp op;
  Pullback &pullback;
  mlir::Block &block;
  llvm::SmallVector<mlir::Value> inputs;
  llvm::SmallVector<mlir::AffineMap> maps;
  /// For each result that is reduced otherwise than by a sum.
  llvm::DenseMap<mlir::Value, Reduced> reduced;

  /// The share in the cotangent of a reduced result that its elements have.
  mlir::Value emitShare(const Reduced &reduced, mlir::OpOperand *out,
                        mlir::Value element, mlir::Value cotangent);

private:
  mlir::Value compute(mlir::Value scalar);

  bool mayReuse;
  llvm::DenseMap<std::pair<mlir::Value, mlir::AffineMap>, mlir::Value> elements;
  llvm::DenseMap<mlir::Value, mlir::Value> known_;
};

} // namespace penstock

#endif // PENSTOCK_LIB_AUTODIFF_BODYPULLBACK_H
