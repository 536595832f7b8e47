//===- DoubleBuffer.cpp - The planner of PipeDream-2BW --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See DoubleBuffer.h. Times of a microbatch are those of the profile, scaled by
// samples. A stage's memory is what its schedule keeps: versions of its
// weights, activation sets and inputs of the microbatches in flight, and
// buffers; with recomputation one set and the inputs.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/DoubleBuffer.h"
#include "penstock/Planner/LinearPartition.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

using namespace llvm;
using namespace penstock;

namespace {
class Search {
public:
  Search(const std::vector<PlanState> &states,
         const DoubleBufferOptions &options)
      : states(states), options(options) {}
  std::optional<DoubleBufferPlan> run();

private:
  void makeBlocks();
  /// The stages of a depth, with times of one microbatch.
  std::vector<PlanStage> makeStages(int64_t width, int64_t depth,
                                    double samples) const;
  bool fits(std::vector<PlanStage> &stages, double samples,
            PipelineExecution execution, int64_t accumulation);
  double getSeconds(const std::vector<PlanStage> &stages,
                    PipelineExecution execution, double accumulation) const;
  void tryExecution(int64_t width, int64_t depth, PipelineExecution execution);

  double scale(double samples) const {
    return samples / static_cast<double>(options.profileBatch);
  }
  double before(int64_t state, double PlanState::*total) const {
    return state > 0 ? states[state - 1].*total : 0;
  }

  const std::vector<PlanState> &states;
  const DoubleBufferOptions &options;
  /// By depth, whether pipelined, and microbatches of a replica per batch;
  /// nothing where there is no such schedule.
  std::map<std::tuple<int64_t, bool, int64_t>,
           std::optional<std::vector<StageCounts>>>
      counts;
  std::vector<int64_t> blockEnds; ///< One past the last state of each.
  std::optional<DoubleBufferPlan> best;
};
} // namespace

/// Blocks of layers that take about equally long.
void Search::makeBlocks() {
  auto count = static_cast<int64_t>(states.size());
  int64_t wanted = options.blocks > 0 ? std::min(options.blocks, count) : count;
  LinearProblem problem;
  problem.cutSeconds.assign(count + 1, 0);
  for (int64_t state = 0; state < count; ++state)
    problem.unitSeconds.push_back(states[state].seconds -
                                  before(state, &PlanState::seconds));
  LinearPlan plan = partitionLinearly(problem, wanted);
  blockEnds.assign(plan.cuts.begin(), plan.cuts.end());
  blockEnds.push_back(count);
}

std::vector<PlanStage> Search::makeStages(int64_t width, int64_t depth,
                                          double samples) const {
  auto blocks = static_cast<int64_t>(blockEnds.size());
  double widthBandwidth = width < options.devicesPerServer
                              ? options.bandwidthInside
                              : options.bandwidthBetween;
  double depthBandwidth = width * depth <= options.devicesPerServer
                              ? options.bandwidthInside
                              : options.bandwidthBetween;
  std::vector<PlanStage> stages;
  for (int64_t index = 0, first = 0; index < depth; ++index) {
    PlanStage stage;
    int64_t end = blockEnds[(index + 1) * (blocks / depth) - 1];
    stage.first = first;
    stage.last = end - 1;
    stage.replicas = width;
    stage.times.compute = scale(samples) * (states[end - 1].seconds -
                                            before(first, &PlanState::seconds));
    stage.weightBytes =
        states[end - 1].weightBytes - before(first, &PlanState::weightBytes);
    stage.activationBytes =
        scale(samples) * (states[end - 1].activationBytes -
                          before(first, &PlanState::activationBytes));
    if (index > 0)
      stage.times.input =
          2 * scale(samples) * states[first - 1].cutBytes / depthBandwidth;
    if (index + 1 < depth)
      stage.times.output =
          2 * scale(samples) * states[end - 1].cutBytes / depthBandwidth;
    stage.times.allReduce = 2 * static_cast<double>(width - 1) /
                            static_cast<double>(width) * stage.weightBytes /
                            widthBandwidth;
    stages.push_back(stage);
    first = end;
  }
  return stages;
}

/// Counts what each stage needs. A replica is a pipeline by itself.
bool Search::fits(std::vector<PlanStage> &stages, double samples,
                  PipelineExecution execution, int64_t accumulation) {
  auto depth = static_cast<int64_t>(stages.size());
  bool isPipelined = execution != PipelineExecution::OneAtATime;
  auto [known, isNew] =
      counts.try_emplace({depth, isPipelined, isPipelined ? accumulation : 1});
  if (isNew)
    known->second = countSchedule(SmallVector<int64_t>(depth, 1),
                                  isPipelined ? PlannedMethod::DoubleBuffered
                                              : PlannedMethod::OneAtATime,
                                  isPipelined ? accumulation : 1);
  bool fits = known->second.has_value();
  if (!fits)
    return false;
  for (auto [stage, count] : zip_equal(stages, *known->second)) {
    auto carry = [&](int64_t state) {
      return scale(samples) * states[state].cutBytes;
    };
    StageSizes sizes{stage.weightBytes, stage.activationBytes, 0, 0};
    if (&stage != &stages.front())
      sizes.input = carry(stage.first - 1);
    if (&stage != &stages.back())
      sizes.output = carry(stage.last);
    stage.inFlight = count.inFlight;
    stage.memoryBytes =
        getStageBytes(sizes, count, options.memory.weightCopies,
                      execution == PipelineExecution::Recomputed);
    fits &=
        options.memory.limit <= 0 || stage.memoryBytes <= options.memory.limit;
  }
  return fits;
}

double Search::getSeconds(const std::vector<PlanStage> &stages,
                          PipelineExecution execution,
                          double accumulation) const {
  double time = 0;
  for (const PlanStage &stage : stages) {
    double factor = execution == PipelineExecution::Recomputed
                        ? options.recomputeFactor
                        : 1;
    double own = std::max(factor * stage.times.compute + stage.times.input +
                              stage.times.output,
                          stage.times.allReduce / accumulation);
    time = execution == PipelineExecution::OneAtATime ? time + own
                                                      : std::max(time, own);
  }
  return time;
}

/// Takes the largest microbatch that fits.
void Search::tryExecution(int64_t width, int64_t depth,
                          PipelineExecution execution) {
  for (int64_t samples = options.batch / width; samples >= 1; --samples) {
    if (options.batch % (width * samples) != 0)
      continue;
    int64_t accumulation = options.batch / (width * samples);
    // The method needs as many microbatches per batch as there are stages.
    if (execution != PipelineExecution::OneAtATime && accumulation < depth)
      continue;
    std::vector<PlanStage> stages =
        makeStages(width, depth, static_cast<double>(samples));
    if (!fits(stages, static_cast<double>(samples), execution, accumulation))
      continue;
    double seconds =
        getSeconds(stages, execution, static_cast<double>(accumulation));
    double rate = static_cast<double>(width * samples) / seconds;
    if (!best || rate > best->samplesPerSecond) {
      best.emplace();
      best->width = width;
      best->depth = depth;
      best->microbatch = samples;
      best->accumulation = accumulation;
      best->execution = execution;
      best->samplesPerSecond = rate;
      best->plan.slowestSeconds = seconds;
      best->plan.stages = std::move(stages);
    }
    return;
  }
}

std::optional<DoubleBufferPlan> Search::run() {
  makeBlocks();
  auto blocks = static_cast<int64_t>(blockEnds.size());
  for (int64_t width = 1; width <= options.devices; ++width) {
    for (int64_t depth = 1; width * depth <= options.devices && depth <= blocks;
         ++depth) {
      if (blocks % depth != 0)
        continue;
      tryExecution(width, depth, PipelineExecution::OneAtATime);
      if (depth == 1)
        continue;
      tryExecution(width, depth, PipelineExecution::Pipelined);
      tryExecution(width, depth, PipelineExecution::Recomputed);
    }
  }
  if (best) {
    Plan &plan = best->plan;
    // Of the samples that all replicas of the plan take in one step.
    plan.oneDeviceSeconds =
        scale(static_cast<double>(best->width * best->microbatch)) *
        states.back().seconds;
    for (auto [stage, next] : zip(plan.stages, drop_begin(plan.stages)))
      plan.cuts.push_back({1, stage.last, {}});
  }
  return best;
}

std::optional<DoubleBufferPlan>
penstock::planDoubleBuffer(const std::vector<PlanState> &states,
                           const DoubleBufferOptions &options) {
  return Search(states, options).run();
}
