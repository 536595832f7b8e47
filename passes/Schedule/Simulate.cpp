//===- Simulate.cpp - Executes the training schedule with costs -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The execution that proves S7, with a duration for every run and transfer.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Passes.h"

#include "Common.h"
#include "TaskTimes.h"
#include "passes/Partition/Passes.h"
#include "passes/Schedule/Simulate.h"
#include "penstock/Schedule/Timeline.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace penstock::schedule;
namespace pipeline = penstock::pipeline;

namespace penstock {
#define GEN_PASS_DEF_PIPELINESIMULATE
#include "passes/Schedule/Passes.h.inc"
} // namespace penstock

/// Arithmetic operations of a function: iterations of its loops times the ops
/// in their bodies; elements for ops of other kinds.
static double countOperations(func::FuncOp function) {
  double total = 0;
  function.walk([&](Operation *op) {
    if (auto linalg = dyn_cast<linalg::LinalgOp>(op)) {
      double iterations = 1;
      for (int64_t range : linalg.getStaticLoopRanges())
        iterations *= double(range);
      double body = 0;
      for (Operation &inner : linalg.getBlock()->without_terminator())
        body += inner.getNumResults() > 0;
      total += iterations * body;
    } else if (!op->getParentOfType<linalg::LinalgOp>()) {
      for (Type type : op->getResultTypes())
        if (auto shaped = dyn_cast<RankedTensorType>(type))
          if (shaped.hasStaticShape() && op->getNumOperands() > 1)
            total += double(shaped.getNumElements());
    }
  });
  return total;
}

static FailureOr<double> analyticCost(pipeline::TaskOp task) {
  double total = 0;
  for (auto call : task.getBody().front().getOps<func::CallOp>()) {
    auto function = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        task, call.getCalleeAttr());
    if (!function || function.isExternal())
      return call.emitOpError(
          "calls a function without a body, so that it has no analytic cost; "
          "use costs=unit");
    total += countOperations(function);
  }
  return total;
}

static FailureOr<Costs>
getCosts(pipeline::ScheduleOp schedule, const Imported &imported,
         const penstock::PipelineSimulateOptions &options) {
  using namespace penstock;
  const Model &model = imported.model;
  Costs costs;
  costs.task.resize(model.tasks.size());
  costs.channel.resize(model.channels.size());
  DenseF64ArrayAttr measured;
  if (options.costs == "measured")
    measured =
        schedule->getParentOfType<ModuleOp>()->getAttrOfType<DenseF64ArrayAttr>(
            pipeline::kStageSecondsAttr);
  if (options.costs == "measured" && !measured)
    return schedule.emitOpError("has no measured costs: the module needs ")
           << pipeline::kStageSecondsAttr;
  bool inSeconds = measured || options.costs == "seconds";
  std::vector<double> seconds;
  if (inSeconds)
    seconds = getTaskSeconds(schedule->getParentOfType<ModuleOp>(), imported);
  for (auto [id, task] : llvm::enumerate(model.tasks)) {
    if (options.costs == "analytic") {
      FailureOr<double> cost = analyticCost(imported.tasks[id]);
      if (failed(cost))
        return failure();
      costs.task[id] = *cost;
      continue;
    }
    char letter = task.letter;
    if (inSeconds) {
      costs.task[id] = seconds[id];
      continue;
    }
    costs.task[id] = letter == 'F' || letter == 'E'   ? options.forward
                     : letter == 'B'                  ? options.backward
                     : letter == 'I' || letter == 'W' ? options.backward / 2
                                                      : options.update;
  }
  if (options.speeds.size() == model.stages.size())
    for (auto [id, task] : llvm::enumerate(model.tasks))
      costs.task[id] /= options.speeds[task.stage];
  for (auto [id, channel] : llvm::enumerate(model.channels))
    if (channel.hasPeer())
      costs.channel[id] =
          inSeconds ? getTransferSeconds(imported.channels[id]) : options.comm;
  if (inSeconds)
    for (pipeline::GroupOp group : imported.groups)
      costs.group.push_back(getSumSeconds(group));
  return costs;
}

/// A segment of so many updates of a model with these orders.
static Execution runSegment(const Model &model, ArrayRef<Order> orders,
                            int64_t updates, const Costs &costs,
                            bool recordRuns) {
  std::vector<Order> byDevice(model.devices);
  for (int device = 0; device < model.devices; ++device)
    byDevice[device].device = device;
  for (const Order &order : orders)
    byDevice[order.device] = order;
  return execute(
      model,
      [&](int device, int64_t updates) {
        return expand(model, byDevice[device], updates);
      },
      updates, Awaits::Implied, costs, recordRuns);
}

FailureOr<penstock::Simulation>
penstock::simulateSchedule(pipeline::ScheduleOp schedule,
                           const PipelineSimulateOptions &options) {
  FailureOr<Imported> imported = importSchedule(schedule);
  if (failed(imported))
    return failure();
  const Model &model = imported->model;
  FailureOr<Costs> costs = getCosts(schedule, *imported, options);
  if (failed(costs))
    return failure();

  // 1. One segment.
  auto run = [&](int64_t updates, bool recordRuns) {
    return runSegment(model, imported->orders, updates, *costs, recordRuns);
  };
  // A segment has whole waves.
  Execution execution =
      run(llvm::alignTo(options.updates, model.wave), /*recordRuns=*/true);
  if (execution.violation)
    return reportViolation(schedule, *imported, *execution.violation);
  Simulation result{execution.makespan, computeBubble(model, execution), 0,
                    drawTimeline(model, execution)};
  for (const Interval &interval : execution.runs)
    if (!model.tasks[interval.task].perUpdate())
      result.work += interval.end - interval.start;

  // 2. What never drains has a fill and a drain once in a training: the steady
  // state between them counts, which is what a longer segment adds.
  bool open = llvm::any_of(imported->orders, [](const Order &order) {
    return !order.loops.empty() &&
           order.loops.front().kind == LoopKind::Microbatches;
  });
  if (!open)
    return result;
  int64_t length =
      llvm::alignTo(getFillUpdates(model, imported->orders) + 2, model.wave);
  Execution shorter = run(length, false), longer = run(2 * length, false);
  Execution steady;
  steady.makespan = longer.makespan - shorter.makespan;
  for (auto [most, least] : llvm::zip_equal(longer.busy, shorter.busy))
    steady.busy.push_back(most - least);
  result.bubble = computeBubble(model, steady);
  return result;
}

FailureOr<std::vector<penstock::WorkerWaits>>
penstock::simulateWorkers(pipeline::ScheduleOp schedule,
                          const PipelineSimulateOptions &options) {
  FailureOr<Imported> imported = importSchedule(schedule);
  if (failed(imported))
    return failure();
  FailureOr<Costs> costs = getCosts(schedule, *imported, options);
  if (failed(costs))
    return failure();
  const Model &model = imported->model;
  std::vector<int64_t> workers; // by task
  int64_t count = 0;
  for (const Task &task : model.tasks) {
    workers.push_back(
        static_cast<int64_t>(imported->stages[task.stage].getWorker()));
    count = std::max(count, workers.back() + 1);
  }

  // 1. The same without waves: nobody waits for them, or for room.
  Model apart = model;
  for (Task &task : apart.tasks)
    for (auto *channels : {&task.takes, &task.puts})
      llvm::erase_if(*channels,
                     [&](int id) { return model.channels[id].ownQueue; });

  // 2. What a segment takes of each worker, and how long its devices work.
  struct Times {
    double end = 0, busy = 0;
    llvm::SmallDenseSet<int> devices;
  };
  auto measure = [&](const Model &which, int64_t updates) {
    std::vector<Times> times(count);
    Execution execution = runSegment(which, imported->orders, updates, *costs,
                                     /*recordRuns=*/true);
    for (const Interval &interval : execution.runs) {
      Times &own = times[workers[interval.task]];
      own.end = std::max(own.end, interval.end);
      own.busy += interval.end - interval.start;
      own.devices.insert(interval.device);
    }
    return times;
  };

  // 3. The steady state is what a longer segment adds.
  int64_t waves = 8 * (model.distance + 2);
  int64_t length = waves * model.wave;
  auto shorter = measure(model, length), longer = measure(model, 2 * length);
  auto fewer = measure(apart, length), more = measure(apart, 2 * length);
  std::vector<WorkerWaits> waits(count);
  for (int64_t worker = 0; worker < count; ++worker) {
    double all = longer[worker].end - shorter[worker].end;
    double alone = more[worker].end - fewer[worker].end;
    auto devices = static_cast<double>(more[worker].devices.size());
    double busy = (more[worker].busy - fewer[worker].busy) / devices;
    if (all <= 0)
      continue;
    waits[worker].waveSeconds = alone / static_cast<double>(waves);
    waits[worker].others = std::max(0.0, 1 - alone / all);
    waits[worker].line = std::max(0.0, (alone - busy) / all);
  }
  return waits;
}

namespace {

struct SimulatePass : penstock::impl::PipelineSimulateBase<SimulatePass> {
  using PipelineSimulateBase::PipelineSimulateBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if ((costs != "unit" && costs != "analytic" && costs != "measured" &&
         costs != "seconds") ||
        updates < 1) {
      module.emitError(
          updates < 1 ? "updates must be at least 1"
                      : "costs must be unit, analytic, measured or seconds");
      return signalPassFailure();
    }
    penstock::PipelineSimulateOptions options;
    options.costs = costs;
    options.forward = forward;
    options.backward = backward;
    options.update = update;
    options.comm = comm;
    options.updates = updates;
    options.speeds.assign(speeds.begin(), speeds.end());
    for (auto schedule : module.getOps<pipeline::ScheduleOp>()) {
      if (schedule.isBodyless() || getTaskSet(schedule) == TaskSet::Evaluation)
        continue;
      FailureOr<penstock::Simulation> simulation =
          penstock::simulateSchedule(schedule, options);
      if (failed(simulation))
        return signalPassFailure();
      schedule.setPredictedBubbleAttr(
          Builder(&getContext()).getF64FloatAttr(simulation->bubble));
      if (timeline)
        print(schedule, *simulation);
    }
  }

  void print(pipeline::ScheduleOp schedule,
             const penstock::Simulation &simulation) {
    llvm::outs() << "@" << schedule.getSymName() << ", " << updates
                 << (updates == 1 ? " update" : " updates") << ": makespan "
                 << llvm::format("%g", simulation.makespan) << ", bubble "
                 << llvm::format("%.1f %%", 100 * simulation.bubble) << "\n";
    for (auto [device, line] : llvm::enumerate(simulation.timeline))
      llvm::outs() << llvm::format("%3d: ", int(device)) << line << "\n";
  }
};

} // namespace
