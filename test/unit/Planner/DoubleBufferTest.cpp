//===- DoubleBufferTest.cpp - The search of PipeDream-2BW -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Equal blocks make the closed forms easy to write down: which execution wins
// follows from memory and from the price of the all-reduce.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/DoubleBuffer.h"

#include "Chains.h"

#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

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

/// Two versions of the weights and an activation set for each microbatch that
/// the stage has in flight, or one set and recomputation.
TEST(DoubleBuffer, RecomputesWhenMemoryDemandsIt) {
  DoubleBufferOptions options = makeOptions();
  options.devices = 2;
  options.bandwidthInside = options.bandwidthBetween = 1e4;
  options.profileBatch = 1;
  options.batch = 2;
  std::vector<PlanState> states = makeBlocks(8);
  for (PlanState &state : states)
    state.activationBytes *= 10;
  // Depth 2, microbatch 1, stage 0: weights (2 + 1) * 400, two sets of 400 in
  // flight, and an output of 10 and its gradient; stage 1: one set, an input of
  // 10 that is kept, and the same buffers.
  options.memory.limit = 1200 + 800 + 20;
  auto plan = planDoubleBuffer(states, options);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->depth, 2);
  EXPECT_EQ(plan->execution, PipelineExecution::Pipelined);
  EXPECT_EQ(plan->plan.stages[0].memoryBytes, options.memory.limit);
  EXPECT_EQ(plan->plan.stages[0].inFlight, 2);
  EXPECT_EQ(plan->plan.stages[1].memoryBytes, 1200 + 400 + 10 + 20);
  EXPECT_EQ(plan->plan.stages[1].inFlight, 1);
  options.memory.limit -= 1;
  plan = planDoubleBuffer(states, options);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->execution, PipelineExecution::Recomputed);
  EXPECT_EQ(plan->plan.stages[0].memoryBytes, 1200 + 400 + 20);
  EXPECT_EQ(plan->plan.stages[1].memoryBytes, 1200 + 400 + 10 + 20);
  // One pass after the other needs no second version.
  options.memory.limit = 1200 + 400 + 10 + 20 - 1;
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

namespace {
/// The fastest of every width, depth, microbatch and execution, in the paper's
/// own words: from layers, with each sum and maximum written out.
double tryEverything(const LayerGraph &graph,
                     const DoubleBufferOptions &options) {
  auto layers = static_cast<int64_t>(graph.layers.size());
  double best = 0;
  for (int64_t width = 1; width <= options.devices; ++width)
    for (int64_t depth = 1; depth <= options.devices / width; ++depth)
      for (int64_t samples = 1; samples <= options.batch; ++samples)
        for (auto execution :
             {PipelineExecution::OneAtATime, PipelineExecution::Pipelined,
              PipelineExecution::Recomputed}) {
          bool isPipelined = execution != PipelineExecution::OneAtATime;
          bool recomputes = execution == PipelineExecution::Recomputed;
          if (layers % depth || options.batch % (width * samples) ||
              (isPipelined &&
               (depth == 1 || options.batch / (width * samples) < depth)))
            continue;
          double microbatches = double(options.batch) / double(width * samples);
          double size = double(samples) / double(options.profileBatch);
          double deep = width * depth <= options.devicesPerServer
                            ? options.bandwidthInside
                            : options.bandwidthBetween;
          double wide = width < options.devicesPerServer
                            ? options.bandwidthInside
                            : options.bandwidthBetween;
          double sum = 0, longest = 0;
          bool fits = true;
          int64_t each = layers / depth;
          for (int64_t first = 0; first < layers; first += each) {
            double seconds = 0, weights = 0, activations = 0;
            for (int64_t layer = first; layer < first + each; ++layer) {
              const Layer &l = graph.layers[layer];
              seconds += size * (l.forwardSeconds + l.backwardSeconds);
              weights += l.weightBytes;
              activations += size * l.outputBytes;
            }
            double input =
                first > 0 ? size * graph.layers[first - 1].outputBytes : 0;
            double output =
                first + each < layers
                    ? size * graph.layers[first + each - 1].outputBytes
                    : 0;
            double time =
                std::max(seconds * (recomputes ? options.recomputeFactor : 1) +
                             2 * (input + output) / deep,
                         2 * double(width - 1) / double(width) * weights /
                             wide / microbatches);
            sum += time;
            longest = std::max(longest, time);
            // Two versions under a pipe, gradients and optimizer state; a set
            // for every stage from here on, or one and as many inputs; a buffer
            // for each of what comes and goes.
            double inFlight = isPipelined ? double(depth - first / each) : 1;
            double bytes =
                ((isPipelined ? 2 : 1) + options.memory.weightCopies) *
                    weights +
                (recomputes ? 1 : inFlight) * activations + inFlight * input +
                2 * input + 2 * output;
            fits &= options.memory.limit <= 0 || bytes <= options.memory.limit;
          }
          if (fits)
            best = std::max(best, double(width * samples) /
                                      (isPipelined ? longest : sum));
        }
  return best;
}
} // namespace

TEST(DoubleBuffer, FindsWhatTryingEverythingFinds) {
  std::mt19937 random(23);
  int refused = 0;
  std::set<PipelineExecution> executions;
  std::set<std::pair<int64_t, int64_t>> shapes;
  for (int trial = 0; trial < 400; ++trial) {
    LayerGraph graph = makeChain(random, 1 + trial % 6);
    auto pick = [&](std::initializer_list<double> choices) {
      return choices.begin()[random() % choices.size()];
    };
    DoubleBufferOptions options;
    options.devices = int64_t(pick({1, 2, 3, 4, 6}));
    options.devicesPerServer = int64_t(pick({1, 2, 4}));
    options.bandwidthInside = pick({1, 20, 1000});
    options.bandwidthBetween = options.bandwidthInside / pick({1, 10});
    options.batch = int64_t(pick({1, 6, 12, 16}));
    options.profileBatch = int64_t(pick({1, 4}));
    options.memory.limit = pick({0, 150, 300, 600, 1200});
    auto plan = planDoubleBuffer(buildStates(graph).states, options);
    double best = tryEverything(graph, options);
    ASSERT_EQ(plan.has_value(), best > 0) << "trial " << trial;
    if (!plan) {
      ++refused;
      continue;
    }
    EXPECT_NEAR(plan->samplesPerSecond, best, 1e-12 * best)
        << "trial " << trial;
    EXPECT_EQ(plan->width * plan->microbatch * plan->accumulation,
              options.batch);
    executions.insert(plan->execution);
    shapes.insert({plan->width, plan->depth});
  }
  EXPECT_GT(refused, 0);
  EXPECT_EQ(executions.size(), 3u);
  EXPECT_GT(shapes.size(), 6u);
}
