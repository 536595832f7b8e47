//===- Signal.h - What transforms and windows share -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lengths and frequencies are operands, and constants.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_OPERATORS_SIGNAL_H
#define PENSTOCK_LIB_IMPORT_OPERATORS_SIGNAL_H

#include "NodeBinder.h"

namespace penstock::onnx {

/// The most elements of a matrix: they are part of the program.
inline constexpr int64_t largestMatrix = 1 << 22;

/// The number that a constant operand holds.
mlir::LogicalResult readScalar(NodeBinder &node, unsigned i, double &value);
/// The same of an integer that is positive.
mlir::LogicalResult readLength(NodeBinder &node, unsigned i, int64_t &value);

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_OPERATORS_SIGNAL_H
