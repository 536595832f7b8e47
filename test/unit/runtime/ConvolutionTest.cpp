//===- ConvolutionTest.cpp - The library's convolutions -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every kind in every layout against loops in double precision; accumulation;
// the same bits again; what is refused.
//===----------------------------------------------------------------------===//

#include "penstock/convolution.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

using namespace penstock::runtime;

namespace {

struct Shape {
  int64_t batch, groups, inputs, outputs;
  int64_t size[2], kernel[2], stride[2], dilation[2], before[2], after[2];
};

ConvolutionCall describeShape(const Shape &shape, uint32_t kind,
                              uint32_t layout) {
  ConvolutionCall conv = {};
  conv.kind = kind;
  conv.element = PENSTOCK_F32;
  conv.layout = layout;
  conv.spatial_rank = 2;
  conv.batch = shape.batch;
  conv.groups = shape.groups;
  conv.input_channels = shape.inputs;
  conv.output_channels = shape.outputs;
  for (int i = 0; i < 2; ++i) {
    conv.input[i] = shape.size[i];
    conv.kernel[i] = shape.kernel[i];
    conv.stride[i] = shape.stride[i];
    conv.dilation[i] = shape.dilation[i];
    conv.pad_before[i] = shape.before[i];
    conv.pad_after[i] = shape.after[i];
    int64_t extent = (shape.kernel[i] - 1) * shape.dilation[i] + 1;
    conv.output[i] =
        (shape.size[i] + shape.before[i] + shape.after[i] - extent) /
            shape.stride[i] +
        1;
  }
  return conv;
}

/// The three tensors; calls visit(input, weight, output) for every product.
struct Tensors {
  std::vector<float> data[3];

  explicit Tensors(const ConvolutionCall &conv) {
    int64_t plane = conv.input[0] * conv.input[1];
    int64_t window = conv.kernel[0] * conv.kernel[1];
    data[0].resize(conv.batch * conv.input_channels * plane);
    data[1].resize(conv.output_channels * (conv.input_channels / conv.groups) *
                   window);
    data[2].resize(conv.batch * conv.output_channels * conv.output[0] *
                   conv.output[1]);
    std::mt19937 generator(7);
    std::normal_distribution<float> normal;
    for (std::vector<float> &values : data)
      for (float &value : values)
        value = normal(generator);
  }

  template <typename Visit>
  static void products(const ConvolutionCall &c, Visit visit) {
    int64_t own = c.input_channels / c.groups;
    int64_t outs = c.output_channels / c.groups;
    for (int64_t n = 0; n < c.batch; ++n)
      for (int64_t m = 0; m < c.output_channels; ++m)
        for (int64_t a = 0; a < c.output[0]; ++a)
          for (int64_t b = 0; b < c.output[1]; ++b)
            for (int64_t i = 0; i < own; ++i)
              for (int64_t k = 0; k < c.kernel[0]; ++k)
                for (int64_t l = 0; l < c.kernel[1]; ++l) {
                  int64_t y =
                      a * c.stride[0] + k * c.dilation[0] - c.pad_before[0];
                  int64_t x =
                      b * c.stride[1] + l * c.dilation[1] - c.pad_before[1];
                  if (y < 0 || x < 0 || y >= c.input[0] || x >= c.input[1])
                    continue;
                  int64_t channel = m / outs * own + i;
                  visit(((n * c.input_channels + channel) * c.input[0] + y) *
                                c.input[1] +
                            x,
                        ((m * own + i) * c.kernel[0] + k) * c.kernel[1] + l,
                        ((n * c.output_channels + m) * c.output[0] + a) *
                                c.output[1] +
                            b);
                }
  }
};

const Shape shapes[] = {
    {2, 1, 3, 8, {11, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 1, 20, 24, {13, 9}, {5, 3}, {2, 1}, {1, 1}, {2, 0}, {1, 1}},
    {3, 2, 4, 6, {10, 7}, {3, 2}, {2, 2}, {1, 1}, {1, 0}, {0, 1}},
    {2, 17, 17, 17, {9, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 8, 8, 8, {9, 8}, {3, 3}, {1, 1}, {2, 2}, {2, 2}, {2, 2}},
    {1, 1, 32, 16, {7, 5}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {3, 1, 5, 7, {9, 8}, {3, 2}, {2, 3}, {2, 1}, {1, 2}, {3, 0}},
    {3, 1, 170, 177, {5, 3}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {9, 1, 40, 25, {13, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {4, 1, 130, 131, {8, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 0}, {0, 2}},
    {17, 1, 64, 65, {8, 18}, {3, 3}, {1, 1}, {1, 1}, {1, 0}, {0, 1}},
    {4, 1, 32, 64, {40, 18}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {6, 1, 33, 70, {21, 34}, {3, 3}, {1, 1}, {1, 1}, {2, 1}, {0, 2}},
    // Groups, channels and samples that are divided.
    {5, 4, 64, 96, {17, 15}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {1, 1, 96, 100, {14, 13}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {9, 1, 24, 70, {37, 19}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {9, 1, 34, 70, {18, 39}, {1, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},
    {8, 1, 20, 24, {9, 15}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    // One channel per group, large windows.
    {3, 37, 37, 37, {17, 15}, {7, 5}, {1, 1}, {1, 1}, {3, 2}, {3, 2}},
    {2, 48, 48, 48, {19, 16}, {5, 7}, {2, 1}, {1, 2}, {2, 6}, {2, 5}},
    // Narrow groups: three, six and one channel, more outputs than inputs.
    {3, 16, 48, 48, {9, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 8, 48, 48, {10, 7}, {3, 2}, {2, 1}, {1, 2}, {1, 0}, {1, 1}},
    {2, 40, 40, 80, {9, 8}, {3, 3}, {1, 2}, {1, 1}, {1, 0}, {1, 1}},
    {2, 16, 16, 16, {13, 12}, {9, 9}, {1, 1}, {1, 1}, {4, 4}, {4, 4}},
    // One dimension.
    {3, 37, 37, 37, {50, 1}, {31, 1}, {1, 1}, {1, 1}, {15, 0}, {15, 0}},
    {2, 64, 64, 64, {41, 1}, {4, 1}, {2, 1}, {3, 1}, {9, 0}, {0, 0}}};

/// Returns whether oneDNN has all of its kernels here: Winograd's algorithm and
/// some for groups need AVX-512.
bool hasAvx512() { return __builtin_cpu_supports("avx512f"); }

/// Which kinds of which shapes a layout is for.
bool takes(const Shape &shape, uint32_t kind, uint32_t layout) {
  bool isSmallWindow = true, isPadded = true;
  for (int i = 0; i < 2; ++i) {
    isSmallWindow &=
        shape.kernel[i] == 3 && shape.stride[i] == 1 && shape.dilation[i] == 1;
    isPadded &= shape.before[i] == 1 && shape.after[i] == 1;
  }
  switch (layout) {
  case PENSTOCK_CPU_CONV_COLUMNS:
    return kind == PENSTOCK_CONV_WEIGHT_GRAD && shape.groups == 1;
  case PENSTOCK_CPU_CONV_WINOGRAD:
    return isSmallWindow && isPadded && shape.groups == 1 && shape.inputs >= 16;
  case PENSTOCK_CPU_CONV_TILES_2X2:
  case PENSTOCK_CPU_CONV_TILES_4X4:
    return isSmallWindow && shape.groups == 1;
  case PENSTOCK_CPU_CONV_OUTPUT_WINDOWS:
    return kind == PENSTOCK_CONV_WEIGHT_GRAD && shape.groups > 8 &&
           shape.inputs == shape.groups && shape.outputs == shape.groups;
  case PENSTOCK_CPU_CONV_COMBINED_GROUPS:
    // The library's kernels for few channels have no dilation backward.
    return shape.groups % 8 == 0 && shape.inputs / shape.groups < 8 &&
           (kind == PENSTOCK_CONV_FORWARD ||
            shape.dilation[0] * shape.dilation[1] == 1);
  case PENSTOCK_CPU_CONV_UPRIGHT:
    return shape.size[1] == 1 &&
           (kind == PENSTOCK_CONV_FORWARD || shape.dilation[0] == 1);
  default:
    return true;
  }
}

TEST(ConvolutionTest, EqualsLoops) {
  for (const Shape &shape : shapes)
    for (uint32_t kind : {0u, 1u, 2u}) {
      ConvolutionCall conv = describeShape(shape, kind, 0);
      Tensors tensors(conv);
      int result = kind == 0 ? 2 : kind == 1 ? 0 : 1;
      std::vector<float> before = tensors.data[result];
      std::vector<double> expected(before.size(), 0.0);
      if (kind == PENSTOCK_CONV_WEIGHT_GRAD)
        expected.assign(before.begin(), before.end());
      Tensors::products(conv, [&](int64_t x, int64_t w, int64_t y) {
        int64_t at[3] = {x, w, y};
        double product = 1;
        for (int i = 0; i < 3; ++i)
          if (i != result)
            product *= tensors.data[i][at[i]];
        expected[at[result]] += product;
      });
      double largest = 0;
      for (double value : expected)
        largest = std::max(largest, std::abs(value));
      for (uint32_t layout : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u}) {
        if (!takes(shape, kind, layout))
          continue;
        conv.layout = layout;
        bool isFlat = shape.size[1] == 1;
        conv.spatial_rank =
            layout == PENSTOCK_CPU_CONV_UPRIGHT ||
                    (isFlat && layout == PENSTOCK_CPU_CONV_OUTPUT_WINDOWS)
                ? 1
                : 2;
        // Every layout but the plain one is a choice; without AVX-512 the
        // library has fewer kernels.
        if (layout > 1 && !hasAvx512() && !Convolution().plan(conv).empty())
          continue;
        auto compute = [&](int threads) {
          setConvolutionThreads(threads);
          Convolution convolution;
          EXPECT_EQ(convolution.plan(conv), "");
          // What is planned is what is used.
          uint64_t bytes = convolution.getScratchBytes();
          constexpr uint64_t kBehind = 4096;
          char *scratch = static_cast<char *>(
              std::aligned_alloc(64, (bytes + kBehind + 63) / 64 * 64));
          std::fill_n(scratch + bytes, kBehind, 'x');
          EXPECT_EQ(convolution.prepare(scratch), "");
          auto run = [&] {
            tensors.data[result] = before;
            EXPECT_TRUE(convolution.run(tensors.data[0].data(),
                                        tensors.data[1].data(),
                                        tensors.data[2].data()));
            return tensors.data[result];
          };
          std::vector<float> found = run();
          EXPECT_EQ(run(), found) << describe(conv);
          tensors.data[result] = before;
          EXPECT_EQ(std::count(scratch + bytes, scratch + bytes + kBehind, 'x'),
                    static_cast<int64_t>(kBehind));
          std::free(scratch);
          setConvolutionThreads(1);
          return found;
        };
        std::vector<float> found = compute(1);
        // Tiles share their largest values' errors.
        bool hasTiles = layout == PENSTOCK_CPU_CONV_WINOGRAD ||
                        layout == PENSTOCK_CPU_CONV_TILES_2X2 ||
                        layout == PENSTOCK_CPU_CONV_TILES_4X4;
        double worst = 0;
        for (size_t i = 0; i < found.size(); ++i) {
          double scale = hasTiles ? largest : 5 + std::abs(expected[i]);
          worst = std::max(worst, std::abs(found[i] - expected[i]) / scale);
        }
        EXPECT_LT(worst, hasTiles ? 5e-6 : 4e-5)
            << describe(conv) << ", layout " << layout;
        // Parts do not depend on the number of threads.
        EXPECT_EQ(compute(shape.batch % 2 ? 3 : 2), found)
            << describe(conv) << ", layout " << layout;
      }
    }
}

/// Runs a convolution with so many threads; the tensors by their roles.
void runConvolution(const ConvolutionCall &conv, int threads,
                    const float *input, const float *weights, float *output) {
  setConvolutionThreads(threads);
  Convolution convolution;
  ASSERT_EQ(convolution.plan(conv), "");
  std::vector<char> scratch(convolution.getScratchBytes() + 64);
  auto place = reinterpret_cast<uintptr_t>(scratch.data());
  ASSERT_EQ(convolution.prepare(scratch.data() + (64 - place % 64)), "");
  EXPECT_TRUE(convolution.run(input, weights, output)) << describe(conv);
  setConvolutionThreads(1);
}

TEST(ConvolutionTest, PrepacksWeights) {
  int prepacked = 0;
  for (const Shape &shape : shapes)
    for (uint32_t kind : {PENSTOCK_CONV_FORWARD, PENSTOCK_CONV_INPUT_GRAD})
      for (uint32_t layout :
           {PENSTOCK_CPU_CONV_LIBRARY, PENSTOCK_CPU_CONV_WINOGRAD,
            PENSTOCK_CPU_CONV_COMBINED_GROUPS, PENSTOCK_CPU_CONV_UPRIGHT}) {
        ConvolutionCall conv = describeShape(shape, kind, layout);
        conv.spatial_rank = layout == PENSTOCK_CPU_CONV_UPRIGHT ? 1 : 2;
        Convolution convolution;
        if (!takes(shape, kind, layout) || convolution.plan(conv) != "")
          continue;
        uint64_t bytes = convolution.getPrepackedBytes();
        if (bytes == 0)
          continue;
        ++prepacked;
        Tensors tensors(conv);
        int result = kind == PENSTOCK_CONV_FORWARD ? 2 : 0;
        auto run = [&](const ConvolutionCall &conv, int threads,
                       const float *weights) {
          std::vector<float> *data = tensors.data;
          std::fill(data[result].begin(), data[result].end(), 7.0f);
          runConvolution(conv, threads, data[0].data(), weights,
                         data[2].data());
          return data[result];
        };
        std::vector<float> expected = run(conv, 1, tensors.data[1].data());
        for (int threads : {1, 3}) {
          // What is behind stays as it is.
          std::vector<float> form(bytes / sizeof(float) + 16, 5.0f);
          ConvolutionCall other = conv;
          other.weights = PENSTOCK_CPU_WEIGHTS_PREPACK;
          Convolution prepacking;
          EXPECT_EQ(prepacking.plan(other), "");
          EXPECT_EQ(prepacking.getScratchBytes(), 0u);
          runConvolution(other, threads, nullptr, tensors.data[1].data(),
                         form.data());
          EXPECT_EQ(std::count(form.end() - 16, form.end(), 5.0f), 16);
          // Another number of threads reads them as well.
          other.weights = PENSTOCK_CPU_WEIGHTS_PREPACKED;
          EXPECT_EQ(run(other, 4 - threads, form.data()), expected)
              << describe(conv) << ", layout " << layout;
        }
      }
  EXPECT_GT(prepacked, 20);
}

TEST(ConvolutionTest, RefusesToPrepack) {
  // Weights that are computed, or are read as they are.
  for (auto [kind, layout] :
       {std::pair(PENSTOCK_CONV_WEIGHT_GRAD, PENSTOCK_CPU_CONV_LIBRARY),
        {PENSTOCK_CONV_FORWARD, PENSTOCK_CPU_CONV_PLAIN},
        {PENSTOCK_CONV_FORWARD, PENSTOCK_CPU_CONV_TILES_4X4}}) {
    ConvolutionCall conv = describeShape(shapes[9], kind, layout);
    EXPECT_EQ(Convolution().plan(conv), "");
    for (uint32_t weights :
         {PENSTOCK_CPU_WEIGHTS_PREPACK, PENSTOCK_CPU_WEIGHTS_PREPACKED}) {
      conv.weights = weights;
      EXPECT_EQ(Convolution().plan(conv),
                "oneDNN cannot prepack the weights of the " + describe(conv));
    }
  }
}

TEST(ConvolutionTest, ChoosesLayouts) {
  if (!hasAvx512())
    GTEST_SKIP() << "this processor has no AVX-512, for which these are";
  auto choose = [](const Shape &shape, uint32_t kind, bool isDirect = false) {
    ConvolutionCall conv = describeShape(shape, kind, 0);
    EXPECT_EQ(chooseConvolutionLayout(conv, isDirect), "");
    return conv.layout;
  };
  // Few channels, many, a depthwise one, a small and a large matrix product.
  EXPECT_EQ(choose(shapes[0], PENSTOCK_CONV_FORWARD), 1u);
  EXPECT_EQ(choose(shapes[0], PENSTOCK_CONV_WEIGHT_GRAD), 1u);
  EXPECT_EQ(choose(shapes[1], PENSTOCK_CONV_FORWARD), 1u);
  EXPECT_EQ(choose(shapes[3], PENSTOCK_CONV_FORWARD), 1u);
  EXPECT_EQ(choose(shapes[5], PENSTOCK_CONV_INPUT_GRAD), 1u);
  EXPECT_EQ(choose(shapes[15], PENSTOCK_CONV_INPUT_GRAD), 0u);
  EXPECT_EQ(choose(shapes[15], PENSTOCK_CONV_WEIGHT_GRAD), 2u);
  // More weights than a cache holds, and few windows.
  EXPECT_EQ(choose(shapes[7], PENSTOCK_CONV_FORWARD), 1u);
  EXPECT_EQ(choose(shapes[7], PENSTOCK_CONV_WEIGHT_GRAD, true), 2u);
  // Winograd's algorithm: few channels, samples, or tiles; not wanted.
  EXPECT_EQ(choose(shapes[8], PENSTOCK_CONV_FORWARD), 3u);
  EXPECT_EQ(choose(shapes[8], PENSTOCK_CONV_INPUT_GRAD), 3u);
  EXPECT_EQ(choose(shapes[8], PENSTOCK_CONV_WEIGHT_GRAD), 3u);
  EXPECT_EQ(choose(shapes[9], PENSTOCK_CONV_FORWARD), 4u);
  EXPECT_EQ(choose(shapes[9], PENSTOCK_CONV_INPUT_GRAD), 1u);
  EXPECT_EQ(choose(shapes[9], PENSTOCK_CONV_WEIGHT_GRAD), 4u);
  EXPECT_EQ(choose(shapes[10], PENSTOCK_CONV_FORWARD), 5u);
  EXPECT_EQ(choose(shapes[10], PENSTOCK_CONV_INPUT_GRAD), 5u);
  EXPECT_EQ(choose(shapes[10], PENSTOCK_CONV_WEIGHT_GRAD), 5u);
  EXPECT_EQ(choose(shapes[8], PENSTOCK_CONV_FORWARD, true), 1u);
  // Few input channels and a large window: copies do not pay in the gradient of
  // the input.
  Shape stem = {2, 1, 3, 64, {32, 32}, {7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 3}};
  EXPECT_EQ(choose(stem, PENSTOCK_CONV_FORWARD), 1u);
  EXPECT_EQ(choose(stem, PENSTOCK_CONV_INPUT_GRAD), 0u);
  // Groups that the library has kernels for, and others. Zeros are multiplied
  // in the gradient of the weights only, where that is not wanted.
  Shape groups = {4, 8, 32, 32, {9, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
  EXPECT_EQ(choose(groups, PENSTOCK_CONV_FORWARD), 1u);
  EXPECT_EQ(choose(groups, PENSTOCK_CONV_INPUT_GRAD), 1u);
  EXPECT_EQ(choose(groups, PENSTOCK_CONV_WEIGHT_GRAD), 7u);
  for (uint32_t kind : {0u, 1u, 2u})
    EXPECT_EQ(choose(shapes[20], kind), 7u);
  EXPECT_EQ(choose(shapes[20], PENSTOCK_CONV_FORWARD, true), 1u);
  EXPECT_EQ(choose(shapes[20], PENSTOCK_CONV_WEIGHT_GRAD, true), 7u);
  // A channel per group: a small window and large ones.
  EXPECT_EQ(choose(shapes[3], PENSTOCK_CONV_WEIGHT_GRAD), 1u);
  EXPECT_EQ(choose(shapes[18], PENSTOCK_CONV_WEIGHT_GRAD), 6u);
  EXPECT_EQ(choose(shapes[19], PENSTOCK_CONV_WEIGHT_GRAD), 6u);
}

TEST(ConvolutionTest, Refuses) {
  // Columns of what is not the gradient of weights.
  EXPECT_EQ(Convolution().plan(describeShape(shapes[0], 0, 2)),
            "oneDNN cannot compute the convolution of 2 x 3 channels of 11x9 "
            "to 8 of 11x9 by 3x3 in 1 group");
  // Where the library's result would be wrong.
  EXPECT_EQ(Convolution().plan(describeShape(shapes[10], 1, 3)),
            "oneDNN cannot compute the gradient of the input of the "
            "convolution of 17 x 64 channels of 8x18 to 65 of 7x17 by 3x3 in 1 "
            "group");
  ConvolutionCall conv = describeShape(shapes[0], 0, 0);
  conv.output[0] += 3;
  EXPECT_EQ(Convolution().plan(conv),
            "oneDNN cannot compute the convolution of 2 x 3 channels of 11x9 "
            "to 8 of 14x9 by 3x3 in 1 group");
  conv = describeShape(shapes[0], 1, 0);
  conv.element = PENSTOCK_F64;
  EXPECT_EQ(Convolution().plan(conv),
            "oneDNN cannot take the gradient of the input of the convolution "
            "of 2 x 3 channels of 11x9 to 8 of 11x9 by 3x3 in 1 group");
}

} // namespace
