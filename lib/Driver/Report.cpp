//===- Report.cpp - The plan, for people and programs ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Report.h. Stages are found by their order in the module.
//===----------------------------------------------------------------------===//

#include "penstock/Driver/Report.h"

#include "dialects/Pipeline/Pipeline.h"
#include "passes/Partition/Passes.h"
#include "penstock/Cost/AnalyticCost.h"
#include "penstock/Import/Import.h"
#include "penstock/Methods/Method.h"
#include "penstock/Methods/VersionTable.h"
#include "penstock/Schedule/Engine.h"
#include "penstock/Support/NodeName.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

Report::StageNumbers Report::numberStages(ModuleOp module) {
  llvm::MapVector<StringAttr, unsigned> numbers;
  for (StageOp stage : module.getOps<StageOp>())
    numbers.insert({stage.getSymNameAttr(), numbers.size()});
  return numbers;
}

void Report::collectStages(ModuleOp module) {
  auto numbers = numberStages(module);
  stages.assign(numbers.size(), {});
  SymbolTable symbols(module);
  // What infers has no forward tasks from level training on.
  auto tasks = module.getOps<TaskOp>();
  bool hasForward = llvm::any_of(
      tasks, [](TaskOp task) { return task.getKind() == TaskKind::Forward; });
  TaskKind kind = hasForward ? TaskKind::Forward : TaskKind::Evaluate;
  for (TaskOp task : tasks) {
    if (task.getKind() != kind || task.isBodyless())
      continue;
    StageReport &stage = stages[numbers.lookup(task.getStageAttr().getAttr())];
    llvm::StringSet<> names;
    for (func::CallOp call : task.getBody().getOps<func::CallOp>()) {
      auto function = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!function)
        continue;
      function.walk([&](Operation *op) {
        if (op->getParentOp() != function)
          return;
        stage.flops += getAnalyticCost(op).flops;
        if (StringRef name = getNodeName(op->getLoc()); !name.empty())
          names.insert(name);
      });
    }
    stage.nodes = names.size();
  }
  for (ChannelOp channel : module.getOps<ChannelOp>())
    if (channel.getSource() && channel.getTensorType(0).getRank() > 0)
      microbatchSize = channel.getTensorType(0).getDimSize(0);
}

double Report::rateFactor(const StageReport &stage) const {
  return method.getMethod().getRateFactor(method, stage.tau);
}

static llvm::json::Array toArray(ArrayRef<std::string> names) {
  return llvm::json::Array(names);
}

/// The versions that the first microbatches of a segment read.
static llvm::json::Array versionsRead(int64_t lag, int64_t microbatches) {
  constexpr int64_t kCount = 12;
  llvm::json::Array versions;
  for (int64_t k : llvm::seq<int64_t>(0, kCount))
    versions.push_back(schedule::versionRead(k, lag, microbatches));
  return versions;
}

/// What microbatches of a worker read, and how late that may be.
static llvm::json::Object describeWaves(const WaveReport &waves) {
  constexpr int64_t kCount = 16;
  WaveTable table{waves.wave, waves.distance};
  llvm::json::Array own, others;
  for (int64_t k : llvm::seq<int64_t>(0, kCount)) {
    own.push_back(table.getOwn(k));
    others.push_back(table.getWaves(k));
  }
  return llvm::json::Object{{"workers", waves.workers},
                            {"wave", waves.wave},
                            {"distance", waves.distance},
                            {"s_local", table.getLocalStaleness()},
                            {"s_global", table.getGlobalStaleness()},
                            {"clock_distance", table.getClockDistance()},
                            {"own_read", std::move(own)},
                            {"waves_read", std::move(others)},
                            {"bytes", waves.bytes},
                            {"kept_bytes", waves.keptBytes}};
}

llvm::json::Value Report::toJson() const {
  llvm::json::Array list;
  auto inUpdates = [&](int64_t lag) {
    return static_cast<double>(lag) / static_cast<double>(microbatches);
  };
  for (auto [index, stage] : llvm::enumerate(stages)) {
    list.push_back(llvm::json::Object{
        {"index", static_cast<int64_t>(index)},
        {"device", stage.devices.empty() ? 0 : stage.devices.front()},
        {"devices", llvm::json::Array(stage.devices)},
        {"arenas", llvm::json::Array(stage.arenas)},
        {"parameters", toArray(stage.parameters)},
        {"nodes", stage.nodes},
        {"flops", stage.flops},
        {"lag_forward", stage.lagForward},
        {"lag_backward", stage.lagBackward},
        {"tau", stage.tau},
        {"seconds", llvm::json::Object{{"forward", stage.forwardSeconds},
                                       {"backward", stage.backwardSeconds},
                                       {"update", stage.updateSeconds}}},
        {"tau_forward", inUpdates(stage.lagForward)},
        {"tau_backward", inUpdates(stage.lagBackward)},
        {"versions_read",
         llvm::json::Object{
             {"forward", versionsRead(stage.lagForward, microbatches)},
             {"backward", versionsRead(stage.lagBackward, microbatches)}}},
        {"versions", stage.versions},
        {"versions_held", stage.versionsHeld},
        {"t1_factor", rateFactor(stage)},
        {"bytes",
         llvm::json::Object{{"weights", stage.bytes.weights},
                            {"versions", stage.bytes.versions},
                            {"gradients", stage.bytes.gradients},
                            {"optimizer", stage.bytes.optimizer},
                            {"residuals", stage.bytes.residuals},
                            {"temporaries", stage.bytes.temporaries},
                            {"channels", stage.bytes.channels},
                            {"tied", stage.bytes.tied},
                            {"padding", stage.bytes.padding},
                            {"arena", stage.bytes.arena},
                            {"lower_bound", stage.bytes.lowerBound}}}});
  }
  llvm::json::Array processes;
  for (const std::vector<int64_t> &bytes : transport)
    processes.push_back(
        llvm::json::Object{{"processes", static_cast<int64_t>(bytes.size())},
                           {"bytes", llvm::json::Array(bytes)}});
  llvm::json::Object result{
      {"model", model},
      {"mode", infer ? "infer" : "train"},
      {"method", method.getText()},
      {"schedule", schedule},
      {"optimizer", optimizer},
      {"clip_grad_norm", clipGradNorm},
      {"clip_scope", method.isAsynchronous() ? "stage" : "global"},
      {"recompute", recompute},
      {"microbatch_size", microbatchSize},
      {"microbatches", microbatches},
      {"predicted_bubble", predictedBubble},
      {"steady_bubble", steadyBubble},
      {"predicted_seconds", predictedSeconds},
      {"simulated_seconds", simulatedSeconds},
      {"predicted_speedup_over_flush", speedupOverFlush},
      {"drain_seconds", drainSeconds},
      {"checkpoint_bytes", checkpointBytes},
      {"transport", std::move(processes)},
      {"trained", toArray(trained)},
      {"frozen", toArray(frozen)},
      {"statistics", toArray(statistics)},
      {"unreached", toArray(unreached)},
      {"stages", std::move(list)}};
  if (waves.workers > 0)
    result["waves"] = describeWaves(waves);
  return result;
}

/// 1234567 as "1.18 MiB".
std::string penstock::formatBytes(int64_t bytes) {
  static constexpr llvm::StringLiteral kUnits[] = {"B", "KiB", "MiB", "GiB",
                                                   "TiB"};
  double value = static_cast<double>(bytes);
  unsigned unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit)
    value /= 1024;
  return unit == 0 ? llvm::formatv("{0} B", bytes).str()
                   : llvm::formatv("{0:F1} {1}", value, kUnits[unit]).str();
}

void Report::printVersions(llvm::raw_ostream &stream) const {
  stream << llvm::formatv("never drained: {0:F2} times the throughput of the "
                          "same pipeline with flushes, if every stage takes as "
                          "long\n",
                          speedupOverFlush);
  stream
      << "how old the weights are that a microbatch reads, in microbatches "
         "and in updates\n"
         "stage     forward         backward     versions   held      kept for "
         "it\n";
  for (auto [index, stage] : llvm::enumerate(stages)) {
    auto m = static_cast<double>(microbatches);
    stream << llvm::formatv(
        "{0,5} {1,7} {2,6:F2}  {3,9} {4,6:F2}  {5,9} {6,6} {7,16}\n", index,
        stage.lagForward, static_cast<double>(stage.lagForward) / m,
        stage.lagBackward, static_cast<double>(stage.lagBackward) / m,
        stage.versions, stage.versionsHeld, formatBytes(stage.bytes.versions));
  }
  for (auto [index, stage] : llvm::enumerate(stages))
    if (double factor = rateFactor(stage); factor != 1)
      stream << llvm::formatv("stage {0} begins with {1:F4} of the learning "
                              "rate\n",
                              index, factor);
}

void Report::printWaves(llvm::raw_ostream &stream) const {
  WaveTable table{waves.wave, waves.distance};
  stream << llvm::formatv(
      "{0} worker{1} of {2} microbatches per wave and update: at most {3} own "
      "updates are missing",
      waves.workers, waves.workers == 1 ? "" : "s", waves.wave,
      table.getLocalStaleness());
  if (waves.workers > 1)
    stream << llvm::formatv(
        ", {0} of each other worker; clocks at most {1} wave{2} apart; a wave "
        "is {3} to each other worker, and {4} are kept for waves",
        table.getGlobalStaleness(), table.getClockDistance(),
        table.getClockDistance() == 1 ? "" : "s", formatBytes(waves.bytes),
        formatBytes(waves.keptBytes));
  stream << "\n";
}

void Report::print(llvm::raw_ostream &stream) const {
  if (infer) {
    stream << llvm::formatv("{0}: {1} stages, inference, microbatches of {2} "
                            "samples\n",
                            model, stages.size(), microbatchSize);
  } else {
    stream << llvm::formatv(
        "{0}: {1} stages, {2}, {3}, {4} microbatches of {5} "
        "samples per update, {6}\n",
        model, stages.size(), method, schedule, microbatches, microbatchSize,
        optimizer);
    stream << llvm::formatv("predicted bubble: {0:F1} %",
                            100 * predictedBubble);
    if (predictedBubble - steadyBubble >= 5e-4)
      stream << llvm::formatv(" where every update waits for all devices, as a "
                              "global gradient norm "
                              "makes it; {0:F1} % where none does",
                              100 * steadyBubble);
    stream << "\n";
  }
  if (predictedSeconds > 0)
    stream << llvm::formatv("predicted time of an update, from measured costs: "
                            "{0:F3} ms\n",
                            1e3 * predictedSeconds);
  if (drainSeconds > 0)
    stream << llvm::formatv("predicted time of a drain, as for a checkpoint: "
                            "{0:F3} ms\n",
                            1e3 * drainSeconds);
  stream << "stage  device  nodes  Mflop/microbatch  staleness  versions"
            "     weights   gradients   optimizer   residuals    channels"
            " temporaries       arena\n";
  for (auto [index, stage] : llvm::enumerate(stages)) {
    const StageBytes &bytes = stage.bytes;
    stream << llvm::formatv(
        "{0,5}  {1,6}  {2,5}  {3,16:F2}  {4,9:F2}  {5,8}", index,
        stage.devices.empty() ? 0 : stage.devices.front(), stage.nodes,
        stage.flops / 1e6, stage.tau, stage.versions);
    for (int64_t size :
         {bytes.weights + bytes.versions, bytes.gradients, bytes.optimizer,
          bytes.residuals, bytes.channels, bytes.temporaries, bytes.arena})
      stream << llvm::formatv("{0,12}", formatBytes(size));
    stream << "\n";
  }
  printReplicaArenas(stream);
  if (speedupOverFlush > 1 || llvm::any_of(stages, [](const StageReport &s) {
        return s.lagForward > 0;
      }))
    printVersions(stream);
  if (waves.workers > 0)
    printWaves(stream);
  for (auto [index, stage] : llvm::enumerate(stages))
    if (stage.bytes.tied)
      stream << llvm::formatv("stage {0}: {1} of these for parameters that "
                              "several stages read\n",
                              index, formatBytes(stage.bytes.tied));
  if (clipGradNorm > 0)
    stream << llvm::formatv("gradients clipped {0}, to a norm of {1}\n",
                            method.isAsynchronous() ? "per stage"
                                                    : "over all stages",
                            clipGradNorm);
  if (!timeline.empty())
    stream << "timeline of "
           << (timelineUpdates == 1
                   ? std::string("one update")
                   : std::to_string(timelineUpdates) + " updates")
           << ", if every stage takes as long:\n";
  for (auto [device, line] : llvm::enumerate(timeline))
    stream << llvm::formatv("{0,5}: {1}\n", device, line);
  if (infer)
    return;
  if (checkpointBytes)
    stream << llvm::formatv("memory of the host for checkpoints: {0}\n",
                            formatBytes(checkpointBytes));
  for (auto [index, stage] : llvm::enumerate(stages)) {
    stream << "stage " << index << " trains:";
    for (const std::string &name : stage.parameters)
      stream << " " << name;
    stream << (stage.parameters.empty() ? " nothing\n" : "\n");
  }
  std::vector<std::string> held;
  for (const std::string &name : frozen)
    if (!llvm::is_contained(statistics, name) &&
        !llvm::is_contained(unreached, name))
      held.push_back(name);
  auto list = [&](StringRef title, ArrayRef<std::string> names) {
    if (!names.empty())
      stream << title << ": " << llvm::join(names, " ") << "\n";
  };
  list("statistics", statistics);
  list("not reached by the loss", unreached);
  list("not trained", held);
}
