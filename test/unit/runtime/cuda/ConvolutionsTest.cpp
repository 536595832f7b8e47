//===- ConvolutionsTest.cpp - Convolutions of a GPU -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Convolutions of odd, distinct sizes and their gradients, by graphs of the
// emulated cuDNN, against plain loops.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Convolutions.h"
#include "ConvolutionCases.h"
#include "GemmCases.h"
#include "TestStream.h"
#include "runtime/device/cuda/Libraries.h"
#include "runtime/device/emulated/Libraries.h"
#include "runtime/support/Bf16.h"

#include <cmath>

using namespace penstock::runtime;
using namespace penstock::test;

namespace {

constexpr uint32_t kForward = PENSTOCK_CONV_FORWARD,
                   kInputGrad = PENSTOCK_CONV_INPUT_GRAD,
                   kWeightGrad = PENSTOCK_CONV_WEIGHT_GRAD;

class CudaConvolutionsTest : public testing::Test {
protected:
  void SetUp() override { cuda::emulatedLibraries = &libraries; }
  void TearDown() override { cuda::emulatedLibraries = nullptr; }

  /// The configuration that a compiler writes.
  void plan(int64_t isDirect, int64_t engine, int64_t version,
            std::vector<penstock_cuda_knob> knobs) {
    config = {isDirect, /*is_tf32=*/0, engine, version, int64_t(knobs.size())};
    for (const penstock_cuda_knob &knob : knobs)
      config.insert(config.end(), {knob.type, knob.value});
  }

  Error open(penstock_conv_descriptor conv, cuda::Convolutions &result) {
    conv.scratch = {scratchBytes, &scratchOffset};
    conv.config = config.empty() ? nullptr : config.data();
    convs = {conv};
    program.conv_count = 1;
    program.convs = convs.data();
    return result.prepare(program, 0, addressOf(arena));
  }

  /// Runs it. Returns the largest difference from plain loops, or NaN where an
  /// element is one.
  double run(const penstock_conv_descriptor &conv, size_t shift = 0);
  /// Runs it in bf16. Returns the largest difference from the rounded sum of
  /// rounded numbers, in units of the last place.
  double runBf16(penstock_conv_descriptor conv);
  /// All kinds.
  void expectAll(int64_t batch, int64_t input, int64_t output, int64_t groups,
                 const std::vector<Spatial> &spatial) {
    for (uint32_t kind : {kForward, kInputGrad, kWeightGrad})
      EXPECT_LE(
          run(makeConvolution(kind, batch, input, output, groups, spatial)),
          2e-5)
          << "kind " << kind;
  }

  /// The number of bytes of the arena that differ from `fill`.
  long countWritten(char fill) const {
    return long(sizeof(arena)) -
           std::count(std::begin(arena), std::end(arena), fill);
  }

  cuda::Cudnn functions = emulated::cudnn;
  cuda::Libraries libraries = {nullptr, nullptr, &functions};
  std::vector<int64_t> config;
  uint64_t scratchOffset = 72, scratchBytes = 0;
  alignas(256) char arena[8192] = {};
  std::string lastError; // of run()

private:
  std::vector<penstock_conv_descriptor> convs;
  penstock_program program = {};
  std::mt19937 random{11};
};

double CudaConvolutionsTest::run(const penstock_conv_descriptor &conv,
                                 size_t shift) {
  cuda::Convolutions convolutions;
  Error error = open(conv, convolutions);
  EXPECT_EQ(error.text, "");
  if (error)
    return NAN;
  auto make = [&](int64_t elements) {
    return randomValues(random, uint64_t(elements) + 64);
  };
  std::vector<float> x = make(getInputSize(conv)),
                     w = make(getWeightsSize(conv)),
                     y = make(getOutputSize(conv));
  auto begin = [&](std::vector<float> &values) {
    return values.data() +
           (-reinterpret_cast<uintptr_t>(values.data()) % 64) / sizeof(float) +
           shift;
  };
  float *toX = begin(x), *toW = begin(w), *toY = begin(y);

  // The result in double, of what was there before.
  std::vector<float> &result = conv.kind == kForward     ? y
                               : conv.kind == kInputGrad ? x
                                                         : w;
  float *to = conv.kind == kForward ? toY : conv.kind == kInputGrad ? toX : toW;
  int64_t size = conv.kind == kForward     ? getOutputSize(conv)
                 : conv.kind == kInputGrad ? getInputSize(conv)
                                           : getWeightsSize(conv);
  std::vector<double> expected(result.begin(), result.end());
  double *sums = expected.data() + (to - result.data());
  if (conv.kind != kWeightGrad)
    std::fill_n(sums, size, 0.0);
  forEachProduct(conv, [&](int64_t atX, int64_t atW, int64_t atY) {
    if (conv.kind == kForward)
      sums[atY] += double(toX[atX]) * toW[atW];
    else if (conv.kind == kInputGrad)
      sums[atX] += double(toY[atY]) * toW[atW];
    else
      sums[atW] += double(toX[atX]) * toY[atY];
  });
  // What is overwritten is not read.
  if (conv.kind != kWeightGrad)
    std::fill_n(to, size, NAN);

  error = convolutions.run(0, addressOf(toX), addressOf(toW), addressOf(toY),
                           testStream());
  lastError = error.text;
  convolutions.clear();
  if (runStream() != 1)
    return NAN;
  double difference = 0.0;
  for (size_t i = 0; i < result.size(); ++i) {
    double each = std::fabs(result[i] - expected[i]);
    if (std::isnan(each))
      return NAN;
    difference = std::max(difference, each);
  }
  return difference;
}

double CudaConvolutionsTest::runBf16(penstock_conv_descriptor conv) {
  conv.element = PENSTOCK_BF16;
  cuda::Convolutions convolutions;
  Error error = open(conv, convolutions);
  EXPECT_EQ(error.text, "");
  if (error)
    return NAN;
  const int64_t sizes[] = {getOutputSize(conv), getInputSize(conv),
                           getWeightsSize(conv)};
  std::vector<uint16_t> narrow[3];
  std::vector<double> wide[3];
  for (int i = 0; i < 3; ++i)
    for (float value : randomValues(random, uint64_t(sizes[i]))) {
      narrow[i].push_back(roundToBf16(value));
      wide[i].push_back(fromBf16(narrow[i].back()));
    }
  // Aligned, as tensors of cuDNN have to be.
  std::vector<uint16_t> memory[3];
  uint16_t *data[3];
  for (int i = 0; i < 3; ++i) {
    memory[i].resize(narrow[i].size() + 8);
    data[i] = memory[i].data() +
              (-reinterpret_cast<uintptr_t>(memory[i].data()) % 16) / 2;
    std::copy(narrow[i].begin(), narrow[i].end(), data[i]);
  }
  static_assert(kForward == 0 && kInputGrad == 1 && kWeightGrad == 2);
  std::vector<double> expected = wide[conv.kind];
  if (conv.kind != kWeightGrad)
    std::fill(expected.begin(), expected.end(), 0.0);
  forEachProduct(conv, [&](int64_t atX, int64_t atW, int64_t atY) {
    if (conv.kind == kForward)
      expected[atY] += wide[1][atX] * wide[2][atW];
    else if (conv.kind == kInputGrad)
      expected[atX] += wide[0][atY] * wide[2][atW];
    else
      expected[atW] += wide[1][atX] * wide[0][atY];
  });
  error = convolutions.run(0, addressOf(data[1]), addressOf(data[2]),
                           addressOf(data[0]), testStream());
  lastError = error.text;
  convolutions.clear();
  if (runStream() != 1)
    return NAN;
  double difference = 0.0;
  for (size_t i = 0; i < expected.size(); ++i) {
    double result = fromBf16(data[conv.kind][i]);
    difference =
        std::max(difference, std::fabs(result - expected[i]) /
                                 (std::fabs(expected[i]) * 0x1p-8 + 1e-30));
  }
  return difference;
}

} // namespace

TEST_F(CudaConvolutionsTest, TwoDimensions) {
  expectAll(1, 1, 1, 1, {{1, 1, 1, 1, 0, 0}, {1, 1, 1, 1, 0, 0}});
  expectAll(2, 3, 5, 1, {{11, 3, 1, 1, 1, 1}, {7, 5, 1, 1, 2, 2}});
  expectAll(3, 2, 1, 1, {{6, 4, 1, 1, 0, 0}, {13, 2, 1, 1, 0, 0}});
  // Windows that leave out elements at the end.
  expectAll(2, 3, 5, 1, {{12, 3, 2, 1, 1, 1}, {10, 1, 3, 1, 0, 0}});
  expectAll(2, 3, 4, 1, {{14, 3, 2, 2, 2, 2}, {17, 3, 3, 4, 1, 1}});
  // More padding than input.
  expectAll(2, 3, 4, 1, {{2, 3, 1, 1, 2, 2}, {3, 5, 1, 1, 4, 4}});
}

TEST_F(CudaConvolutionsTest, Groups) {
  expectAll(2, 6, 4, 2, {{7, 3, 1, 1, 1, 1}, {9, 3, 2, 1, 1, 1}});
  // Depthwise, and with two outputs for each input.
  expectAll(3, 5, 5, 5, {{8, 3, 1, 1, 1, 1}, {5, 3, 1, 1, 1, 1}});
  expectAll(2, 3, 6, 3, {{8, 2, 2, 1, 0, 0}, {5, 3, 1, 1, 1, 1}});
}

// Sums in f32, or better, that are rounded once.
TEST_F(CudaConvolutionsTest, Bf16) {
  for (uint32_t kind : {kForward, kInputGrad, kWeightGrad}) {
    EXPECT_LE(runBf16(makeConvolution(
                  kind, 2, 6, 4, 2, {{7, 3, 1, 1, 1, 1}, {9, 3, 2, 1, 1, 1}})),
              1.0)
        << kind;
    EXPECT_LE(runBf16(makeConvolution(kind, 2, 3, 5, 1, {{23, 5, 2, 1, 2, 2}})),
              1.0)
        << kind;
  }
}

TEST_F(CudaConvolutionsTest, OneAndThreeDimensions) {
  expectAll(2, 3, 5, 1, {{23, 5, 2, 1, 2, 2}});
  expectAll(2, 4, 6, 2, {{19, 3, 1, 3, 3, 3}});
  expectAll(2, 3, 2, 1,
            {{5, 3, 1, 1, 1, 1}, {6, 2, 2, 1, 0, 0}, {7, 3, 1, 2, 2, 2}});
  expectAll(1, 4, 2, 2,
            {{5, 2, 2, 1, 0, 0}, {4, 3, 1, 1, 1, 1}, {7, 3, 3, 1, 1, 1}});
}

// Padding that cannot be the same before and after, and one that can be though
// it is not said so.
TEST_F(CudaConvolutionsTest, UnequalPadding) {
  std::vector<Spatial> unequal = {{11, 4, 1, 1, 1, 2}, {8, 3, 2, 1, 0, 1}};
  expectAll(2, 3, 5, 1, unequal);
  EXPECT_FALSE(cuda::isCommonConvolution(
      makeConvolution(kForward, 2, 3, 5, 1, unequal)));
  std::vector<Spatial> equal = {{12, 3, 2, 1, 1, 0}, {9, 1, 2, 1, 0, 0}};
  expectAll(2, 3, 5, 1, equal);
  EXPECT_TRUE(
      cuda::isCommonConvolution(makeConvolution(kForward, 2, 3, 5, 1, equal)));
}

// Within the scratch, the fastest engine that computes in f32; what needs no
// workspace otherwise. An engine overwrites its workspace and nothing else.
TEST_F(CudaConvolutionsTest, ChoosesWithinItsScratch) {
  auto conv = makeConvolution(kWeightGrad, 2, 3, 5, 1,
                              {{11, 3, 1, 1, 1, 1}, {7, 5, 1, 1, 2, 2}});
  auto getChoice = [&](uint64_t bytes, bool isDirect, bool isTf32 = false) {
    cuda::ConvolutionGraph graph;
    cuda::CudnnHandle handle = nullptr;
    functions.cudnnCreate(&handle);
    EXPECT_EQ(graph.describe(conv, handle, nullptr), "");
    EXPECT_EQ(graph.choose(bytes, {isDirect, isTf32}), "");
    functions.cudnnDestroy(handle);
    EXPECT_LE(graph.getPlan().workspaceBytes, bytes);
    return graph.getPlan().engine;
  };
  // 2 and 3 are faster, and not in f32, or not the same each time; 5 must be
  // compiled first; 4 does not add up the products of the definition.
  EXPECT_EQ(getChoice(1 << 20, false), 1);
  EXPECT_EQ(getChoice(3071, false), 4);
  EXPECT_EQ(getChoice(0, false), 4);
  EXPECT_EQ(getChoice(0, true), 0);
  EXPECT_EQ(getChoice(0, true, /*isTf32=*/true), 2);

  scratchBytes = 4000;
  std::fill(std::begin(arena), std::end(arena), 1);
  EXPECT_LE(run(conv), 2e-5);
  EXPECT_EQ(countWritten(1), 3072);
  EXPECT_EQ(arena[255], 1);
  EXPECT_NE(arena[256], 1);
  scratchBytes = 3000;
  std::fill(std::begin(arena), std::end(arena), 1);
  EXPECT_LE(run(conv), 2e-5);
  EXPECT_EQ(countWritten(1), 0);
}

// A planned engine is taken with its knobs where cuDNN is the version of the
// plan; otherwise another one is chosen, with a warning.
TEST_F(CudaConvolutionsTest, TakesThePlan) {
  auto conv = makeConvolution(kForward, 2, 3, 5, 1,
                              {{11, 3, 1, 1, 1, 1}, {7, 5, 1, 1, 2, 2}});
  scratchBytes = 4000;
  auto runPlan = [&] {
    std::fill(std::begin(arena), std::end(arena), 1);
    testing::internal::CaptureStderr();
    EXPECT_LE(run(conv), 2e-5);
    return testing::internal::GetCapturedStderr();
  };
  const char *warning = "warning: device 0: cuDNN 91900 does not take the "
                        "engines planned for 1 convolutions and chose others\n";
  plan(0, 1, 91900, {{2, 2}});
  EXPECT_EQ(runPlan(), "");
  EXPECT_EQ(countWritten(1), 2048);
  plan(0, 0, 91900, {});
  EXPECT_EQ(runPlan(), "");
  EXPECT_EQ(countWritten(1), 0);
  // Another version; engines that are not there, do not compute in f32, or need
  // more workspace; a knob that the engine lacks.
  plan(0, 0, 91800, {});
  EXPECT_EQ(runPlan(), warning);
  EXPECT_EQ(countWritten(1), 3072);
  plan(0, 6, 91900, {});
  EXPECT_EQ(runPlan(), warning);
  plan(0, 2, 91900, {});
  EXPECT_EQ(runPlan(), warning);
  plan(1, 4, 91900, {});
  EXPECT_EQ(runPlan(), warning);
  plan(0, 5, 91900, {{2, 3}});
  EXPECT_EQ(runPlan(), warning);
  plan(0, 1, 91900, {{3, 1}});
  EXPECT_EQ(runPlan(), warning);
  // No engine was planned.
  plan(1, -1, 0, {});
  EXPECT_EQ(runPlan(), "");
  EXPECT_EQ(countWritten(1), 3072);
}

TEST_F(CudaConvolutionsTest, Reasons) {
  auto conv = makeConvolution(kForward, 2, 3, 5, 1,
                              {{11, 3, 1, 1, 1, 1}, {7, 5, 1, 1, 2, 2}});
  EXPECT_EQ(cuda::checkConvolution(conv), "");
  conv.element = PENSTOCK_F64;
  EXPECT_EQ(cuda::checkConvolution(conv), "it is neither f32 nor bf16");
  conv.element = PENSTOCK_F32;
  conv.output[1] = 4;
  EXPECT_EQ(cuda::checkConvolution(conv),
            "its windows leave out elements at the end");
  conv = makeConvolution(kForward, 1 << 11, 1 << 10, 5, 1,
                         {{1 << 10, 1, 1, 1, 0, 0}});
  EXPECT_EQ(cuda::checkConvolution(conv),
            "a tensor has more than 2^31 elements");
  cuda::Convolutions convolutions;
  EXPECT_EQ(open(conv, convolutions).text,
            "the convolution of 2048 x 1024 x 1024 by 5 x 1024 x 1: a tensor "
            "has more than 2^31 elements; compile where this version of cuDNN "
            "is installed, or with a larger --library-workspace");

  conv = makeConvolution(kInputGrad, 2, 3, 5, 1, {{11, 3, 1, 1, 1, 1}});
  EXPECT_TRUE(std::isnan(run(conv, 1)));
  EXPECT_EQ(lastError,
            "convolution 0 failed: a tensor is not aligned to 16 bytes");
}

// An engine that says nothing of its numbers is not taken.
TEST_F(CudaConvolutionsTest, RefusesEnginesWithoutNotes) {
  functions.cudnnBackendGetAttribute = [](cuda::CudnnDescriptor descriptor,
                                          int attribute, int type, int64_t room,
                                          int64_t *count, void *values) {
    if (attribute == cuda::CUDNN_ATTR_ENGINE_NUMERICAL_NOTE)
      return int(cuda::CUDNN_STATUS_NOT_SUPPORTED);
    return emulated::cudnn.cudnnBackendGetAttribute(descriptor, attribute, type,
                                                    room, count, values);
  };
  cuda::Convolutions convolutions;
  EXPECT_EQ(
      open(makeConvolution(kWeightGrad, 2, 6, 4, 2, {{5, 5, 1, 1, 2, 2}}),
           convolutions)
          .text,
      "the weight gradient of the convolution of 2 x 6 x 5 by 4 x 3 x 5: no "
      "engine of cuDNN 91900 computes it in f32 with 0 bytes of workspace; "
      "compile where this version of cuDNN is installed, or with a larger "
      "--library-workspace");
}

// The comparison finds tensors in the wrong roles, and a gradient that does not
// add to what is there.
TEST_F(CudaConvolutionsTest, FindsMistakes) {
  functions.cudnnBackendSetAttribute = [](cuda::CudnnDescriptor descriptor,
                                          int attribute, int type,
                                          int64_t count, const void *values) {
    const int64_t ids[] = {2, 1, 3};
    if (attribute == cuda::CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)
      values = ids;
    return emulated::cudnn.cudnnBackendSetAttribute(descriptor, attribute, type,
                                                    count, values);
  };
  // Input and weights of the same size.
  EXPECT_GT(run(makeConvolution(kForward, 2, 3, 2, 1, {{5, 5, 1, 1, 2, 2}})),
            0.1);
  functions.cudnnBackendSetAttribute = [](cuda::CudnnDescriptor descriptor,
                                          int attribute, int type,
                                          int64_t count, const void *values) {
    const float zero = 0.0f;
    if (attribute == cuda::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA)
      values = &zero;
    return emulated::cudnn.cudnnBackendSetAttribute(descriptor, attribute, type,
                                                    count, values);
  };
  EXPECT_GT(run(makeConvolution(kWeightGrad, 2, 3, 2, 1, {{5, 5, 1, 1, 2, 2}})),
            0.1);
}
