//===- Window.h - Windows of convolutions and pooling -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attributes that Conv, ConvTranspose and the pooling operators share.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_OPERATORS_WINDOW_H
#define PENSTOCK_LIB_IMPORT_OPERATORS_WINDOW_H

#include "NodeBinder.h"

namespace penstock::onnx {

struct Window {
  llvm::SmallVector<int64_t> sizes, strides, dilations;
  /// Before each spatial dimension, then after.
  llvm::SmallVector<int64_t> pads;
  std::string autoPad = "NOTSET";

  /// Reads strides, dilations, pads and auto_pad for windows of these sizes.
  llvm::LogicalResult bind(NodeBinder &node, llvm::ArrayRef<int64_t> sizes);

  unsigned rank() const { return sizes.size(); }
  bool isSame() const {
    return autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER";
  }
  /// The elements that a window spans.
  int64_t extent(unsigned i) const { return (sizes[i] - 1) * dilations[i] + 1; }
  /// Distributes padding before and after; the larger half is after, unless
  /// `largerBefore`.
  void setPads(unsigned i, int64_t total, bool largerBefore);
  /// How many windows there are along each spatial dimension of `shape` (N, C,
  /// spatial...); sets the pads that auto_pad asks for.
  llvm::LogicalResult count(NodeBinder &node, llvm::ArrayRef<int64_t> shape,
                            bool ceil, llvm::SmallVectorImpl<int64_t> &counts);
};

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_OPERATORS_WINDOW_H
