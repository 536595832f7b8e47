//===- Interpolation.h - Tensors at computed places -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What GridSample and RoiAlign share: along each axis a place is a few
// positions with weights, and a point sums what is found at all combinations.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_OPERATORS_INTERPOLATION_H
#define PENSTOCK_LIB_IMPORT_OPERATORS_INTERPOLATION_H

#include "Emitter.h"

namespace penstock::onnx {

/// The elements of one axis that a point is made of. All tensors are of one
/// shape, whose axes are these of the result.
struct Taps {
  llvm::SmallVector<int64_t> axes;
  /// Without weights there is one position, whose element is the point.
  llvm::SmallVector<mlir::Value> positions, weights;
};

/// The weighted sum over all combinations of taps. `data` is [N, C, spatial...]
/// and the result [M, C, ...]; `samples` says which N an M is, null: the same.
mlir::Value interpolate(Emitter &emitter, mlir::RankedTensorType type,
                        mlir::Value data, mlir::Value samples,
                        llvm::ArrayRef<Taps> spatial);

//===--- Scalars ---===//

/// Places of half floats are computed with as f32.
mlir::Type placeType(mlir::Type element);
mlir::Value emitFloor(Emitter &inside, mlir::Value value);
/// Between two numbers. NaN stays.
mlir::Value clampPlace(Emitter &inside, mlir::Value value, double low,
                       double high);
/// Between two numbers, as an index. NaN becomes the lower one.
mlir::Value clampIndex(Emitter &inside, mlir::Value value, double low,
                       double high);
/// Emits true if the value is below one number or above another.
mlir::Value isOutside(Emitter &inside, mlir::Value value, double low,
                      double high);

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_OPERATORS_INTERPOLATION_H
