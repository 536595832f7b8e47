//===- Registry.cpp - The table of schedules ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names and parameters, and the placement of stages that each asks for.
//===----------------------------------------------------------------------===//

#include "Families.h"

#include "../Compress.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace llvm;

namespace penstock::schedule {

static ArrayRef<const Family *> families() {
  static const Family *const kFamilies[] = {
      &kGPipe,          &kOneForwardOneBackward,
      &kInterleaved,    &kLoopedBreadthFirst,
      &kZeroBubbleH1,   &kZeroBubbleH2,
      &kZeroBubbleV,    &kVHalf,
      &kVMin,           &kDualPipeV,
      &kChimera,        &kHanayo,
      &kZeroBubbleAuto,
  };
  return kFamilies;
}

StringRef ScheduleSpec::name() const { return family->name; }

double ScheduleSpec::get(StringRef parameter) const {
  for (auto [known, value] : llvm::zip_equal(family->parameters, values))
    if (known.name == parameter)
      return value;
  return 0;
}

int ScheduleSpec::chunks() const { return family->chunks(*this); }

bool ScheduleSpec::splitsBackward() const { return family->splitsBackward; }

int ScheduleSpec::replicas() const {
  return family->placement == Placement::Mirror ? 2 : 1;
}

Placement ScheduleSpec::placement() const { return family->placement; }

int ScheduleSpec::deviceOf(int stage, int devices, int replica) const {
  return schedule::deviceOf(family->placement, stage, devices, replica);
}

int deviceOf(Placement placement, int chunk, int devices, int replica) {
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
  std::vector<std::string> names;
  for (const Family *family : families()) {
    std::string name = family->name.str();
    for (auto [index, parameter] : llvm::enumerate(family->parameters))
      name += (index ? "," : ":") + parameter.name.str() + "=" +
              llvm::utostr(uint64_t(parameter.fallback));
    names.push_back(std::move(name));
  }
  return names;
}

std::optional<ScheduleSpec> parseScheduleSpec(StringRef text,
                                              std::string &error) {
  auto [name, rest] = text.split(':');
  auto found = llvm::find_if(
      families(), [&](const Family *family) { return family->name == name; });
  if (found == families().end()) {
    error = "schedule '" + name.str() + "' is not known; there are " +
            llvm::join(scheduleNames(), ", ");
    return std::nullopt;
  }
  ScheduleSpec spec;
  spec.family = *found;
  ArrayRef<Parameter> parameters = spec.family->parameters;
  for (const Parameter &parameter : parameters)
    spec.values.push_back(parameter.fallback);

  SmallVector<StringRef> settings;
  rest.split(settings, ',', -1, /*KeepEmpty=*/false);
  llvm::SmallDenseSet<StringRef> given;
  for (StringRef setting : settings) {
    auto [key, value] = setting.split('=');
    if (!given.insert(key).second) {
      error = "schedule " + name.str() + ": " + key.str() + " is given twice";
      return std::nullopt;
    }
    auto known = llvm::find_if(
        parameters, [&](const Parameter &p) { return p.name == key; });
    if (known == parameters.end()) {
      error = "schedule " + name.str() + " has no parameter '" + key.str() +
              "'" +
              (parameters.empty()
                   ? "; it has none"
                   : "; it has " +
                         llvm::join(llvm::map_range(parameters,
                                                    [](const Parameter &p) {
                                                      return p.name.str();
                                                    }),
                                    ", "));
      return std::nullopt;
    }
    double number;
    if (value.getAsDouble(number) || !std::isfinite(number) ||
        number < known->least || number > 1e6 ||
        (known->isWhole && number != std::floor(number))) {
      error = "schedule " + name.str() + ": " + key.str() + " needs a " +
              (known->isWhole ? "whole " : "") + "number of at least " +
              llvm::utostr(uint64_t(known->least)) + ", not '" + value.str() +
              "'";
      return std::nullopt;
    }
    spec.values[known - parameters.begin()] = number;
  }
  return spec;
}

std::string refuse(const Problem &problem) {
  const Family &family = *problem.spec.family;
  return family.refuse ? family.refuse(problem) : "";
}

std::vector<Order> generate(const Problem &problem) {
  return problem.spec.family->generate(problem);
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
  for (int stage : problem.stagesOf(order.device))
    append(order.loops.front(), problem.task('U', stage));
}

Order orderOf(const Problem &problem, int device, ArrayRef<int> runs) {
  Order order = openOrder(device, LoopKind::Updates);
  Loop written;
  append(written, runs);
  appendCompressed(order, written.items);
  appendUpdates(problem, order);
  return order;
}

} // namespace penstock::schedule
