//===- PlanSearch.cpp - Cuts, replicas and recomputation that fit ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See PlanSearch.h. Recomputation costs time, other stages cost less of it:
// they are searched first, and only where none fit do they get budgets.
//===----------------------------------------------------------------------===//

#include "PlanSearch.h"

#include "passes/Partition/Units.h"

#include "penstock/Planner/BudgetSearch.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

using namespace mlir;
using namespace penstock;

namespace {
class PlanSearch {
public:
  PlanSearch(const Units &units, const ReplicaPlanner *replicas,
             const PlanRequest &request, const BuildPlan &build)
      : units(units), replicas(replicas), request(request), build(build) {}
  PlanAnswer run();

private:
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
  std::map<std::vector<StageShape>, BudgetSearch> searches;
};
} // namespace

std::vector<int64_t> penstock::getNeeds(const Report &report) {
  std::vector<int64_t> needs;
  for (const StageReport &stage : report.stages)
    needs.push_back(stage.getLargestArena());
  return needs;
}

std::optional<std::vector<int64_t>> PlanSearch::measure(const StagePlan &plan,
                                                        bool recompute) {
  if (!recompute) {
    std::optional<Report> report = build(plan, {});
    return report ? std::optional(getNeeds(*report)) : std::nullopt;
  }
  auto buildStages =
      [this, plan](
          ArrayRef<int64_t> budgets) -> std::optional<std::vector<BuiltStage>> {
    std::optional<Report> report = build(plan, budgets);
    if (!report)
      return std::nullopt;
    std::vector<BuiltStage> stages;
    for (auto [stage, need] :
         llvm::zip_equal(report->stages, getNeeds(*report))) {
      int64_t stored = stage.residualsPerMicrobatch;
      stages.push_back(
          {need, stored, stored > 0 ? stage.bytes.residuals / stored : 1});
    }
    return stages;
  };
  BudgetSearch search(request.limit, buildStages);
  bool isBuilt = search.lower();
  std::vector<int64_t> needs = search.getNeeds().vec();
  searches.insert_or_assign(shapesOf(plan), std::move(search));
  return isBuilt ? std::optional(needs) : std::nullopt;
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
  if (auto found = searches.find(shapesOf(answer.plan));
      recompute && found != searches.end()) {
    // Nothing is made again that there is room for.
    if (answer.fits)
      found->second.raise();
    answer.budgets = found->second.getBudgets().vec();
  }
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
