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
#include "penstock/Planner/Recomputation.h"
#include "penstock/Support/NodeName.h"

#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace penstock;

namespace {

/// Facts of an op that the search needs again and again.
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

  /// Returns true if an op's results follow from values that the backward can
  /// have.
  bool isRepeatable(Operation *op) const { return repeatable.contains(op); }
  bool isDroppable(Value value) const {
    return value.getDefiningOp() && isRepeatable(value.getDefiningOp());
  }

  /// The plan that makes `dropped` again; ops for which `mayRun` does not hold
  /// do not run, their results are stored.
  RecomputePlan build(const llvm::SetVector<Value> &dropped,
                      llvm::function_ref<bool(Operation *)> mayRun) const;

  /// The choice there is, in numbers, and the ops that these stand for.
  RecomputationGraph describe(std::vector<Operation *> &ops) const;

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

RecomputationGraph Planner::describe(std::vector<Operation *> &ops) const {
  RecomputationGraph graph;
  llvm::DenseMap<Operation *, int> numberOf;
  llvm::DenseMap<Value, unsigned> indexOf;
  auto getIndex = [&](Value value) {
    auto [known, isNew] = indexOf.try_emplace(value, graph.values.size());
    if (isNew) {
      RecomputationGraph::Value described;
      described.bytes = static_cast<int64_t>(getTypeBytes(value.getType()));
      if (Operation *source = value.getDefiningOp()) {
        auto number = numberOf.find(source);
        described.op = number == numberOf.end() ? -1 : number->second;
      }
      described.isNeeded = problem.residuals.contains(value);
      described.mayStore = described.op < 0 || described.isNeeded;
      graph.values.push_back(described);
    }
    return known->second;
  };
  for (Operation &op : problem.block->without_terminator()) {
    if (!isRepeatable(&op))
      continue;
    const OpFacts &known = facts.find(&op)->second;
    RecomputationGraph::Op described;
    described.seconds = known.seconds;
    auto destination = dyn_cast<DestinationStyleOpInterface>(op);
    for (Value value : known.used) {
      Operation *source = value.getDefiningOp();
      if (source ? source->getBlock() != problem.block
                 : !problem.data.contains(value))
        continue;
      unsigned index = getIndex(value);
      described.uses.push_back(index);
      // What is only written over is not worth a place.
      bool isRead =
          !destination || !llvm::is_contained(destination.getDpsInits(), value);
      graph.values[index].mayStore |= isRead && source &&
                                      !facts.find(source)->second.isFree &&
                                      isa<RankedTensorType>(value.getType());
    }
    numberOf[&op] = static_cast<int>(graph.ops.size());
    graph.ops.push_back(std::move(described));
    ops.push_back(&op);
  }
  for (Value value : problem.residuals)
    getIndex(value);
  return graph;
}

RecomputePlan penstock::planRecomputeWithin(const RecomputeProblem &problem,
                                            int64_t budget) {
  Planner planner(problem);
  std::vector<Operation *> ops;
  RecomputationGraph graph = planner.describe(ops);
  RecomputationChoice choice = chooseRecomputation(graph, budget);
  llvm::DenseSet<Operation *> runs;
  for (auto [op, doesRun] : llvm::zip_equal(ops, choice.runs))
    if (doesRun)
      runs.insert(op);
  llvm::SetVector<Value> dropped;
  for (Value value : problem.residuals)
    if (runs.contains(value.getDefiningOp()))
      dropped.insert(value);
  RecomputePlan plan =
      planner.build(dropped, [&](Operation *op) { return runs.contains(op); });
  plan.leastSeconds = choice.leastSeconds;
  return plan;
}
