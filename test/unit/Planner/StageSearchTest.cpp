//===- StageSearchTest.cpp - Against trying every cut ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory is a formula here, which the search does not know: it must return a
// plan that fits whenever it says so, and the fastest one when it says that.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/StageSearch.h"

#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

using namespace penstock;

namespace {
struct Model {
  StageSearchProblem problem;
  /// Returns the bytes of a stage: activations count for every stage to come.
  int64_t measure(int64_t stage, int64_t begin, int64_t end) const {
    double bytes = 0;
    for (int64_t unit = begin; unit < end; ++unit)
      bytes += problem.floorBytes[unit] +
               1.7 * static_cast<double>(problem.stages - stage) *
                   problem.activationBytes[unit];
    return static_cast<int64_t>(bytes) + 5;
  }
  std::optional<std::vector<int64_t>> operator()(const StagePlan &plan) const {
    std::vector<int64_t> bytes;
    for (const StageShape &shape :
         plan.getShapes(int64_t(problem.linear.unitSeconds.size())))
      bytes.push_back(
          measure(problem.stages - 1 - shape.after, shape.begin, shape.end));
    return bytes;
  }
};

Model makeModel(std::mt19937 &random, int64_t units, int64_t stages) {
  std::uniform_int_distribution<int> number(1, 40);
  Model model;
  model.problem.stages = stages;
  model.problem.linear.cutSeconds.push_back(0);
  for (int64_t unit = 0; unit < units; ++unit) {
    model.problem.linear.unitSeconds.push_back(number(random));
    model.problem.linear.cutSeconds.push_back(number(random) / 10.);
    model.problem.floorBytes.push_back(number(random));
    model.problem.activationBytes.push_back(number(random));
  }
  return model;
}
} // namespace

TEST(StageSearch, FindsTheFastestThatFits) {
  std::mt19937 random(5);
  int found = 0, refused = 0, moved = 0;
  for (int trial = 0; trial < 200; ++trial) {
    Model model = makeModel(random, 9, 3);
    model.problem.limit = 200 + 3 * trial;
    model.problem.trials = 1000;
    double best = std::numeric_limits<double>::infinity();
    for (int64_t first = 1; first < 8; ++first)
      for (int64_t second = first + 1; second < 9; ++second) {
        auto bytes = model({{first, second}, {}, 0});
        if (llvm::all_of(*bytes, [&](int64_t need) {
              return need <= model.problem.limit;
            }))
          best = std::min(
              best,
              std::max({getStageSeconds(model.problem.linear, 0, first),
                        getStageSeconds(model.problem.linear, first, second),
                        getStageSeconds(model.problem.linear, second, 9)}));
      }
    StageSearchResult result = searchStages(model.problem, model);
    EXPECT_TRUE(result.isProved);
    ASSERT_EQ(result.fits, best < 1e30);
    if (!result.fits) {
      ++refused;
      continue;
    }
    ++found;
    EXPECT_EQ(*model(result.plan), result.bytes);
    for (int64_t need : result.bytes)
      EXPECT_LE(need, model.problem.limit);
    double slowest = 0;
    int64_t begin = 0;
    for (int64_t end : {result.plan.cuts[0], result.plan.cuts[1], int64_t(9)}) {
      slowest =
          std::max(slowest, getStageSeconds(model.problem.linear, begin, end));
      begin = end;
    }
    EXPECT_DOUBLE_EQ(slowest, best);
    moved +=
        slowest > partitionLinearly(model.problem.linear, 3).slowestSeconds;
  }
  EXPECT_GT(found, 20);
  EXPECT_GT(refused, 20);
  EXPECT_GT(moved, 20);
}

/// In a long model with few trials the estimate leads to a plan that fits.
TEST(StageSearch, FindsOneInFewTrials) {
  std::mt19937 random(6);
  int found = 0;
  for (int trial = 0; trial < 20; ++trial) {
    Model model = makeModel(random, 120, 4);
    // As even as memory can be, and a little more.
    auto size = [&](int64_t stage, int64_t begin, int64_t end) {
      return static_cast<double>(model.measure(stage, begin, end));
    };
    auto bytes = model({partitionEvenly(120, 4, size).cuts, {}, 0});
    model.problem.limit = *llvm::max_element(*bytes) * 21 / 20;
    model.problem.trials = 12;
    StageSearchResult result = searchStages(model.problem, model);
    EXPECT_LE(result.trials, 12);
    found += result.fits;
  }
  EXPECT_EQ(found, 20);
}

/// Where not even the most even cuts fit, some trials say so.
TEST(StageSearch, EndsWhereNothingIsLikelyToFit) {
  std::mt19937 random(8);
  int64_t most = 0;
  for (int trial = 0; trial < 20; ++trial) {
    Model model = makeModel(random, 120, 4);
    auto size = [&](int64_t stage, int64_t begin, int64_t end) {
      return static_cast<double>(model.measure(stage, begin, end));
    };
    auto bytes = model({partitionEvenly(120, 4, size).cuts, {}, 0});
    model.problem.limit = *llvm::max_element(*bytes) * 9 / 10;
    model.problem.trials = 1000;
    model.problem.patience = 2;
    StageSearchResult result = searchStages(model.problem, model);
    EXPECT_FALSE(result.fits);
    EXPECT_FALSE(result.isProved);
    most = std::max(most, result.trials);
  }
  EXPECT_LE(most, 16);
}

/// Plans of two stages with replicas come from elsewhere, the fastest first.
TEST(StageSearch, FindsTheFastestReplicasThatFit) {
  std::mt19937 random(7);
  int found = 0, refused = 0, moved = 0;
  for (int trial = 0; trial < 100; ++trial) {
    Model model = makeModel(random, 8, 2);
    model.problem.limit = 120 + 6 * trial;
    model.problem.trials = 1000;
    std::vector<StagePlan> plans;
    for (int64_t cut = 1; cut < 8; ++cut)
      for (int64_t first = 1; first < 5; ++first) {
        StagePlan plan{{cut}, {first, 5 - first}, 0};
        for (const StageShape &shape : plan.getShapes(8))
          plan.seconds =
              std::max(plan.seconds, getStageSeconds(model.problem.linear,
                                                     shape.begin, shape.end) /
                                         double(shape.replicas));
        plans.push_back(plan);
      }
    llvm::sort(plans, [](const StagePlan &a, const StagePlan &b) {
      return a.seconds < b.seconds;
    });
    model.problem.propose =
        [&](StageShapeFilter isAllowed) -> std::optional<StagePlan> {
      for (const StagePlan &plan : plans)
        if (llvm::all_of(plan.getShapes(8), isAllowed))
          return plan;
      return std::nullopt;
    };
    // Whoever shares the microbatches holds fewer of them.
    auto measure = [&](const StagePlan &plan) {
      std::vector<int64_t> bytes;
      for (const StageShape &shape : plan.getShapes(8)) {
        double need = 3;
        for (int64_t unit = shape.begin; unit < shape.end; ++unit)
          need += model.problem.floorBytes[unit] +
                  double(shape.after + shape.replicas) /
                      double(shape.replicas) *
                      model.problem.activationBytes[unit];
        bytes.push_back(static_cast<int64_t>(need));
      }
      return bytes;
    };
    auto fits = [&](const StagePlan &plan) {
      return llvm::all_of(measure(plan), [&](int64_t need) {
        return need <= model.problem.limit;
      });
    };
    auto best = llvm::find_if(plans, fits);
    StageSearchResult result = searchStages(
        model.problem, [&](const StagePlan &plan) { return measure(plan); });
    EXPECT_TRUE(result.isProved);
    ASSERT_EQ(result.fits, best != plans.end());
    if (!result.fits) {
      ++refused;
      continue;
    }
    ++found;
    EXPECT_TRUE(fits(result.plan));
    EXPECT_EQ(measure(result.plan), result.bytes);
    EXPECT_DOUBLE_EQ(result.plan.seconds, best->seconds);
    moved += best != plans.begin();
  }
  EXPECT_GT(found, 20);
  EXPECT_GT(refused, 10);
  EXPECT_GT(moved, 10);
}

/// A plan that cannot be built is none.
TEST(StageSearch, PassesOverWhatCannotBeBuilt) {
  std::mt19937 random(8);
  Model model = makeModel(random, 7, 2);
  model.problem.limit = 1 << 30;
  int64_t fastest = partitionLinearly(model.problem.linear, 2).cuts[0];
  StageSearchResult result = searchStages(
      model.problem,
      [&](const StagePlan &plan) -> std::optional<std::vector<int64_t>> {
        if (plan.cuts[0] == fastest)
          return std::nullopt;
        return model(plan);
      });
  EXPECT_TRUE(result.fits);
  EXPECT_NE(result.plan.cuts[0], fastest);
}
