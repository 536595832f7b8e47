//===- LossNodes.h - The losses as nodes ------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What onnx-attach-loss appends to a model's function.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_FRONTEND_LOSSNODES_H
#define PENSTOCK_PASSES_FRONTEND_LOSSNODES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace penstock {

/// The flags of the loss.
struct LossOptions {
  /// softmax-cross-entropy, bce-with-logits, mse or output.
  llvm::StringRef loss;
  /// The axis of the classes, from the end if negative; a label that is left
  /// out of the mean, or "". Both of softmax-cross-entropy.
  int64_t classAxis;
  llvm::StringRef ignoreLabel;
  /// How much of the target is spread over all classes, 0 to below 1, and a
  /// weight per class, or none. Both of softmax-cross-entropy.
  double labelSmoothing;
  llvm::ArrayRef<double> classWeights;
  /// The name of the output that enters, for messages.
  llvm::StringRef output;
};

/// Appends nodes that compute the loss of `output` before the function's
/// terminator, and returns the loss, an f32 without axes; fails with an error
/// at the function. `addLabels` gives the function an argument for labels of a
/// type, and returns null after an error.
llvm::FailureOr<mlir::Value>
appendLoss(mlir::func::FuncOp function, mlir::Value output,
           const LossOptions &options,
           llvm::function_ref<mlir::Value(mlir::RankedTensorType)> addLabels);

} // namespace penstock

#endif // PENSTOCK_PASSES_FRONTEND_LOSSNODES_H
