//===- PlanSearch.cpp - Cuts, replicas and recomputation that fit ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See PlanSearch.h. Recomputation costs time, other stages cost less of it:
// they are searched first, and only where none fit do they get budgets.
//===----------------------------------------------------------------------===//

#include "PlanSearch.h"

#include "penstock/Partition/Units.h"

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
  std::vector<StageShape> getShapes(const StagePlan &plan) const {
    return plan.getShapes(static_cast<int64_t>(units.units.size()));
  }
  PlanAnswer search(bool recompute);
  /// Builds one plan with one set of budgets, once.
  std::optional<std::vector<BuiltStage>> buildOnce(const StagePlan &plan,
                                                   ArrayRef<int64_t> budgets);

  const Units &units;
  const ReplicaPlanner *replicas; ///< Null where every stage has one device.
  const PlanRequest &request;
  const BuildPlan &build;
  using BuildKey = std::pair<std::vector<StageShape>, std::vector<int64_t>>;
  std::map<BuildKey, std::optional<std::vector<BuiltStage>>> built;
  /// The searches of the candidates that were measured with recomputation.
  std::map<std::vector<StageShape>, BudgetSearch> searches;
};
} // namespace

std::vector<int64_t> penstock::getNeeds(const Report &report) {
  std::vector<int64_t> needs;
  for (const StageReport &stage : report.stages)
    needs.push_back(stage.getLargestArena());
  return needs;
}

std::optional<std::vector<BuiltStage>>
PlanSearch::buildOnce(const StagePlan &plan, ArrayRef<int64_t> budgets) {
  // A stage without a limit is as if nobody had said a budget.
  std::vector<int64_t> limits;
  if (llvm::any_of(budgets, [](int64_t budget) { return budget >= 0; }))
    limits = budgets.vec();
  auto [known, isNew] = built.try_emplace({getShapes(plan), limits});
  if (!isNew)
    return known->second;
  std::optional<Report> report = build(plan, limits);
  if (!report)
    return std::nullopt;
  known->second.emplace();
  for (auto [stage, need] :
       llvm::zip_equal(report->stages, getNeeds(*report))) {
    known->second->push_back({need, stage.residualsPerMicrobatch,
                              stage.residualSlots, stage.variableBytes});
  }
  return known->second;
}

std::optional<std::vector<int64_t>> PlanSearch::measure(const StagePlan &plan,
                                                        bool recompute) {
  if (!recompute) {
    std::optional<std::vector<BuiltStage>> stages = buildOnce(plan, {});
    if (!stages)
      return std::nullopt;
    std::vector<int64_t> needs;
    for (const BuiltStage &stage : *stages)
      needs.push_back(stage.need);
    return needs;
  }
  auto buildStages = [this, plan](ArrayRef<int64_t> budgets) {
    return buildOnce(plan, budgets);
  };
  BudgetSearch search(request.limit, buildStages);
  bool isBuilt = search.lower();
  std::vector<int64_t> needs = search.getNeeds().vec();
  searches.insert_or_assign(getShapes(plan), std::move(search));
  return isBuilt ? std::optional(needs) : std::nullopt;
}

/// Plans of large models take long to build.
static int64_t getPatience(int64_t units) {
  constexpr int64_t kMostUnits = 1024;
  return std::max<int64_t>(1, kMostUnits / std::max<int64_t>(1, units));
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
    problem.patience = getPatience(static_cast<int64_t>(units.units.size()));
    for (const Unit &unit : units.units) {
      problem.floorBytes.push_back(unit.weightBytes);
      problem.heldBytes.push_back(request.weightCopies * unit.weightBytes);
      double bytes = 0;
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
  if (auto found = searches.find(getShapes(answer.plan));
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
