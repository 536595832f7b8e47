//===- Recompute.cpp - Backward tasks that run the forward again ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Takes residuals out of the channel from a stage's forward to its backward,
// and puts the ops that made them into the backward function. They see what the
// forward saw: stored data, the same microbatch number, and the version of the
// weights that the method grants (pipeline-assign-versions rejects where there
// is none).
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/Signatures.h"
#include "passes/Training/Passes.h"
#include "passes/Training/RecomputeRewrite.h"

#include "llvm/Support/FormatVariadic.h"

#include <limits>

namespace penstock {
#define GEN_PASS_DEF_PIPELINERECOMPUTE
#include "passes/Training/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

class RecomputePass
    : public penstock::impl::PipelineRecomputeBase<RecomputePass> {
  using PipelineRecomputeBase::PipelineRecomputeBase;
  void runOnOperation() override;

  std::optional<RecomputeStage> find(StageOp stage);
  void describe(RecomputeStage &stage);
  RecomputePlan plan(const RecomputeStage &stage, unsigned number);
  void report(RecomputeStage &stage, const RecomputePlan &plan);

  SymbolTable *symbols = nullptr;
};

/// The one op of a kind in a task's body, or null.
template <typename Op> Op findOne(TaskOp task) {
  auto ops = llvm::to_vector(task.getBody().getOps<Op>());
  return ops.size() == 1 ? ops.front() : Op();
}

} // namespace

void RecomputePass::runOnOperation() {
  TrainingOp training = getTraining(getOperation());
  if (policy == RecomputePolicy::None || (training && training.getInfers()))
    return;
  std::string problem;
  if (policy == RecomputePolicy::Matching &&
      !llvm::Regex(nodes).isValid(problem)) {
    getOperation().emitError() << "--recompute=" << nodes << ": " << problem;
    return signalPassFailure();
  }
  SymbolTable table(getOperation());
  symbols = &table;
  bool matched = false;
  for (auto [number, stageOp] :
       llvm::enumerate(llvm::to_vector(getOperation().getOps<StageOp>()))) {
    std::optional<RecomputeStage> stage = find(stageOp);
    if (!stage)
      continue;
    describe(*stage);
    RecomputePlan chosen = plan(*stage, number);
    report(*stage, chosen);
    if (chosen.dropped.empty())
      continue;
    matched = true;
    applyRecomputePlan(*stage, chosen, table);
  }
  signFunctions(getOperation());
  if (!matched && policy == RecomputePolicy::Matching)
    emitWarning(getOperation().getLoc())
        << "--recompute=" << nodes
        << ": no node of this name keeps anything for the backward that could "
           "be computed again";
}

std::optional<RecomputeStage> RecomputePass::find(StageOp stageOp) {
  RecomputeStage found;
  found.stage = stageOp;
  for (TaskOp task : getOperation().getOps<TaskOp>()) {
    if (task.isBodyless() || task.getStage() != stageOp.getSymName())
      continue;
    if (task.getKind() == TaskKind::Forward)
      found.forward = task;
    else if (task.getKind() == TaskKind::Backward)
      found.backward = task;
  }
  if (!found.forward || !found.backward)
    return std::nullopt;
  found.forwardCall = findOne<func::CallOp>(found.forward);
  found.backwardCall = findOne<func::CallOp>(found.backward);
  for (auto put : found.forward.getBody().getOps<PutOp>())
    for (auto take : found.backward.getBody().getOps<TakeOp>())
      if (put.getChannel() == take.getChannel()) {
        found.put = put;
        found.take = take;
      }
  if (!found.forwardCall || !found.backwardCall || !found.put)
    return std::nullopt;
  found.channel = symbols->lookup<ChannelOp>(found.put.getChannel());
  found.forwardFunction =
      symbols->lookup<func::FuncOp>(found.forwardCall.getCallee());
  found.backwardFunction =
      symbols->lookup<func::FuncOp>(found.backwardCall.getCallee());
  if (!found.channel || !found.forwardFunction || !found.backwardFunction)
    return std::nullopt;
  return found;
}

void RecomputePass::describe(RecomputeStage &stage) {
  Block &block = stage.forwardFunction.front();
  RecomputeProblem &problem = stage.problem;
  problem.block = &block;
  llvm::DenseSet<StringRef> written;
  for (auto write : stage.forward.getBody().getOps<WriteOp>())
    written.insert(write.getVariable());
  for (auto [argument, operand] :
       llvm::zip(block.getArguments(), stage.forwardCall.getOperands())) {
    if (auto read = operand.getDefiningOp<ReadOp>()) {
      if (written.contains(read.getVariable()))
        problem.unstable.insert(argument);
    } else if (isa<RankedTensorType>(operand.getType())) {
      problem.data.insert(argument);
    }
  }
  for (Value value : stage.put.getValues()) {
    Value field;
    if (value.getDefiningOp() == stage.forwardCall) {
      field = block.getTerminator()->getOperand(
          cast<OpResult>(value).getResultNumber());
    } else {
      auto operands = stage.forwardCall.getOperands();
      auto place = llvm::find(operands, value);
      if (place != operands.end())
        field = block.getArgument(place - operands.begin());
    }
    stage.fields.push_back(field);
    if (field)
      problem.residuals.insert(field);
  }
}

RecomputePlan RecomputePass::plan(const RecomputeStage &stage,
                                  unsigned number) {
  switch (policy) {
  case RecomputePolicy::None:
    return {};
  case RecomputePolicy::Full:
    return planFullRecompute(stage.problem);
  case RecomputePolicy::Budget: {
    int64_t bytes = number < budgets.size() && budgets[number] >= 0
                        ? budgets[number]
                        : std::numeric_limits<int64_t>::max();
    return planRecomputeWithin(stage.problem, bytes);
  }
  case RecomputePolicy::Matching:
    return planMatchingRecompute(stage.problem, llvm::Regex(nodes));
  }
  llvm_unreachable("no such policy");
}

void RecomputePass::report(RecomputeStage &stage, const RecomputePlan &plan) {
  // Where the cheapest plan is looked for, and not proved to be found.
  std::string least;
  if (policy == RecomputePolicy::Budget && plan.leastSeconds < plan.seconds)
    least = llvm::formatv("; at least {0:F2} us are needed",
                          plan.leastSeconds * 1e6);
  emitRemark(stage.backward.getLoc())
      << llvm::formatv(
             "stage @{0} keeps {1} of {2} bytes of residuals per microbatch "
             "and runs {3} ops of the forward again ({4:F2} us{5})",
             stage.stage.getSymName(),
             getStoredBytes(plan.stored.getArrayRef()),
             getStoredBytes(stage.problem.residuals.getArrayRef()),
             plan.ops.size(), plan.seconds * 1e6, least)
             .str();
}
