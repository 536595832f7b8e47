//===- ReportSchedule.cpp - What the schedule makes of the stages ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Simulated times, lags of what is read, and what waits between forward and
// backward, read off the schedule and its tasks.
//===----------------------------------------------------------------------===//

#include "penstock/Driver/Report.h"

#include "dialects/Pipeline/Pipeline.h"
#include "passes/Schedule/Passes.h"
#include "passes/Schedule/Simulate.h"
#include "penstock/Methods/Method.h"
#include "penstock/Schedule/FromIR.h"
#include "penstock/Support/ByteSize.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

/// Returns the time that an update adds to a long run: devices begin the next
/// one at once.
static double computeSteadyBubble(ScheduleOp schedule, const Simulation &one,
                                  size_t stages, ArrayRef<double> speeds) {
  // A long timeline is not worth the time.
  constexpr uint64_t kMostRuns = 1 << 17;
  if (schedule.getMicrobatches() * stages > kMostRuns)
    return one.bubble;
  PipelineSimulateOptions options;
  options.speeds.assign(speeds.begin(), speeds.end());
  options.updates = 3;
  FailureOr<Simulation> fewer = simulateSchedule(schedule, options);
  options.updates = 4;
  FailureOr<Simulation> more = simulateSchedule(schedule, options);
  if (failed(fewer) || failed(more) || more->makespan <= fewer->makespan)
    return one.bubble;
  double busy = (1 - one.bubble) * one.makespan;
  return std::max(0.0, 1 - busy / (more->makespan - fewer->makespan));
}

/// Collects the measured seconds of each stage, and the simulation with these
/// or with estimates.
void Report::collectSeconds(ScheduleOp schedule) {
  auto module = schedule->getParentOfType<ModuleOp>();
  auto measured = module->getAttrOfType<DenseF64ArrayAttr>(kStageSecondsAttr);
  bool isMeasured =
      measured && measured.size() == static_cast<int64_t>(3 * stages.size());
  for (auto [index, stage] : llvm::enumerate(stages)) {
    if (!isMeasured)
      break;
    stage.forwardSeconds = measured[3 * index];
    stage.backwardSeconds = measured[3 * index + 1];
    stage.updateSeconds = measured[3 * index + 2];
  }
  // The second of two segments costs what an update costs where none drains.
  PipelineSimulateOptions options;
  options.speeds.assign(speeds.begin(), speeds.end());
  options.costs = "seconds";
  // An update of the program is a wave of each worker.
  auto wave = static_cast<int64_t>(schedule.getWave());
  int64_t waves = llvm::divideCeilSigned(timelineUpdates, wave);
  options.updates = waves * wave;
  FailureOr<Simulation> once = simulateSchedule(schedule, options);
  options.updates = 2 * waves * wave;
  FailureOr<Simulation> twice = simulateSchedule(schedule, options);
  if (failed(once) || failed(twice))
    return;
  auto updates = static_cast<double>(waves);
  simulatedSeconds = (twice->makespan - once->makespan) / updates;
  workSeconds = once->work / updates;
  simulatedDevices = once->timeline.size();
  if (!isMeasured)
    return;
  predictedSeconds = simulatedSeconds;
  // What a segment takes besides its updates: to fill, and to run empty.
  if (method.isAsynchronous())
    drainSeconds = std::max(0.0, once->makespan - updates * simulatedSeconds);
}

void Report::collectSchedule(ModuleOp module) {
  auto numbers = numberStages(module);
  // Those of other workers were not in the module that was cut.
  if (stages.size() != numbers.size())
    collectStages(module);
  collectSimulation(module);
  collectWaves(module);
  collectAges(module, numbers);
  collectEnds(module, numbers);
  collectResiduals(module, numbers);
  collectVariables(module);
  collectLeastBytes(module, numbers);
}

/// Simulates how long workers wait for each other, by the costs that cuts are
/// planned by.
void Report::collectWaits(ModuleOp module) {
  PipelineSimulateOptions options;
  options.speeds.assign(speeds.begin(), speeds.end());
  options.costs = "seconds";
  for (ScheduleOp schedule : module.getOps<ScheduleOp>()) {
    if (schedule.getRole() != ScheduleRole::Train || schedule.isBodyless())
      continue;
    auto found = simulateWorkers(schedule, options);
    if (failed(found))
      return;
    for (const WorkerWaits &worker : *found)
      waves.waits.push_back({worker.waveSeconds, worker.others, worker.line});
  }
}

/// Collects the exchange of workers: all that of the first one.
void Report::collectWaves(ModuleOp module) {
  waves = {};
  if (!method.getMethod().getWaves(method))
    return;
  SymbolTable symbols(module);
  waves.workers = 1;
  for (StageOp stage : module.getOps<StageOp>())
    waves.workers =
        std::max(waves.workers, static_cast<int64_t>(stage.getWorker()) + 1);
  for (ScheduleOp schedule : module.getOps<ScheduleOp>())
    if (schedule.getRole() == ScheduleRole::Train) {
      waves.wave = static_cast<int64_t>(schedule.getWave());
      waves.distance = static_cast<int64_t>(schedule.getDistance());
    }
  if (waves.workers > 1)
    collectWaits(module);
  for (TaskOp task : module.getOps<TaskOp>()) {
    auto stage = symbols.lookup<StageOp>(task.getStage());
    if (task.isBodyless() || !task.countsWaves() || stage.getWorker() != 0)
      continue;
    for (WriteOp write : task.getBody().getOps<WriteOp>()) {
      int64_t bytes =
          getByteSize(cast<RankedTensorType>(write.getValue().getType()));
      // A push keeps what it sends, with those of later waves; a fold makes
      // the weights anew, and the global ones.
      if (task.getKind() == TaskKind::Push) {
        waves.bytes += bytes;
        waves.keptBytes += bytes * (waves.distance + 1);
      } else if (symbols.lookup<VariableOp>(write.getVariable()).getRole() ==
                 Role::Compensation) {
        waves.keptBytes += bytes;
      }
    }
  }
}

/// Bubbles, times and the timeline, of the schedule that trains.
void Report::collectSimulation(ModuleOp module) {
  for (ScheduleOp schedule : module.getOps<ScheduleOp>()) {
    if (schedule.getRole() != ScheduleRole::Train)
      continue;
    microbatches = schedule.getMicrobatches();
    // Of what does not drain, enough to see it full.
    PipelineSimulateOptions options;
    options.speeds.assign(speeds.begin(), speeds.end());
    if (method.isAsynchronous())
      options.updates = llvm::divideCeilSigned(
          2 * static_cast<int64_t>(stages.size()), microbatches);
    timelineUpdates = options.updates;
    FailureOr<Simulation> simulation = simulateSchedule(schedule, options);
    if (failed(simulation))
      continue;
    predictedBubble = simulation->bubble;
    steadyBubble =
        computeSteadyBubble(schedule, *simulation, stages.size(), speeds);
    collectSeconds(schedule);
    // Wider than a screen it says nothing.
    if (llvm::all_of(simulation->timeline, [](const std::string &line) {
          return line.size() <= 160;
        }))
      timeline = std::move(simulation->timeline);
  }
}

/// The microbatches that a device of a pipe as long as this to fill could run
/// in the time that it waits at every update, where forwards run whole updates
/// ahead, but fewer than there are devices behind.
static int64_t countIdle(ModuleOp module, int64_t fill) {
  for (auto schedule : module.getOps<ScheduleOp>()) {
    GeneratorAttr generator = schedule.getGeneratorAttr();
    auto spec = generator ? schedule::getSchedule(generator) : std::nullopt;
    if (schedule.getRole() != ScheduleRole::Train || !spec || spec->flushes())
      continue;
    int64_t ahead = spec->getWhole("ahead");
    return ahead > 0 ? fill - std::min(fill, ahead) : 0;
  }
  return 0;
}

/// How old the weights are that each stage reads, and what that saves.
void Report::collectAges(ModuleOp module, const StageNumbers &numbers) {
  updated.clear();
  bool drains = true;
  // A pipe of replicas fills with as many microbatches per place.
  llvm::SmallDenseSet<Attribute> places;
  int64_t width = 1;
  for (auto [stage, report] : llvm::zip(module.getOps<StageOp>(), stages)) {
    // Workers are lines beside each other.
    if (stage.getWorker() == 0)
      places.insert(stage.getDevicesAttr());
    if (auto devices = stage.getDevices())
      width = std::max<int64_t>(width, devices->size());
    auto lags = stage->getAttrOfType<DenseI64ArrayAttr>(kLagsAttr);
    if (!lags)
      continue;
    drains = false;
    report.lagForward = lags[0];
    report.lagBackward = lags[1];
  }
  if (!drains) {
    auto fill = static_cast<int64_t>(places.size()) - 1;
    speedupOverFlush =
        static_cast<double>(microbatches + fill * width) /
        static_cast<double>(microbatches + countIdle(module, fill) * width);
  }
  for (TaskOp task : module.getOps<TaskOp>()) {
    if (task.isBodyless())
      continue;
    if (task.getKind() == TaskKind::Update)
      for (WriteOp write : task.getBody().getOps<WriteOp>())
        updated.insert(write.getVariable());
    // What an update blends is counted in updates.
    if (!task.countsMicrobatches())
      continue;
    StageReport &stage = stages[numbers.lookup(task.getStageAttr().getAttr())];
    for (ReadOp read : task.getBody().getOps<ReadOp>()) {
      int64_t lag = read.getLag().value_or(0);
      if (task.getKind() == TaskKind::Forward)
        stage.lagForward = std::max(stage.lagForward, lag);
      else
        stage.lagBackward = std::max(stage.lagBackward, lag);
    }
  }
  for (StageReport &stage : stages)
    stage.tau = static_cast<double>(stage.lagForward - stage.lagBackward) /
                static_cast<double>(microbatches);
}

/// The stages at both ends of each channel.
void Report::collectEnds(ModuleOp module, const StageNumbers &numbers) {
  ends.clear();
  for (TaskOp task : module.getOps<TaskOp>()) {
    if (task.isBodyless() || task.getKind() == TaskKind::Evaluate)
      continue;
    int64_t stage = numbers.lookup(task.getStageAttr().getAttr());
    for (PutOp put : task.getBody().getOps<PutOp>())
      ends.try_emplace(put.getChannel(), -1, -1).first->second.first = stage;
    for (TakeOp take : task.getBody().getOps<TakeOp>())
      ends.try_emplace(take.getChannel(), -1, -1).first->second.second = stage;
  }
}

/// Collects the values that a stage's forward puts and its backward takes.
void Report::collectResiduals(ModuleOp module, const StageNumbers &numbers) {
  llvm::DenseMap<StringAttr, StringAttr> forwardStage;
  for (TaskOp task : module.getOps<TaskOp>())
    if (task.getKind() == TaskKind::Forward && !task.isBodyless())
      for (PutOp put : task.getBody().getOps<PutOp>())
        forwardStage[put.getChannelAttr().getAttr()] =
            task.getStageAttr().getAttr();
  for (StageReport &stage : stages)
    stage.residualsPerMicrobatch = 0;
  for (TaskOp task : module.getOps<TaskOp>()) {
    if ((task.getKind() != TaskKind::Backward &&
         task.getKind() != TaskKind::InputGrad) ||
        task.isBodyless())
      continue;
    StringAttr stage = task.getStageAttr().getAttr();
    for (TakeOp take : task.getBody().getOps<TakeOp>())
      if (forwardStage.lookup(take.getChannelAttr().getAttr()) == stage)
        for (Type type : take.getResultTypes())
          stages[numbers.lookup(stage)].residualsPerMicrobatch +=
              getByteSize(cast<RankedTensorType>(type));
  }
}

/// Returns the bytes of a put's own values: a value that is passed on as it
/// came may stay where it is.
static int64_t getOwnBytes(PutOp put) {
  int64_t bytes = 0;
  for (Value value : put.getValues())
    if (!value.getDefiningOp<TakeOp>())
      bytes += getByteSize(cast<RankedTensorType>(value.getType()));
  return bytes;
}

/// Messages of a channel are all there when its slots are full, and variables
/// always. Channels may be full at different times.
void Report::collectLeastBytes(ModuleOp module, const StageNumbers &numbers) {
  for (StageReport &stage : stages) {
    stage.residualSlots = 1;
    stage.variableBytes = stage.bytes.weights + stage.bytes.versions +
                          stage.bytes.gradients + stage.bytes.optimizer;
  }
  std::vector<int64_t> residuals(stages.size());
  SymbolTable symbols(module);
  for (TaskOp task : module.getOps<TaskOp>()) {
    if (task.getKind() != TaskKind::Forward || task.isBodyless())
      continue;
    int64_t number = numbers.lookup(task.getStageAttr().getAttr());
    for (PutOp put : task.getBody().getOps<PutOp>()) {
      auto end = ends.find(put.getChannel());
      if (end == ends.end() || end->second.second != number)
        continue;
      auto channel = symbols.lookup<ChannelOp>(put.getChannel());
      int64_t slots = channel.getSlots().value_or(1);
      int64_t bytes = slots * getOwnBytes(put);
      if (bytes <= residuals[number])
        continue;
      residuals[number] = bytes;
      stages[number].residualSlots = slots;
    }
  }
  for (auto [stage, bytes] : llvm::zip_equal(stages, residuals))
    stage.leastBytes = stage.variableBytes + bytes;
}
