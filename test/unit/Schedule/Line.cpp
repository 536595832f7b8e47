//===- Line.cpp - A line of stages to try schedules on --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Line.h.
//===----------------------------------------------------------------------===//

#include "Line.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace llvm;

namespace penstock::schedule {

Line::Line(int stages, int64_t microbatches, bool skip) {
  model.microbatches = microbatches;
  model.devices = stages;
  for (int i = 0; i < stages; ++i) {
    std::string name = std::to_string(i);
    model.stages.push_back({"s" + name, {i}});
    int first = model.tasks.size();
    for (char letter : {'F', 'B', 'U'}) {
      Task task;
      task.name = "s" + name + "." + letter;
      task.letter = letter;
      task.stage = i;
      model.tasks.push_back(std::move(task));
    }
    forward.push_back(first);
    backward.push_back(first + 1);
    update.push_back(first + 2);
    int w = model.variables.size(), g = w + 1;
    weight.push_back(w);
    model.variables.push_back({"w" + name, 1, first + 2});
    model.variables.push_back({"g" + name, 1, first + 2});
    model.tasks[first].reads = {{w, 0}};
    model.tasks[first + 1].reads = {{w, 0}, {g, std::nullopt}};
    model.tasks[first + 1].writes = {g};
    model.tasks[first + 2].reads = {{w, std::nullopt}, {g, std::nullopt}};
    model.tasks[first + 2].writes = {w, g};
  }
  model.addChannel("x", -1, forward[0]);
  model.addChannel("labels", -1, forward[stages - 1]);
  model.addChannel("loss", forward[stages - 1], -1);
  for (int i = 0; i < stages; ++i) {
    model.addChannel("residuals" + std::to_string(i), forward[i], backward[i]);
    if (i + 1 == stages)
      continue;
    model.addChannel("h" + std::to_string(i + 1), forward[i], forward[i + 1]);
    model.addChannel("dh" + std::to_string(i + 1), backward[i + 1],
                     backward[i]);
  }
  if (skip && stages > 2) {
    model.addChannel("skip", forward[0], forward[stages - 1]);
    model.addChannel("dskip", backward[stages - 1], backward[0]);
  }
}

int Line::channel(StringRef name) const {
  auto place = llvm::find_if(model.channels,
                             [&](const Channel &c) { return c.name == name; });
  return place == model.channels.end() ? -1 : place - model.channels.begin();
}

std::string Line::size(ArrayRef<Order> orders) {
  for (Channel &channel : model.channels)
    channel.slots = channel.staging = 0;
  for (Variable &variable : model.variables)
    variable.versions = 0;
  Proof proof = verifyOrders(model, orders);
  if (proof.violation)
    return proof.violation->message;
  for (auto [id, channel] : llvm::enumerate(model.channels)) {
    channel.slots = proof.needs.slots[id];
    channel.staging = proof.needs.staging[id];
  }
  for (auto [id, variable] : llvm::enumerate(model.variables))
    variable.versions = std::max<int64_t>(1, proof.needs.versions[id]);
  return "";
}

Order makeOrder(int device, LoopKind outer, int64_t times,
                std::vector<Item> inner, std::vector<Item> after) {
  Order order;
  order.device = device;
  order.loops.push_back({outer, 1, {}});
  if (times < 0) {
    order.loops[0].items = std::move(inner);
  } else {
    Item item;
    item.loop = 1;
    order.loops[0].items.push_back(item);
    order.loops.push_back({LoopKind::Times, times, std::move(inner)});
  }
  llvm::append_range(order.loops[0].items, after);
  return order;
}

Item entry(EventKind kind, int id, int64_t ahead, int64_t every) {
  Item item;
  item.kind = kind;
  item.id = id;
  item.ahead = ahead;
  item.every = every;
  return item;
}

std::vector<Event> eventsOf(const Model &model, const Order &order,
                            int64_t updates) {
  std::vector<Event> events;
  auto stream = expand(model, order, updates);
  Event event;
  while (stream->next(event))
    events.push_back(event);
  return events;
}

std::string runsOf(const Model &model, const Order &order, int64_t updates) {
  std::string text;
  for (const Event &event : eventsOf(model, order, updates))
    if (event.kind == EventKind::Run) {
      const Task &task = model.tasks[event.id];
      text += task.letter + std::to_string(event.number) + " ";
    }
  return text;
}

bool holdsFor(const Model &model, ArrayRef<Order> orders, int64_t updates) {
  auto stream = [&](int device, int64_t n) {
    return expand(model, orders[device], n);
  };
  Needs needs;
  int64_t steps = 0;
  for (int device = 0; device < model.devices; ++device) {
    auto events = stream(device, updates);
    if (walkDevice(model, device, *events, updates, Awaits::Implied, needs,
                   steps))
      return false;
  }
  return !execute(model, stream, updates, Awaits::Implied).violation;
}

} // namespace penstock::schedule
