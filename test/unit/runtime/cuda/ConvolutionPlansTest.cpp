//===- ConvolutionPlansTest.cpp - Plans of the installed cuDNN ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuDNN plans for GPUs that are not there: every convolution of ResNet-50, and
// odd ones. Skipped where cuDNN is not installed.
//===----------------------------------------------------------------------===//

#include "ConvolutionCases.h"
#include "lib/Target/Cuda/GpuFacts.h"
#include "penstock/cuda_convolution.h"

#include <cstdio>
#include <gtest/gtest.h>

using namespace penstock::runtime;
using namespace penstock::test;

static constexpr uint64_t kBudget = 32 << 20;

/// cuDNN keeps what it has allocated, also in parts that it unloads; the leak
/// sanitizer asks what to leave out.
extern "C" const char *__lsan_default_suppressions() {
  return "leak:libcudnn\nleak:<unknown module>";
}

class CudaConvolutionPlansTest : public testing::Test {
protected:
  void SetUp() override {
    if (!cuda::getCudnnVersion())
      GTEST_SKIP() << "cuDNN 9 is not installed";
  }

  /// Plans it for an architecture; returns what is wrong.
  std::string plan(const penstock_conv_descriptor &conv, int arch,
                   uint64_t budget, cuda::EngineFilter filter = {}) {
    std::string facts = penstock::cuda::getGpuFacts(arch);
    std::string error = graph.describe(conv, nullptr, facts.c_str());
    return error.empty() ? graph.choose(budget, filter) : error;
  }

  /// Takes the plan again by its numbers.
  void restore(const penstock_conv_descriptor &conv, int arch,
               cuda::EngineFilter filter = {}) {
    const cuda::ConvolutionPlan plan = graph.getPlan();
    std::string facts = penstock::cuda::getGpuFacts(arch);
    cuda::ConvolutionGraph again;
    ASSERT_EQ(again.describe(conv, nullptr, facts.c_str()), "");
    ASSERT_EQ(
        again.restore(plan.engine, plan.knobs, plan.workspaceBytes, filter),
        "");
    EXPECT_EQ(again.getPlan().engine, plan.engine);
    EXPECT_EQ(again.getPlan().workspaceBytes, plan.workspaceBytes);
    EXPECT_EQ(again.getPlan().notes, plan.notes);
    if (plan.workspaceBytes)
      EXPECT_NE(again.restore(plan.engine, plan.knobs, plan.workspaceBytes - 1,
                              filter),
                "");
  }

  cuda::ConvolutionGraph graph;
};

static const char *const kinds[] = {"forward", "input gradient",
                                    "weight gradient"};

TEST_F(CudaConvolutionPlansTest, ResNet50) {
  // Channels, output channels, input size, window, stride.
  const int64_t layers[][5] = {
      {3, 64, 224, 7, 2},    {64, 64, 56, 1, 1},    {64, 64, 56, 3, 1},
      {64, 256, 56, 1, 1},   {256, 64, 56, 1, 1},   {256, 128, 56, 1, 1},
      {128, 128, 56, 3, 2},  {128, 512, 28, 1, 1},  {256, 512, 56, 1, 2},
      {512, 128, 28, 1, 1},  {128, 128, 28, 3, 1},  {512, 256, 28, 1, 1},
      {256, 256, 28, 3, 2},  {256, 1024, 14, 1, 1}, {512, 1024, 28, 1, 2},
      {1024, 256, 14, 1, 1}, {256, 256, 14, 3, 1},  {1024, 512, 14, 1, 1},
      {512, 512, 14, 3, 2},  {512, 2048, 7, 1, 1},  {1024, 2048, 14, 1, 2},
      {2048, 512, 7, 1, 1},  {512, 512, 7, 3, 1}};
  unsigned usesTensorCores = 0;
  std::printf("cuDNN %lld, sm_90, batch 32\n",
              (long long)cuda::getCudnnVersion());
  for (auto [in, out, size, window, stride] : layers)
    for (uint32_t each = 0; each < 6; ++each) {
      uint32_t kind = each % 3;
      bool isBf16 = each >= 3;
      penstock_conv_descriptor conv =
          makeConvolution(kind, 32, in, out, 1,
                          {{size, window, stride, 1, window / 2, window / 2},
                           {size, window, stride, 1, window / 2, window / 2}});
      if (isBf16)
        conv.element = PENSTOCK_BF16;
      std::string error = plan(conv, 90, kBudget);
      EXPECT_EQ(error, "") << kinds[kind] << " " << in << " " << out;
      if (!error.empty())
        continue;
      const cuda::ConvolutionPlan &chosen = graph.getPlan();
      std::printf(
          "%s %-15s %4lld -> %4lld, %3lldx%-3lld %lldx%lld/%lld: engine "
          "%2lld, %zu knobs, notes 0x%03x, %llu bytes\n",
          isBf16 ? "bf16" : "f32 ", kinds[kind], (long long)in, (long long)out,
          (long long)size, (long long)size, (long long)window,
          (long long)window, (long long)stride, (long long)chosen.engine,
          chosen.knobs.size(), chosen.notes,
          (unsigned long long)chosen.workspaceBytes);
      EXPECT_GE(chosen.engine, 0);
      EXPECT_LE(chosen.workspaceBytes, kBudget);
      // Tensor cores, unless of bf16; rounded inputs or sums, and another order
      // each time.
      EXPECT_EQ(chosen.notes & (isBf16 ? 0b10110 : 0b10111), 0u);
      if (isBf16)
        usesTensorCores += chosen.notes & 1;
      restore(conv, 90);
    }
  // Most of them; others need more workspace for tensors of this layout.
  EXPECT_GT(usesTensorCores, 34u);
}

// With operands of tf32, tensor cores may compute, and do where cuDNN holds
// them to be faster; sums stay those of f32, and the same each time.
TEST_F(CudaConvolutionPlansTest, TensorCores) {
  bool usesTensorCores = false;
  for (uint32_t kind = 0; kind < 3; ++kind) {
    penstock_conv_descriptor conv = makeConvolution(
        kind, 32, 128, 256, 1, {{28, 3, 1, 1, 1, 1}, {28, 3, 1, 1, 1, 1}});
    EXPECT_EQ(plan(conv, 90, kBudget, {.isTf32 = true}), "") << kinds[kind];
    EXPECT_EQ(graph.getPlan().notes & 0b10110, 0u) << kinds[kind];
    usesTensorCores |= graph.getPlan().notes & 1;
    restore(conv, 90, {.isTf32 = true});
  }
  EXPECT_TRUE(usesTensorCores);
}

// cuDNN 9.19 pads sides differently and has groups in three dimensions;
// isCommonConvolution() expects neither of all versions.
TEST_F(CudaConvolutionPlansTest, UncommonConvolutions) {
  if (cuda::getCudnnVersion() < 91900)
    GTEST_SKIP() << "cuDNN " << cuda::getCudnnVersion();
  for (uint32_t kind = 0; kind < 3; ++kind) {
    for (const penstock_conv_descriptor &conv :
         {makeConvolution(kind, 5, 6, 10, 1,
                          {{11, 4, 1, 1, 1, 2}, {12, 3, 2, 1, 0, 1}}),
          makeConvolution(
              kind, 5, 6, 10, 2,
              {{7, 3, 1, 1, 1, 1}, {9, 3, 2, 1, 1, 1}, {11, 3, 1, 2, 2, 2}})}) {
      EXPECT_FALSE(cuda::isCommonConvolution(conv));
      EXPECT_EQ(plan(conv, 90, kBudget), "") << kinds[kind];
      restore(conv, 90);
    }
    penstock_conv_descriptor conv =
        makeConvolution(kind, 5, 6, 10, 2, {{29, 5, 2, 3, 6, 6}});
    EXPECT_TRUE(cuda::isCommonConvolution(conv));
    EXPECT_EQ(plan(conv, 90, kBudget, {.isDirect = true}), "") << kinds[kind];
    restore(conv, 90);
  }
}

// All architectures, and without workspace.
TEST_F(CudaConvolutionPlansTest, Architectures) {
  for (int arch : {80, 86, 89, 90, 100, 120})
    for (uint32_t kind = 0; kind < 3; ++kind) {
      penstock_conv_descriptor conv = makeConvolution(
          kind, 5, 6, 10, 2, {{11, 3, 2, 1, 1, 1}, {13, 3, 1, 2, 2, 2}});
      EXPECT_EQ(plan(conv, arch, 0), "") << arch << " " << kinds[kind];
      EXPECT_EQ(graph.getPlan().workspaceBytes, 0u);
      restore(conv, arch);
    }
  EXPECT_EQ(penstock::cuda::getGpuFacts(91), "");
}
