//===- CombinedGroups.h - Narrow groups of a convolution --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The library has no kernel for groups of one to three channels, or six, and
// multiplies matrices of so many rows instead. Several of them are one group
// whose weights are zero between channels of different ones: a convolution with
// fewer groups, for which the library has a kernel, does more products in less
// time. Of gradients of weights what belongs to no group is left out.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_COMBINEDGROUPS_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_COMBINEDGROUPS_H

#include "runtime/device/cpu/PartedConvolution.h"

namespace penstock::runtime {

class CombinedGroups : public ConvolutionMethod {
public:
  /// Fails when the library has no fast kernel for a few groups together.
  std::string plan(const ConvolutionCall &descriptor) override;
  std::string getImplementation() const override;
  uint64_t getScratchBytes() const override;
  uint64_t getPrepackedBytes() const override;
  bool prepare(char *scratch) override;
  bool run(const float *input, const float *weights,
           const float *output) override;

private:
  /// Of the weights of all combined groups, zeros included.
  int64_t wideFloats() const;
  /// Between `narrow` weights and `wide` ones, of one combined group.
  void widen(int64_t index) const;
  void addDiagonal(int64_t index) const;
  /// Calls visit(place in the narrow ones, place in the wide ones) for each row
  /// of weights: those of an output channel, as long as rowFloats().
  template <typename Visit> void visitRows(int64_t index, Visit visit) const;
  int64_t rowFloats() const { return inputs * taps; }

  ConvolutionCall conv;
  int64_t factor = 1;              ///< Groups in one.
  int64_t inputs = 1, outputs = 1; ///< Channels of a group.
  int64_t taps = 1;
  PartedConvolution combined;
  float *scratchWeights = nullptr;
  float *narrow = nullptr, *wide = nullptr; ///< Of the call that runs.
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_COMBINEDGROUPS_H
