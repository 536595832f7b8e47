//===- GenerateSchedule.cpp - Writes the order of every device ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The generators are plain code in lib/Schedule; this puts their loops into IR.
// One of them searches, by the times of this program's tasks.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Passes.h"

#include "Common.h"
#include "TaskTimes.h"
#include "dialects/Pipeline/Replicas.h"
#include "penstock/Methods/Method.h"
#include "penstock/Schedule/Generators.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace penstock::schedule;

namespace penstock {
#define GEN_PASS_DEF_PIPELINEGENERATESCHEDULE
#include "passes/Schedule/Passes.h.inc"
} // namespace penstock

namespace {

struct GenerateSchedulePass
    : penstock::impl::PipelineGenerateScheduleBase<GenerateSchedulePass> {
  using PipelineGenerateScheduleBase::PipelineGenerateScheduleBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!module.getOps<penstock::pipeline::ScheduleOp>().empty()) {
      module.emitError("has a schedule already");
      return signalPassFailure();
    }
    FailureOr<penstock::pipeline::TrainingOp> training =
        penstock::pipeline::requireTraining(module);
    if (failed(training) || failed(addTraining(module, *training)) ||
        failed(penstock::addEvaluation(module,
                                       getGenerator(schedule, &getContext()))))
      signalPassFailure();
  }

  LogicalResult addTraining(ModuleOp module,
                            penstock::pipeline::TrainingOp training) {
    if (!penstock::pipeline::trains(module))
      return success();
    FailureOr<Imported> imported = importModel(
        module, TaskSet::Training, training.getMicrobatches(), Sizes::Ignore);
    if (failed(imported))
      return failure();
    if (imported->tasks.empty())
      return success();
    auto method = penstock::MethodSpec::fromAttr(training.getMethodAttr());
    ScheduleSpec schedule = this->schedule;
    if (method.isAsynchronous() &&
        !method.getMethod().runsUnder(method, schedule))
      schedule = method.getMethod().getSchedule(method);
    auto generator = getGenerator(schedule, &getContext());
    if (method.isAsynchronous() && schedule.flushes()) {
      std::vector<Order> orders;
      if (auto waves = method.getMethod().getWaves(method)) {
        imported->model.wave = waves->wave;
        imported->model.distance = waves->workers > 1 ? waves->distance : 0;
        orders = generateWaves(imported->model);
      } else {
        orders = generateOpen(imported->model);
      }
      penstock::addSchedule(module, penstock::pipeline::ScheduleRole::Train,
                            *imported, orders, generator);
      return success();
    }
    Times times;
    std::vector<double> taskTimes;
    if (schedule.name() == "zb-auto") {
      // What it searches for depends on how long things take.
      taskTimes = penstock::getTaskSeconds(module, *imported, speeds);
      times.transfer = 0;
      for (auto [channel, op] :
           llvm::zip_equal(imported->model.channels, imported->channels))
        if (channel.hasPeer())
          times.transfer =
              std::max(times.transfer, penstock::getTransferSeconds(op));
      // Functions may be declarations, without costs.
      if (llvm::all_of(taskTimes, [](double time) { return time == 0; })) {
        taskTimes.clear();
        times = {};
      }
    }
    std::string error;
    std::optional<std::vector<Order>> orders =
        generate(imported->model, schedule, times, error, taskTimes);
    if (!orders)
      return module.emitError(error);
    penstock::addSchedule(module, penstock::pipeline::ScheduleRole::Train,
                          *imported, *orders, generator);
    return success();
  }
};

} // namespace
