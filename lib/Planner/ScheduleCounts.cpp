//===- ScheduleCounts.cpp - What stages hold under a schedule -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See ScheduleCounts.h. The model of a line of stages, without sizes; the same
// proof that the compiler has for a program says which sizes it needs.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/ScheduleCounts.h"
#include "penstock/Planner/Plan.h"
#include "penstock/Schedule/Generators.h"
#include "penstock/Schedule/Transfers.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace llvm;
using namespace penstock;
using namespace penstock::schedule;

namespace {

class LineModel {
public:
  LineModel(ArrayRef<int64_t> replicas, int64_t microbatches);

  /// Every read of weights of a stage is so many microbatches late.
  void setLags(ArrayRef<int64_t> lags);
  /// Nothing where the schedule is rejected.
  std::optional<std::vector<StageCounts>>
  count(std::vector<Order> orders) const;

  Model model;

private:
  static constexpr int kTasks = 3; ///< F, B and U of every stage.

  /// Channels by stage; -1 where the ends of the line have none.
  std::vector<int> residuals, inputs, gradients;
};

} // namespace

LineModel::LineModel(ArrayRef<int64_t> replicas, int64_t microbatches) {
  model.microbatches = microbatches;
  for (auto [index, count] : enumerate(replicas)) {
    auto stage = static_cast<int>(index);
    model.stages.push_back({"s" + std::to_string(index), {}});
    for (int64_t replica = 0; replica < count; ++replica)
      model.stages.back().devices.push_back(model.devices++);
    int weight = 2 * stage, gradient = weight + 1, first = kTasks * stage;
    for (char letter : {'F', 'B', 'U'}) {
      Task task;
      task.name = model.stages.back().name + "." + letter;
      task.letter = letter;
      task.stage = stage;
      if (letter == 'F')
        task.reads = {{weight, 0}};
      else if (letter == 'B')
        task.reads = {{weight, 0}, {gradient, std::nullopt}};
      else
        task.reads = {{weight, std::nullopt}, {gradient, std::nullopt}};
      if (letter == 'B')
        task.writes = {gradient};
      else if (letter == 'U')
        task.writes = {weight, gradient};
      model.tasks.push_back(std::move(task));
    }
    model.variables.push_back({"w", 0, first + 2});
    model.variables.push_back({"g", 0, first + 2});
    if (count > 1)
      model.groups.push_back({"sum",
                              {gradient},
                              {model.stages.back().devices.begin(),
                               model.stages.back().devices.end()}});
  }
  auto stages = static_cast<int>(replicas.size());
  model.addChannel("x", -1, 0);
  model.addChannel("loss", kTasks * (stages - 1), -1);
  for (int stage = 0; stage < stages; ++stage) {
    int forward = kTasks * stage, backward = forward + 1;
    std::string name = std::to_string(stage);
    residuals.push_back(
        model.addChannel("residuals" + name, forward, backward));
    inputs.push_back(
        stage > 0 ? model.addChannel("h" + name, forward - kTasks, forward)
                  : -1);
    gradients.push_back(
        stage > 0 ? model.addChannel("dh" + name, backward, backward - kTasks)
                  : -1);
  }
}

void LineModel::setLags(ArrayRef<int64_t> lags) {
  for (Task &task : model.tasks)
    if (task.letter != 'U')
      task.reads.front().lag = lags[task.stage];
}

std::optional<std::vector<StageCounts>>
LineModel::count(std::vector<Order> orders) const {
  std::optional<std::string> why = placeTransfers(model, orders);
  if (why)
    return std::nullopt;
  Proof proof = verifyOrders(model, orders);
  if (proof.violation)
    return std::nullopt;
  const Needs &needs = proof.needs;
  std::vector<StageCounts> counts(model.stages.size());
  for (auto [stage, found] : enumerate(counts)) {
    found.inFlight = needs.slots[residuals[stage]];
    found.versions = std::max<int64_t>(1, needs.versions[2 * stage]);
    if (stage > 0) {
      found.inputs = needs.slots[inputs[stage]];
      found.inputGradients = needs.staging[gradients[stage]];
    }
    if (stage + 1 < counts.size()) {
      found.outputs = needs.staging[inputs[stage + 1]];
      found.outputGradients = needs.slots[gradients[stage + 1]];
    }
  }
  return counts;
}

/// PipeDream's NOAM: one microbatch for every device from here on, of which a
/// replica has its share.
static std::vector<int64_t> getInFlight(ArrayRef<int64_t> replicas) {
  std::vector<int64_t> inFlight(replicas.size());
  int64_t devices = 0;
  for (size_t stage = replicas.size(); stage-- > 0;) {
    devices += replicas[stage];
    inFlight[stage] = divideCeilSigned(devices, replicas[stage]);
  }
  return inFlight;
}

/// Returns lower bounds for schedules too long to walk: each message that has
/// arrived at a stage is in flight before it, and the gradients that have
/// arrived are of messages in flight there.
static std::vector<StageCounts> getClosedForms(ArrayRef<int64_t> replicas,
                                               PlannedMethod method) {
  std::vector<StageCounts> counts(replicas.size());
  std::vector<int64_t> inFlight = getInFlight(replicas);
  for (auto [stage, found] : enumerate(counts)) {
    bool isPipelined = method != PlannedMethod::OneAtATime;
    found.inFlight = isPipelined ? inFlight[stage] : 1;
    found.versions = method == PlannedMethod::Stashing         ? found.inFlight
                     : method == PlannedMethod::DoubleBuffered ? 2
                                                               : 1;
    if (stage > 0) {
      int64_t before = stage - 1;
      found.inputs = isPipelined
                         ? divideCeilSigned(inFlight[before] * replicas[before],
                                            replicas[stage])
                         : 1;
      found.inputGradients = 1;
    }
    if (stage + 1 < counts.size()) {
      found.outputs = 1;
      found.outputGradients = found.inFlight;
    }
  }
  return counts;
}

std::optional<std::vector<StageCounts>>
penstock::countSchedule(ArrayRef<int64_t> replicas, PlannedMethod method,
                        int64_t microbatches) {
  constexpr int64_t kMostRuns = 1 << 14;
  auto depth = static_cast<int64_t>(replicas.size());
  int64_t devices = 0;
  // More than fill the pipe twice only repeat what these do.
  microbatches = method == PlannedMethod::DoubleBuffered
                     ? std::clamp(microbatches, depth, 2 * depth)
                     : 1;
  for (int64_t count : replicas) {
    devices += count;
    microbatches = std::min(std::lcm(microbatches, count), kMostRuns);
  }
  if (devices * microbatches >= kMostRuns)
    return getClosedForms(replicas, method);
  LineModel line(replicas, microbatches);
  if (method == PlannedMethod::OneAtATime)
    return line.count(*generate(line.model, "1f1b"));
  std::vector<int64_t> lags = getInFlight(replicas);
  for (auto [lag, count] : zip_equal(lags, replicas))
    lag = method == PlannedMethod::Stashing ? (lag - 1) * count : microbatches;
  line.setLags(lags);
  return line.count(generateOpen(line.model));
}

double penstock::getStageBytes(const StageSizes &sizes,
                               const StageCounts &counts, double weightCopies,
                               bool recomputes) {
  auto inFlight = static_cast<double>(counts.inFlight);
  double sets = recomputes ? std::min(inFlight, 1.0) : inFlight;
  return (static_cast<double>(counts.versions) + weightCopies) * sizes.weights +
         sets * sizes.activations + inFlight * sizes.input +
         static_cast<double>(counts.inputs + counts.inputGradients) *
             sizes.input +
         static_cast<double>(counts.outputs + counts.outputGradients) *
             sizes.output;
}
