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

#include "penstock/abi.h"

#include <cstdint>
#include <memory>
#include <string>

namespace penstock::runtime {

class PartedConvolution {
public:
  PartedConvolution();
  ~PartedConvolution();

  /// Says what oneDNN cannot do, or nothing.
  std::string plan(const penstock_conv_descriptor &descriptor);
  const std::string &getImplementation() const;
  uint64_t getScratchBytes() const;
  bool prepare(char *scratch);
  bool run(const float *input, const float *weights, const float *output);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_PARTEDCONVOLUTION_H
