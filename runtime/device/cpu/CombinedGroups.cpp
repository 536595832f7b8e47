//===- CombinedGroups.cpp - Narrow groups of a convolution ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights are widened in the call, or once where they are prepacked.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/CombinedGroups.h"

#include "penstock/convolution.h"

#include "runtime/device/cpu/Step.h"

#include <algorithm>

using namespace penstock::runtime;

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
