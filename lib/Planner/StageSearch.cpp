//===- StageSearch.cpp - Cuts whose stages fit in memory ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two kinds of proposals take turns. One is the fastest plan that nothing known
// for certain speaks against: when it fits, it is the answer, and proved. The
// other is the fastest that fits by an estimate, which follows what was
// measured and finds a plan that fits in few trials. What it proposes where
// nothing is likely to fit is as even as can be; when that does not change any
// more, there is nothing left but to go through all.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/StageSearch.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>
#include <set>

using namespace llvm;
using namespace penstock;

namespace {
class StageSearch {
public:
  StageSearch(const StageSearchProblem &problem, const MeasureStages &measure)
      : problem(problem), measure(measure) {
    auto add = [](ArrayRef<double> bytes, std::vector<double> &sums) {
      sums.push_back(0);
      for (double value : bytes)
        sums.push_back(sums.back() + value);
    };
    add(problem.floorBytes, floors);
    add(problem.activationBytes, activations);
    add(problem.heldBytes.empty() ? problem.floorBytes : problem.heldBytes,
        held);
  }
  StageSearchResult run();

private:
  double floor(int64_t begin, int64_t end) const {
    return floors[end] - floors[begin];
  }
  double estimate(const StageShape &shape) const {
    auto known = perByte.find({shape.replicas, shape.after});
    return held[shape.end] - held[shape.begin] +
           (known == perByte.end() ? 1 : known->second) *
               (activations[shape.end] - activations[shape.begin]);
  }
  /// Returns true if nothing known for certain excludes a stage.
  bool isOpen(const StageShape &shape) const {
    return floor(shape.begin, shape.end) <=
               static_cast<double>(problem.limit) &&
           !tooLarge.count(shape);
  }
  int64_t units() const { return static_cast<int64_t>(floors.size()) - 1; }
  StageShape getShape(int64_t stage, int64_t begin, int64_t end) const {
    return {begin, end, 1, problem.stages - 1 - stage};
  }
  std::optional<StagePlan> propose(StageShapeFilter isAllowed) const;
  std::optional<StagePlan> proposeEven() const;
  std::optional<StagePlan> proposeLikely() const;
  double getSlowest(ArrayRef<int64_t> cuts) const;
  /// Builds a plan and learns. Whether it fits.
  bool tryPlan(const StagePlan &plan);

  const StageSearchProblem &problem;
  const MeasureStages &measure;
  std::vector<double> floors, activations, held; ///< Sums of the first units.
  /// Measured per activation byte, by replicas and devices behind.
  std::map<std::pair<int64_t, int64_t>, double> perByte;
  std::set<StageShape> tooLarge;
  std::set<std::vector<StageShape>> tried;
  StageSearchResult best;
  bool isCertain = true;
  int64_t bestExcess = 0;
};
} // namespace

std::vector<StageShape> StagePlan::getShapes(int64_t units) const {
  if (!shapes.empty())
    return shapes;
  std::vector<StageShape> line(cuts.size() + 1);
  int64_t after = 0;
  for (size_t stage = line.size(); stage-- > 0;) {
    line[stage] = {stage > 0 ? cuts[stage - 1] : 0,
                   stage < cuts.size() ? cuts[stage] : units,
                   replicas.empty() ? 1 : replicas[stage], after};
    after += line[stage].replicas;
  }
  return line;
}

std::optional<StagePlan>
StageSearch::propose(StageShapeFilter isAllowed) const {
  if (problem.propose)
    return problem.propose(isAllowed);
  std::optional<LinearPlan> plan =
      partitionLinearly(problem.linear, problem.stages,
                        [&](int64_t stage, int64_t begin, int64_t end) {
                          return isAllowed(getShape(stage, begin, end));
                        });
  if (!plan)
    return std::nullopt;
  return StagePlan{plan->cuts, {}, plan->slowestSeconds};
}

/// The fastest of those whose largest stage is about as small as can be, built
/// or not: where it is one that has been, nothing else is likelier to fit.
std::optional<StagePlan> StageSearch::proposeEven() const {
  constexpr double kFineness = 1. / 256;
  auto within = [&](double bytes) {
    return propose(
        [&](const StageShape &shape) { return estimate(shape) <= bytes; });
  };
  double low = 0, high = estimate({0, units(), 1, 0});
  for (const auto &[place, bytes] : perByte)
    high = std::max(high, estimate({0, units(), place.first, place.second}));
  std::optional<StagePlan> even = within(high);
  while (even && high - low > kFineness * high) {
    double middle = low + (high - low) / 2;
    std::optional<StagePlan> smaller = within(middle);
    (smaller ? high : low) = middle;
    if (smaller)
      even = std::move(smaller);
  }
  return even;
}

std::optional<StagePlan> StageSearch::proposeLikely() const {
  auto limit = static_cast<double>(problem.limit);
  std::optional<StagePlan> plan = propose([&](const StageShape &shape) {
    return isOpen(shape) && estimate(shape) <= limit;
  });
  if (plan)
    return plan;
  if (problem.propose)
    return proposeEven();
  LinearPlan even = partitionEvenly(
      units(), problem.stages, [&](int64_t stage, int64_t begin, int64_t end) {
        return estimate(getShape(stage, begin, end));
      });
  return StagePlan{even.cuts, {}, getSlowest(even.cuts)};
}

double StageSearch::getSlowest(ArrayRef<int64_t> cuts) const {
  double slowest = 0;
  int64_t begin = 0;
  for (size_t index = 0; index <= cuts.size(); ++index) {
    int64_t end = index < cuts.size() ? cuts[index] : units();
    slowest = std::max(slowest, getStageSeconds(problem.linear, begin, end));
    begin = end;
  }
  return slowest;
}

bool StageSearch::tryPlan(const StagePlan &plan) {
  std::vector<StageShape> shapes = plan.getShapes(units());
  tried.insert(shapes);
  ++best.trials;
  std::optional<std::vector<int64_t>> bytes = measure(plan);
  if (!bytes || bytes->size() != shapes.size()) {
    // No stage is to blame by itself; the first of them stands for all, and
    // what is found is no longer proved to be the best.
    tooLarge.insert(shapes.front());
    isCertain = false;
    return false;
  }
  int64_t excess = 0;
  for (auto [shape, need] : zip_equal(shapes, *bytes)) {
    double activation = activations[shape.end] - activations[shape.begin];
    if (activation > 0)
      perByte[{shape.replicas, shape.after}] =
          std::max(0.0, (static_cast<double>(need) - held[shape.end] +
                         held[shape.begin]) /
                            activation);
    if (need > problem.limit) {
      tooLarge.insert(shape);
      isCertain &= !problem.sharesDevices;
    }
    excess = std::max(excess, need - problem.limit);
  }
  bool fits = excess <= 0;
  bool isBetter = best.bytes.empty() || fits > best.fits ||
                  (fits == best.fits && (fits ? plan.seconds < best.plan.seconds
                                              : excess < bestExcess));
  if (isBetter) {
    best.plan = plan;
    best.bytes = *bytes;
    best.fits = fits;
    bestExcess = excess;
  }
  return fits;
}

StageSearchResult StageSearch::run() {
  int64_t idle = 0;
  for (bool surely = true; best.trials < problem.trials; surely = !surely) {
    std::optional<StagePlan> fastest =
        propose([&](const StageShape &shape) { return isOpen(shape); });
    if (!fastest || (best.fits && fastest->seconds >= best.plan.seconds)) {
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
    std::optional<StagePlan> likely = proposeLikely();
    if (likely && !tried.count(likely->getShapes(units())) &&
        !(best.fits && likely->seconds >= best.plan.seconds))
      tryPlan(*likely);
    else if (++idle >= problem.patience)
      break;
  }
  return best;
}

StageSearchResult penstock::searchStages(const StageSearchProblem &problem,
                                         const MeasureStages &measure) {
  return StageSearch(problem, measure).run();
}
