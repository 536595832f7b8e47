//===- WaveMachine.cpp - Waves in the traces of devices -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// S10 of device programs: what pushes and folds may read and write, and when.
// The rule is that of lib/Schedule/WaveRule.h; here it holds of what the
// functions do, in whatever order that was said.
//===----------------------------------------------------------------------===//

#include "passes/Program/Proof/ProgramMachine.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

ProgramMachine::WaveTasks ProgramMachine::getWaveTasks(StringRef stage) {
  auto [it, isNew] = waveTasks.try_emplace(stage);
  if (!isNew)
    return it->second;
  for (auto task : module.getOps<TaskOp>()) {
    if (task.getStage() != stage)
      continue;
    if (task.getKind() == TaskKind::Update)
      it->second.update = task;
    else if (task.getKind() == TaskKind::Push)
      it->second.push = task;
    else if (task.getKind() == TaskKind::Fold)
      it->second.fold = task;
  }
  return it->second;
}

int64_t ProgramMachine::countRuns(const Device &device, TaskOp task) {
  return task ? device.runs.lookup(task.getSymNameAttr()) : 0;
}

/// `runs` with this one.
LogicalResult ProgramMachine::startWave(Device &device, const TraceEvent &event,
                                        TaskOp task, int64_t runs) {
  WaveTasks own = getWaveTasks(task.getStage());
  if (!own.update || !own.push || !own.fold)
    return report(device, event, 10)
           << "runs @" << event.symbol.getValue()
           << " of a stage that does not update, push and fold";
  bool isPush = task == own.push;
  int64_t made = std::min(runs + (isPush ? 0 : distance), updates / wave);
  auto check = [&](TaskOp other, int64_t due) -> LogicalResult {
    int64_t count = countRuns(device, other);
    if (count == due)
      return success();
    return report(device, event, 10)
           << "runs @" << event.symbol.getValue() << "[" << event.number
           << "] after " << count << " instead of " << due << " runs of @"
           << other.getSymName();
  };
  if (failed(check(own.update, made * wave)))
    return failure();
  return isPush ? check(own.fold, std::max<int64_t>(0, runs - 1 - distance))
                : check(own.push, made);
}

/// A wave ends with a version of the weights; the fold makes that anew.
LogicalResult ProgramMachine::checkWave(Device &device, const TraceEvent &event,
                                        const CellRef &ref) {
  TaskOp task = device.running;
  auto variable = symbols.lookup<VariableOp>(ref.symbol);
  if (!task || !variable || !variable.getStage())
    return success();
  WaveTasks own = getWaveTasks(task.getStage());
  if (!own.fold || !device.foldedVariables.contains(ref.symbol))
    return success();
  int64_t version = ref.number - first;
  if (task == own.push) {
    int64_t end = countRuns(device, own.update);
    int64_t begin = end - wave;
    if (version == end || (distance > 0 && version == begin))
      return success();
    return report(device, event, 10)
           << "pushes version " << ref.number << " of @"
           << ref.symbol.getValue() << ", but the wave is what changed from "
           << first + begin << " to " << first + end;
  }
  int64_t due = std::max<int64_t>(0, version / wave - distance);
  if (task == own.fold || countRuns(device, own.fold) >= due)
    return success();
  return report(device, event, 10)
         << "reads version " << ref.number << " of @" << ref.symbol.getValue()
         << " before wave " << due - 1 + first / wave << " is folded into it";
}

int64_t ProgramMachine::getWaveVersion(const Device &device, const CellRef &ref,
                                       int64_t lag) const {
  int64_t end = device.runNumber + 1;
  TaskOp task = device.running;
  bool isPush = task.getKind() == TaskKind::Push;
  // A push takes what its wave ends with, a fold the last wave that is known.
  if (device.foldedVariables.contains(ref.symbol))
    return (isPush ? end : std::min(end + distance, getWavesEnd())) * wave -
           lag;
  return isPush ? device.runNumber
                : std::min(end + distance - lag, getWavesEnd());
}
