//===- LinearPartition.cpp - Cuts of a linear order into stages -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See LinearPartition.h.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/LinearPartition.h"
#include "penstock/Support/Assert.h"

#include <algorithm>
#include <limits>
#include <vector>

using namespace penstock;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

namespace {
/// Sums over ranges of units in constant time.
class StageTimes {
public:
  explicit StageTimes(const LinearProblem &problem) : problem(problem) {
    if (problem.secondsByStage.empty())
      addSums(problem.unitSeconds);
    for (llvm::ArrayRef<double> seconds : problem.secondsByStage)
      addSums(seconds);
  }
  double operator()(int64_t stage, int64_t begin, int64_t end) const {
    int64_t count = static_cast<int64_t>(problem.unitSeconds.size());
    double speed = problem.speeds.empty() ? 1 : problem.speeds[stage];
    const std::vector<double> &own = sums[sums.size() == 1 ? 0 : stage];
    return (own[end] - own[begin]) / speed +
           (begin > 0 ? problem.cutSeconds[begin] : 0) +
           (end < count ? problem.cutSeconds[end] : 0);
  }

private:
  void addSums(llvm::ArrayRef<double> seconds) {
    std::vector<double> &own = sums.emplace_back(1, 0);
    for (double each : seconds)
      own.push_back(own.back() + each);
  }

  const LinearProblem &problem;
  std::vector<std::vector<double>> sums; // of all stages, or of each
};
} // namespace

double penstock::getStageSeconds(const LinearProblem &problem, int64_t begin,
                                 int64_t end) {
  LinearProblem equal = problem;
  equal.speeds.clear();
  equal.secondsByStage.clear();
  return StageTimes(equal)(0, begin, end);
}

double penstock::getStageSeconds(const LinearProblem &problem, int64_t stage,
                                 int64_t begin, int64_t end) {
  // Sums of all stages would take longer than those of this one.
  LinearProblem own;
  own.unitSeconds = problem.secondsByStage.empty()
                        ? problem.unitSeconds
                        : problem.secondsByStage[stage];
  own.cutSeconds = problem.cutSeconds;
  if (!problem.speeds.empty())
    own.speeds = {problem.speeds[stage]};
  return StageTimes(own)(0, begin, end);
}

/// The dynamic program: best[s][e] is the least value of the first e units in
/// s stages, where the last stage [b, e) adds to the value before it by
/// `extend`.
template <typename Extend>
static double solve(int64_t count, int64_t stages, Extend extend,
                    llvm::SmallVectorImpl<int64_t> &cuts) {
  std::vector<std::vector<double>> best(
      stages + 1, std::vector<double>(count + 1, kInfinity));
  std::vector<std::vector<int64_t>> lastBegin(
      stages + 1, std::vector<int64_t>(count + 1, 0));
  best[0][0] = 0;
  for (int64_t stage = 1; stage <= stages; ++stage) {
    for (int64_t end = stage; end <= count; ++end) {
      for (int64_t begin = stage - 1; begin < end; ++begin) {
        double value = extend(best[stage - 1][begin], stage - 1, begin, end);
        if (value < best[stage][end]) {
          best[stage][end] = value;
          lastBegin[stage][end] = begin;
        }
      }
    }
  }
  cuts.clear();
  for (int64_t stage = stages, end = count; stage > 1; --stage) {
    end = lastBegin[stage][end];
    cuts.push_back(end);
  }
  std::reverse(cuts.begin(), cuts.end());
  return best[stages][count];
}

LinearPlan penstock::partitionLinearly(const LinearProblem &problem,
                                       int64_t stages) {
  return *partitionLinearly(problem, stages,
                            [](int64_t, int64_t, int64_t) { return true; });
}

std::optional<LinearPlan>
penstock::partitionLinearly(const LinearProblem &problem, int64_t stages,
                            StageFilter isAllowed) {
  int64_t count = static_cast<int64_t>(problem.unitSeconds.size());
  PENSTOCK_ASSERT(stages >= 1 && stages <= count, "more stages than units");
  PENSTOCK_ASSERT(problem.speeds.empty() ||
                      static_cast<int64_t>(problem.speeds.size()) == stages,
                  "every stage has a device");
  PENSTOCK_ASSERT(problem.secondsByStage.empty() ||
                      static_cast<int64_t>(problem.secondsByStage.size()) ==
                          stages,
                  "every stage has a device");
  StageTimes time(problem);
  LinearPlan plan;
  // Two passes, since the pair (slowest, transfers) has no optimal prefixes:
  // first the bound, then the cheapest transfers within it.
  plan.slowestSeconds = solve(
      count, stages,
      [&](double before, int64_t stage, int64_t begin, int64_t end) {
        return isAllowed(stage, begin, end)
                   ? std::max(before, time(stage, begin, end))
                   : kInfinity;
      },
      plan.cuts);
  if (plan.slowestSeconds == kInfinity)
    return std::nullopt;
  plan.transferSeconds = solve(
      count, stages,
      [&](double before, int64_t stage, int64_t begin, int64_t end) {
        return time(stage, begin, end) > plan.slowestSeconds ||
                       !isAllowed(stage, begin, end)
                   ? kInfinity
                   : before + (begin > 0 ? problem.cutSeconds[begin] : 0);
      },
      plan.cuts);
  return plan;
}

LinearPlan penstock::partitionEvenly(
    int64_t units, int64_t stages,
    llvm::function_ref<double(int64_t, int64_t, int64_t)> getSize) {
  LinearPlan plan;
  solve(
      units, stages,
      [&](double before, int64_t stage, int64_t begin, int64_t end) {
        return std::max(before, getSize(stage, begin, end));
      },
      plan.cuts);
  return plan;
}
