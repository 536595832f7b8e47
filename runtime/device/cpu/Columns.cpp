//===- Columns.cpp - A convolution's tensors as matrices ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Columns.h. Spatial dimensions are three; the first ones may be of one
// element.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/Columns.h"

#include <algorithm>

using namespace penstock::runtime;

namespace {

struct Space {
  int64_t input[3] = {1, 1, 1}, output[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0};

  explicit Space(const ConvolutionCall &conv) {
    for (uint32_t i = 0, at = 3 - conv.spatial_rank; i < conv.spatial_rank;
         ++i, ++at) {
      input[at] = conv.input[i];
      output[at] = conv.output[i];
      kernel[at] = conv.kernel[i];
      stride[at] = conv.stride[i];
      dilation[at] = conv.dilation[i];
      pad[at] = conv.pad_before[i];
    }
  }
  static int64_t product(const int64_t (&sizes)[3]) {
    return sizes[0] * sizes[1] * sizes[2];
  }
  /// Where element `tap` of window `o` is along a dimension, or -1.
  int64_t locate(int dim, int64_t o, int64_t tap) const {
    int64_t at = o * stride[dim] + tap * dilation[dim] - pad[dim];
    return at >= 0 && at < input[dim] ? at : -1;
  }
};

} // namespace

ColumnSizes penstock::runtime::columnSizes(const ConvolutionCall &conv) {
  Space space(conv);
  return {conv.output_channels,
          conv.input_channels * Space::product(space.kernel),
          conv.batch * Space::product(space.output)};
}

void penstock::runtime::gatherChannel(const ConvolutionCall &conv,
                                      const float *output, int64_t channel,
                                      float *rows) {
  int64_t plane = Space::product(Space(conv).output);
  rows += channel * conv.batch * plane;
  for (int64_t n = 0; n < conv.batch; ++n, rows += plane)
    std::copy_n(output + (n * conv.output_channels + channel) * plane, plane,
                rows);
}

void penstock::runtime::gatherTaps(const ConvolutionCall &conv,
                                   const float *input, int64_t channel,
                                   float *rows) {
  Space space(conv);
  int64_t plane = Space::product(space.input);
  rows += channel * Space::product(space.kernel) * conv.batch *
          Space::product(space.output);
  // One line of windows of one tap: the first and the last ones may read
  // outside.
  auto line = [&](const float *from, int64_t tap) {
    int64_t count = space.output[2], begin = 0, end = from ? count : 0;
    while (begin < end && space.locate(2, begin, tap) < 0)
      ++begin;
    while (begin < end && space.locate(2, end - 1, tap) < 0)
      --end;
    const float *source =
        begin < end ? from + space.locate(2, begin, tap) : nullptr;
    std::fill(rows, rows + begin, 0.0f);
    for (int64_t o = begin; o < end; ++o, source += space.stride[2])
      rows[o] = *source;
    std::fill(rows + end, rows + count, 0.0f);
    rows += count;
  };
  auto sample = [&](const float *from, int64_t a, int64_t b, int64_t c) {
    for (int64_t i = 0; i < space.output[0]; ++i)
      for (int64_t j = 0; j < space.output[1]; ++j) {
        int64_t y = space.locate(0, i, a), x = space.locate(1, j, b);
        line(y < 0 || x < 0 ? nullptr
                            : from + (y * space.input[1] + x) * space.input[2],
             c);
      }
  };
  for (int64_t a = 0; a < space.kernel[0]; ++a)
    for (int64_t b = 0; b < space.kernel[1]; ++b)
      for (int64_t c = 0; c < space.kernel[2]; ++c)
        for (int64_t n = 0; n < conv.batch; ++n)
          sample(input + (n * conv.input_channels + channel) * plane, a, b, c);
}
