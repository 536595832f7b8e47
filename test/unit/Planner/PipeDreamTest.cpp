//===- PipeDreamTest.cpp - Published profiles, published plans ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans of PipeDream's own profiles of VGG16 and AlexNet: the published formula
// gives the configurations of the papers, the released form what the released
// planner prints. On random graphs, against trying everything.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/PipeDream.h"
#include "Chains.h"

#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>

using namespace penstock;

namespace {
LayerGraph load(llvm::StringRef name) {
  auto buffer = llvm::MemoryBuffer::getFile(
      (llvm::Twine(PENSTOCK_PROFILES "/") + name + ".txt").str());
  EXPECT_TRUE(static_cast<bool>(buffer));
  std::string error;
  std::optional<LayerGraph> graph = parseProfile((*buffer)->getBuffer(), error);
  EXPECT_TRUE(graph.has_value()) << error;
  return *graph;
}

/// Without the nodes that hold a shape: the chain of layers that the published
/// formula speaks of.
LayerGraph loadChain(llvm::StringRef name) {
  LayerGraph graph = load(name);
  llvm::BitVector drop(graph.layers.size());
  for (auto [index, layer] : llvm::enumerate(graph.layers))
    if (llvm::StringRef(layer.description).starts_with("Size"))
      drop.set(index);
  graph.removeLayers(drop, /*bridge=*/true);
  return graph;
}

std::string toString(const Plan &plan) {
  std::string text;
  for (const PlanStage &stage : plan.stages)
    text += (text.empty() ? "" : " | ") + std::to_string(stage.first) + "-" +
            std::to_string(stage.last) + " x" + std::to_string(stage.replicas);
  return text;
}

std::string getLevel(const Plan &plan, int64_t level) {
  std::string text;
  for (const LevelStage &stage : plan.levels)
    if (stage.level == level)
      text += (text.empty() ? "" : " | ") + std::to_string(stage.first) + "-" +
              std::to_string(stage.last) + " x" +
              std::to_string(stage.replicas);
  return text;
}

Plan plan(const LayerGraph &graph, PipeDreamForm form,
          std::vector<int64_t> devices, std::vector<double> bandwidths,
          double ratio = 1, bool straight = false) {
  PipeDreamOptions options;
  options.form = form;
  options.devices = std::move(devices);
  options.bandwidths = std::move(bandwidths);
  options.compressionRatio = ratio;
  options.straight = straight;
  std::optional<Plan> result =
      planPipeDream(buildStates(graph).states, options);
  EXPECT_TRUE(result.has_value());
  return *result;
}

/// Returns the seconds of a plan on one level by the released form, written
/// again.
double getReleasedSeconds(const LayerGraph &graph, double bandwidth,
                          std::vector<std::array<int64_t, 3>> stages) {
  std::vector<PlanState> states = buildStates(graph).states;
  double slowest = 0;
  for (auto [first, last, replicas] : stages) {
    auto total = [&, first = first, last = last](double PlanState::*member) {
      return states[last].*member - (first > 0 ? states[first - 1].*member : 0);
    };
    auto share = static_cast<double>(replicas);
    double seconds = (total(&PlanState::seconds) +
                      4 * (share - 1) * total(&PlanState::weightBytes) /
                          (bandwidth * share)) /
                     share;
    if (first > 0)
      seconds = std::max(seconds, 2 * states[first - 1].frontierBytes /
                                      (bandwidth * share));
    if (first > 0 && last + 1 < static_cast<int64_t>(states.size()))
      seconds = std::max(seconds,
                         2 * states[last].frontierBytes / (bandwidth * share));
    slowest = std::max(slowest, seconds);
  }
  return slowest;
}

constexpr PipeDreamForm kPaper = PipeDreamForm::Paper;
constexpr PipeDreamForm kReleased = PipeDreamForm::Released;
} // namespace

TEST(PipeDreamPaper, Vgg16OnOneLevel) {
  LayerGraph graph = loadChain("vgg16");
  ASSERT_EQ(graph.layers.size(), 39u);
  Plan four = plan(graph, kPaper, {4}, {1e9});
  EXPECT_EQ(toString(four), "0-16 x3 | 17-38 x1");
  EXPECT_NEAR(four.slowestSeconds, 0.205521, 5e-7);
  EXPECT_NEAR(four.getSpeedup(), 3.272, 5e-4);
  Plan faster = plan(graph, kPaper, {4}, {1.25e9});
  EXPECT_EQ(toString(faster), "0-16 x3 | 17-38 x1");
  EXPECT_NEAR(faster.slowestSeconds, 0.171413, 5e-7);
  Plan eight = plan(graph, kPaper, {8}, {1.25e9});
  EXPECT_EQ(toString(eight), "0-23 x7 | 24-38 x1");
  EXPECT_NEAR(eight.slowestSeconds, 0.088874, 5e-7);
  EXPECT_NEAR(eight.getSpeedup(), 7.567, 5e-4);
  Plan sixteen = plan(graph, kPaper, {16}, {1.25e9});
  EXPECT_EQ(toString(sixteen), "0-23 x15 | 24-38 x1");
  EXPECT_NEAR(sixteen.slowestSeconds, 0.082208, 5e-7);
  EXPECT_NEAR(sixteen.getSpeedup(), 8.181, 5e-4);
}

TEST(PipeDreamPaper, Vgg16OnTwoLevels) {
  LayerGraph graph = loadChain("vgg16");
  Plan four = plan(graph, kPaper, {4, 4}, {1e10, 1.25e9});
  EXPECT_EQ(getLevel(four, 2), "0-30 x3 | 31-38 x1");
  EXPECT_EQ(getLevel(four, 1), "0-30 x4 | 31-31 x2 | 32-32 x1 | 33-38 x1");
  EXPECT_EQ(toString(four), "0-30 x12 | 31-31 x2 | 32-32 x1 | 33-38 x1");
  EXPECT_NEAR(four.slowestSeconds, 0.062783, 5e-7);
  Plan two = plan(graph, kPaper, {8, 2}, {2.5e10, 3.125e9});
  EXPECT_EQ(getLevel(two, 2), "0-16 x1 | 17-38 x1");
  EXPECT_EQ(toString(two), "0-16 x8 | 17-24 x6 | 25-38 x2");
  EXPECT_NEAR(two.slowestSeconds, 0.065767, 5e-7);
}

TEST(PipeDreamPaper, AlexNet) {
  LayerGraph graph = loadChain("alexnet");
  ASSERT_EQ(graph.layers.size(), 21u);
  for (double bandwidth : {1e9, 1.25e9}) {
    Plan four = plan(graph, kPaper, {4}, {bandwidth});
    EXPECT_EQ(toString(four), "0-12 x3 | 13-20 x1");
    EXPECT_NEAR(four.slowestSeconds, 0.025436, 5e-7);
    EXPECT_NEAR(four.getSpeedup(), 3.354, 5e-4);
  }
  for (int64_t devices : {8, 16}) {
    Plan more = plan(graph, kPaper, {devices}, {1.25e9});
    EXPECT_EQ(more.stages.size(), 2u);
    EXPECT_EQ(more.stages[0].replicas, devices - 1);
    EXPECT_EQ(more.stages[1].replicas, 1);
    EXPECT_NEAR(more.slowestSeconds, 0.015099, 5e-7);
    EXPECT_NEAR(more.getSpeedup(), 5.651, 5e-4);
  }
}

TEST(PipeDreamReleased, Vgg16) {
  LayerGraph graph = load("vgg16");
  ASSERT_EQ(buildStates(graph).states.size(), 40u);
  Plan four = plan(graph, kReleased, {4}, {1e9});
  EXPECT_EQ(toString(four), "0-16 x3 | 17-39 x1");
  EXPECT_NEAR(four.slowestSeconds, 0.205520896, 5e-10);
  EXPECT_NEAR(four.getSpeedup(), 3.2723, 5e-5);
  EXPECT_NEAR(four.oneDeviceSeconds / four.dataParallelSeconds, 1.1532, 5e-5);
  EXPECT_NEAR(four.dataParallelSeconds / four.slowestSeconds, 2.8377, 5e-5);
  Plan free = plan(graph, kReleased, {4}, {1e9}, /*ratio=*/0);
  EXPECT_EQ(toString(free), "0-14 x3 | 15-39 x1");
  EXPECT_NEAR(free.slowestSeconds, 0.175732624, 5e-10);
  EXPECT_NEAR(free.dataParallelSeconds / free.slowestSeconds, 3.3187, 5e-5);
  Plan straight = plan(graph, kReleased, {4}, {1e9}, 1, /*straight=*/true);
  // The transfer of the first cut decides, so that many others are as good;
  // those that the released planner printed among them.
  EXPECT_EQ(straight.stages.size(), 4u);
  EXPECT_EQ(straight.stages[0].last, 9);
  EXPECT_NEAR(straight.slowestSeconds, 0.411041792, 5e-10);
  EXPECT_DOUBLE_EQ(
      getReleasedSeconds(graph, 1e9,
                         {{0, 9, 1}, {10, 28, 1}, {29, 36, 1}, {37, 39, 1}}),
      straight.slowestSeconds);
  Plan sixteen = plan(graph, kReleased, {16}, {1.25e9});
  EXPECT_EQ(toString(sixteen), "0-23 x13 | 24-30 x2 | 31-39 x1");
  EXPECT_NEAR(sixteen.slowestSeconds, 0.054794891, 5e-10);
  EXPECT_NEAR(sixteen.getSpeedup(), 12.2737, 5e-5);
  EXPECT_NEAR(sixteen.dataParallelSeconds / sixteen.slowestSeconds, 2.6609,
              5e-5);
  Plan levels = plan(graph, kReleased, {4, 4}, {1e10, 1.25e9});
  // Printed as 0-31 x3 | 32-39 x1; state 31 takes no time.
  EXPECT_EQ(getLevel(levels, 2), "0-30 x3 | 31-39 x1");
  EXPECT_EQ(levels.stages[0].replicas, 12);
  EXPECT_NEAR(levels.slowestSeconds, 0.067133997, 5e-10);
  EXPECT_NEAR(levels.dataParallelSeconds / levels.slowestSeconds, 2.0172, 5e-5);
}

TEST(PipeDreamReleased, AlexNet) {
  LayerGraph graph = load("alexnet");
  Plan four = plan(graph, kReleased, {4}, {1e9});
  // Printed as 0-15 x3 | 16-21 x1; states 13 to 15 take no time.
  EXPECT_EQ(toString(four), "0-12 x3 | 13-21 x1");
  EXPECT_DOUBLE_EQ(getReleasedSeconds(graph, 1e9, {{0, 15, 3}, {16, 21, 1}}),
                   four.slowestSeconds);
  EXPECT_NEAR(four.slowestSeconds, 0.034217, 5e-7);
  EXPECT_NEAR(four.dataParallelSeconds / four.slowestSeconds, 5.9804, 5e-5);
  Plan sixteen = plan(graph, kReleased, {16}, {1.25e9});
  EXPECT_EQ(toString(sixteen), "0-12 x15 | 13-21 x1"); // Printed: 0-14, 15-21.
  EXPECT_DOUBLE_EQ(
      getReleasedSeconds(graph, 1.25e9, {{0, 14, 15}, {15, 21, 1}}),
      sixteen.slowestSeconds);
  EXPECT_NEAR(sixteen.slowestSeconds, 0.0150994944, 5e-11);
  EXPECT_NEAR(sixteen.dataParallelSeconds / sixteen.slowestSeconds, 3.3881,
              5e-5);
}

namespace {
struct Part {
  int64_t begin, end, use;
};

/// The least time of the slowest stage over every way to cut and to spread
/// `devices`, in the published formula.
double tryEverything(const std::vector<PlanState> &states, int64_t devices,
                     double bandwidth,
                     const std::function<bool(llvm::ArrayRef<Part>)> &fits) {
  std::vector<Part> parts;
  auto count = static_cast<int64_t>(states.size());
  double best = std::numeric_limits<double>::infinity();
  std::function<void(int64_t, int64_t, double)> extend = [&](int64_t begin,
                                                             int64_t left,
                                                             double slowest) {
    if (begin == count) {
      if (left == 0 && fits(parts))
        best = std::min(best, slowest);
      return;
    }
    for (int64_t end = begin + 1; end <= count; ++end) {
      for (int64_t use = 1; use <= left; ++use) {
        auto total = [&](double PlanState::*member) {
          return states[end - 1].*member -
                 (begin > 0 ? states[begin - 1].*member : 0);
        };
        double time = std::max(total(&PlanState::seconds),
                               2.0 * static_cast<double>(use - 1) *
                                   total(&PlanState::weightBytes) / bandwidth) /
                      static_cast<double>(use);
        if (begin > 0)
          time = std::max(time, 2 * states[begin - 1].cutBytes / bandwidth);
        parts.push_back({begin, end, use});
        extend(end, left - use, std::max(slowest, time));
        parts.pop_back();
      }
    }
  };
  extend(0, devices, 0);
  return best;
}
} // namespace

TEST(PipeDreamPaper, FindsWhatTryingEverythingFinds) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<PlanState> states = buildStates(makeChain(random, 6)).states;
    PipeDreamOptions options;
    options.devices = {5};
    options.bandwidths = {1.0 + trial % 4};
    std::optional<Plan> found = planPipeDream(states, options);
    ASSERT_TRUE(found);
    EXPECT_DOUBLE_EQ(found->slowestSeconds,
                     tryEverything(states, 5, options.bandwidths[0],
                                   [](llvm::ArrayRef<Part>) { return true; }));
  }
}

/// Replicas share the microbatches of an update evenly. With three of them and
/// one layer, two devices have no plan.
TEST(PipeDreamPaper, ReplicasDivideTheMicrobatches) {
  std::mt19937 random(13);
  for (int64_t microbatches : {1, 2, 3, 4, 6}) {
    std::vector<PlanState> states = buildStates(makeChain(random, 5)).states;
    PipeDreamOptions options;
    options.devices = {5};
    options.bandwidths = {3.0};
    options.microbatches = microbatches;
    std::optional<Plan> found = planPipeDream(states, options);
    ASSERT_TRUE(found);
    for (const PlanStage &stage : found->stages)
      EXPECT_EQ(microbatches % stage.replicas, 0);
    EXPECT_DOUBLE_EQ(
        found->slowestSeconds,
        tryEverything(states, 5, 3.0, [&](llvm::ArrayRef<Part> parts) {
          return llvm::all_of(parts, [&](const Part &part) {
            return microbatches % part.use == 0;
          });
        }));
  }
  PipeDreamOptions options;
  options.devices = {2};
  options.bandwidths = {1.0};
  options.microbatches = 3;
  EXPECT_FALSE(
      planPipeDream(buildStates(makeChain(random, 1)).states, options));
}

/// Returns true if every stage fits, as the schedule of the whole plan needs
/// it, with each sum written out.
static bool fitsWithin(const std::vector<PlanState> &states, double limit,
                       llvm::ArrayRef<Part> parts) {
  llvm::SmallVector<int64_t> widths;
  for (const Part &part : parts)
    widths.push_back(part.use);
  std::vector<StageCounts> counts =
      *countSchedule(widths, PlannedMethod::Stashing);
  return llvm::all_of(llvm::zip(parts, counts), [&](auto pair) {
    auto [part, found] = pair;
    auto total = [&](double PlanState::*member) {
      return states[part.end - 1].*member -
             (part.begin > 0 ? states[part.begin - 1].*member : 0);
    };
    bool isFirst = part.begin == 0, isLast = size_t(part.end) == states.size();
    double input = isFirst ? 0 : states[part.begin - 1].cutBytes;
    double output = isLast ? 0 : states[part.end - 1].cutBytes;
    double weights = total(&PlanState::weightBytes);
    return double(found.versions) * weights + weights +
               double(found.inFlight) *
                   (total(&PlanState::activationBytes) + input) +
               double(found.inputs + found.inputGradients) * input +
               double(found.outputs + found.outputGradients) * output <=
           limit;
  });
}

/// Without replicas the fastest that fits is found; with them, what a stage
/// needs depends on its neighbors, and what is found at least fits.
TEST(PipeDreamPaper, KeepsTheMemoryLimit) {
  std::mt19937 random(11);
  int refused = 0, changed = 0, missed = 0, slower = 0;
  constexpr int kTrials = 40;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<PlanState> states = buildStates(makeChain(random, 6)).states;
    PipeDreamOptions options;
    options.devices = {4};
    options.bandwidths = {2};
    std::optional<Plan> free = planPipeDream(states, options);
    options.memory.limit = 300 + 15 * trial;
    for (bool straight : {false, true}) {
      options.straight = straight;
      std::optional<Plan> found = planPipeDream(states, options);
      double best =
          tryEverything(states, 4, 2, [&](llvm::ArrayRef<Part> parts) {
            return (!straight || parts.size() == 4) &&
                   fitsWithin(states, options.memory.limit, parts);
          });
      if (straight)
        ASSERT_EQ(found.has_value(), best < 1e30) << "trial " << trial;
      if (!found) {
        ++(best < 1e30 ? missed : refused);
        continue;
      }
      ASSERT_LT(best, 1e30);
      std::vector<Part> parts;
      for (const PlanStage &stage : found->stages) {
        EXPECT_LE(stage.memoryBytes, options.memory.limit);
        parts.push_back({stage.first, stage.last + 1, stage.replicas});
      }
      EXPECT_TRUE(fitsWithin(states, options.memory.limit, parts));
      EXPECT_GE(found->slowestSeconds, best * (1 - 1e-12));
      if (straight)
        EXPECT_DOUBLE_EQ(found->slowestSeconds, best);
      slower += found->slowestSeconds > best * (1 + 1e-12);
      changed += found->slowestSeconds > free->slowestSeconds;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(changed, 0);
  EXPECT_EQ(missed, 0);
  EXPECT_LE(slower, kTrials / 10);
}

/// With one component on a level, that level changes nothing.
TEST(PipeDreamPaper, ALevelOfOneIsNoLevel) {
  LayerGraph graph = loadChain("vgg16");
  Plan flat = plan(graph, kPaper, {8}, {1.25e9});
  Plan above = plan(graph, kPaper, {8, 1}, {1.25e9, 1e6});
  Plan below = plan(graph, kPaper, {1, 8}, {1e6, 1.25e9});
  EXPECT_EQ(flat.slowestSeconds, above.slowestSeconds);
  EXPECT_EQ(flat.slowestSeconds, below.slowestSeconds);
  EXPECT_EQ(toString(flat), toString(above));
  EXPECT_EQ(toString(flat), toString(below));
}
