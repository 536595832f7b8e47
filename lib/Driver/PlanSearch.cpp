//===- PlanSearch.cpp - Cuts and recomputation that fit -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See PlanSearch.h. Recomputation costs time, other cuts cost less of it: cuts
// are searched first, and only where none fits do stages get budgets, which
// shrink by what is missing until they fit.
//===----------------------------------------------------------------------===//

#include "PlanSearch.h"

#include "passes/Partition/Units.h"
#include "penstock/Planner/StageSearch.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

using namespace mlir;
using namespace penstock;

/// How often budgets are lowered for one set of cuts.
static constexpr int kRounds = 10;

namespace {
class PlanSearch {
public:
  PlanSearch(const Units &units, const PlanRequest &request,
             const BuildPlan &build)
      : units(units), request(request), build(build) {}
  PlanAnswer run();

private:
  /// Bytes of the device of each stage.
  static std::vector<int64_t> getNeeds(const Report &report);
  std::optional<std::vector<int64_t>> measure(ArrayRef<int64_t> cuts,
                                              bool recompute);
  PlanAnswer search(bool recompute);

  const Units &units;
  const PlanRequest &request;
  const BuildPlan &build;
  /// Of the candidates that were measured with recomputation.
  std::map<std::vector<int64_t>, std::vector<int64_t>> budgetsOf;
};
} // namespace

std::vector<int64_t> PlanSearch::getNeeds(const Report &report) {
  llvm::DenseMap<int64_t, int64_t> arenas;
  for (const StageReport &stage : report.stages)
    for (int64_t device : stage.devices)
      arenas[device] = std::max(arenas[device], stage.bytes.arena);
  std::vector<int64_t> needs;
  for (const StageReport &stage : report.stages) {
    needs.push_back(0);
    for (int64_t device : stage.devices)
      needs.back() = std::max(needs.back(), arenas[device]);
  }
  return needs;
}

std::optional<std::vector<int64_t>> PlanSearch::measure(ArrayRef<int64_t> cuts,
                                                        bool recompute) {
  std::vector<int64_t> budgets;
  for (int round = 0;; ++round) {
    std::optional<Report> report = build(cuts, budgets);
    if (!report)
      return std::nullopt;
    std::vector<int64_t> needs = getNeeds(*report);
    if (!recompute || round == kRounds)
      return needs;
    bool isLower = false;
    budgets.resize(needs.size(), -1);
    for (auto [index, stage] : llvm::enumerate(report->stages)) {
      int64_t stored = stage.residualsPerMicrobatch;
      int64_t excess = needs[index] - request.limit;
      if (excess <= 0 || stored == 0)
        continue;
      int64_t slots = std::max<int64_t>(1, stage.bytes.residuals / stored);
      int64_t budget =
          std::max<int64_t>(0, stored - llvm::divideCeil(excess, slots));
      // Nothing was left to drop: it cannot become less.
      if (budgets[index] >= 0 && stored > budgets[index])
        continue;
      budgets[index] = budget;
      isLower = true;
    }
    std::vector<int64_t> key(cuts.begin(), cuts.end());
    if (!isLower)
      return needs;
    budgetsOf[key] = budgets;
  }
}

PlanAnswer PlanSearch::search(bool recompute) {
  PlanAnswer answer;
  std::vector<int64_t> needs;
  if (request.choosesCuts) {
    StageSearchProblem problem;
    problem.linear = units.getLinearProblem();
    problem.stages = request.stages;
    problem.limit = request.limit;
    problem.trials = recompute ? 8 : 24;
    for (const Unit &unit : units.units) {
      problem.floorBytes.push_back(unit.weightBytes);
      double bytes = unit.weightBytes;
      for (Operation *op : unit.ops)
        for (Type type : op->getResultTypes())
          bytes += getTypeBytes(type);
      problem.activationBytes.push_back(bytes);
    }
    StageSearchResult result =
        searchStages(problem, [&](const StagePlan &plan) {
          return measure(plan.cuts, recompute);
        });
    answer.cuts = result.plan.cuts;
    answer.fits = result.fits;
    answer.isProved = result.isProved;
    answer.trials = result.trials;
    needs = result.bytes;
  } else {
    answer.trials = 1;
    if (std::optional<std::vector<int64_t>> found = measure({}, recompute))
      needs = *found;
    answer.fits = !needs.empty() && llvm::all_of(needs, [&](int64_t need) {
      return need <= request.limit;
    });
  }
  if (!needs.empty()) {
    answer.worstStage = llvm::max_element(needs) - needs.begin();
    answer.worstBytes = needs[answer.worstStage];
  }
  if (recompute)
    answer.budgets =
        budgetsOf[std::vector<int64_t>(answer.cuts.begin(), answer.cuts.end())];
  return answer;
}

PlanAnswer PlanSearch::run() {
  PlanAnswer answer = search(/*recompute=*/false);
  if (answer.fits || !request.mayRecompute)
    return answer;
  int64_t before = answer.trials;
  answer = search(/*recompute=*/true);
  answer.trials += before;
  return answer;
}

FailureOr<int64_t> penstock::countUnits(ModuleOp module) {
  FailureOr<ForwardProgram> program = ForwardProgram::find(module);
  if (failed(program))
    return failure();
  return static_cast<int64_t>(Units::collect(*program).units.size());
}

LogicalResult penstock::insertBoundaries(ModuleOp module,
                                         ArrayRef<int64_t> cuts) {
  FailureOr<ForwardProgram> program = ForwardProgram::find(module);
  if (failed(program))
    return failure();
  Units units = Units::collect(*program);
  insertBoundaries(*program, units, cuts);
  units.explain(cuts);
  return success();
}

FailureOr<PlanAnswer> penstock::searchPlan(ModuleOp module,
                                           const PlanRequest &request,
                                           const BuildPlan &build) {
  Units units;
  if (request.choosesCuts) {
    FailureOr<ForwardProgram> program = ForwardProgram::find(module);
    if (failed(program))
      return failure();
    units = Units::collect(*program);
  }
  return PlanSearch(units, request, build).run();
}
