//===- Convolution.h - What a convolution op computes -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// nn.conv and its gradients seen alike: three tensors in their roles, of which
// one is computed.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_NN_CONVOLUTION_H
#define PENSTOCK_DIALECTS_NN_CONVOLUTION_H

#include "dialects/Nn/Nn.h"

#include <optional>

namespace penstock::nn {

struct Convolution {
  enum Kind { Forward, InputGrad, WeightGrad } kind;
  mlir::Value input, weights, output;
  llvm::ArrayRef<int64_t> strides, dilations, pads;
  int64_t groups;

  /// Null for another op.
  static std::optional<Convolution> match(mlir::Operation *op);

  mlir::ShapedType getType(mlir::Value value) const {
    return llvm::cast<mlir::ShapedType>(value.getType());
  }
  unsigned getSpatialRank() const { return strides.size(); }
  int64_t getPadBefore(unsigned i) const { return pads[i]; }
  int64_t getPadAfter(unsigned i) const { return pads[strides.size() + i]; }
  /// Multiplications.
  double getProducts() const;
};

/// The number of windows along a dimension; negative when one does not fit.
int64_t countWindows(int64_t size, int64_t padding, int64_t window,
                     int64_t stride, int64_t dilation);

} // namespace penstock::nn

#endif // PENSTOCK_DIALECTS_NN_CONVOLUTION_H
