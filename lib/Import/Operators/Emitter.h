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

#include "penstock/Support/Structured.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"

namespace penstock::onnx {

class Emitter : public Structured {
public:
  using Structured::Structured;

  mlir::MLIRContext *getContext() { return builder.getContext(); }

  using Body =
      llvm::function_ref<mlir::Value(Emitter &, llvm::ArrayRef<mlir::Value>)>;

  //===--- Scalars ---===//

  /// A scalar of `type` (a float or integer type).
  mlir::Value scalar(mlir::Type type, double value) {
    return constant(type, value);
  }
  /// The identity of a maximum: -inf, or the smallest integer.
  mlir::Value lowest(mlir::Type type);
  /// The identity of a minimum: inf, or the largest integer.
  mlir::Value highest(mlir::Type type);

  /// As ONNX's Div; of integers, see divideIntegers.
  mlir::Value div(mlir::Value a, mlir::Value b) {
    return isFloat(a) ? Scalars::div(a, b) : divideIntegers(a, b);
  }
  /// Converts a scalar as ONNX's Cast does.
  mlir::Value cast(mlir::Value value, mlir::Type to);
  /// The quotient of integers, where 0 divides to 0 and nothing traps.
  mlir::Value divideIntegers(mlir::Value a, mlir::Value b);

  /// Returns the type that a body computes in for elements of this type:
  /// unsigned integers are 64 bits wide there, others as they are.
  static mlir::Type computedType(mlir::Type element);

  //===--- Tensors ---===//

  mlir::Value constant(mlir::DenseElementsAttr value);
  using Scalars::constant;

  /// The same elements in another shape; `value` itself when it has it.
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value value, llvm::ArrayRef<int64_t> order);
  /// `sizes` elements of `value` from `offsets` on, `strides` apart; without
  /// strides, neighbors.
  mlir::Value slice(mlir::Value value, llvm::ArrayRef<int64_t> offsets,
                    llvm::ArrayRef<int64_t> sizes,
                    llvm::ArrayRef<int64_t> strides = {});
  /// `into` with `part` at `offsets`.
  mlir::Value insert(mlir::Value part, mlir::Value into,
                     llvm::ArrayRef<int64_t> offsets);

  /// `body` at every index of `type`, over operands that broadcast to it as
  /// numpy says. The body has one scalar per operand.
  mlir::Value elementwise(mlir::RankedTensorType type,
                          llvm::ArrayRef<mlir::Value> operands, Body body);
  /// The same where the body is one function of two scalars.
  using Function = mlir::Value (Emitter::*)(mlir::Value, mlir::Value);
  mlir::Value elementwise(mlir::RankedTensorType type,
                          llvm::ArrayRef<mlir::Value> operands,
                          Function function) {
    return elementwise(type, operands,
                       [&](Emitter &inside, llvm::ArrayRef<mlir::Value> in) {
                         return (inside.*function)(in[0], in[1]);
                       });
  }
  /// Repeats `value` to the shape of `type`.
  mlir::Value broadcast(mlir::Value value, mlir::RankedTensorType type);

  /// A linalg.generic over an iteration space of as many dimensions as
  /// `iterators`, with one result. The body's last scalar is the result's old
  /// one.
  mlir::Value generic(llvm::ArrayRef<mlir::Value> operands, mlir::Value out,
                      llvm::ArrayRef<mlir::AffineMap> maps,
                      llvm::ArrayRef<mlir::utils::IteratorType> iterators,
                      Body body);
  mlir::Value generic(llvm::ArrayRef<mlir::Value> operands, mlir::Value out,
                      llvm::ArrayRef<mlir::AffineMap> maps,
                      llvm::ArrayRef<mlir::utils::IteratorType> iterators,
                      Function function) {
    return generic(operands, out, maps, iterators,
                   [&](Emitter &inside, llvm::ArrayRef<mlir::Value> in) {
                     return (inside.*function)(in[0], in[1]);
                   });
  }

  /// Reduces the axes (sorted) away. `combine` has (accumulator, element), in
  /// this order.
  mlir::Value reduce(mlir::Value value, llvm::ArrayRef<int64_t> axes,
                     mlir::Value neutral, Body combine);
  mlir::Value reduce(mlir::Value value, llvm::ArrayRef<int64_t> axes,
                     mlir::Value neutral, Function combine) {
    return reduce(value, axes, neutral,
                  [&](Emitter &inside, llvm::ArrayRef<mlir::Value> in) {
                    return (inside.*combine)(in[0], in[1]);
                  });
  }

  /// linalg.contract into zeros. `maps` are those of a, b and the result.
  mlir::Value contract(mlir::Value a, mlir::Value b,
                       mlir::RankedTensorType type,
                       llvm::ArrayRef<mlir::AffineMap> maps);

  /// The map from a space of `rank` dimensions to `dims`.
  mlir::AffineMap map(int64_t rank, llvm::ArrayRef<int64_t> dims);

  static mlir::RankedTensorType getType(mlir::Value value) {
    return llvm::cast<mlir::RankedTensorType>(value.getType());
  }
  static llvm::ArrayRef<int64_t> getShape(mlir::Value value) {
    return getType(value).getShape();
  }

private:
  /// From the type of an element to the one computed with, and back.
  mlir::Value widen(mlir::Value scalar);
  mlir::Value narrow(mlir::Value scalar, mlir::Type element);
};

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_OPERATORS_EMITTER_H
