//===- LinearPartitionTest.cpp - Cuts against brute force -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dynamic program must find what trying every set of cuts finds.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/LinearPartition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

using namespace penstock;

namespace {
/// Returns the same by the definition, unit by unit.
double sumUp(const LinearProblem &problem, int64_t stage, int64_t begin,
             int64_t end) {
  const auto &units = problem.secondsByStage.empty()
                          ? problem.unitSeconds
                          : problem.secondsByStage[stage];
  double seconds = 0;
  for (int64_t unit = begin; unit < end; ++unit)
    seconds += units[unit];
  if (!problem.speeds.empty())
    seconds /= problem.speeds[stage];
  if (begin > 0)
    seconds += problem.cutSeconds[begin];
  if (end < static_cast<int64_t>(units.size()))
    seconds += problem.cutSeconds[end];
  return seconds;
}

/// Tries every increasing set of cuts.
std::pair<double, double> bruteForce(const LinearProblem &problem,
                                     int64_t stages) {
  int64_t count = problem.unitSeconds.size();
  std::pair<double, double> best(std::numeric_limits<double>::infinity(), 0);
  std::vector<char> chosen(count - 1, 0);
  std::fill(chosen.end() - (stages - 1), chosen.end(), 1);
  do {
    double slowest = 0, transfers = 0;
    int64_t begin = 0, stage = 0;
    for (int64_t end = 1; end <= count; ++end) {
      if (end < count && !chosen[end - 1])
        continue;
      slowest = std::max(slowest, sumUp(problem, stage++, begin, end));
      if (end < count)
        transfers += problem.cutSeconds[end];
      begin = end;
    }
    best = std::min(best, {slowest, transfers});
  } while (std::next_permutation(chosen.begin(), chosen.end()));
  return best;
}

TEST(LinearPartition, EqualsBruteForce) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> seconds(1, 20);
  for (int64_t count : {1, 2, 5, 9, 11}) {
    for (int64_t stages = 1; stages <= std::min<int64_t>(count, 6); ++stages) {
      for (int round = 0; round < 10; ++round) {
        LinearProblem problem;
        for (int64_t i = 0; i < count; ++i)
          problem.unitSeconds.push_back(seconds(random));
        for (int64_t i = 0; i <= count; ++i)
          problem.cutSeconds.push_back(seconds(random) / 8.0);
        LinearPlan plan = partitionLinearly(problem, stages);
        auto [slowest, transfers] = bruteForce(problem, stages);
        EXPECT_DOUBLE_EQ(plan.slowestSeconds, slowest);
        EXPECT_DOUBLE_EQ(plan.transferSeconds, transfers);
        ASSERT_EQ(static_cast<int64_t>(plan.cuts.size()), stages - 1);
        EXPECT_TRUE(std::is_sorted(plan.cuts.begin(), plan.cuts.end()));
      }
    }
  }
}

// Each stage has a device of its own kind, for which other units are slow, and
// of its own speed.
TEST(LinearPartition, EqualsBruteForceOnUnlikeDevices) {
  std::mt19937 random(11);
  std::uniform_int_distribution<int> seconds(1, 20);
  for (int64_t count : {1, 2, 5, 9, 11}) {
    for (int64_t stages = 1; stages <= std::min<int64_t>(count, 5); ++stages) {
      for (int round = 0; round < 10; ++round) {
        LinearProblem problem;
        problem.unitSeconds.assign(count, 1000);
        for (int64_t i = 0; i <= count; ++i)
          problem.cutSeconds.push_back(seconds(random) / 8.0);
        for (int64_t stage = 0; stage < stages; ++stage) {
          auto &own = problem.secondsByStage.emplace_back();
          for (int64_t i = 0; i < count; ++i)
            own.push_back(seconds(random));
          if (round % 2)
            problem.speeds.push_back(seconds(random) / 4.0);
        }
        LinearPlan plan = partitionLinearly(problem, stages);
        auto [slowest, transfers] = bruteForce(problem, stages);
        EXPECT_DOUBLE_EQ(plan.slowestSeconds, slowest);
        EXPECT_DOUBLE_EQ(plan.transferSeconds, transfers);
        EXPECT_DOUBLE_EQ(getStageSeconds(problem, stages - 1, 0, count),
                         sumUp(problem, stages - 1, 0, count));
      }
    }
  }
}

TEST(LinearPartition, CountsTransfers) {
  LinearProblem problem;
  problem.unitSeconds = {4, 4, 4, 4};
  problem.cutSeconds = {0, 1, 9, 2, 0};
  // The balanced cut in the middle carries too much.
  EXPECT_EQ(partitionLinearly(problem, 2).cuts,
            (llvm::SmallVector<int64_t>{1}));
}

TEST(LinearPartition, PrefersCheaperTransfersAmongEqualTimes) {
  LinearProblem problem;
  problem.unitSeconds = {9, 1, 1, 1};
  problem.cutSeconds = {0, 0, 1, 0.5, 0};
  LinearPlan plan = partitionLinearly(problem, 3);
  EXPECT_DOUBLE_EQ(plan.slowestSeconds, 9);
  EXPECT_EQ(plan.cuts, (llvm::SmallVector<int64_t>{1, 3}));
}
} // namespace
