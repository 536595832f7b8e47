//===- PartedConvolution.h - A convolution by oneDNN, in parts --*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The library divides a convolution over threads by rules of its own, and where
// it divides sums, it rounds by them. So samples and channels are divided here,
// by the shape alone, and each part is computed by one thread. What a part
// reorders is still in its cache when it is multiplied.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_PARTEDCONVOLUTION_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_PARTEDCONVOLUTION_H

#include "runtime/device/cpu/ConvolutionMethod.h"

#include <memory>

namespace penstock::runtime {

class PartedConvolution : public ConvolutionMethod {
public:
  PartedConvolution();
  ~PartedConvolution() override;

  std::string plan(const ConvolutionCall &descriptor) override;
  std::string getImplementation() const override;
  uint64_t getScratchBytes() const override;
  uint64_t getPrepackedBytes() const override;
  bool prepare(char *scratch) override;
  bool run(const float *input, const float *weights,
           const float *output) override;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_PARTEDCONVOLUTION_H
