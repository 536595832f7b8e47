//===- ImportSchedule.cpp - Orders from a table ---------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A user's own schedule enters where a generated one does, and is proved like
// it.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Passes.h"

#include "Common.h"
#include "penstock/Schedule/Csv.h"

using namespace mlir;
using namespace penstock::schedule;
namespace pipeline = penstock::pipeline;

namespace penstock {
#define GEN_PASS_DEF_PIPELINEIMPORTSCHEDULE
#include "passes/Schedule/Passes.h.inc"
} // namespace penstock

namespace {

struct PipelineImportSchedule
    : penstock::impl::PipelineImportScheduleBase<PipelineImportSchedule> {
  using PipelineImportScheduleBase::PipelineImportScheduleBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!module.getOps<pipeline::ScheduleOp>().empty()) {
      module.emitError("has a schedule already");
      return signalPassFailure();
    }
    FailureOr<CsvSchedule> table =
        penstock::placeByTable(module, file, replicas);
    auto generator = getFileGenerator(&getContext());
    if (failed(table) || failed(addTraining(module, *table, generator)) ||
        failed(penstock::addEvaluation(module, generator)))
      signalPassFailure();
  }

  LogicalResult addTraining(ModuleOp module, const CsvSchedule &table,
                            penstock::pipeline::GeneratorAttr generator) {
    FailureOr<penstock::pipeline::TrainingOp> training =
        penstock::pipeline::requireTraining(module);
    if (failed(training))
      return failure();
    int64_t microbatches = training->getMicrobatches();
    if (!training->getInfers() && microbatches != table.microbatches)
      return module.emitError("schedule file ")
             << file << " has " << table.microbatches << " microbatches, not "
             << microbatches;
    FailureOr<Imported> imported = importModel(
        module, TaskSet::Training, table.microbatches, Sizes::Ignore);
    if (failed(imported))
      return failure();
    std::string error;
    std::optional<std::vector<Order>> orders =
        buildOrders(imported->model, table, error);
    if (!orders)
      return module.emitError("schedule file ") << file << ": " << error;
    penstock::addSchedule(module, penstock::pipeline::ScheduleRole::Train,
                          *imported, *orders, generator);
    return success();
  }
};

} // namespace
