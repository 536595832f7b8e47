//===- Pullback.h - What a derivative rule works with -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The state of one reverse-mode differentiation: which forward values are
// active, what their cotangents are, and how forward values reach the backward
// function (as residuals, or evaluated again from parameters).
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_AUTODIFF_PULLBACK_H
#define PENSTOCK_AUTODIFF_PULLBACK_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace penstock {

/// A forward value is a constant, an expression of parameters only, or data.
/// The backward may read other weights than the forward did, so the three reach
/// it in different ways: constants and expressions of parameters are evaluated
/// again, data is what the forward stored.
enum class ValueKind { Constant, Parameter, Data };

/// The meaning of a block argument of the backward function.
enum class ArgumentRole {
  ResultCotangent,
  ArgumentCotangent,
  Residual,
  Parameter,
  Accumulator,
  Scalar
};

class Pullback {
public:
  /// Emits at the end of `backward`, whose arguments it adds as needed.
  explicit Pullback(mlir::Block &backward)
      : block(backward), builder(mlir::OpBuilder::atBlockEnd(&backward)) {}

  //===--- For rules
  //--------------------------------------------------------===//

  mlir::OpBuilder &getBuilder() { return builder; }

  /// The cotangent of a forward value; null when nothing depends on it.
  mlir::Value getCotangent(mlir::Value value) const {
    return cotangents.lookup(value);
  }

  /// Returns true if the value depends on something that a gradient is wanted
  /// for.
  bool isActive(mlir::Value value) const { return active.contains(value); }

  ValueKind getKind(mlir::Value value) const {
    return kinds.lookup_or(value, ValueKind::Constant);
  }

  /// Returns true if the op combines data with parameters. The results of such
  /// an op must not enter derivatives: they hold the forward's parameters,
  /// while the backward may read others.
  bool mixesDataAndParameters(mlir::Operation *op) const;

  /// The forward value in the backward function.
  mlir::Value getPrimal(mlir::Value value);

  /// The sum so far of a parameter's gradient, in a buffer that the next
  /// contribution may be added to in place; null for anything else.
  mlir::Value getAccumulator(mlir::Value value);
  /// Replaces the sum that getAccumulator returned.
  void setAccumulator(mlir::Value value, mlir::Value sum);

  /// Adds a contribution to the cotangent of a value; inactive ones need none.
  void add(mlir::Value value, mlir::Value contribution, mlir::Location loc);

  //===--- For the driver
  //---------------------------------------------------===//

  void setKind(mlir::Value value, ValueKind kind) { kinds[value] = kind; }
  void setActive(mlir::Value value) { active.insert(value); }
  void setCotangent(mlir::Value value, mlir::Value cotangent) {
    cotangents[value] = cotangent;
  }
  /// Marks a forward argument as a parameter whose gradient accumulates into an
  /// argument of the backward function.
  void setAccumulates(mlir::Value parameter) { accumulating.insert(parameter); }

  /// The argument of the backward function with this role for a forward value,
  /// added when it is not there yet.
  mlir::Value getArgument(ArgumentRole role, mlir::Value forward);
  /// The same, or null.
  mlir::Value findArgument(ArgumentRole role, mlir::Value forward) const {
    return arguments.lookup({static_cast<int>(role), forward});
  }
  using ArgumentKey = std::pair<int, mlir::Value>;
  const llvm::MapVector<ArgumentKey, mlir::Value> &getArguments() const {
    return arguments;
  }

private:
  mlir::Block &block;
  mlir::OpBuilder builder;
  llvm::DenseMap<mlir::Value, ValueKind> kinds;
  llvm::DenseSet<mlir::Value> active;
  llvm::DenseSet<mlir::Value> accumulating;
  llvm::DenseMap<mlir::Value, mlir::Value> cotangents;
  llvm::MapVector<ArgumentKey, mlir::Value> arguments;
  mlir::IRMapping evaluated;
};

/// Calls `visit` for the operands of an op and for the values from outside that
/// its regions use.
void forEachUsedValue(mlir::Operation *op,
                      llvm::function_ref<void(mlir::Value)> visit);

/// A tensor of zeros as a destination.
mlir::Value createZeros(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::RankedTensorType type);

/// left + right, element by element; with `inPlace` into the buffer of `left`.
mlir::Value createSum(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value left, mlir::Value right, bool inPlace);

} // namespace penstock

#include "lib/Autodiff/DifferentiableOpInterface.h.inc"

#endif // PENSTOCK_AUTODIFF_PULLBACK_H
