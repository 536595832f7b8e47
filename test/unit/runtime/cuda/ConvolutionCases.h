//===- ConvolutionCases.h - Convolutions to test ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Descriptors of convolutions, and plain loops.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_RUNTIME_CUDA_CONVOLUTIONCASES_H
#define PENSTOCK_TEST_UNIT_RUNTIME_CUDA_CONVOLUTIONCASES_H

#include "penstock/abi.h"

#include <cstddef>
#include <vector>

namespace penstock::test {

/// A spatial dimension.
struct Spatial {
  int64_t input, kernel, stride, dilation, padBefore, padAfter;

  int64_t getOutput() const {
    return (input + padBefore + padAfter - (kernel - 1) * dilation - 1) /
               stride +
           1;
  }
};

inline penstock_conv_descriptor
makeConvolution(uint32_t kind, int64_t batch, int64_t inputChannels,
                int64_t outputChannels, int64_t groups,
                const std::vector<Spatial> &spatial) {
  penstock_conv_descriptor conv = {};
  conv.kind = kind;
  conv.element = PENSTOCK_F32;
  conv.spatial_rank = uint32_t(spatial.size());
  conv.batch = batch;
  conv.groups = groups;
  conv.input_channels = inputChannels;
  conv.output_channels = outputChannels;
  for (size_t i = 0; i < spatial.size(); ++i) {
    conv.input[i] = spatial[i].input;
    conv.kernel[i] = spatial[i].kernel;
    conv.output[i] = spatial[i].getOutput();
    conv.stride[i] = spatial[i].stride;
    conv.dilation[i] = spatial[i].dilation;
    conv.pad_before[i] = spatial[i].padBefore;
    conv.pad_after[i] = spatial[i].padAfter;
  }
  return conv;
}

inline int64_t getInputSize(const penstock_conv_descriptor &conv) {
  int64_t size = conv.batch * conv.input_channels;
  for (uint32_t i = 0; i < conv.spatial_rank; ++i)
    size *= conv.input[i];
  return size;
}

inline int64_t getWeightsSize(const penstock_conv_descriptor &conv) {
  int64_t size = conv.output_channels * (conv.input_channels / conv.groups);
  for (uint32_t i = 0; i < conv.spatial_rank; ++i)
    size *= conv.kernel[i];
  return size;
}

inline int64_t getOutputSize(const penstock_conv_descriptor &conv) {
  int64_t size = conv.batch * conv.output_channels;
  for (uint32_t i = 0; i < conv.spatial_rank; ++i)
    size *= conv.output[i];
  return size;
}

/// Calls body(input, weights, output) for every product of the definition, with
/// the elements' indices in dense tensors.
template <typename Body>
void forEachProduct(const penstock_conv_descriptor &conv, Body body) {
  // Absent dimensions are those of one element.
  int64_t in[3], window[3], out[3], stride[3], dilation[3], pad[3];
  for (uint32_t i = 0; i < 3; ++i) {
    bool has = i < conv.spatial_rank;
    in[i] = has ? conv.input[i] : 1;
    window[i] = has ? conv.kernel[i] : 1;
    out[i] = has ? conv.output[i] : 1;
    stride[i] = has ? conv.stride[i] : 1;
    dilation[i] = has ? conv.dilation[i] : 1;
    pad[i] = has ? conv.pad_before[i] : 0;
  }
  int64_t channels = conv.input_channels / conv.groups;
  int64_t outputs = conv.output_channels / conv.groups;
  for (int64_t n = 0; n < conv.batch; ++n)
    for (int64_t k = 0; k < conv.output_channels; ++k)
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t y = 0; y < out[0] * out[1] * out[2]; ++y)
          for (int64_t r = 0; r < window[0] * window[1] * window[2]; ++r) {
            int64_t position[3] = {y / (out[1] * out[2]), y / out[2] % out[1],
                                   y % out[2]};
            int64_t tap[3] = {r / (window[1] * window[2]),
                              r / window[2] % window[1], r % window[2]};
            int64_t x = 0;
            bool isInside = true;
            for (int i = 0; i < 3; ++i) {
              int64_t at =
                  position[i] * stride[i] + tap[i] * dilation[i] - pad[i];
              isInside &= at >= 0 && at < in[i];
              x = x * in[i] + at;
            }
            if (!isInside)
              continue;
            int64_t channel = k / outputs * channels + c;
            body((n * conv.input_channels + channel) * in[0] * in[1] * in[2] +
                     x,
                 (k * channels + c) * window[0] * window[1] * window[2] + r,
                 (n * conv.output_channels + k) * out[0] * out[1] * out[2] + y);
          }
}

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_RUNTIME_CUDA_CONVOLUTIONCASES_H
