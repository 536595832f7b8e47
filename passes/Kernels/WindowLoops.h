//===- WindowLoops.h - Loops over windows -----------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Generics whose body reads a tensor at a computed position, which may lie in
// the padding: there it reads zero.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_KERNELS_WINDOWLOOPS_H
#define PENSTOCK_PASSES_KERNELS_WINDOWLOOPS_H

#include "penstock/Support/Structured.h"

namespace penstock {

/// Index arithmetic and reads inside of a body.
class Position : public Scalars {
public:
  using Scalars::Scalars;

  mlir::Value index(int64_t value) {
    return make<mlir::arith::ConstantIndexOp>(value);
  }
  mlir::Value loop(int64_t dim) { return make<mlir::linalg::IndexOp>(dim); }
  mlir::Value times(mlir::Value a, int64_t factor) {
    return factor == 1 ? a : mul(a, index(factor));
  }
  mlir::Value quotient(mlir::Value a, int64_t by) {
    return by == 1 ? a : div(a, index(by));
  }
  mlir::Value remainder(mlir::Value a, int64_t by) {
    return make<mlir::arith::RemSIOp>(a, index(by));
  }
  /// Joins two conditions, the first of which may be null.
  mlir::Value both(mlir::Value a, mlir::Value b) {
    return a ? Scalars::both(a, b) : b;
  }
  /// 0 <= position < size.
  mlir::Value inside(mlir::Value position, int64_t size) {
    // Unsigned, so that negative positions are outside as well.
    return compare(mlir::arith::CmpIPredicate::ult, position, index(size));
  }
  mlir::Value isZero(mlir::Value value) { return equal(value, index(0)); }

  /// Where element `window` of a window lies: number * stride + window *
  /// dilation - pad.
  mlir::Value element(mlir::Value number, mlir::Value window, int64_t stride,
                      int64_t dilation, int64_t pad) {
    mlir::Value at = add(times(number, stride), times(window, dilation));
    return pad == 0 ? at : sub(at, index(pad));
  }
  /// The window that has `position` as element `window`; `condition` becomes
  /// whether there is one.
  mlir::Value emitWindow(mlir::Value position, mlir::Value window,
                         int64_t stride, int64_t dilation, int64_t pad,
                         int64_t count, mlir::Value &condition);

  /// The element of `tensor` where `condition` holds (null: everywhere); zero
  /// elsewhere.
  mlir::Value read(mlir::Value tensor, llvm::ArrayRef<mlir::Value> indices,
                   mlir::Value condition);
};

/// Scalars of the operands, then old values of the outputs.
using WindowBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    Position &, mlir::ValueRange)>;

/// A generic over `loops` dimensions of which the outputs have the first ones;
/// the rest is reduced. `inputs` come with their dimensions.
llvm::SmallVector<mlir::Value> createWindowLoops(
    mlir::OpBuilder &builder, mlir::Location loc, unsigned loops,
    llvm::ArrayRef<std::pair<mlir::Value, llvm::SmallVector<int64_t>>> inputs,
    mlir::ValueRange outputs, WindowBody body);

} // namespace penstock

#endif // PENSTOCK_PASSES_KERNELS_WINDOWLOOPS_H
