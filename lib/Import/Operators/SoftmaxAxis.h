//===- SoftmaxAxis.h - Softmax, LogSoftmax, Hardmax -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The axis of these operators, whose meaning changed in version 13.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_OPERATORS_SOFTMAXAXIS_H
#define PENSTOCK_LIB_IMPORT_OPERATORS_SOFTMAXAXIS_H

#include "NodeBinder.h"

namespace penstock::onnx {

struct SoftmaxAxis {
  int64_t axis;
  /// The shape in which that single axis is meant: since 13 the operand's,
  /// before it the operand as a matrix, cut at the attribute's axis.
  llvm::SmallVector<int64_t> shape;

  mlir::LogicalResult bind(NodeBinder &node);
};

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_OPERATORS_SOFTMAXAXIS_H
