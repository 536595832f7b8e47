//===- Common.cpp - What several schedule passes do -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Common.h.
//===----------------------------------------------------------------------===//

#include "Common.h"

#include "dialects/Pipeline/Replicas.h"
#include "penstock/Schedule/Generators.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <numeric>

using namespace mlir;

namespace penstock {

LogicalResult reportViolation(pipeline::ScheduleOp schedule,
                              const schedule::Imported &imported,
                              const schedule::Violation &violation) {
  Operation *op = schedule;
  if (violation.entry >= 0)
    op = imported.entries[violation.entry];
  else if (violation.device >= 0)
    for (auto order : schedule.getBody().front().getOps<pipeline::OrderOp>())
      if (int64_t(order.getDevice()) == violation.device)
        op = order;
  InFlightDiagnostic diagnostic = op->emitError() << "S" << violation.rule
                                                  << ": " << violation.message;
  for (const std::string &note : violation.notes)
    diagnostic.attachNote(schedule.getLoc()) << note;
  return diagnostic;
}

FailureOr<schedule::CsvSchedule> placeByTable(ModuleOp module, StringRef file,
                                              ArrayRef<int64_t> replicas) {
  auto buffer = llvm::MemoryBuffer::getFile(file, /*IsText=*/true);
  if (!buffer)
    return module.emitError("schedule file ")
           << file << ": " << buffer.getError().message();
  std::string error;
  std::optional<schedule::CsvSchedule> table =
      schedule::parseCsv((*buffer)->getBuffer(), replicas, error);
  if (!table)
    return module.emitError("schedule file ") << file << ": " << error;
  auto stages = llvm::to_vector(module.getOps<pipeline::StageOp>());
  if (int(stages.size()) != table->stages)
    return module.emitError("schedule file ")
           << file << " has " << table->stages << " stages, the program "
           << stages.size();
  for (auto [stage, devices] : llvm::zip_equal(stages, table->devices))
    stage.setDevices(ArrayRef<int64_t>(devices));
  return std::move(*table);
}

void addSchedule(ModuleOp module, pipeline::ScheduleRole role,
                 const schedule::Imported &imported,
                 ArrayRef<schedule::Order> orders,
                 pipeline::GeneratorAttr generator) {
  OpBuilder builder(module.getContext());
  builder.setInsertionPointToEnd(module.getBody());
  auto schedule = pipeline::ScheduleOp::create(
      builder, module.getLoc(),
      builder.getStringAttr(pipeline::stringifyScheduleRole(role)),
      pipeline::ScheduleRoleAttr::get(builder.getContext(), role),
      builder.getI64IntegerAttr(imported.model.microbatches),
      builder.getI64IntegerAttr(imported.model.wave),
      builder.getI64IntegerAttr(imported.model.distance), FloatAttr(),
      generator);
  for (const schedule::Order &order : orders)
    exportOrder(schedule, imported, order);
  // The name may be taken, by an initializer of the model.
  schedule->remove();
  SymbolTable(module).insert(schedule);
}

LogicalResult addEvaluation(ModuleOp module,
                            pipeline::GeneratorAttr generator) {
  // A program without training is there for its outputs. Microbatches then go
  // round the replicas: what would be an update is one turn.
  bool trains = pipeline::trains(module);
  int64_t turn = 1;
  if (!trains)
    for (auto stage : module.getOps<pipeline::StageOp>())
      turn = std::lcm(
          turn, std::max<int64_t>(1, pipeline::getPlaces(stage, false).size()));
  FailureOr<schedule::Imported> imported = schedule::importModel(
      module, schedule::TaskSet::Evaluation, turn, schedule::Sizes::Ignore);
  if (failed(imported))
    return failure();
  if (!imported->tasks.empty())
    addSchedule(module,
                trains ? pipeline::ScheduleRole::Evaluate
                       : pipeline::ScheduleRole::Infer,
                *imported, schedule::generateEvaluation(imported->model),
                trains ? pipeline::GeneratorAttr() : generator);
  return success();
}

} // namespace penstock
