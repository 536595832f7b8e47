//===- OrderTransfers.cpp - Places sends, receives and sums ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads each schedule's orders, places the transfers (lib/Schedule) and writes
// the orders anew.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Passes.h"

#include "Common.h"
#include "TaskTimes.h"
#include "penstock/Schedule/Transfers.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace penstock::schedule;
namespace pipeline = penstock::pipeline;

namespace penstock {
#define GEN_PASS_DEF_PIPELINEORDERTRANSFERS
#include "passes/Schedule/Passes.h.inc"

LogicalResult orderTransfers(pipeline::ScheduleOp schedule,
                             ArrayRef<double> speeds) {
  FailureOr<Imported> imported = importSchedule(schedule, Sizes::Ignore);
  if (failed(imported))
    return failure();
  // Orders that were written with their transfers keep them.
  bool hasTransfers = llvm::any_of(imported->orders, [](const Order &order) {
    return llvm::any_of(order.loops, [](const Loop &loop) {
      return llvm::any_of(loop.items, [](const Item &item) {
        return item.loop < 0 && item.kind != EventKind::Run;
      });
    });
  });
  // Functions may be declarations, without costs.
  std::vector<double> taskTimes =
      getTaskSeconds(schedule->getParentOfType<ModuleOp>(), *imported, speeds);
  if (llvm::all_of(taskTimes, [](double time) { return time == 0; }))
    taskTimes.clear();
  if (hasTransfers) {
    if (!completeTransfers(imported->model, imported->orders))
      return success();
  } else if (auto why =
                 placeTransfers(imported->model, imported->orders, taskTimes)) {
    auto [sentence, drawing] = StringRef(*why).split('\n');
    InFlightDiagnostic diagnostic =
        schedule.emitOpError("cannot be given its transfers: ");
    diagnostic << sentence;
    SmallVector<StringRef> lines;
    drawing.split(lines, '\n', -1, /*KeepEmpty=*/false);
    for (StringRef line : lines)
      diagnostic.attachNote(schedule.getLoc()) << line;
    return diagnostic;
  }
  for (auto order : llvm::make_early_inc_range(
           schedule.getBody().front().getOps<pipeline::OrderOp>()))
    order.erase();
  for (const Order &order : imported->orders)
    exportOrder(schedule, *imported, order);
  return success();
}

} // namespace penstock

namespace {

struct OrderTransfersPass
    : penstock::impl::PipelineOrderTransfersBase<OrderTransfersPass> {
  using PipelineOrderTransfersBase::PipelineOrderTransfersBase;

  void runOnOperation() override {
    for (auto schedule : getOperation().getOps<pipeline::ScheduleOp>())
      if (failed(penstock::orderTransfers(schedule, speeds)))
        return signalPassFailure();
  }
};

} // namespace
