//===- Registry.cpp - The table of schedules ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names and parameters, and the placement of stages that each asks for.
//===----------------------------------------------------------------------===//

#include "Families.h"

#include "../Compress.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace penstock::schedule {

namespace {

/// Our own rows, and behind them those of plug-ins.
struct Registry {
  std::vector<const SpecKind *> rows = {
#define PENSTOCK_FAMILY(NAME) &k##NAME,
#include "Families.def"
#undef PENSTOCK_FAMILY
  };
  SpecTable table = {"schedule", rows, /*isVerbose=*/true};
};

} // namespace

static Registry &getRegistry() {
  static Registry registry;
  return registry;
}

const SpecTable &getScheduleTable() { return getRegistry().table; }

void addSchedule(const Family &family) {
  Registry &registry = getRegistry();
  registry.rows.push_back(&family);
  registry.table.kinds = registry.rows;
}

ScheduleSpec::ScheduleSpec() : Spec(kOneForwardOneBackward) {}

ScheduleSpec getScheduleNamed(StringRef name) {
  return ScheduleSpec(Spec(*getScheduleTable().find(name)));
}

const Family &ScheduleSpec::getFamily() const {
  return static_cast<const Family &>(getKind());
}

int ScheduleSpec::chunks() const { return getFamily().chunks(*this); }

bool ScheduleSpec::splitsBackward() const { return getFamily().splitsBackward; }

int ScheduleSpec::replicas() const {
  return getFamily().placement == Placement::Mirror ? 2 : 1;
}

Placement ScheduleSpec::placement() const { return getFamily().placement; }

bool ScheduleSpec::flushes() const { return getFamily().flushes; }

int ScheduleSpec::getDevice(int stage, int devices, int replica) const {
  return schedule::getDevice(getFamily().placement, stage, devices, replica);
}

int getDevice(Placement placement, int chunk, int devices, int replica) {
  int place = chunk % devices;
  switch (placement) {
  case Placement::Line:
  case Placement::Loop:
    return place;
  case Placement::Wave:
    return chunk / devices % 2 ? devices - 1 - place : place;
  case Placement::Mirror:
    return replica ? devices - 1 - place : place;
  }
  return place;
}

std::vector<std::string> scheduleNames() {
  return getScheduleTable().getNames();
}

std::optional<ScheduleSpec> parseScheduleSpec(StringRef text,
                                              std::string &error) {
  std::optional<Spec> spec = parseSpec(text, getScheduleTable(), error);
  if (!spec)
    return std::nullopt;
  return ScheduleSpec(std::move(*spec));
}

std::string checkProblem(const Problem &problem) {
  const Family &family = problem.spec.getFamily();
  return family.check ? family.check(problem) : "";
}

std::vector<Order> generate(const Problem &problem) {
  return problem.spec.getFamily().generate(problem);
}

//===----------------------------------------------------------------------===//
// Writing orders
//===----------------------------------------------------------------------===//

Order openOrder(int device, LoopKind kind) {
  Order order;
  order.device = device;
  order.loops.emplace_back();
  order.loops.front().kind = kind;
  return order;
}

void append(Loop &loop, ArrayRef<int> tasks, int64_t ahead, int64_t every) {
  for (int task : tasks) {
    Item item;
    item.id = task;
    item.ahead = ahead;
    item.every = every;
    loop.items.push_back(item);
  }
}

void appendLoop(Order &order, Loop loop) {
  if (loop.items.empty())
    return;
  Item item;
  item.loop = order.loops.size();
  order.loops.front().items.push_back(item);
  order.loops.push_back(std::move(loop));
}

void appendUpdates(const Problem &problem, Order &order) {
  for (int stage : problem.getStages(order.device))
    append(order.loops.front(), problem.task('U', stage));
}

Order buildOrder(const Problem &problem, int device, ArrayRef<int> runs) {
  Order order = openOrder(device, LoopKind::Updates);
  Loop written;
  append(written, runs);
  appendCompressed(order, written.items);
  appendUpdates(problem, order);
  return order;
}

} // namespace penstock::schedule
