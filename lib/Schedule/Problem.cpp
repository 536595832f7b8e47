//===- Problem.cpp - What a generator knows -------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A line of stages with what flows between their tasks, so that a schedule is
// proved by the same walk and execution as that of a program.
//===----------------------------------------------------------------------===//

#include "penstock/Schedule/Generators.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace penstock::schedule {

/// Tasks per stage: F, B, U or F, I, W, U.
static int tasksPerStage(const ScheduleSpec &spec) {
  return spec.splitsBackward() ? 4 : 3;
}

Problem::Problem(const ScheduleSpec &spec, int devices, int64_t microbatches,
                 const Times &times)
    : spec(spec), devices(devices), microbatches(microbatches),
      stages(devices * spec.chunks()), times(times),
      memoryLimit(spec.get("memory-limit")) {
  model.microbatches = microbatches;
  model.devices = devices;
  bool split = spec.splitsBackward();
  for (int i = 0; i < stages; ++i) {
    std::string name = std::to_string(i);
    Stage stage{"s" + name, {}};
    for (int replica = 0; replica < spec.replicas(); ++replica)
      stage.devices.push_back(spec.getDevice(i, devices, replica));
    model.stages.push_back(std::move(stage));
    int w = model.variables.size(), g = w + 1;
    for (char letter : StringRef(split ? "FIWU" : "FBU")) {
      Task task;
      task.name = "s" + name + "." + letter;
      task.letter = letter;
      task.stage = i;
      if (letter == 'F' || letter == 'I' || letter == 'B')
        task.reads.push_back({w, 0});
      if (letter == 'W' || letter == 'B') {
        task.reads.push_back({g, std::nullopt});
        task.writes.push_back(g);
      }
      if (letter == 'U') {
        task.reads = {{w, std::nullopt}, {g, std::nullopt}};
        task.writes = {w, g};
      }
      model.tasks.push_back(std::move(task));
    }
    int updater = model.tasks.size() - 1;
    model.variables.push_back({"w" + name, 0, updater});
    model.variables.push_back({"g" + name, 0, updater});
  }

  char backward = split ? 'I' : 'B';
  model.addChannel("x", -1, task('F', 0));
  model.addChannel("labels", -1, task('F', stages - 1));
  model.addChannel("loss", task('F', stages - 1), -1);
  for (int i = 0; i < stages; ++i) {
    std::string name = std::to_string(i), next = std::to_string(i + 1);
    model.addChannel("residuals" + name, task('F', i), task(backward, i));
    if (split)
      model.addChannel("weight_residuals" + name, task('I', i), task('W', i));
    if (i + 1 == stages)
      continue;
    model.addChannel("h" + next, task('F', i), task('F', i + 1));
    model.addChannel("dh" + next, task(backward, i + 1), task(backward, i));
  }
}

Problem Problem::withMicrobatches(int64_t count) const {
  Problem problem = *this;
  problem.microbatches = problem.model.microbatches = count;
  return problem;
}

int Problem::task(char letter, int stage) const {
  int first = stage * tasksPerStage(spec);
  bool split = spec.splitsBackward();
  switch (letter) {
  case 'F':
    return first;
  case 'W':
    return first + 2;
  case 'U':
    return first + (split ? 3 : 2);
  default:
    return first + 1;
  }
}

double Problem::getTime(int task) const {
  bool isEven = stageTimes.empty();
  const Times &stage = isEven ? times : stageTimes[getStage(task)];
  double share = isEven ? 1.0 / spec.chunks() : 1;
  switch (getLetter(task)) {
  case 'F':
    return stage.forward * share;
  case 'I':
    return stage.backward * share;
  case 'W':
    return stage.weight * share;
  case 'B':
    return (stage.backward + stage.weight) * share;
  default:
    return 0;
  }
}

double Problem::getLoad(int device) const {
  double load = 0;
  for (int stage : getStages(device))
    for (int task = this->task('F', stage), updater = this->task('U', stage);
         task < updater; ++task)
      load += getTime(task);
  return load;
}

int Problem::busiestDevice() const {
  int busiest = 0;
  for (int device = 1; device < devices; ++device)
    if (getLoad(device) > getLoad(busiest))
      busiest = device;
  return busiest;
}

SmallVector<int, 2> Problem::getStages(int device) const {
  SmallVector<int, 2> result;
  for (auto [index, stage] : llvm::enumerate(model.stages))
    if (llvm::is_contained(stage.devices, device))
      result.push_back(index);
  return result;
}

} // namespace penstock::schedule
