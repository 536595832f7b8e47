//===- Structured.h - Structured operations with formulas -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Emits linalg operations on tensors of static shape. Their bodies get their
// scalars, and with them what emits scalar operations.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SUPPORT_STRUCTURED_H
#define PENSTOCK_SUPPORT_STRUCTURED_H

#include "penstock/Support/Scalars.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace penstock {

class Structured : public Scalars {
public:
  using Scalars::Scalars;

  using Iterators = llvm::SmallVector<mlir::utils::IteratorType>;
  /// The scalars of the inputs, then the old values of the outputs.
  using Body = llvm::function_ref<mlir::Value(Scalars &, mlir::ValueRange)>;
  using Bodies = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      Scalars &, mlir::ValueRange)>;

  static Iterators parallel(int64_t rank) {
    return Iterators(rank, mlir::utils::IteratorType::parallel);
  }
  static Iterators reduction(int64_t rank) {
    return Iterators(rank, mlir::utils::IteratorType::reduction);
  }

  mlir::AffineMap identity(int64_t rank) {
    return builder.getMultiDimIdentityMap(rank);
  }
  /// Every iteration of a space of `rank` dimensions has the one element.
  mlir::AffineMap toScalar(int64_t rank) {
    return mlir::AffineMap::get(rank, 0, builder.getContext());
  }

  mlir::Value empty(mlir::RankedTensorType type) {
    return make<mlir::tensor::EmptyOp>(type.getShape(), type.getElementType());
  }
  mlir::Value filled(mlir::RankedTensorType type, mlir::Value scalar) {
    return make<mlir::linalg::FillOp>(scalar, empty(type));
  }
  mlir::Value filled(mlir::RankedTensorType type, double number) {
    return filled(type, constant(type.getElementType(), number));
  }

  /// A linalg.generic. `maps` are those of the inputs, then of the outputs.
  llvm::SmallVector<mlir::Value>
  generics(mlir::ValueRange inputs, mlir::ValueRange outputs,
           llvm::ArrayRef<mlir::AffineMap> maps,
           llvm::ArrayRef<mlir::utils::IteratorType> iterators, Bodies body) {
    return mlir::linalg::GenericOp::create(
               builder, loc, outputs.getTypes(), inputs, outputs, maps,
               iterators,
               [&](mlir::OpBuilder &nested, mlir::Location nestedLoc,
                   mlir::ValueRange scalars) {
                 Scalars inside(nested, nestedLoc);
                 mlir::linalg::YieldOp::create(nested, nestedLoc,
                                               body(inside, scalars));
               })
        .getResults();
  }
  mlir::Value generic(mlir::ValueRange inputs, mlir::Value output,
                      llvm::ArrayRef<mlir::AffineMap> maps,
                      llvm::ArrayRef<mlir::utils::IteratorType> iterators,
                      Body body) {
    return generics(inputs, output, maps, iterators,
                    [&](Scalars &inside, mlir::ValueRange scalars) {
                      return llvm::SmallVector<mlir::Value>{
                          body(inside, scalars)};
                    })
        .front();
  }
  /// `body` at every index of inputs that have the shape of `type`.
  mlir::Value elementwise(mlir::RankedTensorType type, mlir::ValueRange inputs,
                          Body body) {
    int64_t rank = type.getRank();
    llvm::SmallVector<mlir::AffineMap> maps(inputs.size() + 1, identity(rank));
    return generic(inputs, empty(type), maps, parallel(rank), body);
  }
  mlir::Value copy(mlir::Value tensor) {
    return elementwise(
        llvm::cast<mlir::RankedTensorType>(tensor.getType()), tensor,
        [](Scalars &, mlir::ValueRange elements) { return elements.front(); });
  }
};

} // namespace penstock

#endif // PENSTOCK_SUPPORT_STRUCTURED_H
