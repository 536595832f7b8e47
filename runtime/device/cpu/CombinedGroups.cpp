//===- CombinedGroups.cpp - Narrow groups of a convolution ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The library has no kernel for groups of one to three channels, or six, and
// multiplies matrices of so many rows instead. Several of them are one group
// whose weights are zero between channels of different ones: a convolution with
// fewer groups, for which the library has a kernel, does more products in less
// time. Of gradients of weights what belongs to no group is left out.
//
// Weights are widened in the call, or once where they are prepacked.
//===----------------------------------------------------------------------===//

#include "penstock/convolution.h"

#include "runtime/device/cpu/PartedConvolution.h"
#include "runtime/device/cpu/Step.h"

#include <algorithm>

using namespace penstock::runtime;

namespace {

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
  /// Returns the number of the weights of all combined groups, zeros included.
  int64_t wideFloats() const;
  /// Copies `narrow` weights to `wide` ones, of one combined group.
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

} // namespace

std::string CombinedGroups::plan(const ConvolutionCall &descriptor) {
  conv = descriptor;
  inputs = conv.input_channels / conv.groups;
  outputs = conv.output_channels / conv.groups;
  taps = 1;
  for (uint32_t i = 0; i < conv.spatial_rank; ++i)
    taps *= conv.kernel[i];
  // The fewest that the library has a kernel for: each more adds zeros.
  constexpr int64_t kMostChannels = 32;
  int64_t most = kMostChannels / std::max(inputs, outputs);
  for (factor = 2; factor <= std::min(most, conv.groups); ++factor) {
    if (conv.groups % factor != 0)
      continue;
    ConvolutionCall other = conv;
    other.layout = PENSTOCK_CPU_CONV_LIBRARY;
    other.groups = conv.groups / factor;
    if (combined.plan(other).empty() &&
        combined.getImplementation().find("gemm") == std::string::npos)
      return "";
  }
  return "oneDNN has no kernel for combined groups of the " + describe(conv);
}

std::string CombinedGroups::getImplementation() const {
  return "combined groups, " + combined.getImplementation();
}

int64_t CombinedGroups::wideFloats() const {
  return conv.output_channels * factor * rowFloats();
}

uint64_t CombinedGroups::getScratchBytes() const {
  if (conv.weights != PENSTOCK_CPU_WEIGHTS_AS_THEY_ARE)
    return combined.getScratchBytes();
  return aligned(combined.getScratchBytes()) + wideFloats() * sizeof(float);
}

/// Those of the combined groups, and behind them room for what they are made
/// of: nothing has scratch while weights are prepacked.
uint64_t CombinedGroups::getPrepackedBytes() const {
  uint64_t bytes = combined.getPrepackedBytes();
  return bytes ? aligned(bytes) + wideFloats() * sizeof(float) : 0;
}

bool CombinedGroups::prepare(char *scratch) {
  scratchWeights =
      reinterpret_cast<float *>(scratch + aligned(combined.getScratchBytes()));
  return combined.prepare(scratch);
}

template <typename Visit>
void CombinedGroups::visitRows(int64_t index, Visit visit) const {
  int64_t rows = factor * outputs, first = index * rows;
  for (int64_t row = 0; row < rows; ++row)
    visit((first + row) * rowFloats(),
          ((first + row) * factor + row / outputs) * rowFloats());
}

void CombinedGroups::widen(int64_t index) const {
  int64_t floats = wideFloats() / (conv.groups / factor);
  std::fill_n(wide + index * floats, floats, 0.0f);
  visitRows(index, [&](int64_t from, int64_t to) {
    std::copy_n(narrow + from, rowFloats(), wide + to);
  });
}

void CombinedGroups::addDiagonal(int64_t index) const {
  visitRows(index, [&](int64_t to, int64_t from) {
    for (int64_t i = 0; i < rowFloats(); ++i)
      narrow[to + i] += wide[from + i];
  });
}

bool CombinedGroups::run(const float *input, const float *weights,
                         const float *output) {
  if (conv.weights == PENSTOCK_CPU_WEIGHTS_PREPACKED)
    return combined.run(input, weights, output);
  narrow = const_cast<float *>(weights);
  wide = scratchWeights;
  if (conv.weights == PENSTOCK_CPU_WEIGHTS_PREPACK)
    wide = const_cast<float *>(output) +
           aligned(combined.getPrepackedBytes()) / sizeof(float);
  const OneDnn &dnnl = oneDnn();
  int64_t groups = conv.groups / factor;
  if (conv.kind != PENSTOCK_CONV_WEIGHT_GRAD) {
    dnnl.runParts(groups, this, [](void *closure, int64_t index, int) {
      static_cast<CombinedGroups *>(closure)->widen(index);
    });
    return combined.run(input, wide, output);
  }
  // The library's gradient is added to what is there.
  std::fill_n(wide, wideFloats(), 0.0f);
  if (!combined.run(input, wide, output))
    return false;
  dnnl.runParts(groups, this, [](void *closure, int64_t index, int) {
    static_cast<CombinedGroups *>(closure)->addDiagonal(index);
  });
  return true;
}

std::unique_ptr<ConvolutionMethod> penstock::runtime::makeCombinedGroups() {
  return std::make_unique<CombinedGroups>();
}
