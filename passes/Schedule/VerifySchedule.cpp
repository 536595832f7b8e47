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

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
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

  /// What holds messages has a size.
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
