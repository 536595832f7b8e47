//===- PipeDreamLevelsTest.cpp - Plans over several bandwidths ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The hierarchical dynamic program of PipeDream, in its published form: one
// plan that is worked out by hand, and random chains against trying every plan.
//===----------------------------------------------------------------------===//

#include "Chains.h"
#include "penstock/Planner/PipeDream.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

using namespace penstock;

namespace {

Layer makeLayer(double seconds, double weights, double output) {
  Layer layer;
  layer.forwardSeconds = seconds / 4;
  layer.backwardSeconds = 3 * seconds / 4;
  layer.weightBytes = weights;
  layer.outputBytes = output;
  return layer;
}

LayerGraph makeGraph(std::initializer_list<Layer> layers) {
  LayerGraph graph;
  for (const Layer &layer : layers) {
    graph.layers.push_back(layer);
    if (graph.layers.size() > 1)
      graph.addEdge(graph.layers.size() - 2, graph.layers.size() - 1);
  }
  return graph;
}

/// Tries every plan on every level, without remembering any.
class EveryPlan {
public:
  EveryPlan(const std::vector<PlanState> &states,
            const PipeDreamOptions &options)
      : states(states), options(options) {}

  double run() {
    return cut(options.devices.size(), 0, static_cast<int64_t>(states.size()),
               options.devices.back());
  }

private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  double total(double PlanState::*member, int64_t begin, int64_t end) {
    return states[end - 1].*member -
           (begin > 0 ? states[begin - 1].*member : 0);
  }
  double bandwidth(size_t level) { return options.bandwidths[level - 1]; }

  /// Layers [begin, end) as one stage of a level, on so many of its components.
  double stage(size_t level, int64_t begin, int64_t end, int64_t use) {
    double within =
        level == 1 ? total(&PlanState::seconds, begin, end)
                   : cut(level - 1, begin, end, options.devices[level - 2]);
    double weights = total(&PlanState::weightBytes, begin, end);
    return std::max(within,
                    2.0 * double(use - 1) * weights / bandwidth(level)) /
           double(use);
  }

  /// The same, cut in any way. The first stage is tried, then what is left.
  double cut(size_t level, int64_t begin, int64_t end, int64_t components) {
    double best = options.straight && components > 1
                      ? kNever
                      : stage(level, begin, end, components);
    for (int64_t middle = begin + 1; middle < end; ++middle)
      for (int64_t use = 1; use < components; ++use) {
        if (options.straight && use > 1)
          break;
        double transfer = 2 * states[middle - 1].cutBytes / bandwidth(level);
        best = std::min(best,
                        std::max({stage(level, begin, middle, use), transfer,
                                  cut(level, middle, end, components - use)}));
      }
    return best;
  }

  const std::vector<PlanState> &states;
  const PipeDreamOptions &options;
};

} // namespace

/// Two servers of two devices; 10 bytes a second inside, 1 between. The only
/// value that is small enough to go between servers is the second layer's,
/// which takes 2 * 0.5 / 1 = 1 s. To its left are 8 + 4 s without weights: two
/// replicas take 6 s, a cut would leave 8. To its right are 3 + 3 s with 200
/// bytes of weights: two replicas would take 2 * 200 / 10 / 2 = 20 s, a cut
/// leaves 3, and moves 2 * 10 / 10 = 2 s. All of it twice would take 200 s.
TEST(PipeDreamLevels, TakeTheLinksThatACutCanBear) {
  LayerGraph graph = makeGraph({makeLayer(8, 0, 10), makeLayer(4, 0, 0.5),
                                makeLayer(3, 100, 10), makeLayer(3, 100, 0)});
  PipeDreamOptions options;
  options.devices = {2, 2};
  options.bandwidths = {10, 1};
  std::vector<PlanState> states = buildStates(graph).states;
  std::optional<Plan> plan = planPipeDream(states, options);
  ASSERT_TRUE(plan);
  EXPECT_DOUBLE_EQ(plan->slowestSeconds, 6);
  ASSERT_EQ(plan->stages.size(), 3u);
  const int64_t expected[][3] = {{0, 1, 2}, {2, 2, 1}, {3, 3, 1}};
  const double compute[] = {12, 3, 3};
  for (size_t index = 0; index < 3; ++index) {
    const PlanStage &stage = plan->stages[index];
    EXPECT_EQ(stage.first, expected[index][0]);
    EXPECT_EQ(stage.last, expected[index][1]);
    EXPECT_EQ(stage.replicas, expected[index][2]);
    EXPECT_DOUBLE_EQ(stage.times.compute * double(stage.replicas),
                     compute[index]);
  }
  EXPECT_DOUBLE_EQ(EveryPlan(states, options).run(), 6);

  // With links between servers like those inside, the right end has room for
  // half of the left.
  options.bandwidths = {10, 10};
  plan = planPipeDream(states, options);
  ASSERT_TRUE(plan);
  EXPECT_DOUBLE_EQ(plan->slowestSeconds, EveryPlan(states, options).run());
}

/// Every chain of up to five layers on every small hierarchy; a level of one
/// and layers that are fewer than devices among them.
TEST(PipeDreamLevels, FindWhatTryingEverythingFinds) {
  std::mt19937 random(17);
  int severalLevels = 0;
  for (const std::vector<int64_t> &devices :
       {std::vector<int64_t>{2, 2}, {3, 2}, {2, 3}, {1, 3}, {4, 2}, {2, 2, 2}})
    for (unsigned size = 1; size <= 5; ++size)
      for (int trial = 0; trial < 6; ++trial) {
        std::vector<PlanState> states =
            buildStates(makeChain(random, size)).states;
        PipeDreamOptions options;
        options.devices = devices;
        for (size_t level = 0; level < devices.size(); ++level)
          options.bandwidths.push_back(trial % 2
                                           ? 8.0 / double(level + 1)
                                           : 40.0 / double(1 + 5 * level));
        std::optional<Plan> plan = planPipeDream(states, options);
        ASSERT_TRUE(plan);
        EXPECT_DOUBLE_EQ(plan->slowestSeconds,
                         EveryPlan(states, options).run());
        // What is printed is what was counted: as many devices as there are.
        int64_t used = 0, all = 1;
        for (const PlanStage &stage : plan->stages)
          used += stage.replicas;
        for (int64_t count : devices)
          all *= count;
        EXPECT_EQ(used, all);
        for (const LevelStage &stage : plan->levels)
          severalLevels += stage.level > 1 && stage.replicas < devices.back();
      }
  EXPECT_GT(severalLevels, 0);
}

/// Without replicas there are as many stages as devices.
TEST(PipeDreamLevels, StraightPlansToo) {
  std::mt19937 random(19);
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<PlanState> states = buildStates(makeChain(random, 6)).states;
    PipeDreamOptions options;
    options.devices = {2, 2};
    options.bandwidths = {10.0 + trial, 3};
    options.straight = true;
    std::optional<Plan> plan = planPipeDream(states, options);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->stages.size(), 4u);
    EXPECT_DOUBLE_EQ(plan->slowestSeconds, EveryPlan(states, options).run());
  }
}
