//===- Generators.cpp - Orders of known schedules -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A generator is a loop nest under a drawing of what it makes. A device with
// several stages runs them like one: forward in order, backward in reverse.
//===----------------------------------------------------------------------===//

#include "penstock/Schedule/Generators.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <tuple>

using namespace llvm;

namespace penstock::schedule {

std::vector<DeviceTasks> tasksByDevice(const Model &model) {
  std::vector<DeviceTasks> result;
  for (auto [index, stage] : llvm::enumerate(model.stages))
    for (int device : stage.devices) {
      auto place = llvm::find_if(result, [&](const DeviceTasks &tasks) {
        return tasks.device == device;
      });
      if (place == result.end()) {
        place = result.emplace(result.end());
        place->device = device;
      }
      SmallVector<int, 2> backward;
      for (char letter : {'F', 'B', 'I', 'W', 'G', 'U', 'E'})
        for (auto [id, task] : llvm::enumerate(model.tasks)) {
          if (task.stage != int(index) || task.letter != letter)
            continue;
          if (letter == 'B' || letter == 'I' || letter == 'W')
            backward.push_back(id);
          else
            (letter == 'F'   ? place->forward
             : letter == 'E' ? place->evaluate
                             : place->update)
                .push_back(id);
        }
      // By stage in reverse; within a stage I before W.
      place->backward.insert(place->backward.begin(), backward.begin(),
                             backward.end());
    }
  // An update may need the norms of every stage.
  for (DeviceTasks &tasks : result)
    llvm::sort(tasks.update, [&](int a, int b) {
      const Task &left = model.tasks[a], &right = model.tasks[b];
      return std::tie(left.letter, left.stage) <
             std::tie(right.letter, right.stage);
    });
  return result;
}

static void append(Loop &loop, ArrayRef<int> tasks, int64_t ahead = 0,
                   int64_t every = 1) {
  for (int task : tasks) {
    Item item;
    item.id = task;
    item.ahead = ahead;
    item.every = every;
    loop.items.push_back(item);
  }
}

static void appendLoop(Order &order, Loop loop) {
  if (loop.items.empty())
    return;
  Item item;
  item.loop = order.loops.size();
  order.loops.front().items.push_back(item);
  order.loops.push_back(std::move(loop));
}

static Order openOrder(int device, LoopKind kind) {
  Order order;
  order.device = device;
  order.loops.emplace_back();
  order.loops.front().kind = kind;
  return order;
}

// Device i of 3, M = 4:
//   0: F0 F1 F2 F3 .  .  .  .  B0 B1 B2 B3 U
//   1: .  F0 F1 F2 F3 .  .  B0 B1 B2 B3 U
//   2: .  .  F0 F1 F2 F3 B0 B1 B2 B3 U
static Order gpipe(const Model &model, const DeviceTasks &tasks, int64_t,
                   int64_t) {
  Order order = openOrder(tasks.device, LoopKind::Updates);
  int64_t count = microbatchesPerUpdate(model, tasks.device);
  Loop forward{LoopKind::Times, count, {}}, backward = forward;
  append(forward, tasks.forward);
  append(backward, tasks.backward);
  appendLoop(order, std::move(forward));
  appendLoop(order, std::move(backward));
  append(order.loops.front(), tasks.update);
  return order;
}

// Device i of 3, M = 4:
//   0: F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3 U
//   1: .  F0 F1 .  B0 F2 B1 F3 B2 .  B3 U
//   2: .  .  F0 B0 F1 B1 F2 B2 F3 B3 U
static Order oneForwardOneBackward(const Model &model, const DeviceTasks &tasks,
                                   int64_t position, int64_t devices) {
  Order order = openOrder(tasks.device, LoopKind::Updates);
  int64_t count = microbatchesPerUpdate(model, tasks.device);
  Loop loop{LoopKind::Times, count, {}};
  append(loop, tasks.forward, devices - 1 - position);
  append(loop, tasks.backward);
  appendLoop(order, std::move(loop));
  append(order.loops.front(), tasks.update);
  return order;
}

ArrayRef<StringLiteral> scheduleNames() {
  static constexpr StringLiteral kNames[] = {"gpipe", "1f1b"};
  return kNames;
}

/// The position of a device in the line: devices that hold the replicas of the
/// same stages stand at the same place.
static std::vector<int64_t> positionsOf(const Model &model,
                                        ArrayRef<DeviceTasks> devices,
                                        int64_t &length) {
  std::vector<int64_t> result;
  std::vector<int> firstStages;
  for (const DeviceTasks &tasks : devices) {
    int first = -1;
    for (auto [index, stage] : llvm::enumerate(model.stages))
      if (first < 0 && llvm::is_contained(stage.devices, tasks.device))
        first = index;
    if (!llvm::is_contained(firstStages, first))
      firstStages.push_back(first);
    result.push_back(llvm::find(firstStages, first) - firstStages.begin());
  }
  length = firstStages.size();
  return result;
}

std::optional<std::vector<Order>> generate(const Model &model, StringRef name) {
  auto *generator = name == "gpipe"  ? gpipe
                    : name == "1f1b" ? oneForwardOneBackward
                                     : nullptr;
  if (!generator)
    return std::nullopt;
  std::vector<DeviceTasks> devices = tasksByDevice(model);
  int64_t length = 0;
  std::vector<int64_t> positions = positionsOf(model, devices, length);
  std::vector<Order> orders;
  for (auto [tasks, position] : llvm::zip_equal(devices, positions))
    orders.push_back(generator(model, tasks, position, length));
  return orders;
}

std::vector<Order> generateEvaluation(const Model &model) {
  std::vector<Order> orders;
  for (const DeviceTasks &tasks : tasksByDevice(model)) {
    Order order = openOrder(tasks.device, LoopKind::Microbatches);
    append(order.loops.front(), tasks.evaluate);
    orders.push_back(std::move(order));
  }
  return orders;
}

std::vector<Order> generateReplay(const Model &model) {
  std::vector<Order> orders;
  for (const DeviceTasks &tasks : tasksByDevice(model)) {
    Order order = openOrder(tasks.device, LoopKind::Microbatches);
    append(order.loops.front(), tasks.forward);
    append(order.loops.front(), tasks.backward);
    append(order.loops.front(), tasks.update, 0,
           microbatchesPerUpdate(model, tasks.device));
    orders.push_back(std::move(order));
  }
  return orders;
}

} // namespace penstock::schedule
