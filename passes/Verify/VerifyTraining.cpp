//===- VerifyTraining.cpp - What a program says of its training -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules C32 and C33: the facts stand once, and tasks and schedules agree with
// them.
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include "dialects/Pipeline/Replicas.h"
#include "penstock/Methods/Method.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

/// C32: a program has its facts once, from level training on.
static LogicalResult verifyOnce(Subject &subject) {
  auto own = subject.module.getOps<TrainingOp>();
  if (!own.empty() && subject.module->getParentOp())
    return (*own.begin())
        .emitOpError(
            "C32: is in a nested module, which has those of its program");
  if (!own.empty() && !llvm::hasSingleElement(own))
    return (*std::next(own.begin()))
        .emitOpError("C32: is the second of its module");
  if (!subject.isFrom(Level::Training) ||
      subject.module.getOps<TaskOp>().empty())
    return success();
  FailureOr<TrainingOp> training = requireTraining(subject.module);
  if (failed(training))
    return failure();
  if (training->getInfers() && trains(subject.module))
    return training->emitOpError(
        "C32: says that a program infers which trains");
  if (!training->getInfers() && !trains(subject.module))
    return training->emitOpError("C32: says how a program trains that infers");
  return success();
}

/// C33: schedules of training have its number of microbatches.
static LogicalResult verifyMicrobatches(Subject &subject) {
  TrainingOp training = getTraining(subject.module);
  if (!training)
    return success();
  for (auto schedule : subject.module.getOps<ScheduleOp>())
    if (schedule.getRole() == ScheduleRole::Train &&
        schedule.getMicrobatches() != training.getMicrobatches())
      return schedule.emitOpError("C33: has ")
             << schedule.getMicrobatches()
             << " microbatches per update, pipeline.training "
             << training.getMicrobatches();
  // The runtime runs evaluation once for each microbatch, and inference once
  // for each round of the replicas.
  for (auto schedule : subject.module.getOps<ScheduleOp>())
    if (schedule.getRole() == ScheduleRole::Evaluate &&
        schedule.getMicrobatches() != 1)
      return schedule.emitOpError("C33: evaluates by ")
             << schedule.getMicrobatches()
             << " microbatches; a segment of evaluation counts single ones";
  return success();
}

/// C33: a schedule of training has the waves of the method, others have none.
static LogicalResult verifyWavesOfMethod(Subject &subject) {
  TrainingOp training = getTraining(subject.module);
  if (!training)
    return success();
  MethodSpec method = MethodSpec::fromAttr(training.getMethodAttr());
  auto waves = method.getMethod().getWaves(method);
  for (auto schedule : subject.module.getOps<ScheduleOp>()) {
    bool trains = schedule.getRole() == ScheduleRole::Train;
    int64_t wave = waves && trains ? waves->wave : 1;
    int64_t distance =
        waves && trains && waves->workers > 1 ? waves->distance : 0;
    if (static_cast<int64_t>(schedule.getWave()) == wave &&
        static_cast<int64_t>(schedule.getDistance()) == distance)
      continue;
    if (!trains)
      return schedule.emitOpError("C33: does not train, but has waves");
    return schedule.emitOpError("C33: has waves of ")
           << schedule.getWave() << " updates and distance "
           << schedule.getDistance() << ", the method of pipeline.training "
           << wave << " and " << distance;
  }
  return success();
}

/// Returns how many workers the method has.
static int64_t countWorkers(TrainingOp training) {
  MethodSpec method = MethodSpec::fromAttr(training.getMethodAttr());
  auto waves = method.getMethod().getWaves(method);
  return waves ? waves->workers : 1;
}

/// C33: the workers are those of the method, and each holds every weight.
static LogicalResult verifyWorkers(Subject &subject) {
  TrainingOp training = getTraining(subject.module);
  if (!training || !subject.isFrom(Level::Schedule))
    return success();
  int64_t workers = countWorkers(training);
  std::vector<llvm::SetVector<Attribute>> weights(workers);
  for (auto stage : subject.module.getOps<StageOp>())
    if (static_cast<int64_t>(stage.getWorker()) >= workers)
      return stage.emitOpError("C33: is of worker ")
             << stage.getWorker() << ", the method of pipeline.training has "
             << workers;
  for (auto variable : subject.module.getOps<VariableOp>())
    if (variable.getRole() == Role::Parameter && variable.getStageAttr() &&
        variable.getInit())
      if (auto stage = subject.symbols.lookup<StageOp>(*variable.getStage()))
        weights[stage.getWorker()].insert(variable.getInitAttr());
  for (auto &own : weights)
    for (Attribute weight : weights.front())
      if (!own.contains(weight))
        return training.emitOpError("C33: has a method of ")
               << workers << " workers, of which " << &own - weights.data()
               << " does not hold the weight of " << weight;
  return success();
}

/// C33: a worker takes from each source, and gives each sink, its microbatches.
static LogicalResult verifyShares(Subject &subject) {
  TrainingOp training = getTraining(subject.module);
  if (!training || !subject.isFrom(Level::Schedule))
    return success();
  int64_t workers = countWorkers(training);
  Builder builder(training.getContext());
  for (TaskOp task : subject.module.getOps<TaskOp>()) {
    if (task.getKind() == TaskKind::Evaluate)
      continue;
    auto stage = subject.symbols.lookup<StageOp>(task.getStage());
    auto own = static_cast<int64_t>(stage.getWorker());
    Attribute due = workers > 1 ? builder.getDenseI64ArrayAttr({own, workers})
                                : DenseI64ArrayAttr();
    auto verify = [&](FlatSymbolRefAttr name) -> LogicalResult {
      auto channel = subject.symbols.lookup<ChannelOp>(name.getValue());
      if (!channel || (!channel.getSource() && !channel.getSink()) ||
          channel->getAttr(kTurnAttr) == due)
        return success();
      return channel.emitOpError("C33: is of worker ")
             << own << " of " << workers << ", but of other microbatches";
    };
    WalkResult result = task.walk([&](Operation *op) {
      FlatSymbolRefAttr name;
      if (auto take = dyn_cast<TakeOp>(op))
        name = take.getChannelAttr();
      else if (auto put = dyn_cast<PutOp>(op))
        name = put.getChannelAttr();
      return name && failed(verify(name)) ? WalkResult::interrupt()
                                          : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    if (ArrayAttr puts = task.getPutsAttr())
      for (auto put : puts.getAsRange<PutAttr>())
        if (failed(verify(put.getChannel())))
          return failure();
    if (ArrayAttr calls = task.getCallsAttr())
      for (auto call : calls.getAsRange<CallAttr>())
        for (Attribute term : call.getOperands())
          if (auto operand = dyn_cast<OperandAttr>(term))
            if (failed(verify(operand.getSymbol())))
              return failure();
  }
  return success();
}

LogicalResult penstock::verifyTraining(Subject &subject) {
  return success(succeeded(verifyOnce(subject)) &&
                 succeeded(verifyMicrobatches(subject)) &&
                 succeeded(verifyWavesOfMethod(subject)) &&
                 succeeded(verifyWorkers(subject)) &&
                 succeeded(verifyShares(subject)));
}
