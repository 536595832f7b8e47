//===- StageSearch.cpp - Cuts whose stages fit in memory ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two kinds of proposals take turns. One is the fastest plan that nothing known
// for certain speaks against: when it fits, it is the answer, and proved. The
// other is the fastest that fits by an estimate, which follows what was
// measured and finds a plan that fits in few trials.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/StageSearch.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <set>
#include <tuple>

using namespace llvm;
using namespace penstock;

namespace {
class StageSearch {
public:
  StageSearch(const StageSearchProblem &problem, const MeasureStages &measure)
      : problem(problem), measure(measure), perByte(problem.stages, 1) {
    for (ArrayRef<double> bytes :
         {ArrayRef(problem.floorBytes), ArrayRef(problem.activationBytes)}) {
      std::vector<double> &sums = floors.empty() ? floors : activations;
      sums.push_back(0);
      for (double value : bytes)
        sums.push_back(sums.back() + value);
    }
  }
  StageSearchResult run();

private:
  double floor(int64_t begin, int64_t end) const {
    return floors[end] - floors[begin];
  }
  double estimate(int64_t stage, int64_t begin, int64_t end) const {
    return floor(begin, end) +
           perByte[stage] * (activations[end] - activations[begin]);
  }
  /// Whether nothing known for certain speaks against a stage.
  bool isOpen(int64_t stage, int64_t begin, int64_t end) const {
    return floor(begin, end) <= static_cast<double>(problem.limit) &&
           !tooLarge.count({stage, begin, end});
  }
  std::optional<LinearPlan> proposeSurely() const;
  LinearPlan proposeLikely() const;
  /// Builds a plan and learns. Whether it fits.
  bool tryPlan(const LinearPlan &plan);

  const StageSearchProblem &problem;
  const MeasureStages &measure;
  std::vector<double> floors, activations; ///< Sums of the first units.
  std::vector<double> perByte;             ///< Measured per activation byte.
  std::set<std::tuple<int64_t, int64_t, int64_t>> tooLarge;
  std::set<std::vector<int64_t>> tried;
  StageSearchResult best;
  bool isCertain = true;
  double bestSeconds = 0;
  int64_t bestExcess = 0;
};
} // namespace

std::optional<LinearPlan> StageSearch::proposeSurely() const {
  return partitionLinearly(problem.linear, problem.stages,
                           [&](int64_t stage, int64_t begin, int64_t end) {
                             return isOpen(stage, begin, end);
                           });
}

LinearPlan StageSearch::proposeLikely() const {
  auto limit = static_cast<double>(problem.limit);
  if (std::optional<LinearPlan> plan =
          partitionLinearly(problem.linear, problem.stages,
                            [&](int64_t stage, int64_t begin, int64_t end) {
                              return isOpen(stage, begin, end) &&
                                     estimate(stage, begin, end) <= limit;
                            }))
    return *plan;
  return partitionEvenly(problem.linear.unitSeconds.size(), problem.stages,
                         [&](int64_t stage, int64_t begin, int64_t end) {
                           return estimate(stage, begin, end) +
                                  (isOpen(stage, begin, end) ? 0 : limit);
                         });
}

static double getSlowest(const LinearProblem &problem, ArrayRef<int64_t> cuts) {
  double slowest = 0;
  int64_t begin = 0;
  for (size_t index = 0; index <= cuts.size(); ++index) {
    int64_t end = index < cuts.size()
                      ? cuts[index]
                      : static_cast<int64_t>(problem.unitSeconds.size());
    slowest = std::max(slowest, getStageSeconds(problem, begin, end));
    begin = end;
  }
  return slowest;
}

bool StageSearch::tryPlan(const LinearPlan &plan) {
  tried.insert(std::vector<int64_t>(plan.cuts.begin(), plan.cuts.end()));
  ++best.trials;
  SmallVector<int64_t> ends(plan.cuts);
  ends.push_back(problem.linear.unitSeconds.size());
  std::optional<std::vector<int64_t>> bytes = measure(plan.cuts);
  if (!bytes || bytes->size() != ends.size()) {
    // No stage is to blame by itself; the first of them stands for all, and what
    // is found is no longer proved to be the best.
    tooLarge.insert({0, 0, ends.front()});
    isCertain = false;
    return false;
  }
  int64_t begin = 0, excess = 0;
  for (auto [stage, end] : enumerate(ends)) {
    int64_t need = (*bytes)[stage];
    double activation = activations[end] - activations[begin];
    if (activation > 0)
      perByte[stage] = std::max(
          0.0, (static_cast<double>(need) - floor(begin, end)) / activation);
    if (need > problem.limit)
      tooLarge.insert({static_cast<int64_t>(stage), begin, end});
    excess = std::max(excess, need - problem.limit);
    begin = end;
  }
  bool fits = excess <= 0;
  double seconds = getSlowest(problem.linear, plan.cuts);
  bool isBetter = best.bytes.empty() || fits > best.fits ||
                  (fits == best.fits &&
                   (fits ? seconds < bestSeconds : excess < bestExcess));
  if (isBetter) {
    best.cuts = plan.cuts;
    best.bytes = *bytes;
    best.fits = fits;
    bestSeconds = seconds;
    bestExcess = excess;
  }
  return fits;
}

StageSearchResult StageSearch::run() {
  for (bool surely = true; best.trials < problem.trials; surely = !surely) {
    std::optional<LinearPlan> fastest = proposeSurely();
    if (!fastest || (best.fits && fastest->slowestSeconds >= bestSeconds)) {
      best.isProved = isCertain;
      break;
    }
    if (surely) {
      if (tryPlan(*fastest)) {
        best.isProved = isCertain;
        break;
      }
      continue;
    }
    LinearPlan likely = proposeLikely();
    bool isKnown = tried.count(
        std::vector<int64_t>(likely.cuts.begin(), likely.cuts.end()));
    if (!isKnown &&
        !(best.fits && getSlowest(problem.linear, likely.cuts) >= bestSeconds))
      tryPlan(likely);
  }
  return best;
}

StageSearchResult penstock::searchStages(const StageSearchProblem &problem,
                                         const MeasureStages &measure) {
  return StageSearch(problem, measure).run();
}
