//===- NormalizationTests.cpp - Values of normalizations ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Against plain loops in f64, for the operators and versions that ONNX's node
// tests of opset 17 do not have.
//===----------------------------------------------------------------------===//

#include "SingleNode.h"

using namespace penstock::test;

namespace {

/// (x - mean) / sqrt(variance + epsilon) over groups of elements; without
/// `centered`, x / sqrt(mean square + epsilon).
std::vector<double> normalized(const std::vector<float> &x, int64_t size,
                               double epsilon, bool centered = true,
                               std::vector<float> *means = nullptr,
                               std::vector<float> *inverses = nullptr) {
  std::vector<double> result;
  for (size_t begin = 0; begin < x.size(); begin += size) {
    double mean = 0, square = 0;
    for (int64_t i = 0; i < size; ++i)
      mean += x[begin + i] / double(size);
    if (!centered)
      mean = 0;
    for (int64_t i = 0; i < size; ++i)
      square += (x[begin + i] - mean) * (x[begin + i] - mean) / double(size);
    double inverse = 1 / std::sqrt(square + epsilon);
    for (int64_t i = 0; i < size; ++i)
      result.push_back((x[begin + i] - mean) * inverse);
    if (means)
      means->push_back(float(mean));
    if (inverses)
      inverses->push_back(float(inverse));
  }
  return result;
}

std::vector<float> rounded(const std::vector<double> &values) {
  return {values.begin(), values.end()};
}

TEST(Normalizations, GroupsHaveScalesByGroupAndLaterByChannel) {
  const Shape shape = {2, 6, 5, 3};
  const int64_t groups = 3, perGroup = 2 * 5 * 3, points = 15;
  HostTensor x = integers<float>(shape, 1);
  for (int64_t opset : {18, 21, 23}) {
    int64_t affine = opset < 21 ? groups : 6;
    HostTensor scale = integers<float>({affine}, 2),
               bias = integers<float>({affine}, 3);
    std::vector<double> expected = normalized(values<float>(x), perGroup, 1e-3);
    for (size_t i = 0; i < expected.size(); ++i) {
      int64_t channel = i / points % 6;
      int64_t at = opset < 21 ? channel / 2 : channel;
      expected[i] =
          expected[i] * values<float>(scale)[at] + values<float>(bias)[at];
    }
    expectNear(run("GroupNormalization", opset,
                   {{"num_groups", groups}, {"epsilon", 1e-3f}},
                   {x, scale, bias}, {{1, shape}}),
               rounded(expected));
  }
}

TEST(Normalizations, GroupsDivideTheChannels) {
  HostTensor x = integers<float>({2, 6, 5}, 1);
  HostTensor scale = integers<float>({6}, 2);
  for (int64_t groups : {0, 4, 7}) {
    Result result = run("GroupNormalization", 21, {{"num_groups", groups}},
                        {x, scale, scale}, {{1, {2, 6, 5}}});
    EXPECT_NE(result.error.find("attribute 'num_groups' must be a divisor of "
                                "the 6 channels, it is"),
              std::string::npos)
        << result.error;
  }
}

TEST(Normalizations, InstancesAreChannelsOfASample) {
  const Shape shape = {3, 2, 7};
  HostTensor x = integers<float>(shape, 1), scale = integers<float>({2}, 2),
             bias = integers<float>({2}, 3);
  std::vector<double> expected = normalized(values<float>(x), 7, 1e-5);
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = expected[i] * values<float>(scale)[i / 7 % 2] +
                  values<float>(bias)[i / 7 % 2];
  for (int64_t opset : {7, 22})
    expectNear(
        run("InstanceNormalization", opset, {}, {x, scale, bias}, {{1, shape}}),
        rounded(expected));
}

TEST(Normalizations, RootMeanSquaresTakeTrailingAxes) {
  const Shape shape = {2, 3, 5};
  HostTensor x = integers<float>(shape, 1);
  for (int64_t axis : {0, 1, 2, -1, -2}) {
    int64_t first = axis < 0 ? axis + 3 : axis;
    Shape inner(shape.begin() + first, shape.end());
    int64_t size = sizeOf(inner);
    HostTensor scale = integers<float>(inner, 2);
    std::vector<float> inverses;
    std::vector<double> expected =
        normalized(values<float>(x), size, 1e-2, false, nullptr, &inverses);
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] *= values<float>(scale)[i % size];
    expectNear(run("RMSNormalization", 23, {{"axis", axis}, {"epsilon", 1e-2f}},
                   {x, scale}, {{1, shape}}),
               rounded(expected));
    Shape outer(shape.begin(), shape.begin() + first);
    outer.resize(3, 1);
    Result contrib = run("SimplifiedLayerNormalization", 23,
                         {{"axis", axis}, {"epsilon", 1e-2f}}, {x, scale},
                         {{1, shape}, {1, outer}}, 99, "com.microsoft");
    expectNear(contrib, rounded(expected));
    std::swap(contrib.outputs[0], contrib.outputs[1]);
    expectNear(contrib, inverses);
  }
}

// Any scale that broadcasts to x, also along the axes that are not normalized.
TEST(Normalizations, LayersTakeScalesThatBroadcast) {
  const Shape shape = {3, 2, 5};
  HostTensor x = integers<float>(shape, 1);
  for (const Shape &scaleShape :
       {Shape{5}, Shape{1, 5}, Shape{2, 1}, Shape{3, 1, 1}, Shape{3, 2, 5},
        Shape{1}, Shape{}}) {
    HostTensor scale = integers<float>(scaleShape, 2);
    std::vector<float> means, inverses;
    std::vector<double> expected =
        normalized(values<float>(x), 5, 1e-5, true, &means, &inverses);
    Shape strides = stridesFor(scaleShape, 3);
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] *= values<float>(scale)[positionOf(i, shape, strides)];
    Result result = run("LayerNormalization", 17, {}, {x, scale},
                        {{1, shape}, {1, {3, 2, 1}}, {1, {3, 2, 1}}});
    expectNear(result, rounded(expected));
    std::swap(result.outputs[0], result.outputs[1]);
    expectNear(result, means);
    std::swap(result.outputs[0], result.outputs[2]);
    expectNear(result, inverses);
  }
}

// The variance is not E[x^2] - E[x]^2, which is 0 or worse here.
TEST(Normalizations, LargeMeansLoseNoDigits) {
  std::vector<float> x;
  for (int i = 0; i < 7; ++i)
    x.push_back(float(100000 + i));
  HostTensor ones = tensor<float>({7}, std::vector<float>(7, 1));
  expectNear(run("LayerNormalization", 17, {{"epsilon", 0.0f}},
                 {tensor<float>({1, 7}, x), ones}, {{1, {1, 7}}}),
             rounded(normalized(x, 7, 0)));
}

TEST(Normalizations, SkipAddsFirstAndReturnsTheSum) {
  const Shape shape = {3, 2, 5};
  HostTensor x = integers<float>(shape, 1), skip = integers<float>(shape, 2),
             gamma = integers<float>({5}, 3), beta = integers<float>({5}, 4),
             bias = integers<float>({5}, 5);
  std::vector<float> sum;
  for (int i = 0; i < 30; ++i)
    sum.push_back(values<float>(x)[i] + values<float>(skip)[i] +
                  values<float>(bias)[i % 5]);
  for (bool centered : {true, false}) {
    std::vector<double> expected = normalized(sum, 5, 1e-2, centered);
    for (int i = 0; i < 30; ++i)
      expected[i] = expected[i] * values<float>(gamma)[i % 5] +
                    (centered ? values<float>(beta)[i % 5] : 0);
    std::vector<HostTensor> operands = {x, skip, gamma};
    if (centered)
      operands.push_back(beta);
    operands.push_back(bias);
    Result result =
        run(centered ? "SkipLayerNormalization"
                     : "SkipSimplifiedLayerNormalization",
            17, {{"epsilon", 1e-2f}}, operands,
            {{1, shape}, {1, {3, 2, 1}}, {1, {3, 2, 1}}, {1, shape}}, 99,
            "com.microsoft");
    expectNear(result, rounded(expected));
    std::swap(result.outputs[0], result.outputs[3]);
    expectNear(result, sum);
  }
}

TEST(Normalizations, LpDividesByTheNormAndLeavesZeros) {
  std::vector<float> x = {3, 4, 0, 0, -6, 8};
  std::vector<float> byTwo = {0.6f, 0.8f, 0, 0, -0.6f, 0.8f};
  std::vector<float> byOne = {3 / 7.f, 4 / 7.f, 0, 0, -6 / 14.f, 8 / 14.f};
  for (int64_t opset : {7, 22})
    for (int64_t p : {1, 2})
      expectNear(run("LpNormalization", opset, {{"p", p}},
                     {tensor<float>({3, 2}, x)}, {{1, {3, 2}}}),
                 p == 1 ? byOne : byTwo);
}

TEST(Normalizations, LrnHasItsWindowAroundTheChannel) {
  const Shape shape = {2, 5, 3};
  HostTensor x = integers<float>(shape, 1);
  std::vector<float> v = values<float>(x);
  for (int64_t size : {1, 2, 3, 4, 9}) {
    std::vector<double> expected;
    for (int64_t i = 0; i < 30; ++i) {
      int64_t channel = i / 3 % 5;
      double sum = 0;
      for (int64_t c = channel - (size - 1) / 2; c <= channel + size / 2; ++c)
        if (c >= 0 && c < 5)
          sum += v[i + (c - channel) * 3] * v[i + (c - channel) * 3];
      expected.push_back(v[i] / std::pow(2 + 0.5 / size * sum, 0.75));
    }
    expectNear(run("LRN", 13, {{"size", size}, {"alpha", 0.5f}, {"bias", 2.0f}},
                   {x}, {{1, shape}}),
               rounded(expected));
  }
}

} // namespace
