//===- DoubleBuffer.cpp - The planner of PipeDream-2BW --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See DoubleBuffer.h. Times of a microbatch are those of the profile, scaled by
// samples. A stage's memory is what its schedule keeps: versions of its
// weights, activation sets and inputs of the microbatches in flight, and
// buffers; with recomputation one set and the inputs. Since it may be that of a
// program, which takes long to compile, what promises most is asked first.
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
/// A way of running a pipeline, with the largest microbatches that may fit.
struct Choice {
  DoubleBufferPlan plan;
  int64_t order = 0; ///< Among equals, the first.
};

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
  /// Counts what each stage needs, or asks; whether there is such a plan, and
  /// it fits.
  bool fits(DoubleBufferPlan &plan);
  bool count(DoubleBufferPlan &plan);
  double getSeconds(const std::vector<PlanStage> &stages,
                    PipelineExecution execution, double accumulation) const;
  /// Takes the next smaller microbatch than `plan` has; whether there is one.
  bool shrink(DoubleBufferPlan &plan) const;

  double scale(double samples) const {
    return samples / static_cast<double>(options.profileBatch);
  }
  double before(int64_t state, double PlanState::*total) const {
    return state > 0 ? states[state - 1].*total : 0;
  }

  const std::vector<PlanState> &states;
  const DoubleBufferOptions &options;
  /// The counts of a schedule by depth, whether pipelined, and microbatches of
  /// a replica per batch; nothing where there is no such schedule.
  std::map<std::tuple<int64_t, bool, int64_t>,
           std::optional<std::vector<StageCounts>>>
      counts;
  std::vector<int64_t> blockEnds; ///< One past the last state of each.
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
    auto getTransfer = [&](int64_t last) {
      return 2 * (scale(samples) * states[last].cutBytes / depthBandwidth +
                  options.latencySeconds);
    };
    if (index > 0)
      stage.times.input = getTransfer(first - 1);
    if (index + 1 < depth)
      stage.times.output = getTransfer(end - 1);
    stage.times.allReduce = 2 * static_cast<double>(width - 1) /
                            static_cast<double>(width) * stage.weightBytes /
                            widthBandwidth;
    stages.push_back(stage);
    first = end;
  }
  return stages;
}

/// A replica is a pipeline by itself.
bool Search::count(DoubleBufferPlan &found) {
  auto samples = static_cast<double>(found.microbatch);
  std::vector<PlanStage> &stages = found.plan.stages;
  bool isPipelined = found.execution != PipelineExecution::OneAtATime;
  int64_t accumulation = isPipelined ? found.accumulation : 1;
  auto [known, isNew] =
      counts.try_emplace({found.depth, isPipelined, accumulation});
  if (isNew)
    known->second = countSchedule(SmallVector<int64_t>(found.depth, 1),
                                  isPipelined ? PlannedMethod::DoubleBuffered
                                              : PlannedMethod::OneAtATime,
                                  accumulation);
  if (!known->second)
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
                      found.execution == PipelineExecution::Recomputed);
  }
  return true;
}

bool Search::fits(DoubleBufferPlan &found) {
  if (!count(found))
    return false;
  std::vector<PlanStage> &stages = found.plan.stages;
  if (options.measure) {
    std::optional<std::vector<int64_t>> bytes = options.measure(found);
    if (!bytes || bytes->size() != stages.size())
      return false;
    for (auto [stage, need] : zip_equal(stages, *bytes))
      stage.memoryBytes = static_cast<double>(need);
    found.plan.isCompiled = true;
  }
  return options.memory.limit <= 0 ||
         llvm::all_of(stages, [&](const PlanStage &stage) {
           return stage.memoryBytes <= options.memory.limit;
         });
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

bool Search::shrink(DoubleBufferPlan &found) const {
  bool isPipelined = found.execution != PipelineExecution::OneAtATime;
  while (--found.microbatch >= 1) {
    int64_t step = found.width * found.microbatch;
    if (options.batch % step != 0)
      continue;
    found.accumulation = options.batch / step;
    // The method needs as many microbatches per batch as there are stages.
    if (isPipelined && found.accumulation < found.depth)
      continue;
    if (options.measure && !isPipelined && found.depth > 1 &&
        found.accumulation > 1)
      return false;
    auto samples = static_cast<double>(found.microbatch);
    Plan &plan = found.plan;
    plan.stages = makeStages(found.width, found.depth, samples);
    plan.slowestSeconds = getSeconds(plan.stages, found.execution,
                                     static_cast<double>(found.accumulation));
    // Of the samples that all replicas of the plan take in one step.
    plan.oneDeviceSeconds =
        scale(static_cast<double>(step)) * states.back().seconds;
    found.samplesPerSecond = static_cast<double>(step) / plan.slowestSeconds;
    return true;
  }
  return false;
}

std::optional<DoubleBufferPlan> Search::run() {
  makeBlocks();
  auto blocks = static_cast<int64_t>(blockEnds.size());
  std::vector<Choice> choices;
  auto add = [&](int64_t width, int64_t depth, PipelineExecution execution) {
    Choice choice;
    choice.plan.width = width;
    choice.plan.depth = depth;
    choice.plan.execution = execution;
    choice.plan.microbatch = options.batch / width + 1;
    choice.order = static_cast<int64_t>(choices.size());
    if (shrink(choice.plan))
      choices.push_back(std::move(choice));
  };
  for (int64_t width = 1; width <= options.devices; ++width) {
    for (int64_t depth = 1; width * depth <= options.devices && depth <= blocks;
         ++depth) {
      if (blocks % depth != 0)
        continue;
      add(width, depth, PipelineExecution::OneAtATime);
      if (depth == 1)
        continue;
      add(width, depth, PipelineExecution::Pipelined);
      add(width, depth, PipelineExecution::Recomputed);
    }
  }
  // Smaller microbatches do not make a pipeline faster.
  while (!choices.empty()) {
    auto first =
        llvm::max_element(choices, [](const Choice &left, const Choice &right) {
          return std::pair(left.plan.samplesPerSecond, -left.order) <
                 std::pair(right.plan.samplesPerSecond, -right.order);
        });
    if (fits(first->plan)) {
      DoubleBufferPlan found = std::move(first->plan);
      for (auto [stage, next] :
           zip(found.plan.stages, drop_begin(found.plan.stages)))
        found.plan.cuts.push_back({1, stage.last, {}});
      return found;
    }
    if (!shrink(first->plan))
      choices.erase(first);
  }
  return std::nullopt;
}

std::optional<DoubleBufferPlan>
penstock::planDoubleBuffer(const std::vector<PlanState> &states,
                           const DoubleBufferOptions &options) {
  return Search(states, options).run();
}
