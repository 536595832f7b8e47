//===- PlanPrinter.cpp - Plans for people and programs --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See PlanPrinter.h.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/PlanPrinter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

using namespace llvm;
using namespace penstock;

std::string penstock::formatSeconds(double seconds) {
  if (seconds >= 1)
    return formatv("{0:F3} s", seconds);
  if (seconds >= 1e-3)
    return formatv("{0:F3} ms", seconds * 1e3);
  return formatv("{0:F3} us", seconds * 1e6);
}

std::string penstock::formatBytes(double bytes) {
  static constexpr StringLiteral kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  unsigned unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(kUnits); ++unit)
    bytes /= 1024;
  return unit == 0 ? formatv("{0:F0} B", bytes).str()
                   : formatv("{0:F1} {1}", bytes, kUnits[unit]).str();
}

/// Layers of a state that the one before the range does not have.
static SmallVector<unsigned> getLayers(const PlanReport &report, int64_t first,
                                       int64_t last) {
  BitVector layers = report.states[last].layers;
  if (first > 0)
    layers.reset(report.states[first - 1].layers);
  return SmallVector<unsigned>(layers.set_bits_begin(), layers.set_bits_end());
}

/// Layers are numbered in the order in which states grow: how many there are
/// before a state, and the last one of it.
static int64_t getFirstLayer(const PlanReport &report, int64_t state) {
  return state > 0 ? report.states[state - 1].layers.count() : 0;
}
static int64_t getLastLayer(const PlanReport &report, int64_t state) {
  return static_cast<int64_t>(report.states[state].layers.count()) - 1;
}

/// Returns a layer's name, with its description if it has one.
static std::string getLabel(const Layer &layer) {
  if (layer.description.empty())
    return layer.name;
  StringRef kind = StringRef(layer.description).split('(').first;
  return layer.name + " (" + kind.str() + ")";
}

static std::string getRangeLabel(const PlanReport &report, int64_t first,
                                 int64_t last) {
  SmallVector<unsigned> layers = getLayers(report, first, last);
  if (layers.empty())
    return "nothing";
  std::string text = getLabel(report.graph.layers[layers.front()]);
  if (layers.size() > 1)
    text += " .. " + getLabel(report.graph.layers[layers.back()]);
  return text;
}

/// Returns the part of a stage's time that is longest.
static StringRef getBottleneck(const StageTimes &times) {
  double most =
      std::max({times.compute, times.allReduce, times.input, times.output});
  return most == times.compute     ? "compute"
         : most == times.allReduce ? "all-reduce of gradients"
         : most == times.input     ? "transfer of its input"
                                   : "transfer of its output";
}

static StringRef getName(PipelineExecution execution) {
  switch (execution) {
  case PipelineExecution::OneAtATime:
    return "no pipelining";
  case PipelineExecution::Pipelined:
    return "pipelined";
  case PipelineExecution::Recomputed:
    return "pipelined with recomputation";
  }
  return "";
}

static void printStages(const PlanReport &report, raw_ostream &stream) {
  stream << "stage    layers  replicas    compute  all-reduce       input      "
            "output      memory  in flight\n";
  for (auto [index, stage] : enumerate(report.plan.stages)) {
    std::string range = formatv("{0}-{1}", getFirstLayer(report, stage.first),
                                getLastLayer(report, stage.last));
    stream << formatv(
        "{0,5}{1,10}{2,10}{3,12}{4,12}{5,12}{6,12}{7,12}{8,11}\n", index, range,
        stage.replicas, formatSeconds(stage.times.compute),
        formatSeconds(stage.times.allReduce), formatSeconds(stage.times.input),
        formatSeconds(stage.times.output), formatBytes(stage.memoryBytes),
        stage.inFlight);
  }
  for (auto [index, stage] : enumerate(report.plan.stages))
    stream << formatv("stage {0}: {1}; longest: {2}\n", index,
                      getRangeLabel(report, stage.first, stage.last),
                      getBottleneck(stage.times));
}

/// The hierarchy, when there is one: which components share what.
static void printLevels(const PlanReport &report, raw_ostream &stream) {
  int64_t highest = 1;
  for (const LevelStage &stage : report.plan.levels)
    highest = std::max(highest, stage.level);
  if (highest == 1)
    return;
  stream << "levels of devices, from the highest down:\n";
  for (const LevelStage &stage : report.plan.levels)
    stream << std::string(2 * (highest - stage.level + 1), ' ')
           << formatv("level {0}: layers {1}-{2} on {3} {4}{5}\n", stage.level,
                      getFirstLayer(report, stage.first),
                      getLastLayer(report, stage.last), stage.replicas,
                      stage.level == 1 ? "device" : "group",
                      stage.replicas == 1 ? "" : "s");
}

/// As a shell takes it for one word.
static std::string quote(StringRef word) {
  bool isPlain = llvm::all_of(word, [](char letter) {
    return isAlnum(letter) || StringRef("_@%+=:,./-").contains(letter);
  });
  if (isPlain)
    return word.str();
  std::string quoted = "'";
  for (char letter : word)
    quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

static void printProgram(const Plan &plan, raw_ostream &stream) {
  stream << "memory: "
         << (plan.isCompiled
                 ? "what the compiled program allocates"
                 : "sizes of layers, as often as the schedule holds them")
         << "\n";
  if (!plan.flags.empty()) {
    stream << "program: penstockc";
    for (StringRef flag : plan.flags)
      stream << " " << quote(flag);
    stream << "\n";
  }
  if (plan.branchedSeconds > 0)
    stream << formatv("cuts between branches, of which programs have none: "
                      "slowest stage {0}\n",
                      formatSeconds(plan.branchedSeconds));
}

/// "0-4 | 5-10 x 2": layers, and on how many devices if several.
static std::string formatStages(const PlanReport &report,
                                const PlanCandidate &candidate) {
  std::string text;
  for (size_t i = 0; i < candidate.replicas.size(); ++i) {
    int64_t first = i == 0 ? 0 : candidate.cuts[i - 1];
    int64_t end = i < candidate.cuts.size()
                      ? candidate.cuts[i]
                      : static_cast<int64_t>(report.states.size());
    text +=
        formatv("{0}{1}-{2}", i == 0 ? "" : " | ", getFirstLayer(report, first),
                getLastLayer(report, end - 1));
    if (candidate.replicas[i] > 1)
      text += formatv(" x {0}", candidate.replicas[i]);
  }
  return text;
}

/// The plans that were compiled until one fitted; one alone is the plan itself.
static void printCandidates(const PlanReport &report, raw_ostream &stream) {
  if (report.plan.candidates.size() < 2)
    return;
  stream << "compiled  slowest stage      memory  layers of the stages\n";
  for (const PlanCandidate &candidate : report.plan.candidates)
    stream << formatv(
        "{0,-9}{1,14}{2,12}  {3}\n", candidate.fits ? "fits" : "too large",
        formatSeconds(candidate.slowestSeconds),
        formatBytes(candidate.memoryBytes), formatStages(report, candidate));
}

static StringRef getMemorySource(const Plan &plan) {
  return plan.isCompiled ? "compiled program" : "layer sizes";
}

void penstock::printPlan(const PlanReport &report, raw_ostream &stream) {
  const Plan &plan = report.plan;
  stream << report.title << "\n";
  stream << formatv("slowest stage: {0} per {1}, {2:F3} times as fast as one "
                    "device",
                    formatSeconds(plan.slowestSeconds),
                    report.doubleBuffer ? "microbatch" : "minibatch",
                    plan.getSpeedup());
  stream << "\n";
  if (plan.dataParallelSeconds > 0)
    stream << formatv("replicas of the whole model: {0:F3} times as fast\n",
                      plan.oneDeviceSeconds / plan.dataParallelSeconds);
  if (const DoubleBufferPlan *found = report.doubleBuffer)
    stream << formatv("width {0}, depth {1}, microbatches of {2} samples, {3} "
                      "of them per batch, {4}: {5:F3} samples per second\n",
                      found->width, found->depth, found->microbatch,
                      found->accumulation, getName(found->execution),
                      found->samplesPerSecond);
  printStages(report, stream);
  printLevels(report, stream);
  printProgram(plan, stream);
  printCandidates(report, stream);
  for (const PlanCut &cut : plan.cuts) {
    if (cut.alternatives.empty())
      continue;
    stream << formatv("cut after layer {0} ({1})",
                      getLastLayer(report, cut.after),
                      formatBytes(report.states[cut.after].cutBytes));
    for (const CutAlternative &other : cut.alternatives)
      stream << formatv(
          "{0} {1}: {2}", &other == &cut.alternatives.front() ? ":" : ",",
          other.after == cut.after
              ? std::string("here")
              : formatv("after {0}", getLastLayer(report, other.after)).str(),
          formatSeconds(other.seconds));
    stream << "\n";
  }
}

json::Value penstock::toJson(const PlanReport &report) {
  const Plan &plan = report.plan;
  json::Array stages, levels, cuts;
  for (const PlanStage &stage : plan.stages) {
    json::Array names;
    for (unsigned layer : getLayers(report, stage.first, stage.last))
      names.push_back(report.graph.layers[layer].name);
    stages.push_back(json::Object{{"first", stage.first},
                                  {"last", stage.last},
                                  {"replicas", stage.replicas},
                                  {"layers", std::move(names)},
                                  {"compute_seconds", stage.times.compute},
                                  {"all_reduce_seconds", stage.times.allReduce},
                                  {"input_seconds", stage.times.input},
                                  {"output_seconds", stage.times.output},
                                  {"in_flight", stage.inFlight},
                                  {"memory_bytes", stage.memoryBytes}});
  }
  for (const LevelStage &stage : plan.levels)
    levels.push_back(json::Object{{"level", stage.level},
                                  {"first", stage.first},
                                  {"last", stage.last},
                                  {"replicas", stage.replicas}});
  for (const PlanCut &cut : plan.cuts) {
    json::Array others;
    for (const CutAlternative &other : cut.alternatives)
      others.push_back(
          json::Object{{"after", other.after}, {"seconds", other.seconds}});
    cuts.push_back(json::Object{{"level", cut.level},
                                {"after", cut.after},
                                {"bytes", report.states[cut.after].cutBytes},
                                {"alternatives", std::move(others)}});
  }
  json::Object object{{"stages", std::move(stages)},
                      {"memory", getMemorySource(plan)},
                      {"slowest_seconds", plan.slowestSeconds},
                      {"speedup_over_one", plan.getSpeedup()},
                      {"one_device_seconds", plan.oneDeviceSeconds},
                      {"cuts", std::move(cuts)}};
  json::Array candidates;
  for (const PlanCandidate &candidate : plan.candidates)
    candidates.push_back(
        json::Object{{"cuts", json::Array(candidate.cuts)},
                     {"replicas", json::Array(candidate.replicas)},
                     {"slowest_seconds", candidate.slowestSeconds},
                     {"memory_bytes", candidate.memoryBytes},
                     {"fits", candidate.fits}});
  if (!candidates.empty())
    object["candidates"] = std::move(candidates);
  if (!plan.flags.empty())
    object["flags"] = json::Array(plan.flags);
  if (plan.branchedSeconds > 0)
    object["branched_seconds"] = plan.branchedSeconds;
  if (!levels.empty())
    object["levels"] = std::move(levels);
  if (plan.dataParallelSeconds > 0)
    object["data_parallel_seconds"] = plan.dataParallelSeconds;
  if (const DoubleBufferPlan *found = report.doubleBuffer) {
    object["width"] = found->width;
    object["depth"] = found->depth;
    object["microbatch"] = found->microbatch;
    object["microbatches"] = found->accumulation;
    object["execution"] = getName(found->execution);
    object["recompute"] = found->execution == PipelineExecution::Recomputed;
    object["samples_per_second"] = found->samplesPerSecond;
  }
  return object;
}
