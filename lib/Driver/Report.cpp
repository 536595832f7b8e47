//===- Report.cpp - The plan, for programs --------------------------------===//
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

/// Describes the versions that microbatches of a worker read, and their largest
/// delay.
static llvm::json::Object describeWaves(const WaveReport &waves) {
  constexpr int64_t kCount = 16;
  WaveTable table{waves.wave, waves.distance};
  llvm::json::Array own, others;
  for (int64_t k : llvm::seq<int64_t>(0, kCount)) {
    own.push_back(table.getOwn(k));
    others.push_back(table.getWaves(k));
  }
  llvm::json::Array waits;
  for (const WaveReport::Waits &worker : waves.waits)
    waits.push_back(llvm::json::Object{{"wave_seconds", worker.waveSeconds},
                                       {"waiting_share", worker.others},
                                       {"waiting_share_in_line", worker.line}});
  return llvm::json::Object{{"workers", waves.workers},
                            {"wave", waves.wave},
                            {"distance", waves.distance},
                            {"s_local", table.getLocalStaleness()},
                            {"s_global", table.getGlobalStaleness()},
                            {"clock_distance", table.getClockDistance()},
                            {"own_read", std::move(own)},
                            {"waves_read", std::move(others)},
                            {"bytes", waves.bytes},
                            {"kept_bytes", waves.keptBytes},
                            {"waits", std::move(waits)}};
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
      {"timeline", toArray(timeline)},
      {"stages", std::move(list)}};
  if (waves.workers > 0)
    result["waves"] = describeWaves(waves);
  return result;
}
