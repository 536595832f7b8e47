//===- ColumnConvolution.h - A convolution as a product ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradient of the weights as a product of two matrices, which are gathered
// first where the tensors are not such matrices.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_COLUMNCONVOLUTION_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_COLUMNCONVOLUTION_H

#include "penstock/product.h"

#include "runtime/device/cpu/ConvolutionMethod.h"

#include <atomic>
#include <optional>

namespace penstock::runtime {

class ColumnConvolution : public ConvolutionMethod {
public:
  /// Fails for what is not a gradient of weights of one group, or when the
  /// library has no fast product.
  std::string plan(const ConvolutionCall &descriptor) override;
  std::string getImplementation() const override { return "columns"; }
  uint64_t getScratchBytes() const override;
  bool prepare(char *scratch) override;
  /// Adds to the weights' gradient.
  bool run(const float *input, const float *weights,
           const float *output) override;

private:
  void gather(int64_t channel);
  void multiply(int64_t part);

  ConvolutionCall conv;
  bool gathers = true;
  std::optional<Product> product;
  uint64_t productBytes = 0;
  float *inputRows = nullptr, *outputRows = nullptr;
  /// Of the call that runs.
  const float *input, *output;
  float *weights;
  std::atomic<bool> hasFailed{false};
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_COLUMNCONVOLUTION_H
