//===- DoubleBufferTest.cpp - The search of PipeDream-2BW -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Equal blocks make the closed forms easy to write down: which execution wins
// follows from memory and from the price of the all-reduce.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/DoubleBuffer.h"

#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>

using namespace penstock;

namespace {
/// Blocks of 3 s, 10 bytes of activations and 100 of weights, at batch 4.
std::vector<PlanState> makeBlocks(unsigned count) {
  LayerGraph graph;
  for (unsigned index = 0; index < count; ++index) {
    Layer layer;
    layer.forwardSeconds = 1;
    layer.backwardSeconds = 2;
    layer.outputBytes = 10;
    layer.weightBytes = 100;
    graph.layers.push_back(layer);
    if (index > 0)
      graph.addEdge(index - 1, index);
  }
  return buildStates(graph).states;
}

DoubleBufferOptions makeOptions() {
  DoubleBufferOptions options;
  options.devices = 4;
  options.devicesPerServer = 4;
  options.batch = 64;
  options.profileBatch = 4;
  return options;
}
} // namespace

/// Transfers cost nothing to speak of, weights a lot: depth without width.
TEST(DoubleBuffer, DeepWhenWeightsAreHeavy) {
  DoubleBufferOptions options = makeOptions();
  options.bandwidthInside = options.bandwidthBetween = 20;
  std::vector<PlanState> states = makeBlocks(8);
  for (PlanState &state : states)
    state.weightBytes *= 10;
  auto plan = planDoubleBuffer(states, options);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->width, 1);
  EXPECT_EQ(plan->depth, 4);
  EXPECT_EQ(plan->execution, PipelineExecution::Pipelined);
  // The largest microbatch that leaves four of them to a batch.
  EXPECT_EQ(plan->microbatch, 16);
  EXPECT_EQ(plan->accumulation, 4);
  // An inner stage: two blocks of 3 s, twice 10 bytes each way; 4 times the
  // samples of the profile.
  EXPECT_DOUBLE_EQ(plan->plan.slowestSeconds, 4 * (2 * 3 + 2 * 20. / 20));
  EXPECT_DOUBLE_EQ(plan->samplesPerSecond, 16 / plan->plan.slowestSeconds);
  for (auto [index, stage] : llvm::enumerate(plan->plan.stages)) {
    EXPECT_EQ(stage.first, int64_t(2 * index));
    EXPECT_EQ(stage.last, int64_t(2 * index + 1));
  }
}

/// The other way round: replicas of the whole model.
TEST(DoubleBuffer, WideWhenActivationsAreHeavy) {
  DoubleBufferOptions options = makeOptions();
  options.bandwidthInside = options.bandwidthBetween = 1e4;
  std::vector<PlanState> states = makeBlocks(8);
  for (PlanState &state : states)
    state.cutBytes *= 1e5;
  auto plan = planDoubleBuffer(states, options);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->width, 4);
  EXPECT_EQ(plan->depth, 1);
  EXPECT_EQ(plan->execution, PipelineExecution::OneAtATime);
  EXPECT_NEAR(plan->plan.getSpeedup(), 4, 1e-3);
}

/// Two versions of the weights and an activation set for each microbatch in
/// flight, or one set and recomputation.
TEST(DoubleBuffer, RecomputesWhenMemoryDemandsIt) {
  DoubleBufferOptions options = makeOptions();
  options.devices = 2;
  options.bandwidthInside = options.bandwidthBetween = 1e4;
  options.profileBatch = 1;
  options.batch = 2;
  std::vector<PlanState> states = makeBlocks(8);
  for (PlanState &state : states)
    state.activationBytes *= 10;
  // Depth 2, microbatch 1, stage 1: weights (2 + 1) * 400, sets of 400 and
  // inputs of 10, two of each in flight.
  options.memory.limit = 1200 + 800 + 20;
  auto plan = planDoubleBuffer(states, options);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->depth, 2);
  EXPECT_EQ(plan->execution, PipelineExecution::Pipelined);
  EXPECT_EQ(plan->plan.stages[1].memoryBytes, options.memory.limit);
  options.memory.limit -= 1;
  plan = planDoubleBuffer(states, options);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->execution, PipelineExecution::Recomputed);
  EXPECT_EQ(plan->plan.stages[1].memoryBytes, 1200 + 400 + 20);
  // One pass after the other needs no second version.
  options.memory.limit = 1200 + 400 + 20 - 1;
  plan = planDoubleBuffer(states, options);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->execution, PipelineExecution::OneAtATime);
  options.memory.limit = 800 + 400;
  EXPECT_FALSE(planDoubleBuffer(states, options));
}

/// Stages have equally many blocks: 7 of them cannot be shared by 4.
TEST(DoubleBuffer, StagesAreEqual) {
  DoubleBufferOptions options = makeOptions();
  options.bandwidthInside = options.bandwidthBetween = 20;
  std::vector<PlanState> states = makeBlocks(7);
  for (PlanState &state : states)
    state.weightBytes *= 10;
  auto prime = planDoubleBuffer(states, options);
  ASSERT_TRUE(prime);
  EXPECT_EQ(prime->depth, 1);
  options.blocks = 4;
  auto grouped = planDoubleBuffer(states, options);
  ASSERT_TRUE(grouped);
  EXPECT_EQ(grouped->depth, 4);
}
