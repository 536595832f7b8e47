//===- TileConvolution.h - Convolutions as products of tiles ----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Winograd's algorithm for planes of few tiles, where the library's, which
// transforms all weights in memory, is slow: channels of the result are
// computed in blocks whose transformed weights stay in the cache.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_TILECONVOLUTION_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_TILECONVOLUTION_H

#include "runtime/device/cpu/ConvolutionMethod.h"

#include <memory>

namespace penstock::runtime {

class TileConvolution : public ConvolutionMethod {
public:
  TileConvolution();
  ~TileConvolution() override;

  /// Fails for what is not a dense 3x3 convolution with stride 1, or when the
  /// library has no fast product.
  std::string plan(const ConvolutionCall &descriptor) override;
  std::string getImplementation() const override { return "tiles"; }
  uint64_t getScratchBytes() const override;
  bool prepare(char *scratch) override;
  bool run(const float *input, const float *weights,
           const float *output) override;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_TILECONVOLUTION_H
