//===- AssignVersions.cpp - Which version every read of a weight sees -----===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A method is one row of a table: what it asks of the loop, and the lags of a
// stage's forward and backward.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Passes.h"

#include "penstock/Schedule/FromIR.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace penstock::schedule;
namespace pipeline = penstock::pipeline;

namespace penstock {
#define GEN_PASS_DEF_PIPELINEASSIGNVERSIONS
#include "passes/Schedule/Passes.h.inc"
} // namespace penstock

namespace {

struct Lags {
  int64_t forward = 0, backward = 0;
};

struct Method {
  StringLiteral name;
  /// The loop over microbatches is inside the one over updates.
  bool drains;
  Lags (*lagsOf)(const Imported &imported, int stage);
};

/// Every microbatch of an update sees the weights before it.
Lags syncLags(const Imported &, int) { return {}; }

constexpr Method kMethods[] = {
    {"sync", true, syncLags},
};

struct AssignVersionsPass
    : penstock::impl::PipelineAssignVersionsBase<AssignVersionsPass> {
  using PipelineAssignVersionsBase::PipelineAssignVersionsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const Method *found = llvm::find_if(
        kMethods, [&](const Method &m) { return m.name == method; });
    if (found == std::end(kMethods)) {
      bool planned =
          llvm::is_contained({"naive", "pipedream", "2bw", "pipemare",
                              "spectrain", "xpipe", "pipeoptim"},
                             StringRef(method).split(':').first);
      module.emitError("method '")
          << method
          << (planned ? "' comes with asynchronous training, which is not "
                        "there yet; use sync"
                      : "' is not known; there is: sync");
      return signalPassFailure();
    }
    for (auto schedule : module.getOps<pipeline::ScheduleOp>())
      if (tasksOf(schedule) == TaskSet::Training &&
          failed(assign(schedule, *found)))
        return signalPassFailure();
  }

  LogicalResult assign(pipeline::ScheduleOp schedule, const Method &method) {
    // 1. Does the loop fit the method?
    FailureOr<Imported> imported = importSchedule(schedule, Sizes::Ignore);
    if (failed(imported))
      return failure();
    for (const Order &order : imported->orders) {
      bool drains =
          order.loops.empty() || order.loops.front().kind == LoopKind::Updates;
      if (drains != method.drains)
        return schedule.emitOpError("does not fit method ")
               << method.name << ", which "
               << (method.drains ? "drains at every update"
                                 : "never drains within a segment");
    }

    // 2. Reads of what updates write, in tasks that count microbatches.
    for (auto [task, plain] :
         llvm::zip_equal(imported->tasks, imported->model.tasks)) {
      if (plain.perUpdate())
        continue;
      Lags lags = method.lagsOf(*imported, plain.stage);
      for (auto read : task.getBody().front().getOps<pipeline::ReadOp>()) {
        auto variable = imported->variableIds.find(read.getVariable());
        auto op = imported->variables[variable->second];
        if (imported->model.variables[variable->second].updater < 0 ||
            op.getRole() == pipeline::Role::Gradient)
          continue;
        read.setLag(plain.letter == 'F' ? lags.forward : lags.backward);
      }
    }
    return success();
  }
};

} // namespace
