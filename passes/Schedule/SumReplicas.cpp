//===- SumReplicas.cpp - Gradients of all replicas of a stage -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replicas see different microbatches and must make equal updates: their
// gradients are summed first, as those of tied parameters are.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Passes.h"

#include "dialects/Pipeline/Pipeline.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
namespace pipeline = penstock::pipeline;

namespace penstock {
#define GEN_PASS_DEF_PIPELINESUMREPLICAS
#include "passes/Schedule/Passes.h.inc"
} // namespace penstock

namespace {

struct SumReplicasPass
    : penstock::impl::PipelineSumReplicasBase<SumReplicasPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    llvm::MapVector<Attribute, SmallVector<Attribute>> gradients;
    for (auto stage : module.getOps<pipeline::StageOp>())
      if (stage.getDevices() && stage.getDevices()->size() > 1)
        gradients[FlatSymbolRefAttr::get(stage)] = {};
    if (gradients.empty())
      return;
    if (failed(checkStatistics(symbols, gradients)))
      return signalPassFailure();

    // 1. What is summed already.
    llvm::DenseSet<Attribute> summed;
    for (auto group : module.getOps<pipeline::GroupOp>())
      for (auto member : group.getMembers().getAsRange<ArrayAttr>())
        summed.insert(member.begin(), member.end());

    // 2. The other gradients of each stage.
    Operation *last = nullptr;
    for (auto variable : module.getOps<pipeline::VariableOp>()) {
      last = variable;
      auto stage = gradients.find(variable.getStageAttr());
      auto name = FlatSymbolRefAttr::get(variable);
      if (variable.getRole() == pipeline::Role::Gradient &&
          stage != gradients.end() && !summed.contains(name))
        stage->second.push_back(name);
    }

    // 3. A group of each, behind the variables that it names.
    OpBuilder builder(&getContext());
    for (auto &[stage, names] : gradients) {
      if (names.empty())
        continue;
      auto name = cast<FlatSymbolRefAttr>(stage).getValue();
      builder.setInsertionPointAfter(last);
      auto group = pipeline::GroupOp::create(
          builder, last->getLoc(), (name + ".replicas").str(),
          builder.getArrayAttr(builder.getArrayAttr(names)));
      group->remove();
      symbols.insert(group, std::next(last->getIterator()));
      last = group;
    }
  }

  /// A statistic moves with every microbatch, and each replica sees but some:
  /// it is up to the update to move it.
  LogicalResult checkStatistics(
      SymbolTable &symbols,
      const llvm::MapVector<Attribute, SmallVector<Attribute>> &replicated) {
    WalkResult result = getOperation().walk([&](pipeline::WriteOp write) {
      auto variable = symbols.lookup<pipeline::VariableOp>(write.getVariable());
      if (!variable || variable.getRole() != pipeline::Role::Statistic ||
          write->getParentOfType<pipeline::TaskOp>().getKind() ==
              pipeline::TaskKind::Update ||
          !replicated.contains(variable.getStageAttr()))
        return WalkResult::advance();
      variable.emitError("statistic '")
          << variable.getSymName() << "' follows all microbatches, and stage @"
          << *variable.getStage()
          << " has replicas, which see but some each: use one replica there, "
             "or "
             "--batch-norm=frozen, or run pipeline-gather-statistics";
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }
};

} // namespace
