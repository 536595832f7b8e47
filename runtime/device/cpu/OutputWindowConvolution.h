//===- OutputWindowConvolution.h - Outputs as windows -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradient of the weights where every group has one channel. For a channel
// of a sample it is a convolution of the input by the gradient of the output:
// strides and dilations change places, and so do weights and output. The
// library has a fast kernel for it whatever the size of the window, and for the
// gradient itself only for small ones.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_OUTPUTWINDOWCONVOLUTION_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_OUTPUTWINDOWCONVOLUTION_H

#include "runtime/device/cpu/PartedConvolution.h"

namespace penstock::runtime {

class OutputWindowConvolution : public ConvolutionMethod {
public:
  /// Fails for what is not such a gradient, or when the library has no fast
  /// kernel for that convolution.
  std::string plan(const ConvolutionCall &descriptor) override;
  std::string getImplementation() const override;
  uint64_t getScratchBytes() const override;
  bool prepare(char *scratch) override;
  /// Adds to the weights' gradient.
  bool run(const float *input, const float *weights,
           const float *output) override;

private:
  void sum(int64_t channel) const;

  ConvolutionCall conv;
  int64_t taps = 1; ///< Weights of a channel.
  PartedConvolution turned;
  float *results = nullptr; ///< Of all samples and channels.
  float *weights = nullptr; ///< Of the call that runs.
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_OUTPUTWINDOWCONVOLUTION_H
