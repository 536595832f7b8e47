//===- OrdersInIR.cpp - Reads and writes the orders of a schedule ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An order of the IR names tasks, channels and groups; here they are numbers of
// the model. Loops stay loops in both directions.
//===----------------------------------------------------------------------===//

#include "penstock/Schedule/FromIR.h"

#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace penstock::schedule {

TaskSet getTaskSet(pipeline::ScheduleOp schedule) {
  // An order that is written out names each task thousands of times.
  llvm::DenseSet<Attribute> known;
  WalkResult result = schedule.walk([&](pipeline::RunOp run) {
    if (!known.insert(run.getTaskAttr()).second)
      return WalkResult::advance();
    auto task = SymbolTable::lookupNearestSymbolFrom<pipeline::TaskOp>(
        schedule, run.getTaskAttr());
    bool evaluates = task && task.getKind() == pipeline::TaskKind::Evaluate;
    return evaluates ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result.wasInterrupted() ? TaskSet::Evaluation : TaskSet::Training;
}

static LogicalResult importLoop(Imported &imported, Order &order,
                                pipeline::RepeatOp repeat) {
  int index = order.loops.size();
  order.loops.emplace_back();
  order.loops[index].kind = repeat.getKind() == pipeline::RepeatKind::Times
                                ? LoopKind::Times
                            : repeat.getKind() == pipeline::RepeatKind::Updates
                                ? LoopKind::Updates
                                : LoopKind::Microbatches;
  order.loops[index].count = repeat.getCount().value_or(1);
  for (Operation &op : repeat.getBody().front()) {
    Item item;
    auto find = [&](const llvm::StringMap<int> &ids, StringRef name,
                    const char *what) -> LogicalResult {
      auto found = ids.find(name);
      if (found == ids.end())
        return op.emitOpError("names @")
               << name << ", which is no " << what << " of this schedule";
      item.id = found->second;
      return success();
    };
    if (auto inner = dyn_cast<pipeline::RepeatOp>(op)) {
      item.loop = order.loops.size();
      if (failed(importLoop(imported, order, inner)))
        return failure();
    } else if (auto run = dyn_cast<pipeline::RunOp>(op)) {
      if (failed(find(imported.taskIds, run.getTask(), "task")))
        return failure();
      item.ahead = run.getAheadOr0();
      item.every = run.getEvery().value_or(1);
    } else if (auto send = dyn_cast<pipeline::SendOp>(op)) {
      item.kind = EventKind::Send;
      if (failed(find(imported.channelIds, send.getChannel(), "channel")))
        return failure();
      item.ahead = send.getAheadOr0();
      item.every = send.getEvery().value_or(1);
    } else if (auto recv = dyn_cast<pipeline::RecvOp>(op)) {
      item.kind = EventKind::Recv;
      if (failed(find(imported.channelIds, recv.getChannel(), "channel")))
        return failure();
      item.ahead = recv.getAheadOr0();
      item.every = recv.getEvery().value_or(1);
    } else {
      auto reduce = cast<pipeline::AllReduceOp>(op);
      item.kind = EventKind::AllReduce;
      if (failed(find(imported.groupIds, reduce.getGroup(), "group")))
        return failure();
      item.ahead = reduce.getAheadOr0();
      item.every = reduce.getEvery().value_or(1);
    }
    item.entry = imported.entries.size();
    imported.entries.push_back(&op);
    order.loops[index].items.push_back(item);
  }
  return success();
}

FailureOr<Imported> importSchedule(pipeline::ScheduleOp schedule, Sizes sizes) {
  if (schedule.isBodyless())
    return schedule.emitOpError("is a declaration, without orders");
  FailureOr<Imported> imported =
      importModel(schedule->getParentOfType<ModuleOp>(), getTaskSet(schedule),
                  schedule.getMicrobatches(), sizes);
  if (failed(imported))
    return failure();
  imported->model.wave = static_cast<int64_t>(schedule.getWave());
  imported->model.distance = static_cast<int64_t>(schedule.getDistance());
  for (auto op : schedule.getBody().front().getOps<pipeline::OrderOp>()) {
    Order order;
    order.device = op.getDevice();
    if (order.device >= imported->model.devices)
      return op.emitOpError("is for a device that has no stage");
    for (auto repeat : op.getBody().front().getOps<pipeline::RepeatOp>())
      if (failed(importLoop(*imported, order, repeat)))
        return failure();
    imported->orders.push_back(std::move(order));
  }
  return imported;
}

static void exportLoop(OpBuilder &builder, Location loc,
                       const Imported &imported, const Order &order,
                       int index) {
  MLIRContext *context = builder.getContext();
  const Loop &loop = order.loops[index];
  pipeline::RepeatKind kind =
      loop.kind == LoopKind::Times     ? pipeline::RepeatKind::Times
      : loop.kind == LoopKind::Updates ? pipeline::RepeatKind::Updates
                                       : pipeline::RepeatKind::Microbatches;
  IntegerAttr count;
  if (loop.kind == LoopKind::Times ||
      (loop.kind == LoopKind::Microbatches && loop.count > 1))
    count = builder.getI64IntegerAttr(loop.count);
  auto repeat = pipeline::RepeatOp::create(
      builder, loc, pipeline::RepeatKindAttr::get(context, kind), count);
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&repeat.getBody());
  for (const Item &item : loop.items) {
    if (item.loop >= 0) {
      exportLoop(builder, loc, imported, order, item.loop);
      continue;
    }
    IntegerAttr ahead, every;
    if (item.ahead != 0)
      ahead = builder.getI64IntegerAttr(item.ahead);
    if (item.every != 1 ||
        (loop.kind == LoopKind::Microbatches && item.kind == EventKind::Run &&
         imported.model.tasks[item.id].perUpdate()))
      every = builder.getI64IntegerAttr(item.every);
    auto symbol = [&](const std::string &name) {
      return FlatSymbolRefAttr::get(context, name);
    };
    const Model &model = imported.model;
    switch (item.kind) {
    case EventKind::Run:
      pipeline::RunOp::create(builder, loc, symbol(model.tasks[item.id].name),
                              ahead, every);
      break;
    case EventKind::Send:
      pipeline::SendOp::create(
          builder, loc, symbol(model.channels[item.id].name), ahead, every);
      break;
    case EventKind::Recv:
      pipeline::RecvOp::create(
          builder, loc, symbol(model.channels[item.id].name), ahead, every);
      break;
    case EventKind::AllReduce:
      pipeline::AllReduceOp::create(
          builder, loc, symbol(model.groups[item.id].name), ahead, every);
      break;
    case EventKind::Await:
      break;
    }
  }
}

void exportOrder(pipeline::ScheduleOp schedule, const Imported &imported,
                 const Order &order) {
  OpBuilder builder(schedule.getContext());
  if (schedule.getBody().empty())
    builder.createBlock(&schedule.getBody());
  builder.setInsertionPointToEnd(&schedule.getBody().front());
  auto op = pipeline::OrderOp::create(builder, schedule.getLoc(),
                                      builder.getI64IntegerAttr(order.device));
  builder.createBlock(&op.getBody());
  if (!order.loops.empty())
    exportLoop(builder, schedule.getLoc(), imported, order, 0);
}

} // namespace penstock::schedule
