//===- CompiledPlan.cpp - Plans with the memory of their programs ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See CompiledPlan.h. The planner proposes, and what a stage was found to need
// too much for is not proposed again.
//===----------------------------------------------------------------------===//

#include "CompiledPlan.h"

#include "penstock/Driver/CompiledMemory.h"
#include "penstock/Support/CommandLine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"

#include <limits>
#include <numeric>

using namespace llvm;
using namespace penstock;

namespace {
/// Weights of a textual model stand beside what is compiled of it.
class OutputPlace {
public:
  OutputPlace() {
    if (!sys::fs::createTemporaryFile("penstock-plan", "", place)) {
      remover.setFile(place);
      copyRemover.setFile(place + ".onnx");
    }
  }
  std::string get() const { return place.str().str(); }

private:
  SmallString<128> place;
  FileRemover remover, copyRemover;
};
} // namespace

static void sayWhy(const CompileOptions &compile, StringRef reason) {
  beginMessage(errs(), "penstock-plan", Severity::Note)
      << compile.input
      << ": its memory is reckoned from sizes of layers, since "
      << reason.trim() << "\n";
}

/// Candidates are compiled to their memory, and no further.
static CompileOptions getCandidate(CompileOptions compile,
                                   const OutputPlace &place) {
  compile.product = Product::Ir;
  compile.level = Level::Program;
  compile.choosesStages = true;
  compile.output = place.get();
  return compile;
}

/// Cuts and replicas of a plan. Stages of several levels are told apart by what
/// is behind them in their group.
static StagePlan getStages(const Plan &plan, const PipeDreamOptions &options) {
  StagePlan stages;
  stages.seconds = plan.slowestSeconds;
  for (const PlanStage &stage : plan.stages) {
    if (stage.first > 0)
      stages.cuts.push_back(stage.first);
    stages.replicas.push_back(stage.replicas);
  }
  int64_t after = options.devices.front();
  for (const LevelStage &stage : plan.levels) {
    if (stage.level > 1) {
      after = options.devices.front();
      continue;
    }
    after -= stage.replicas;
    stages.shapes.push_back(
        {stage.first, stage.last + 1, stage.replicas, after});
  }
  return stages;
}

/// The planner without a limit of its own, asked for stages that are allowed.
static std::optional<Plan> propose(const std::vector<PlanState> &states,
                                   PipeDreamOptions options,
                                   StageShapeFilter isAllowed) {
  options.allows = [&](int64_t first, int64_t last, int64_t replicas,
                       int64_t after) {
    return isAllowed({first, last + 1, replicas, after});
  };
  return planPipeDream(states, options);
}

/// The flags of penstockc that make a plan's program, and the model, but not
/// -o. Nothing where --split-at cannot name a cut.
static std::vector<std::string> getFlags(const CompileOptions &program,
                                         const StagePlan &plan,
                                         const LayerGraph &graph) {
  std::vector<std::string> flags{program.input};
  auto add = [&](StringRef name, const Twine &value) {
    flags.push_back(("--" + name + "=" + value).str());
  };
  for (const auto &[name, size] : program.dims)
    add("dim", name + "=" + Twine(size));
  if (program.microbatchSize)
    add("microbatch-size", Twine(*program.microbatchSize));
  add("microbatches", Twine(program.microbatches));
  add("loss", program.loss);
  add("optimizer", program.optimizer.getText());
  add("method", program.method.getText());
  if (program.recompute != "none")
    add("recompute", program.recompute);
  // Weights in the library's order are what a device has room for besides.
  add("prepack", "none");
  std::vector<std::string> cuts;
  for (int64_t cut : plan.cuts) {
    cuts.push_back(graph.layers[cut - 1].name);
    if (StringRef(cuts.back()).contains(','))
      return {};
  }
  if (cuts.empty())
    add("stages", "1");
  else
    add("split-at", join(cuts, ","));
  add("devices", Twine(std::accumulate(plan.replicas.begin(),
                                       plan.replicas.end(), int64_t(0))));
  add("replicas",
      join(map_range(plan.replicas,
                     [](int64_t width) { return std::to_string(width); }),
           ","));
  return flags;
}

std::optional<CompiledPlan>
penstock::planCompiled(const LayerGraph &graph,
                       const std::vector<PlanState> &states,
                       PipeDreamOptions options, CompileOptions compile) {
  StageSearchProblem problem;
  problem.limit = options.memory.limit > 0
                      ? static_cast<int64_t>(options.memory.limit)
                      : std::numeric_limits<int64_t>::max();
  options.memory.limit = 0;
  options.countsMemory = false;
  problem.propose =
      [&](StageShapeFilter isAllowed) -> std::optional<StagePlan> {
    std::optional<Plan> plan = propose(states, options, isAllowed);
    if (!plan)
      return std::nullopt;
    return getStages(*plan, options);
  };
  for (const Layer &layer : graph.layers) {
    problem.floorBytes.push_back(layer.weightBytes);
    problem.activationBytes.push_back(layer.weightBytes + layer.outputBytes);
  }
  OutputPlace place;
  compile.method = getMethodNamed("pipedream");
  compile.devices = 1;
  for (int64_t members : options.devices)
    compile.devices *= members;
  std::string reason;
  std::optional<StageSearchResult> found =
      searchCompiled(getCandidate(compile, place), problem, reason);
  if (!found) {
    sayWhy(compile, reason);
    return std::nullopt;
  }
  // Without a limit it can also be said how fast other cuts would be.
  options.countsMemory = true;
  const std::vector<StageShape> &shapes = found->plan.shapes;
  std::optional<Plan> plan = planPipeDream(states, options);
  if (plan && getStages(*plan, options).shapes != shapes)
    plan = propose(states, options, [&](const StageShape &shape) {
      return is_contained(shapes, shape);
    });
  if (!plan || plan->stages.size() != found->bytes.size())
    return std::nullopt;
  for (auto [stage, bytes] : zip_equal(plan->stages, found->bytes))
    stage.memoryBytes = static_cast<double>(bytes);
  plan->isCompiled = true;
  for (const MeasuredPlan &each : found->measured) {
    int64_t most = *llvm::max_element(each.bytes);
    plan->candidates.push_back(
        {std::vector<int64_t>(each.plan.cuts.begin(), each.plan.cuts.end()),
         std::vector<int64_t>(each.plan.replicas.begin(),
                              each.plan.replicas.end()),
         each.plan.seconds, static_cast<double>(most), most <= problem.limit});
  }
  compile.microbatches = getMicrobatches(found->plan.replicas);
  plan->flags = getFlags(compile, found->plan, graph);
  return CompiledPlan{std::move(*plan), found->fits};
}

/// Returns the options that a plan of PipeDream-2BW is compiled with. Without
/// pipelining nothing needs a second version.
static CompileOptions getProgram(CompileOptions compile,
                                 const DoubleBufferPlan &found) {
  bool isPipelined = found.execution != PipelineExecution::OneAtATime;
  compile.method = getMethodNamed(isPipelined ? "2bw" : "sync");
  compile.recompute =
      found.execution == PipelineExecution::Recomputed ? "full" : "none";
  compile.microbatchSize = found.microbatch;
  compile.microbatches = found.accumulation * found.width;
  compile.devices = found.width * found.depth;
  return compile;
}

static StagePlan getStages(const DoubleBufferPlan &found) {
  StagePlan stages;
  stages.replicas.assign(found.depth, found.width);
  for (const PlanStage &stage : drop_begin(found.plan.stages))
    stages.cuts.push_back(stage.first);
  return stages;
}

std::optional<CompiledDoubleBuffer>
penstock::planCompiled(const LayerGraph &graph,
                       const std::vector<PlanState> &states,
                       DoubleBufferOptions options, CompileOptions compile) {
  OutputPlace place;
  auto units = static_cast<int64_t>(graph.layers.size());
  std::string firstReason;
  std::optional<CompiledDoubleBuffer> closest;
  auto getMost = [](const Plan &plan) {
    double most = 0;
    for (const PlanStage &stage : plan.stages)
      most = std::max(most, stage.memoryBytes);
    return most;
  };
  options.measure = [&](const DoubleBufferPlan &candidate)
      -> std::optional<std::vector<int64_t>> {
    // What the weights alone rule out need not be compiled, but for the first,
    // so that a refusal has something to name.
    if (closest && options.memory.limit > 0 &&
        llvm::any_of(candidate.plan.stages, [&](const PlanStage &stage) {
          return stage.weightBytes > options.memory.limit;
        }))
      return std::nullopt;
    CompileOptions program =
        getCandidate(getProgram(compile, candidate), place);
    if (candidate.width > 1)
      program.replicas = {candidate.width};
    std::string reason;
    std::optional<std::vector<int64_t>> bytes =
        measureCompiled(program, getStages(candidate), units, reason);
    if (!bytes) {
      if (firstReason.empty())
        firstReason = reason;
      return std::nullopt;
    }
    DoubleBufferPlan measured = candidate;
    for (auto [stage, need] : zip_equal(measured.plan.stages, *bytes))
      stage.memoryBytes = static_cast<double>(need);
    measured.plan.isCompiled = true;
    if (!closest || getMost(measured.plan) < getMost(closest->found.plan))
      closest = CompiledDoubleBuffer{std::move(measured), false};
    return bytes;
  };
  std::optional<DoubleBufferPlan> found = planDoubleBuffer(states, options);
  if (!found) {
    if (!closest)
      sayWhy(compile, firstReason);
    return closest;
  }
  found->plan.flags =
      getFlags(getProgram(compile, *found), getStages(*found), graph);
  return CompiledDoubleBuffer{std::move(*found), true};
}
