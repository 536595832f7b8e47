//===- PlanSearch.cpp - Cuts, replicas and recomputation that fit ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See PlanSearch.h. Recomputation costs time, other stages cost less of it:
// they are searched first, and only where none fit do they get budgets, which
// shrink by what is missing until they fit.
//===----------------------------------------------------------------------===//

#include "PlanSearch.h"

#include "passes/Partition/Units.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

using namespace mlir;
using namespace penstock;

/// How often budgets are lowered for one set of cuts.
static constexpr int kRounds = 10;

namespace {
class PlanSearch {
public:
  PlanSearch(const Units &units, const ReplicaPlanner *replicas,
             const PlanRequest &request, const BuildPlan &build)
      : units(units), replicas(replicas), request(request), build(build) {}
  PlanAnswer run();

private:
  /// Bytes of the device of each stage.
  static std::vector<int64_t> getNeeds(const Report &report);
  std::optional<std::vector<int64_t>> measure(const StagePlan &plan,
                                              bool recompute);
  std::vector<StageShape> shapesOf(const StagePlan &plan) const {
    return plan.getShapes(static_cast<int64_t>(units.units.size()));
  }
  PlanAnswer search(bool recompute);

  const Units &units;
  const ReplicaPlanner *replicas; ///< Null where every stage has one device.
  const PlanRequest &request;
  const BuildPlan &build;
  /// Of the candidates that were measured with recomputation.
  std::map<std::vector<StageShape>, std::vector<int64_t>> budgetsOf;
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

std::optional<std::vector<int64_t>> PlanSearch::measure(const StagePlan &plan,
                                                        bool recompute) {
  std::vector<int64_t> budgets;
  for (int round = 0;; ++round) {
    std::optional<Report> report = build(plan, budgets);
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
    if (!isLower)
      return needs;
    budgetsOf[shapesOf(plan)] = budgets;
  }
}

PlanAnswer PlanSearch::search(bool recompute) {
  PlanAnswer answer;
  std::vector<int64_t> needs;
  if (request.choosesCuts) {
    StageSearchProblem problem;
    problem.linear = units.getLinearProblem();
    problem.stages = request.stages;
    if (replicas)
      problem.propose = [&](StageShapeFilter isAllowed) {
        return replicas->plan(isAllowed);
      };
    problem.limit = request.limit;
    problem.trials = recompute ? 8 : 24;
    problem.sharesDevices = request.chunks > 1;
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
          return measure(plan, recompute);
        });
    answer.plan = result.plan;
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
    answer.budgets = budgetsOf[shapesOf(answer.plan)];
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

LogicalResult penstock::insertBoundaries(ModuleOp module, const StagePlan &plan,
                                         const ReplicaRequest *replicas) {
  FailureOr<ForwardProgram> program = ForwardProgram::find(module);
  if (failed(program))
    return failure();
  Units units = Units::collect(*program);
  insertBoundaries(*program, units, plan.cuts);
  if (replicas)
    ReplicaPlanner(*program, units, *replicas).explain(module, plan);
  else
    units.explain(plan.cuts);
  return success();
}

FailureOr<PlanAnswer> penstock::searchPlan(ModuleOp module,
                                           const PlanRequest &request,
                                           const BuildPlan &build) {
  if (!request.choosesCuts)
    return PlanSearch(Units(), nullptr, request, build).run();
  FailureOr<ForwardProgram> program = ForwardProgram::find(module);
  if (failed(program))
    return failure();
  Units units = Units::collect(*program);
  if (!request.replicas)
    return PlanSearch(units, nullptr, request, build).run();
  ReplicaPlanner replicas(*program, units, *request.replicas);
  return PlanSearch(units, &replicas, request, build).run();
}
