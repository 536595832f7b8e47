//===- RecomputePlan.cpp - Which residuals are computed again -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See RecomputePlan.h. Constants and destinations are made wherever they are
// used, and cost nothing.
//===----------------------------------------------------------------------===//

#include "passes/Training/RecomputePlan.h"

#include "penstock/Autodiff/Pullback.h"
#include "penstock/Cost/AnalyticCost.h"
#include "penstock/Support/NodeName.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace penstock;

namespace {

/// What the search asks of an op again and again.
struct OpFacts {
  SmallVector<Value> used;
  double seconds = 0;
  bool isFree = false; ///< Names memory, or a constant.
};

class Planner {
public:
  explicit Planner(const RecomputeProblem &problem) : problem(problem) {
    collectFacts();
  }

  /// Whether an op's results follow from what the backward can have.
  bool isRepeatable(Operation *op) const { return repeatable.contains(op); }
  bool isDroppable(Value value) const {
    return value.getDefiningOp() && isRepeatable(value.getDefiningOp());
  }

  /// The plan that makes `dropped` again; ops for which `mayRun` does not hold
  /// do not run, their results are stored.
  RecomputePlan build(const llvm::SetVector<Value> &dropped,
                      llvm::function_ref<bool(Operation *)> mayRun) const;

private:
  void collectFacts();

  const RecomputeProblem &problem;
  llvm::DenseSet<Operation *> repeatable;
  llvm::DenseMap<Operation *, OpFacts> facts;
};

} // namespace

void Planner::collectFacts() {
  for (Operation &op : problem.block->without_terminator()) {
    OpFacts &known = facts[&op];
    OpCost cost = getAnalyticCost(&op);
    known.seconds = getForwardSeconds(cost, MachineRates());
    known.isFree = cost.bytes == 0;
    bool holds = isMemoryEffectFree(&op);
    forEachUsedValue(&op, [&](Value value) {
      known.used.push_back(value);
      Operation *source = value.getDefiningOp();
      holds &= source ? source->getBlock() != problem.block ||
                            repeatable.contains(source)
                      : !problem.unstable.contains(value);
    });
    if (holds)
      repeatable.insert(&op);
  }
}

RecomputePlan
Planner::build(const llvm::SetVector<Value> &dropped,
               llvm::function_ref<bool(Operation *)> mayRun) const {
  RecomputePlan plan;
  plan.dropped = dropped;
  llvm::DenseSet<Operation *> runs;
  llvm::DenseSet<Value> needed;
  for (Value value : dropped)
    runs.insert(value.getDefiningOp());
  for (Value value : problem.residuals)
    if (!dropped.contains(value))
      needed.insert(value);
  for (Operation &op : llvm::reverse(problem.block->without_terminator())) {
    if (!runs.contains(&op))
      continue;
    const OpFacts &known = facts.find(&op)->second;
    plan.seconds += known.seconds;
    for (Value value : known.used) {
      Operation *source = value.getDefiningOp();
      if (!source) {
        if (problem.data.contains(value))
          needed.insert(value);
      } else if (source->getBlock() == problem.block &&
                 !needed.contains(value)) {
        if (isRepeatable(source) &&
            (mayRun(source) || facts.find(source)->second.isFree ||
             dropped.contains(value)))
          runs.insert(source);
        else
          needed.insert(value);
      }
    }
  }
  for (Value value : problem.residuals)
    if (needed.contains(value))
      plan.stored.insert(value);
  for (Value argument : problem.block->getArguments())
    if (needed.contains(argument))
      plan.stored.insert(argument);
  for (Operation &op : problem.block->without_terminator()) {
    for (Value result : op.getResults())
      if (needed.contains(result))
        plan.stored.insert(result);
    if (runs.contains(&op))
      plan.ops.push_back(&op);
  }
  return plan;
}

int64_t penstock::getStoredBytes(ArrayRef<Value> values) {
  int64_t bytes = 0;
  for (Value value : values)
    bytes += static_cast<int64_t>(getTypeBytes(value.getType()));
  return bytes;
}

static bool always(Operation *) { return true; }

RecomputePlan penstock::planFullRecompute(const RecomputeProblem &problem) {
  Planner planner(problem);
  llvm::SetVector<Value> dropped;
  for (Value value : problem.residuals)
    if (planner.isDroppable(value))
      dropped.insert(value);
  return planner.build(dropped, always);
}

RecomputePlan penstock::planMatchingRecompute(const RecomputeProblem &problem,
                                              const llvm::Regex &nodes) {
  Planner planner(problem);
  auto matches = [&](Operation *op) {
    return llvm::any_of(getAllNames(op->getLoc()),
                        [&](StringRef name) { return nodes.match(name); });
  };
  llvm::SetVector<Value> dropped;
  for (Value value : problem.residuals)
    if (planner.isDroppable(value) && matches(value.getDefiningOp()))
      dropped.insert(value);
  return planner.build(dropped, matches);
}

static int64_t bytesOf(const RecomputePlan &plan) {
  return getStoredBytes(plan.stored.getArrayRef());
}

/// Drops or stores again one residual after the other, the fewest seconds per
/// byte first, until no single one saves any more. Returns the cheapest plan on
/// or next to this way that meets the budget, or the end of it.
static RecomputePlan changeUntil(const RecomputeProblem &problem,
                                 const Planner &planner, RecomputePlan plan,
                                 int64_t budget) {
  std::optional<RecomputePlan> cheapest;
  while (bytesOf(plan) > budget &&
         (!cheapest || plan.seconds < cheapest->seconds)) {
    std::optional<RecomputePlan> best;
    double bestPrice = 0;
    for (Value value : problem.residuals) {
      if (!planner.isDroppable(value))
        continue;
      llvm::SetVector<Value> other = plan.dropped;
      if (!other.insert(value))
        other.remove(value);
      RecomputePlan trial = planner.build(other, always);
      int64_t saved = bytesOf(plan) - bytesOf(trial);
      if (saved <= 0)
        continue;
      if (bytesOf(trial) <= budget &&
          (!cheapest || trial.seconds < cheapest->seconds))
        cheapest = trial;
      double price =
          (trial.seconds - plan.seconds) / static_cast<double>(saved);
      if (!best || price < bestPrice) {
        bestPrice = price;
        best = std::move(trial);
      }
    }
    if (!best)
      break;
    plan = std::move(*best);
  }
  return cheapest ? std::move(*cheapest) : plan;
}

/// Stores again what the budget has room for, the most seconds per byte first.
static RecomputePlan restoreWithin(const Planner &planner, RecomputePlan plan,
                                   int64_t budget) {
  while (true) {
    std::optional<RecomputePlan> best;
    double bestGain = 0;
    for (Value value : plan.dropped) {
      llvm::SetVector<Value> fewer = plan.dropped;
      fewer.remove(value);
      RecomputePlan trial = planner.build(fewer, always);
      int64_t bytes = bytesOf(trial);
      double saved = plan.seconds - trial.seconds;
      if (bytes > budget || saved <= 0)
        continue;
      // Where nothing more is stored, any second is worth it.
      double gain = saved / static_cast<double>(
                                std::max<int64_t>(bytes - bytesOf(plan), 1));
      if (!best || gain > bestGain) {
        bestGain = gain;
        best = std::move(trial);
      }
    }
    if (!best)
      return plan;
    plan = std::move(*best);
  }
}

RecomputePlan penstock::planRecomputeWithin(const RecomputeProblem &problem,
                                            int64_t budget) {
  Planner planner(problem);
  RecomputePlan few =
      changeUntil(problem, planner, planner.build({}, always), budget);
  if (few.dropped.empty())
    return few;
  // The last one dropped may have made others needless. And where values are
  // made from the same input, only several of them together may save its bytes:
  // that is seen from the other end.
  few = restoreWithin(planner, std::move(few), budget);
  RecomputePlan many = restoreWithin(
      planner,
      changeUntil(problem, planner, planFullRecompute(problem), budget),
      budget);
  bool fewFit = bytesOf(few) <= budget, manyFit = bytesOf(many) <= budget;
  if (fewFit != manyFit)
    return fewFit ? few : many;
  bool areFewBetter =
      fewFit ? few.seconds <= many.seconds : bytesOf(few) <= bytesOf(many);
  return areFewBetter ? few : many;
}
