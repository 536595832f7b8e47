//===- VerifySchedule.cpp - Proves rules S1 to S7 -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every schedule of the module and of modules in it (replay). What is kept but
// never used is an error too, over all schedules that share it.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Passes.h"

#include "Common.h"
#include "penstock/Methods/Method.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::schedule;
namespace pipeline = penstock::pipeline;

namespace penstock {
#define GEN_PASS_DEF_PIPELINEVERIFYSCHEDULE
#include "passes/Schedule/Passes.h.inc"
} // namespace penstock

namespace {

struct VerifySchedulePass
    : penstock::impl::PipelineVerifyScheduleBase<VerifySchedulePass> {
  using PipelineVerifyScheduleBase::PipelineVerifyScheduleBase;

  void runOnOperation() override {
    WalkResult result = getOperation()->walk([&](ModuleOp module) {
      return succeeded(verify(module)) ? WalkResult::advance()
                                       : WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    markAllAnalysesPreserved();
  }

  LogicalResult verify(ModuleOp module) {
    // 1. Each schedule by itself.
    llvm::MapVector<pipeline::ChannelOp, int64_t> slots;
    llvm::MapVector<StringRef, int64_t> versions;
    for (auto schedule : module.getOps<pipeline::ScheduleOp>()) {
      if (schedule.isBodyless())
        continue;
      FailureOr<Imported> imported = importSchedule(schedule);
      if (failed(imported) || failed(checkSized(*imported)))
        return failure();
      Proof proof = verifyOrders(imported->model, imported->orders);
      if (proof.violation)
        return penstock::reportViolation(schedule, *imported, *proof.violation);
      if (failed(verifyLags(schedule, *imported)))
        return failure();
      if (remarks)
        schedule.emitRemark("proved: ")
            << proof.segments << " segments, " << proof.steps
            << " steps, steady from update " << proof.steadyFrom;
      for (auto [id, op] : llvm::enumerate(imported->channels))
        slots[op] = std::max(slots[op], proof.needs.slots[id]);
      for (auto [id, op] : llvm::enumerate(imported->variables))
        versions[op.getSymName()] =
            std::max(versions[op.getSymName()], proof.needs.versions[id]);
    }

    // 2. Waste, over all of them.
    for (auto [op, need] : slots)
      if (int64_t(op.getSlots().value_or(0)) > need)
        return op.emitError("S5: slots(")
               << *op.getSlots() << "), but at most " << need
               << (need == 1 ? " message is" : " messages are") << " alive";
    for (Operation &op : module.getOps()) {
      auto storage = dyn_cast<pipeline::VersionStorageOpInterface>(op);
      if (!storage)
        continue;
      auto *need = versions.find(storage.getVariableAttr().getValue());
      if (need != versions.end() && storage.getVersions() > need->second)
        return op.emitError("S3: keeps ")
               << storage.getVersions() << " versions, but the reads need "
               << std::max<int64_t>(1, need->second);
    }
    return success();
  }

  /// That what is read is there has been proved; here, that it is what the
  /// method asks for. The replay, which states no method of its own, has the
  /// stages' lags, not the loop that they follow from.
  LogicalResult verifyLags(pipeline::ScheduleOp schedule,
                           const Imported &imported) {
    auto module = schedule->getParentOfType<ModuleOp>();
    auto own = module.getOps<pipeline::TrainingOp>();
    pipeline::MethodAttr stated =
        own.empty() ? pipeline::MethodAttr() : (*own.begin()).getMethodAttr();
    MethodSpec spec = MethodSpec::fromAttr(stated);
    if (spec.isAsynchronous() &&
        schedule.getRole() == pipeline::ScheduleRole::Train) {
      const Method &method = spec.getMethod();
      for (const StageFacts &facts : describeStages(imported)) {
        Lags lags = method.getLags(spec, facts);
        pipeline::StageOp stage = imported.stages[facts.index];
        auto noted =
            stage->getAttrOfType<DenseI64ArrayAttr>(pipeline::kLagsAttr);
        if (!noted || noted.asArrayRef() != ArrayRef<int64_t>(lags.toArray())) {
          InFlightDiagnostic diagnostic = stage.emitError("S3: the lags of ");
          diagnostic << method.name << " are " << lags.forward << " and "
                     << lags.backward;
          if (lags.update > 0)
            diagnostic << ", and " << lags.update << " updates,";
          return diagnostic << " here";
        }
      }
    }
    for (auto [op, plain] :
         llvm::zip_equal(imported.tasks, imported.model.tasks)) {
      pipeline::TaskOp task = op;
      pipeline::StageOp stage = imported.stages[plain.stage];
      auto lags = stage->getAttrOfType<DenseI64ArrayAttr>(pipeline::kLagsAttr);
      if (!lags)
        continue;
      // Those of pushes and folds are C31's.
      if (plain.perWave())
        continue;
      if (plain.perUpdate()) {
        int64_t due = lags.size() > 2 ? lags[2] : 0;
        for (auto read : task.getBody().front().getOps<pipeline::ReadOp>())
          if (read.getLag() && int64_t(*read.getLag()) != due)
            return read.emitError("S3: @")
                   << task.getSymName() << " reads @" << read.getVariable()
                   << " with lag(" << *read.getLag() << "), but the method of "
                   << "its stage asks for "
                   << (due ? "lag(" + std::to_string(due) + ")" : "the newest");
        continue;
      }
      for (auto read : task.getBody().front().getOps<pipeline::ReadOp>()) {
        std::optional<uint64_t> lag = read.getLag();
        int id = imported.variableIds.lookup(read.getVariable());
        pipeline::VariableOp variable = imported.variables[id];
        if (!lag && variable.getRole() != pipeline::Role::Gradient &&
            imported.model.variables[id].updater >= 0)
          return read.emitError("S3: @")
                 << task.getSymName() << " reads @" << read.getVariable()
                 << " without a lag: any version would do";
        int64_t due = lags[plain.letter == 'F' ? 0 : 1];
        if (lag && int64_t(*lag) != due)
          return read.emitError("S3: @")
                 << task.getSymName() << " reads @" << read.getVariable()
                 << " with lag(" << *lag << "), but the method of its stage "
                 << "asks for lag(" << due << ")";
      }
    }
    return success();
  }

  /// Checks that each channel that holds messages has a size.
  LogicalResult checkSized(const Imported &imported) {
    for (auto [op, channel] :
         llvm::zip_equal(imported.channels, imported.model.channels)) {
      pipeline::ChannelOp place = op;
      if (!channel.isSink() && channel.slots == 0)
        return place.emitError("S5: has no slots; run pipeline-size-storage");
      if (!channel.stagingUsers.empty() && channel.staging == 0)
        return place.emitError("S5: has no staging; run pipeline-size-storage");
    }
    return success();
  }
};

} // namespace
