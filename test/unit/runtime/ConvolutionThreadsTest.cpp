//===- ConvolutionThreadsTest.cpp - Bits for any number of threads --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random shapes in one to three dimensions: what is chosen for them, and every
// other layout, computes the same bits with one, two and three threads. The
// gradient of the input is what a transposed convolution computes forward.
//===----------------------------------------------------------------------===//

#include "penstock/convolution.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

using namespace penstock::runtime;

namespace {

class Shapes {
public:
  explicit Shapes(unsigned seed) : generator(seed) {}

  /// One with few enough products for a test.
  ConvolutionCall next() {
    ConvolutionCall conv;
    while (!make(conv) || products(conv) > 2e7)
      ;
    return conv;
  }
  std::vector<float> values(int64_t count) {
    std::vector<float> result(count);
    for (float &value : result)
      value = normal(generator);
    return result;
  }

  static int64_t elements(const ConvolutionCall &conv, int tensor) {
    const int64_t *space[] = {conv.input, conv.kernel, conv.output};
    int64_t count = tensor == 0   ? conv.batch * conv.input_channels
                    : tensor == 1 ? conv.output_channels *
                                        (conv.input_channels / conv.groups)
                                  : conv.batch * conv.output_channels;
    for (uint32_t i = 0; i < conv.spatial_rank; ++i)
      count *= space[tensor][i];
    return count;
  }

private:
  int64_t upTo(int64_t most) { return 1 + int64_t(generator() % most); }
  bool oneIn(int64_t many) { return upTo(many) == 1; }

  static double products(const ConvolutionCall &conv) {
    double count = double(elements(conv, 1)) * double(conv.batch);
    for (uint32_t i = 0; i < conv.spatial_rank; ++i)
      count *= double(conv.output[i]);
    return count;
  }
  bool make(ConvolutionCall &conv) {
    conv = {};
    conv.element = PENSTOCK_F32;
    conv.spatial_rank = uint32_t(upTo(3));
    conv.batch = upTo(oneIn(3) ? 33 : 8);
    conv.groups = oneIn(4) ? upTo(40) : 1;
    bool isDepthwise = conv.groups > 1 && oneIn(2);
    conv.input_channels = conv.groups * (isDepthwise ? 1 : upTo(90));
    conv.output_channels = conv.groups * (isDepthwise ? upTo(2) : upTo(90));
    const int64_t sizes[] = {90, 24, 8};
    for (uint32_t i = 0; i < conv.spatial_rank; ++i) {
      conv.kernel[i] = oneIn(2) ? 3 : upTo(5);
      conv.stride[i] = oneIn(2) ? 1 : upTo(3);
      conv.dilation[i] = oneIn(3) ? upTo(3) : 1;
      int64_t extent = (conv.kernel[i] - 1) * conv.dilation[i] + 1;
      conv.input[i] = upTo(sizes[conv.spatial_rank - 1]);
      conv.pad_before[i] = oneIn(2) ? extent / 2 : upTo(extent) - 1;
      int64_t after = oneIn(2) ? extent / 2 : upTo(extent) - 1;
      int64_t all = conv.input[i] + conv.pad_before[i] + after;
      if (all < extent)
        return false;
      conv.output[i] = (all - extent) / conv.stride[i] + 1;
      // What the last window reaches: there may be inputs behind it.
      int64_t reach = (conv.output[i] - 1) * conv.stride[i] + extent;
      conv.pad_after[i] =
          std::max<int64_t>(reach - conv.input[i] - conv.pad_before[i], 0);
    }
    return true;
  }

  std::mt19937 generator;
  std::normal_distribution<float> normal;
};

/// The result with so many threads; empty for what the layout does not take.
std::vector<float> compute(const ConvolutionCall &conv, int threads,
                           std::vector<float> (&tensors)[3]) {
  setConvolutionThreads(threads);
  Convolution convolution;
  std::vector<float> result;
  if (convolution.plan(conv).empty()) {
    uint64_t bytes = (convolution.getScratchBytes() + 64) / 64 * 64;
    std::unique_ptr<char, decltype(&std::free)> scratch(
        static_cast<char *>(std::aligned_alloc(64, bytes)), std::free);
    EXPECT_EQ(convolution.prepare(scratch.get()), "");
    int computed = conv.kind == PENSTOCK_CONV_FORWARD      ? 2
                   : conv.kind == PENSTOCK_CONV_INPUT_GRAD ? 0
                                                           : 1;
    std::vector<float> before = tensors[computed];
    EXPECT_TRUE(convolution.run(tensors[0].data(), tensors[1].data(),
                                tensors[2].data()));
    result = tensors[computed];
    tensors[computed] = before;
  }
  setConvolutionThreads(1);
  return result;
}

TEST(ConvolutionThreadsTest, SameBits) {
  Shapes shapes(11);
  for (int i = 0; i < 40; ++i) {
    ConvolutionCall conv = shapes.next();
    std::vector<float> tensors[3];
    for (int tensor = 0; tensor < 3; ++tensor)
      tensors[tensor] = shapes.values(Shapes::elements(conv, tensor));
    for (uint32_t kind : {PENSTOCK_CONV_FORWARD, PENSTOCK_CONV_INPUT_GRAD,
                          PENSTOCK_CONV_WEIGHT_GRAD}) {
      conv.kind = kind;
      // No shape is refused, or left to a reference implementation.
      EXPECT_EQ(chooseConvolutionLayout(conv), "");
      EXPECT_FALSE(compute(conv, 1, tensors).empty()) << describe(conv);
      for (uint32_t layout = PENSTOCK_CPU_CONV_PLAIN;
           layout <= PENSTOCK_CPU_CONV_UPRIGHT; ++layout) {
        conv.layout = layout;
        std::vector<float> one = compute(conv, 1, tensors);
        for (int threads : {2, 3})
          EXPECT_TRUE(compute(conv, threads, tensors) == one)
              << describe(conv) << ", layout " << layout << ", " << threads
              << " threads";
      }
    }
  }
}

} // namespace
