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
#include "penstock/Driver/Compiler.h"
#include "penstock/Planner/DoubleBuffer.h"
#include "penstock/Planner/PipeDream.h"
#include "penstock/Planner/PlanPrinter.h"
#include "penstock/Support/CommandLine.h"
#include "penstock/Training/OptimizerSpec.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>

using namespace llvm;
using namespace penstock;

static cl::OptionCategory category("penstock-plan options");

static cl::opt<std::string> input(cl::Positional,
                                  cl::desc("MODEL.onnx|PROFILE.txt"),
                                  cl::cat(category));
static cl::opt<std::string>
    devices("devices", cl::value_desc("N|N,N.."),
            cl::desc("Devices; with several levels the number of members of a "
                     "group, from the lowest level up (required)"),
            cl::cat(category));
static cl::opt<std::string>
    bandwidth("bandwidth", cl::value_desc("B|B,B.."),
              cl::desc("Bytes per second between the members, per level "
                       "(default 1e9)"),
              cl::cat(category));
static cl::opt<std::string>
    algorithm("algorithm", cl::init("paper"),
              cl::desc("paper (PipeDream as published, default), pipedream (as "
                       "its authors' planner computes it), 2bw"),
              cl::cat(category));
static cl::opt<bool> straight("straight", cl::desc("No replicas"),
                              cl::cat(category));
static cl::opt<std::string>
    compression("compression-ratio", cl::init("1"),
                cl::desc("For pipedream: by what transfers shrink, or none, "
                         "which does not count them (default 1)"),
                cl::cat(category));
static cl::opt<std::string> deviceMemory("device-memory",
                                         cl::desc("Memory of a device, e.g. "
                                                  "16GiB"),
                                         cl::cat(category));
static cl::opt<double>
    weightCopies("weight-copies", cl::init(1),
                 cl::desc("Gradients and optimizer state, in copies of the "
                          "weights (default 1; momentum 2, Adam 3)"),
                 cl::cat(category));
static cl::opt<int64_t>
    batch("batch",
          cl::desc("For 2bw: samples of a global batch (default: those of the "
                   "profile, per device)"),
          cl::init(0), cl::cat(category));
static cl::opt<int64_t>
    profileBatch("profile-batch", cl::init(1),
                 cl::desc("For 2bw: samples that the profile's times are for "
                          "(default 1; for a model --microbatch-size)"),
                 cl::cat(category));
static cl::opt<int64_t>
    blocks("blocks", cl::init(0),
           cl::desc("For 2bw: group the layers into as many blocks (default: "
                    "each is one)"),
           cl::cat(category));
static cl::opt<double>
    recomputeFactor("recompute-factor", cl::init(4.0 / 3),
                    cl::desc("For 2bw: by what recomputation lengthens compute "
                             "(default 4/3)"),
                    cl::cat(category));
static cl::list<std::string> dims("dim", cl::value_desc("name=n"),
                                  cl::desc("Bind a symbolic dimension of the "
                                           "model"),
                                  cl::cat(category));
static cl::opt<int64_t> microbatchSize("microbatch-size", cl::init(0),
                                       cl::desc("Bind the batch dimension of "
                                                "the model"),
                                       cl::cat(category));
static cl::opt<std::string>
    loss("loss", cl::desc("Plan with this loss at the end of the model"),
         cl::cat(category));
static cl::opt<bool> profile("profile",
                             cl::desc("Measure what the model's nodes cost on "
                                      "this machine"),
                             cl::cat(category));
static cl::opt<std::string>
    optimizer("optimizer", cl::init("sgd:lr=0.01"),
              cl::desc("With --loss: whose state devices hold (default sgd)"),
              cl::cat(category));
static cl::opt<bool> asJson("json", cl::desc("Print JSON"), cl::cat(category));

static int fail(const Twine &message, int code = kUserError) {
  reportError("penstock-plan", message, errs());
  return code;
}

static bool isModel() {
  return StringRef(input).ends_with(".onnx") ||
         StringRef(input).ends_with(".onnxtext");
}

/// Numbers between commas that are at least `least`.
template <typename Number>
static bool parseList(StringRef flag, StringRef text, double least,
                      std::vector<Number> &numbers) {
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts) {
    double value;
    if (part.trim().getAsDouble(value) || !std::isfinite(value) ||
        value < least || static_cast<double>(Number(value)) != value) {
      fail("--" + flag + "=" + text + ": '" + part + "' is no positive number");
      return false;
    }
    numbers.push_back(static_cast<Number>(value));
  }
  return true;
}

static bool loadGraph(std::optional<LayerGraph> &graph) {
  if (isModel()) {
    ImportOptions options;
    for (StringRef text : dims) {
      auto [name, number] = text.rsplit('=');
      int64_t size;
      if (name.empty() || number.getAsInteger(10, size) || size < 1) {
        fail("--dim " + text + ": expected NAME=N with N >= 1");
        return false;
      }
      options.dims[name.str()] = size;
    }
    if (microbatchSize.getNumOccurrences()) {
      if (microbatchSize < 1) {
        fail("--microbatch-size=" + Twine(microbatchSize) +
             ": a positive number is needed");
        return false;
      }
      options.microbatchSize = microbatchSize;
      if (!profileBatch.getNumOccurrences())
        profileBatch = microbatchSize;
    }
    if (optimizer.getNumOccurrences()) {
      std::string error;
      if (loss.empty() || mlir::failed(parseOptimizerSpec(optimizer, error))) {
        fail("--optimizer=" + Twine(optimizer) + ": " +
             (loss.empty() ? "a model is trained with --loss=.. only" : error));
        return false;
      }
    }
    graph = loadModelLayers(input, options, loss, profile);
    return graph.has_value();
  }
  if (profile) {
    fail("--profile: " + input + " is no model, but a profile already");
    return false;
  }
  auto buffer = MemoryBuffer::getFile(input, /*IsText=*/true);
  if (!buffer) {
    fail(input + ": " + buffer.getError().message());
    return false;
  }
  for (auto [flag, occurrences] :
       {std::pair("dim", dims.getNumOccurrences()),
        {"microbatch-size", microbatchSize.getNumOccurrences()},
        {"loss", loss.getNumOccurrences()},
        {"optimizer", optimizer.getNumOccurrences()}})
    if (occurrences) {
      fail("--" + Twine(flag) + " is for models, and " + input +
           " is a profile");
      return false;
    }
  std::string error;
  graph = parseProfile((*buffer)->getBuffer(), error);
  if (!graph)
    fail(input + ": " + error);
  return graph.has_value();
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

/// The stage of the plan without a limit that is the furthest over it.
static int failMemory(const Plan *plan, double limit) {
  std::string text = formatv("--device-memory={0}: no plan fits", deviceMemory);
  if (plan) {
    auto worst = llvm::max_element(plan->stages,
                                   [](const PlanStage &a, const PlanStage &b) {
                                     return a.memoryBytes < b.memoryBytes;
                                   });
    text += formatv("; in {3}, stage {0} needs {1:F0} bytes, {2:F0} "
                    "more than its device has",
                    worst - plan->stages.begin(), worst->memoryBytes,
                    worst->memoryBytes - limit,
                    plan->isCompiled ? "the closest that was compiled"
                                     : "the fastest one");
  }
  return fail(text, kDoesNotFit);
}

/// What a program of the model is compiled with.
static CompileOptions getCompileOptions() {
  CompileOptions compile;
  compile.input = input;
  compile.method = "pipedream";
  compile.optimizer = optimizer;
  compile.loss = loss;
  if (microbatchSize.getNumOccurrences())
    compile.microbatchSize = microbatchSize;
  for (StringRef text : dims) {
    auto [name, number] = text.rsplit('=');
    (void)number.getAsInteger(10, compile.dims[name.str()]);
  }
  return compile;
}

/// Memory cannot be counted in a schedule that there is not.
static int failSchedule(const Plan &plan) {
  std::string widths;
  for (const PlanStage &stage : plan.stages)
    widths += (widths.empty() ? "" : ",") + std::to_string(stage.replicas);
  return fail("the fastest plan has stages on " + Twine(widths) +
              " devices, for which there is no schedule; use other --devices, "
              "or --straight");
}

static int print(const PlanReport &report) {
  if (asJson)
    outs() << formatv("{0:2}", toJson(report)) << "\n";
  else
    printPlan(report, outs());
  return flushOutput("penstock-plan", errs()) ? kDone : kUserError;
}

static int runDoubleBuffer(const LayerGraph &graph,
                           const std::vector<PlanState> &states,
                           const std::string &title,
                           const std::vector<int64_t> &levels,
                           const std::vector<double> &bandwidths,
                           const MemoryModel &memory) {
  DoubleBufferOptions options;
  for (int64_t members : levels)
    options.devices *= members;
  options.devicesPerServer = levels.front();
  options.bandwidthInside = bandwidths.front();
  options.bandwidthBetween = bandwidths.back();
  options.profileBatch = profileBatch;
  options.batch = batch ? batch : profileBatch * options.devices;
  options.blocks = blocks;
  options.recomputeFactor = recomputeFactor;
  options.memory = memory;
  std::optional<DoubleBufferPlan> found = planDoubleBuffer(states, options);
  if (!found) {
    options.memory.limit = 0;
    found = planDoubleBuffer(states, options);
    return failMemory(found ? &found->plan : nullptr, memory.limit);
  }
  return print({graph, states, found->plan, &*found, title});
}

/// Numbers that LLVM's parser takes, and that mean nothing.
static bool checkNumbers() {
  auto need = [](bool holds, const auto &flag, StringRef what) {
    std::string value;
    raw_string_ostream(value)
        << format("%.17g", static_cast<double>(flag.getValue()));
    if (!holds)
      fail("--" + flag.ArgStr + "=" + value + ": " + what + " is needed");
    return holds;
  };
  // Products with the number of devices stay exact.
  constexpr int64_t kMost = int64_t(1) << 40;
  auto isCount = [&](const cl::opt<int64_t> &flag) {
    return flag == flag.getDefault().getValue() || (flag >= 1 && flag <= kMost);
  };
  StringRef samples = "a number of samples from 1 to 2^40";
  return need(weightCopies >= 0 && std::isfinite(weightCopies), weightCopies,
              "a number of at least 0") &&
         need(recomputeFactor >= 1 && std::isfinite(recomputeFactor),
              recomputeFactor, "a number of at least 1") &&
         need(isCount(profileBatch), profileBatch, samples) &&
         need(isCount(batch), batch, samples) &&
         need(isCount(blocks), blocks, "a number of blocks from 1 to 2^40");
}

static int run() {
  if (input.empty())
    return fail("no model or profile given; usage: penstock-plan "
                "MODEL.onnx|PROFILE.txt --devices=N [options]");
  if (devices.empty())
    return fail("--devices=N is needed");
  if (!checkNotEmpty("penstock-plan", {&bandwidth, &deviceMemory, &loss},
                     errs()))
    return kUserError;
  PipeDreamOptions options;
  if (!parseList("devices", devices, 1, options.devices))
    return kUserError;
  double total = 1;
  for (int64_t members : options.devices)
    total *= static_cast<double>(members);
  if (total > 4096)
    return fail("--devices=" + devices + ": at most 4096 devices");
  if (bandwidth.empty())
    options.bandwidths.assign(options.devices.size(), 1e9);
  else if (!parseList("bandwidth", bandwidth, 1e-9, options.bandwidths))
    return kUserError;
  if (options.bandwidths.size() != options.devices.size())
    return fail(formatv(
        "--bandwidth={0}: {1} levels, but --devices={2} has {3}", bandwidth,
        options.bandwidths.size(), devices, options.devices.size()));
  if (algorithm != "paper" && algorithm != "pipedream" && algorithm != "2bw")
    return fail("--algorithm=" + algorithm +
                ": unknown; algorithms are paper, pipedream, 2bw");
  if (algorithm == "2bw" && (straight || options.devices.size() > 2))
    return fail(straight ? "--straight: --algorithm=2bw chooses its width"
                         : "--devices=" + devices +
                               ": --algorithm=2bw knows servers and devices in "
                               "them, two levels at most");
  options.form =
      algorithm == "pipedream" ? PipeDreamForm::Released : PipeDreamForm::Paper;
  options.straight = straight;
  if (compression == "none")
    options.compressionRatio = 0;
  else if (StringRef(compression).getAsDouble(options.compressionRatio) ||
           !(options.compressionRatio > 0) ||
           !std::isfinite(options.compressionRatio))
    return fail("--compression-ratio=" + compression +
                ": a positive number or none is needed");
  if (!deviceMemory.empty()) {
    std::optional<int64_t> bytes = parseBytes(deviceMemory);
    if (!bytes)
      return fail("--device-memory=" + deviceMemory +
                  ": expected a size such as 16GiB or 512MiB");
    options.memory.limit = static_cast<double>(*bytes);
  }
  if (!checkNumbers())
    return kUserError;
  options.memory.weightCopies = weightCopies;

  std::optional<LayerGraph> graph;
  if (!loadGraph(graph))
    return kUserError;
  if (options.form == PipeDreamForm::Paper)
    dropShapeNodes(*graph);
  // 2BW cuts a line of blocks; several levels need every range of states.
  unsigned limit = algorithm == "2bw"            ? 0
                   : options.devices.size() == 1 ? 2000
                                                 : 400;
  PlanStates states = buildStates(*graph, limit);
  if (states.isLinear && algorithm != "2bw")
    errs() << "penstock-plan: note: " << input
           << " has too many branches to cut between any of them; its layers "
              "are taken in a row\n";
  if (straight && total > static_cast<double>(states.states.size()))
    return fail(
        formatv("--straight: {0:F0} devices, but there are only {1} layers",
                total, states.states.size()));

  std::string title = formatv("{0}: {1} layers on {2} devices ({3})", input,
                              graph->layers.size(), devices, algorithm);
  if (algorithm == "2bw")
    return runDoubleBuffer(*graph, states.states, title, options.devices,
                           options.bandwidths, options.memory);
  if (algorithm == "paper" && isModel() && !loss.empty() &&
      options.devices.size() == 1 && isLine(states.states)) {
    bool fits = false;
    if (std::optional<Plan> plan = planCompiled(*graph, states.states, options,
                                                getCompileOptions(), fits))
      return fits ? print({*graph, states.states, *plan, nullptr, title})
                  : failMemory(&*plan, options.memory.limit);
  }
  std::optional<Plan> plan = planPipeDream(states.states, options);
  if (!plan) {
    double memory = std::exchange(options.memory.limit, 0);
    plan = planPipeDream(states.states, options);
    return failMemory(plan ? &*plan : nullptr, memory);
  }
  if (!plan->isSchedulable)
    return failSchedule(*plan);
  return print({*graph, states.states, *plan, nullptr, title});
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  if (!parseFlags("penstock-plan", "spreads a model over devices\n", argc, argv,
                  errs()))
    return kUserError;
  return run();
}
