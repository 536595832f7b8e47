//===- BudgetSearch.cpp - How much stages may store -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See BudgetSearch.h. All stages are changed at a time, since a build costs the
// same for one of them.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/BudgetSearch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <iterator>

using namespace llvm;
using namespace penstock;

/// How often budgets are lowered, and raised again.
static constexpr int kLowerRounds = 10, kRaiseRounds = 5;
/// Steps that are a smaller part of what is stored are not worth a build.
static constexpr int64_t kFineness = 32;

std::optional<std::vector<BuiltStage>>
BudgetSearch::tryBudgets(std::vector<int64_t> trial) {
  std::optional<std::vector<BuiltStage>> built = build(trial);
  if (!built)
    return std::nullopt;
  known.resize(built->size());
  std::vector<int64_t> found;
  for (auto [points, stage] : zip_equal(known, *built)) {
    points[stage.stored] = stage.need;
    found.push_back(stage.need);
  }
  int64_t most = found.empty() ? 0 : *max_element(found);
  // Of plans that fit, the last one stores the most.
  if (needs.empty() || most <= std::max(limit, worst - 1)) {
    budgets = std::move(trial);
    needs = std::move(found);
    worst = most;
  }
  return built;
}

/// Where what a stage needs falls before it rises again, there may be less next
/// to the least that was found, if that is near the limit.
std::optional<int64_t> BudgetSearch::getBetween(size_t stage,
                                                int64_t slots) const {
  constexpr int64_t kNear = 4;
  const std::map<int64_t, int64_t> &points = known[stage];
  auto best = min_element(points, [](const auto &left, const auto &right) {
    return left.second < right.second;
  });
  if (best->second - limit > limit / kNear)
    return std::nullopt;
  int64_t below = best == points.begin() ? best->first : std::prev(best)->first;
  int64_t above =
      std::next(best) == points.end() ? best->first : std::next(best)->first;
  bool isBelow = best->first - below > above - best->first;
  // With less that is stored, what runs again takes no less room.
  if (isBelow && best->second - slots * (best->first - below) > limit)
    return std::nullopt;
  int64_t begin = isBelow ? below : best->first;
  int64_t end = isBelow ? best->first : above;
  if ((end - begin) * kFineness <= points.rbegin()->first)
    return std::nullopt;
  return begin + (end - begin) / 2;
}

std::optional<int64_t> BudgetSearch::getLower(size_t stage,
                                              const BuiltStage &built,
                                              int64_t budget) const {
  int64_t excess = built.need - limit;
  if (excess <= 0 || built.fixed > limit)
    return std::nullopt;
  // Nothing was left to drop: it cannot become less.
  if (built.stored == 0 || (budget >= 0 && built.stored > budget))
    return getBetween(stage, built.slots);
  return std::max<int64_t>(
      0, built.stored - divideCeil(excess, std::max<int64_t>(1, built.slots)));
}

bool BudgetSearch::lower() {
  std::vector<int64_t> trial;
  for (int round = 0; round <= kLowerRounds; ++round) {
    std::optional<std::vector<BuiltStage>> built = tryBudgets(trial);
    if (!built)
      return !needs.empty();
    trial.resize(built->size(), -1);
    bool changes = false;
    for (auto [index, stage] : enumerate(*built))
      if (std::optional<int64_t> budget =
              getLower(index, stage, trial[index])) {
        changes |= *budget != trial[index];
        trial[index] = *budget;
      }
    if (!changes)
      break;
  }
  return true;
}

void BudgetSearch::raise() {
  // What fits, and the least above it that does not.
  std::vector<int64_t> low = budgets, high = budgets, spare(budgets.size());
  for (auto [index, budget] : enumerate(budgets)) {
    spare[index] = limit - needs[index];
    for (auto [stored, need] : known[index])
      if (stored > budget && need > limit) {
        high[index] = stored;
        break;
      }
  }
  for (int round = 0; round < kRaiseRounds; ++round) {
    std::vector<int64_t> trial = low;
    for (size_t index = 0; index < low.size(); ++index)
      if (low[index] >= 0 && spare[index] > limit / kFineness / kFineness &&
          (high[index] - low[index]) * kFineness > high[index])
        trial[index] = low[index] + (high[index] - low[index]) / 2;
    if (trial == low)
      break;
    std::optional<std::vector<BuiltStage>> built = tryBudgets(trial);
    bool isApart = built.has_value(); // Who changed is the only one to blame.
    for (size_t index = 0; isApart && index < low.size(); ++index)
      isApart &= (*built)[index].need <= limit || trial[index] != low[index];
    for (size_t index = 0; index < low.size(); ++index) {
      if (trial[index] == low[index])
        continue;
      if (isApart && (*built)[index].need <= limit) {
        low[index] = trial[index];
        spare[index] = limit - (*built)[index].need;
      } else {
        high[index] = trial[index];
      }
    }
  }
  // Stages that fit each in another build.
  if (low != budgets)
    tryBudgets(low);
}
