//===- AssignVersions.cpp - Which version every read of a weight sees -----===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Asks the method (lib/Methods) for the lags of every stage, and lets it keep
// versions and adjust reads.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/Signatures.h"
#include "passes/Schedule/Passes.h"

#include "passes/Training/Passes.h"
#include "penstock/Methods/Method.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::schedule;

namespace penstock {
#define GEN_PASS_DEF_PIPELINEASSIGNVERSIONS
#include "passes/Schedule/Passes.h.inc"
} // namespace penstock

namespace {

struct AssignVersionsPass
    : penstock::impl::PipelineAssignVersionsBase<AssignVersionsPass> {
  using PipelineAssignVersionsBase::PipelineAssignVersionsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<pipeline::TrainingOp> training =
        pipeline::requireTraining(module);
    if (failed(training))
      return signalPassFailure();
    MethodUse use;
    use.method = MethodSpec::fromAttr(training->getMethodAttr());
    if (pipeline::OptimizerAttr optimizer = training->getOptimizerAttr())
      use.optimizer = OptimizerSpec::fromAttr(optimizer);
    use.rates = RateSchedule::fromAttr(training->getRateAttr());
    for (auto schedule :
         llvm::make_early_inc_range(module.getOps<pipeline::ScheduleOp>()))
      if (getTaskSet(schedule) == TaskSet::Training &&
          failed(assign(module, schedule, use)))
        return signalPassFailure();
  }

  LogicalResult assign(ModuleOp module, pipeline::ScheduleOp schedule,
                       const MethodUse &use) {
    const Method &method = use.method.getMethod();
    // 1. Do loop and depth fit the method?
    FailureOr<Imported> imported = importSchedule(schedule, Sizes::Ignore);
    if (failed(imported))
      return failure();
    for (const Order &order : imported->orders) {
      bool flushes =
          order.loops.empty() || order.loops.front().kind == LoopKind::Updates;
      if (flushes != method.flushes())
        return schedule.emitOpError("does not fit method ")
               << method.name << ", which "
               << (method.flushes() ? "flushes at every update"
                                    : "never flushes within a segment");
    }
    std::vector<StageFacts> facts = describeStages(*imported);
    for (const StageFacts &fact : facts)
      if (std::string wrong = method.checkStage(fact); !wrong.empty())
        return schedule.emitOpError("does not fit method ")
               << method.name << ", which " << wrong;
    std::string error;
    int64_t microbatches = imported->model.microbatches;
    int64_t depth = 0;
    for (const StageFacts &fact : facts)
      depth = std::max(depth, fact.depth);
    SmallVector<int64_t> replicas(depth);
    for (const StageFacts &fact : facts)
      replicas[fact.position] = fact.replicas;
    if (failed(checkMethod(use.method, microbatches, replicas, use.optimizer,
                           error)) ||
        failed(checkMethodDepth(use.method, replicas, microbatches, error)))
      return schedule.emitOpError() << error;

    // 2. Reads of what updates write, in tasks that count microbatches.
    std::vector<StageTasks> stages(facts.size());
    for (auto [index, stage] : llvm::enumerate(stages)) {
      stage.facts = facts[index];
      stage.lags = method.getLags(use.method, facts[index]);
      stage.stage = imported->stages[index];
      if (method.flushes())
        continue;
      stage.stage->setDiscardableAttr(
          pipeline::kLagsAttr,
          DenseI64ArrayAttr::get(module.getContext(), stage.lags.toArray()));
    }
    llvm::SetVector<Operation *> lagged, read;
    for (auto [task, plain] :
         llvm::zip_equal(imported->tasks, imported->model.tasks)) {
      StageTasks &stage = stages[plain.stage];
      if (plain.letter == 'U')
        stage.update = task;
      // A push may read what its wave began with.
      if (plain.perWave())
        for (auto op : task.getBody().front().getOps<pipeline::ReadOp>()) {
          int id = imported->variableIds.find(op.getVariable())->second;
          if (op.getLag().value_or(0) > 0 &&
              imported->model.variables[id].folder >= 0)
            lagged.insert(imported->variables[id]);
        }
      if (plain.perUpdate())
        continue;
      if (plain.letter == 'F')
        stage.forward = task;
      else
        stage.backward.push_back(task);
      // What runs again has to see the weights that the forward saw.
      if (task->hasAttr(pipeline::kRecomputesAttr) &&
          !method.keepsForwardWeights(use.method))
        return task.emitOpError("runs ops of the forward again, but method ")
               << method.name
               << " does not keep the weights that the forward saw";
      int64_t lag =
          plain.letter == 'F' ? stage.lags.forward : stage.lags.backward;
      for (auto op : task.getBody().front().getOps<pipeline::ReadOp>()) {
        int id = imported->variableIds.find(op.getVariable())->second;
        pipeline::VariableOp variable = imported->variables[id];
        if (imported->model.variables[id].updater < 0 ||
            variable.getRole() == pipeline::Role::Gradient)
          continue;
        op.setLag(lag);
        read.insert(variable);
        if (lag > 0)
          lagged.insert(variable);
      }
    }

    // 3. Storage of versions, then what the method adds.
    if (method.getStorage() == VersionStorage::Stash)
      addStorage(lagged,
                 [](OpBuilder &builder, Location loc, FlatSymbolRefAttr name) {
                   pipeline::WeightStashOp::create(
                       builder, loc, name, builder.getI64IntegerAttr(2));
                 });
    else if (method.getStorage() == VersionStorage::DoubleBuffer)
      addStorage(read,
                 [](OpBuilder &builder, Location loc, FlatSymbolRefAttr name) {
                   pipeline::DoubleBufferOp::create(builder, loc, name);
                 });
    for (const StageTasks &stage : stages)
      if (failed(method.adjust(module, stage, use)))
        return failure();
    // Reads may be of adjusted weights now.
    pipeline::signFunctions(module);
    return success();
  }

  void addStorage(
      const llvm::SetVector<Operation *> &variables,
      llvm::function_ref<void(OpBuilder &, Location, FlatSymbolRefAttr)> add) {
    for (Operation *variable : variables) {
      OpBuilder builder(variable->getContext());
      builder.setInsertionPointAfter(variable);
      add(builder, variable->getLoc(), FlatSymbolRefAttr::get(variable));
    }
  }
};

} // namespace
