//===- Emitter.h - Emits linalg on static tensors ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The shapes of IR that lowerings are made of. Every linalg.generic has maps
// that are projected permutations: an axis of size 1 that is broadcast is
// dropped by a tensor.collapse_shape first, so that autodiff and the vector
// loops need no case for it.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_OPERATORS_EMITTER_H
#define PENSTOCK_LIB_IMPORT_OPERATORS_EMITTER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

namespace penstock::onnx {

class Emitter {
public:
  Emitter(mlir::OpBuilder &builder, mlir::Location loc)
      : builder(builder), loc(loc) {}

  mlir::OpBuilder &builder;
  mlir::Location loc;

  using Body =
      llvm::function_ref<mlir::Value(Emitter &, llvm::ArrayRef<mlir::Value>)>;

  //===--- Scalars ---===//

  /// A scalar of `type` (a float or integer type).
  mlir::Value scalar(mlir::Type type, double value);
  /// The identity of a maximum: -inf, or the smallest integer.
  mlir::Value lowest(mlir::Type type);
  /// The identity of a minimum: inf, or the largest integer.
  mlir::Value highest(mlir::Type type);

  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value div(mlir::Value a, mlir::Value b);
  mlir::Value max(mlir::Value a, mlir::Value b);
  mlir::Value min(mlir::Value a, mlir::Value b);
  mlir::Value less(mlir::Value a, mlir::Value b);
  mlir::Value equal(mlir::Value a, mlir::Value b);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  /// Converts a scalar as ONNX's Cast does.
  mlir::Value cast(mlir::Value value, mlir::Type to);
  /// The quotient of integers, where 0 divides to 0 and nothing traps.
  mlir::Value divideIntegers(mlir::Value a, mlir::Value b);

  /// What a body computes with for elements of this type: unsigned integers are
  /// 64 bits wide there, others as they are.
  static mlir::Type computedType(mlir::Type element);

  //===--- Tensors ---===//

  mlir::Value empty(mlir::RankedTensorType type);
  mlir::Value filled(mlir::RankedTensorType type, mlir::Value scalar);
  mlir::Value constant(mlir::DenseElementsAttr value);

  /// The same elements in another shape; `value` itself when it has it.
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value value, llvm::ArrayRef<int64_t> order);

  /// `body` at every index of `type`, over operands that broadcast to it as
  /// numpy says. The body has one scalar per operand.
  mlir::Value elementwise(mlir::RankedTensorType type,
                          llvm::ArrayRef<mlir::Value> operands, Body body);
  /// Repeats `value` to the shape of `type`.
  mlir::Value broadcast(mlir::Value value, mlir::RankedTensorType type);

  /// A linalg.generic over an iteration space of as many dimensions as
  /// `iterators`, with one result. The body's last scalar is the result's old
  /// one.
  mlir::Value generic(llvm::ArrayRef<mlir::Value> operands, mlir::Value out,
                      llvm::ArrayRef<mlir::AffineMap> maps,
                      llvm::ArrayRef<mlir::utils::IteratorType> iterators,
                      Body body);

  /// Reduces the axes (sorted) away. `combine` has (accumulator, element), in
  /// this order.
  mlir::Value reduce(mlir::Value value, llvm::ArrayRef<int64_t> axes,
                     mlir::Value neutral, Body combine);

  /// linalg.contract into zeros. `maps` are those of a, b and the result.
  mlir::Value contract(mlir::Value a, mlir::Value b,
                       mlir::RankedTensorType type,
                       llvm::ArrayRef<mlir::AffineMap> maps);

  /// The map from a space of `rank` dimensions to `dims`.
  mlir::AffineMap map(int64_t rank, llvm::ArrayRef<int64_t> dims);

  static mlir::RankedTensorType typeOf(mlir::Value value) {
    return llvm::cast<mlir::RankedTensorType>(value.getType());
  }
  static llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
    return typeOf(value).getShape();
  }

private:
  /// From the type of an element to the one computed with, and back.
  mlir::Value widen(mlir::Value scalar);
  mlir::Value narrow(mlir::Value scalar, mlir::Type element);

  bool isFloat(mlir::Value value) {
    return llvm::isa<mlir::FloatType>(value.getType());
  }
};

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_OPERATORS_EMITTER_H
