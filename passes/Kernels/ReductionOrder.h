//===- ReductionOrder.h - The dimension that becomes lanes ------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one place that decides along which dimension a linalg.generic is
// vectorized. The decision fixes the order of additions of a reduction, hence
// its bits: it depends on maps and body only, never on sizes or layouts, and
// fusion must not change it.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_KERNELS_REDUCTIONORDER_H
#define PENSTOCK_PASSES_KERNELS_REDUCTIONORDER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace penstock {

/// The dimension along which `op` is vectorized: the innermost one that each
/// operand either lacks or has as its last, fastest index. None when there is
/// no such dimension or the body has no vector form: then scalar loops do it.
std::optional<unsigned> chooseVectorDimension(mlir::linalg::GenericOp op);

/// The op that joins two partial results of a reduction into `output`, if the
/// body has the form that allows partial results: the accumulator enters
/// exactly one op, and that op's result is the new accumulator.
mlir::Operation *getCombiner(mlir::linalg::GenericOp op, unsigned output);

/// Returns the partial result of no element at all, which changes no other.
mlir::TypedAttr getNeutral(mlir::Operation *combiner);

/// Joins two partial results at the insertion point.
mlir::Value combinePartials(mlir::OpBuilder &builder, mlir::Operation *combiner,
                            mlir::Value a, mlir::Value b);

} // namespace penstock

#endif // PENSTOCK_PASSES_KERNELS_REDUCTIONORDER_H
