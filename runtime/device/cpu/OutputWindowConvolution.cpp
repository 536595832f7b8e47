//===- OutputWindowConvolution.cpp - Outputs as windows -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradient of the weights where every group has one channel. For a channel
// of a sample it is a convolution of the input by the gradient of the output:
// strides and dilations change places, and so do weights and output. The
// library has a fast kernel for it whatever the size of the window, and for the
// gradient itself only for small ones.
//
// Samples times channels are the groups of one convolution; then samples are
// summed in their order.
//===----------------------------------------------------------------------===//

#include "penstock/convolution.h"

#include "runtime/device/cpu/PartedConvolution.h"
#include "runtime/device/cpu/Step.h"

using namespace penstock::runtime;

namespace {

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

} // namespace

std::string OutputWindowConvolution::plan(const ConvolutionCall &descriptor) {
  conv = descriptor;
  const std::string message = "oneDNN cannot compute the " + describe(conv);
  if (conv.kind != PENSTOCK_CONV_WEIGHT_GRAD || conv.groups == 1 ||
      conv.input_channels != conv.groups || conv.output_channels != conv.groups)
    return message;
  ConvolutionCall other = conv;
  other.kind = PENSTOCK_CONV_FORWARD;
  other.layout = conv.spatial_rank == 1 ? PENSTOCK_CPU_CONV_UPRIGHT
                                        : PENSTOCK_CPU_CONV_LIBRARY;
  other.batch = 1;
  other.groups = conv.batch * conv.groups;
  other.input_channels = other.output_channels = other.groups;
  taps = 1;
  for (uint32_t i = 0; i < conv.spatial_rank; ++i) {
    taps *= conv.kernel[i];
    other.kernel[i] = conv.output[i];
    other.output[i] = conv.kernel[i];
    other.stride[i] = conv.dilation[i];
    other.dilation[i] = conv.stride[i];
    // Less than none where windows leave out what is last of the input.
    other.pad_after[i] = (conv.kernel[i] - 1) * conv.dilation[i] +
                         (conv.output[i] - 1) * conv.stride[i] + 1 -
                         conv.input[i] - conv.pad_before[i];
  }
  if (!turned.plan(other).empty() ||
      turned.getImplementation().find("jit_dw") == std::string::npos)
    return message;
  return "";
}

std::string OutputWindowConvolution::getImplementation() const {
  return "output windows, " + turned.getImplementation();
}

uint64_t OutputWindowConvolution::getScratchBytes() const {
  return aligned(turned.getScratchBytes()) +
         conv.batch * conv.groups * taps * sizeof(float);
}

bool OutputWindowConvolution::prepare(char *scratch) {
  results =
      reinterpret_cast<float *>(scratch + aligned(turned.getScratchBytes()));
  return turned.prepare(scratch);
}

void OutputWindowConvolution::sum(int64_t channel) const {
  for (int64_t n = 0; n < conv.batch; ++n)
    for (int64_t tap = 0; tap < taps; ++tap)
      weights[channel * taps + tap] +=
          results[(n * conv.groups + channel) * taps + tap];
}

bool OutputWindowConvolution::run(const float *input, const float *weights,
                                  const float *output) {
  this->weights = const_cast<float *>(weights);
  if (!turned.run(input, output, results))
    return false;
  oneDnn().runParts(conv.groups, this, [](void *closure, int64_t index, int) {
    static_cast<OutputWindowConvolution *>(closure)->sum(index);
  });
  return true;
}

std::unique_ptr<ConvolutionMethod>
penstock::runtime::makeOutputWindowConvolution() {
  return std::make_unique<OutputWindowConvolution>();
}
