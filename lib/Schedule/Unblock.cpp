//===- Unblock.cpp - Orders that wait for each other ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Unblock.h. What a run waits for, and what that waits for in turn, ends at
// one that could run if its turn had come: the dataflow has no circle, and nor
// do the microbatches of a task.
//===----------------------------------------------------------------------===//

#include "Unblock.h"

#include "Compress.h"
#include "Tables.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

using namespace llvm;

namespace penstock::schedule {

namespace {

struct Run {
  int task;
  int64_t number;
};

class Unblocking {
public:
  explicit Unblocking(const Model &model)
      : model(model), done(model.tasks.size()) {
    for (auto [id, task] : llvm::enumerate(model.tasks))
      done[id].resize(task.perUpdate() ? 0 : model.microbatches);
  }

  void unblock(std::vector<Order> &orders);

private:
  struct Row {
    std::vector<Run> runs;
    size_t next = 0;
    bool changed = false;
  };

  std::optional<Run> findMissing(const Run &run) const;
  bool step(Row &row);
  void pull();
  Row &getRow(const Run &run) {
    ArrayRef<int> devices = model.stages[model.tasks[run.task].stage].devices;
    return rows[devices[run.number % devices.size()]];
  }

  const Model &model;
  /// Runs of microbatches by device.
  std::vector<Row> rows;
  /// Done runs by task and microbatch.
  std::vector<std::vector<bool>> done;
};

} // namespace

/// A run that this one takes something of and that is not done.
std::optional<Run> Unblocking::findMissing(const Run &run) const {
  for (int id : model.tasks[run.task].takes) {
    int producer = model.channels[id].producer;
    if (producer >= 0 && !model.tasks[producer].perUpdate() &&
        !done[producer][run.number])
      return Run{producer, run.number};
  }
  return std::nullopt;
}

bool Unblocking::step(Row &row) {
  if (row.next == row.runs.size() || findMissing(row.runs[row.next]))
    return false;
  const Run &run = row.runs[row.next++];
  done[run.task][run.number] = true;
  return true;
}

/// All rows wait. One goes on where a forward is waited for: that keeps the
/// replicas busy, at the price of a microbatch more in flight before them.
void Unblocking::pull() {
  std::optional<Run> wanted;
  for (const Row &row : rows) {
    if (row.next == row.runs.size())
      continue;
    const Run &head = row.runs[row.next];
    bool isForward = model.tasks[head.task].letter == 'F';
    if (!wanted || (isForward && model.tasks[wanted->task].letter != 'F'))
      wanted = head;
  }
  for (;;) {
    // The microbatches of a task stay in order.
    Row &row = getRow(*wanted);
    auto place =
        std::find_if(row.runs.begin() + row.next, row.runs.end(),
                     [&](const Run &run) { return run.task == wanted->task; });
    if (std::optional<Run> missing = findMissing(*place)) {
      wanted = missing;
      continue;
    }
    std::rotate(row.runs.begin() + row.next, place, place + 1);
    row.changed = true;
    return;
  }
}

void Unblocking::unblock(std::vector<Order> &orders) {
  rows.resize(model.devices);
  std::vector<std::vector<Item>> atEnd(orders.size());
  for (auto [index, order] : llvm::enumerate(orders)) {
    if (order.loops.empty() || order.loops.front().kind != LoopKind::Updates)
      continue;
    std::unique_ptr<EventStream> stream = expand(model, order, 1);
    Event event;
    while (stream->next(event)) {
      if (!model.tasks[event.id].perUpdate()) {
        rows[order.device].runs.push_back({event.id, event.number});
        continue;
      }
      Item &item = atEnd[index].emplace_back();
      item.id = event.id;
    }
  }
  for (;;) {
    bool moved = false;
    for (Row &row : rows)
      while (step(row))
        moved = true;
    if (llvm::all_of(
            rows, [](const Row &row) { return row.next == row.runs.size(); }))
      break;
    if (!moved)
      pull();
  }
  for (auto [order, tail] : llvm::zip_equal(orders, atEnd)) {
    Row &row = rows[order.device];
    if (!row.changed)
      continue;
    std::vector<Item> items;
    for (const Run &run : row.runs) {
      Item &item = items.emplace_back();
      item.id = run.task;
    }
    order.loops = {{LoopKind::Updates, 1, {}}};
    appendCompressed(order, items);
    llvm::append_range(order.loops.front().items, tail);
  }
}

void unblock(const Model &model, std::vector<Order> &orders) {
  Unblocking(model).unblock(orders);
}

/// Returns the most microbatches of one stage in flight, between their forward
/// and their backward or its first half.
static int64_t countInFlight(const Model &model, const Order &order) {
  int64_t most = 0;
  std::vector<int64_t> inFlight(model.stages.size());
  std::unique_ptr<EventStream> stream = expand(model, order, 1);
  Event event;
  while (stream->next(event)) {
    if (event.kind != EventKind::Run)
      continue;
    const Task &task = model.tasks[event.id];
    if (task.letter == 'F')
      most = std::max(most, ++inFlight[task.stage]);
    else if (task.letter == 'B' || task.letter == 'I')
      --inFlight[task.stage];
  }
  return most;
}

std::string refuseInFlight(const Model &model, ArrayRef<Order> orders,
                           double memoryLimit) {
  if (memoryLimit > 0)
    for (const Order &order : orders)
      if (int64_t inFlight = countInFlight(model, order);
          double(inFlight) > memoryLimit)
        return llvm::formatv(
            "device {0} has {1} microbatches in flight, since wider stages "
            "behind it wait for them, and the memory-limit of zb-auto allows "
            "fewer: change it, or use stages of the same width",
            order.device, inFlight);
  return "";
}

} // namespace penstock::schedule
