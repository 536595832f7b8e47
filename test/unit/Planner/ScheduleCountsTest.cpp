//===- ScheduleCountsTest.cpp - What stages hold, against closed forms ----===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Microbatches in flight and versions as PipeDream and PipeDream-2BW state
// them; buffers as few as transfers one after the other can do with.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/ScheduleCounts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <gtest/gtest.h>

#include <functional>

using namespace penstock;

using Widths = std::vector<int64_t>;

/// One buffer for each of what comes in and goes out.
static void expectSingleBuffers(const std::vector<StageCounts> &counts) {
  for (auto [stage, found] : llvm::enumerate(counts)) {
    int64_t before = stage > 0, behind = stage + 1 < counts.size();
    EXPECT_EQ(found.inputs, before);
    EXPECT_EQ(found.inputGradients, before);
    EXPECT_EQ(found.outputs, behind);
    EXPECT_EQ(found.outputGradients, behind);
  }
}

TEST(ScheduleCounts, WithoutReplicas) {
  for (int64_t depth = 1; depth <= 8; ++depth) {
    Widths widths(depth, 1);
    auto stashing = *countSchedule(widths, PlannedMethod::Stashing);
    auto single = *countSchedule(widths, PlannedMethod::OneAtATime);
    for (int64_t stage = 0; stage < depth; ++stage) {
      EXPECT_EQ(stashing[stage].inFlight, depth - stage);
      EXPECT_EQ(stashing[stage].versions, depth - stage);
      EXPECT_EQ(single[stage].inFlight, 1);
      EXPECT_EQ(single[stage].versions, 1);
    }
    expectSingleBuffers(stashing);
    expectSingleBuffers(single);
    for (int64_t microbatches = depth; microbatches <= 2 * depth;
         ++microbatches) {
      auto buffered =
          *countSchedule(widths, PlannedMethod::DoubleBuffered, microbatches);
      for (int64_t stage = 0; stage < depth; ++stage) {
        EXPECT_EQ(buffered[stage].inFlight, depth - stage);
        EXPECT_EQ(buffered[stage].versions, 2);
      }
      expectSingleBuffers(buffered);
    }
  }
}

/// Every way to give seven devices to stages; what stands for schedules too
/// long to walk is no less.
TEST(ScheduleCounts, WithReplicas) {
  Widths widths;
  int plans = 0;
  std::function<void(int64_t)> extend = [&](int64_t left) {
    for (int64_t width = 1; width <= left; ++width) {
      widths.push_back(width);
      extend(left - width);
      widths.pop_back();
    }
    if (left > 0)
      return;
    ++plans;
    int64_t devices = 0;
    std::vector<StageCounts> counts =
        *countSchedule(widths, PlannedMethod::Stashing);
    for (size_t stage = widths.size(); stage-- > 0;) {
      const StageCounts &found = counts[stage];
      devices += widths[stage];
      // NOAM; a version for each turn of them, if updates are as frequent.
      EXPECT_EQ(found.inFlight, llvm::divideCeilSigned(devices, widths[stage]));
      EXPECT_LE(found.versions, found.inFlight);
      EXPECT_EQ(found.versions > 1, found.inFlight > 1);
      if (stage > 0)
        EXPECT_LE(found.inputs,
                  llvm::divideCeilSigned(counts[stage - 1].inFlight *
                                             widths[stage - 1],
                                         widths[stage]));
      EXPECT_LE(found.inputGradients, stage > 0 ? 1 : 0);
      EXPECT_LE(found.outputs, stage + 1 < counts.size() ? 1 : 0);
      EXPECT_LE(found.outputGradients,
                stage + 1 < counts.size() ? found.inFlight : 0);
    }
  };
  extend(7);
  EXPECT_EQ(plans, 64);
}

/// A narrow stage receives from all replicas of a wide one before it gets to
/// the next turn.
TEST(ScheduleCounts, NarrowBehindWide) {
  for (int64_t width : {2, 3, 7, 15})
    EXPECT_EQ((*countSchedule({width, 1}, PlannedMethod::Stashing))[1].inputs,
              width);
}

/// Too long to walk.
TEST(ScheduleCounts, OfThousands) {
  auto counts = *countSchedule({4095, 1}, PlannedMethod::Stashing);
  EXPECT_EQ(counts[0].inFlight, 2);
  EXPECT_EQ(counts[0].versions, 2);
  EXPECT_EQ(counts[1].inFlight, 1);
  EXPECT_EQ(counts[1].inputs, 2 * 4095);
}
