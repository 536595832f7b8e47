//===- penstock-plan.cpp - Stages and replicas for a set of devices -------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads a model, or a profile in PipeDream's text format, and says how to
// spread its layers over devices. Needs none of them.
//===----------------------------------------------------------------------===//

#include "CompiledPlan.h"
#include "ModelLayers.h"
#include "PlanArguments.h"
#include "UnequalPlan.h"
#include "penstock/Driver/Compiler.h"
#include "penstock/Planner/PlanPrinter.h"
#include "penstock/Support/CommandLine.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;
using namespace penstock;

static int fail(const Twine &message, int code = kUserError) {
  reportError("penstock-plan", message, errs());
  return code;
}

static std::optional<LayerGraph> loadGraph(const PlanArguments &arguments) {
  if (arguments.isModel) {
    ImportOptions options;
    options.dims = arguments.compile.dims;
    options.microbatchSize = arguments.compile.microbatchSize;
    options.lossInput = arguments.compile.lossInput;
    options.allowFolded = arguments.compile.allowFolded;
    return loadModelLayers(arguments.input, options, arguments.compile.loss,
                           arguments.measures, arguments.rates);
  }
  auto buffer = MemoryBuffer::getFile(arguments.input, /*IsText=*/true);
  if (!buffer) {
    fail(arguments.input + ": " + buffer.getError().message());
    return std::nullopt;
  }
  std::string error;
  std::optional<LayerGraph> graph = parseProfile((*buffer)->getBuffer(), error);
  if (!graph)
    fail(arguments.input + ": " + error);
  return graph;
}

/// Nodes that hold a shape and no tensor are no layers; the released planner
/// takes them for such.
static void dropShapeNodes(LayerGraph &graph) {
  BitVector drop(graph.layers.size());
  for (auto [index, layer] : enumerate(graph.layers))
    if (StringRef(layer.description).starts_with("Size") &&
        layer.getSeconds() == 0 && layer.weightBytes == 0)
      drop.set(index);
  if (!drop.all())
    graph.removeLayers(drop, /*bridge=*/true);
}

namespace {
/// The plan, and the report on it.
class Planning {
public:
  Planning(const PlanArguments &arguments, const LayerGraph &graph)
      : arguments(arguments), graph(graph) {}
  int run();

private:
  int runPipeDream();
  int runDoubleBuffer();
  int runUnequal();
  int print(const Plan &plan, const DoubleBufferPlan *doubleBuffer = nullptr);
  int failMemory(const Plan *plan);
  double findLeastMemory(double most) const;
  int failSchedule(const Plan &plan);
  /// Several levels need every range of states.
  unsigned getMostStates() const {
    return arguments.pipeDream.devices.size() == 1 ? 2000 : 400;
  }
  double getBranchedSeconds() const;

  const PlanArguments &arguments;
  const LayerGraph &graph;
  std::vector<PlanState> states;
};
} // namespace

/// The least limit, to within a hundredth, under which there is a plan; `most`
/// is one. 0 for algorithms whose searches take too long to be repeated.
double Planning::findLeastMemory(double most) const {
  constexpr double kPrecision = 0.01;
  constexpr size_t kMostStates = 200;
  if (arguments.algorithm == "2bw" || states.size() > kMostStates)
    return 0;
  double low = arguments.pipeDream.memory.limit, high = most;
  while (high - low > kPrecision * high) {
    PipeDreamOptions options = arguments.pipeDream;
    options.memory.limit = (low + high) / 2;
    (planPipeDream(states, options) ? high : low) = options.memory.limit;
  }
  // What is said is a limit that was tried.
  return high;
}

/// The stage of the plan without a limit that is the furthest over it.
int Planning::failMemory(const Plan *plan) {
  double limit = arguments.pipeDream.memory.limit;
  std::string text =
      formatv("--device-memory={0}: no plan fits", arguments.deviceMemory);
  if (plan) {
    auto worst = llvm::max_element(plan->stages,
                                   [](const PlanStage &a, const PlanStage &b) {
                                     return a.memoryBytes < b.memoryBytes;
                                   });
    text += formatv("; in {3}, stage {0} needs {1} ({2:F0} bytes), {4} more "
                    "than its device has",
                    worst - plan->stages.begin(),
                    formatBytes(worst->memoryBytes), worst->memoryBytes,
                    plan->isCompiled ? "the closest that was compiled"
                                     : "the fastest one",
                    formatBytes(worst->memoryBytes - limit));
    // With what this plan needs, it fits.
    double least = plan->isCompiled ? 0 : findLeastMemory(worst->memoryBytes);
    if (least == 0)
      least = worst->memoryBytes;
    text +=
        formatv("; {0} ({1:F0} bytes) would do, and less with more "
                "--devices or smaller microbatches{2}",
                formatBytes(least), least,
                plan->isCompiled ? ", or with penstockc --recompute=auto" : "");
  }
  return fail(text, kDoesNotFit);
}

/// Memory cannot be counted in a schedule that there is not.
int Planning::failSchedule(const Plan &plan) {
  std::string widths;
  for (const PlanStage &stage : plan.stages)
    widths += (widths.empty() ? "" : ",") + std::to_string(stage.replicas);
  return fail("the fastest plan has stages on " + Twine(widths) +
              " devices, for which there is no schedule; use other --devices, "
              "or --straight");
}

int Planning::print(const Plan &plan, const DoubleBufferPlan *doubleBuffer) {
  PlanReport report{graph, states, plan, doubleBuffer,
                    formatv("{0}: {1} layers on {2} devices ({3})",
                            arguments.input, graph.layers.size(),
                            arguments.devices, arguments.algorithm)};
  if (arguments.asJson)
    outs() << formatv("{0:2}", toJson(report)) << "\n";
  else
    printPlan(report, outs());
  return flushOutput("penstock-plan", errs()) ? kDone : kUserError;
}

int Planning::runDoubleBuffer() {
  DoubleBufferOptions options = arguments.doubleBuffer;
  if (arguments.isTrained)
    if (std::optional<CompiledDoubleBuffer> compiled =
            planCompiled(graph, states, options, arguments.compile))
      return compiled->fits ? print(compiled->found.plan, &compiled->found)
                            : failMemory(&compiled->found.plan);
  std::optional<DoubleBufferPlan> found = planDoubleBuffer(states, options);
  if (found)
    return print(found->plan, &*found);
  options.memory.limit = 0;
  found = planDoubleBuffer(states, options);
  return failMemory(found ? &found->plan : nullptr);
}

/// Whatever memory it needs, of the slowest stage if cuts may run between
/// branches; 0 if it is no faster for that.
double Planning::getBranchedSeconds() const {
  PlanStates branched = buildStates(graph, getMostStates());
  if (branched.isLinear)
    return 0;
  PipeDreamOptions options = arguments.pipeDream;
  options.memory.limit = 0;
  options.countsMemory = false;
  std::optional<Plan> line = planPipeDream(states, options);
  std::optional<Plan> plan = planPipeDream(branched.states, options);
  // Sums of the same layers in another order are no faster.
  constexpr double kRounding = 1e-9;
  return line && plan &&
                 plan->slowestSeconds < line->slowestSeconds * (1 - kRounding)
             ? plan->slowestSeconds
             : 0;
}

int Planning::runPipeDream() {
  PipeDreamOptions options = arguments.pipeDream;
  if (arguments.isTrained)
    if (std::optional<CompiledPlan> compiled =
            planCompiled(graph, states, options, arguments.compile)) {
      compiled->plan.branchedSeconds = getBranchedSeconds();
      return compiled->fits ? print(compiled->plan)
                            : failMemory(&compiled->plan);
    }
  std::optional<Plan> plan = planPipeDream(states, options);
  if (!plan) {
    options.memory.limit = 0;
    plan = planPipeDream(states, options);
    return failMemory(plan ? &*plan : nullptr);
  }
  return plan->isSchedulable ? print(*plan) : failSchedule(*plan);
}

/// Devices of different speed: lines of layers, without replicas.
int Planning::runUnequal() {
  states = buildStates(graph, 0).states;
  const UnequalOptions &options = arguments.unequal;
  std::string error;
  std::optional<UnequalPlan> plan =
      planUnequal(states, arguments.kinds, options, error);
  if (!plan && error == "no plan fits")
    return fail(formatv("--device-memory={0}: no plan fits, even with one "
                        "microbatch in flight",
                        arguments.deviceMemory),
                kDoesNotFit);
  if (!plan)
    return fail(options.workers > 1
                    ? formatv("--virtual-workers={0} --policy={1}: {2}",
                              options.workers, arguments.policy, error)
                          .str()
                    : "--device-speeds: " + error);
  if (arguments.asJson) {
    outs() << formatv("{0:2}", toJson(*plan, graph, options)) << "\n";
  } else {
    outs() << formatv("{0}: {1} layers on {2} devices", arguments.input,
                      graph.layers.size(), arguments.kinds.size());
    if (options.workers > 1)
      outs() << formatv(", {0} virtual workers ({1}), D = {2}", options.workers,
                        arguments.policy, options.distance);
    outs() << "\n";
    printUnequal(*plan, graph, options, outs());
  }
  return flushOutput("penstock-plan", errs()) ? kDone : kUserError;
}

int Planning::run() {
  if (!arguments.kinds.empty())
    return runUnequal();
  // Programs cut a line of nodes, and so does 2BW.
  bool isDoubleBuffer = arguments.algorithm == "2bw";
  PlanStates built = isDoubleBuffer || arguments.isTrained
                         ? buildStates(graph, 0)
                         : buildStates(graph, getMostStates());
  if (built.isLinear && !isDoubleBuffer && !arguments.isTrained)
    beginMessage(errs(), "penstock-plan", Severity::Note)
        << arguments.input
        << " has too many branches to cut between any of them; its layers "
           "are taken in a row\n";
  states = std::move(built.states);
  if (arguments.pipeDream.straight &&
      arguments.total > static_cast<double>(states.size()))
    return fail(
        formatv("--straight: {0:F0} devices, but there are only {1} layers",
                arguments.total, states.size()));
  return isDoubleBuffer ? runDoubleBuffer() : runPipeDream();
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  std::optional<PlanArguments> arguments = parseArguments(argc, argv);
  if (!arguments)
    return kUserError;
  std::optional<LayerGraph> graph = loadGraph(*arguments);
  if (!graph)
    return kUserError;
  // Programs have the nodes that they have.
  if (arguments->pipeDream.form == PipeDreamForm::Paper &&
      !arguments->isTrained)
    dropShapeNodes(*graph);
  return Planning(*arguments, *graph).run();
}
