//===- ConvolutionMethod.h - How a convolution is computed ------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the library's primitives in parts, products of matrices and tiles have
// in common.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_CONVOLUTIONMETHOD_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_CONVOLUTIONMETHOD_H

#include "penstock/cpu.h"

#include <cstdint>
#include <memory>
#include <string>

namespace penstock::runtime {

class ConvolutionMethod {
public:
  virtual ~ConvolutionMethod() = default;

  /// Says what it cannot do, or nothing.
  virtual std::string plan(const ConvolutionCall &descriptor) = 0;
  virtual std::string getImplementation() const = 0;
  virtual uint64_t getScratchBytes() const = 0;
  /// Returns the bytes of the weights as a descriptor with PREPACKED ones wants
  /// them; 0 where they are read as they are.
  virtual uint64_t getPrepackedBytes() const { return 0; }
  virtual bool prepare(char *scratch) = 0;
  /// The tensors in their roles, whichever of them is computed; of a descriptor
  /// that says PREPACK, the prepacked weights are the output.
  virtual bool run(const float *input, const float *weights,
                   const float *output) = 0;
};

/// Products of two matrices: gradients of the weights of one group.
std::unique_ptr<ConvolutionMethod> makeColumnConvolution();
/// Products of tiles: dense 3x3 convolutions with stride 1, and their
/// gradients.
std::unique_ptr<ConvolutionMethod> makeTileConvolution();
/// Convolutions by outputs: gradients of weights with one channel per group.
std::unique_ptr<ConvolutionMethod> makeOutputWindowConvolution();
/// Narrow groups, several of them as one, with zeros in between.
std::unique_ptr<ConvolutionMethod> makeCombinedGroups();

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_CONVOLUTIONMETHOD_H
