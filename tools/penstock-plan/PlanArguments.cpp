//===- PlanArguments.cpp - What the command line asks for -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See PlanArguments.h.
//===----------------------------------------------------------------------===//

#include "PlanArguments.h"

#include "penstock/Driver/DeviceModels.h"
#include "penstock/Import/Import.h"
#include "penstock/Optimizers/OptimizerSpec.h"
#include "penstock/Support/CommandLine.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

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
static cl::opt<std::string>
    lossInput("loss-input", cl::value_desc("NAME"),
              cl::desc("The output that enters the loss, if there are several"),
              cl::cat(category));
static cl::opt<bool> profile("profile",
                             cl::desc("Measure what the model's nodes cost on "
                                      "this machine"),
                             cl::cat(category));
static cl::opt<std::string>
    optimizer("optimizer", cl::init("sgd:lr=0.01"),
              cl::desc("With --loss: whose state devices hold (default sgd)"),
              cl::cat(category));
static cl::opt<std::string> deviceSpeeds(
    "device-speeds", cl::value_desc("S,S..[;S..]"),
    cl::desc("In place of --devices: the speed of every device, hosts between "
             "semicolons; 1 is the device that layers were measured on"),
    cl::cat(category));
static cl::opt<int64_t> virtualWorkers(
    "virtual-workers", cl::init(1),
    cl::desc("With --device-speeds: pipelines with weights of their own, as in "
             "HetPipe (default 1)"),
    cl::cat(category));
static cl::opt<std::string> policy(
    "policy", cl::init("equal"),
    cl::desc("Which devices are a virtual worker: node, equal (default), "
             "hybrid"),
    cl::cat(category));
static cl::opt<int64_t>
    distance("distance", cl::init(0),
             cl::desc("Waves that a virtual worker may lack of others (default "
                      "0)"),
             cl::cat(category));
static cl::opt<int64_t>
    wave("wave", cl::init(0),
         cl::desc("Microbatches of a wave (default: as many as a worker has "
                  "devices, or as fit in memory)"),
         cl::cat(category));
static std::string modelText =
    "Devices that need not be there: " + listDeviceModels() +
    ", or FILE.json; their rates, link and memory. h100*4,a100-80g*4 says how "
    "many of each, in place of --devices";
static cl::opt<std::string> deviceModel("device-model",
                                        cl::value_desc("name|file"),
                                        cl::desc(modelText), cl::cat(category));
static cl::opt<std::string> flops(
    "flops", cl::value_desc("X"),
    cl::desc("Operations per second of a device in products, as 67TFLOPS"),
    cl::cat(category));
static cl::opt<std::string>
    memoryBandwidth("memory-bandwidth", cl::value_desc("B"),
                    cl::desc("Bytes per second of its memory, as 3.35TB/s"),
                    cl::cat(category));
static cl::opt<std::string> linkRate(
    "link", cl::value_desc("B"),
    cl::desc("Bytes per second between devices, as 450GB/s: --bandwidth "
             "of all levels"),
    cl::cat(category));
static cl::opt<std::string>
    latency("latency", cl::value_desc("T"),
            cl::desc("Seconds before a message between stages moves, as 5us "
                     "(default 0)"),
            cl::cat(category));
static cl::opt<bool> asJson("json", cl::desc("Print JSON"), cl::cat(category));

static bool fail(const Twine &message) {
  reportError("penstock-plan", message, errs());
  return false;
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
      return fail("--" + flag + "=" + text + ": '" + part +
                  "' is no positive number");
    }
    numbers.push_back(static_cast<Number>(value));
  }
  return true;
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

static bool checkModel(PlanArguments &arguments) {
  CompileOptions &compile = arguments.compile;
  for (StringRef text : dims) {
    auto [name, number] = text.rsplit('=');
    int64_t size;
    if (name.empty() || number.getAsInteger(10, size) || size < 1)
      return fail("--dim " + text + ": expected NAME=N with N >= 1");
    compile.dims[name.str()] = size;
  }
  if (microbatchSize.getNumOccurrences()) {
    if (microbatchSize < 1)
      return fail("--microbatch-size=" + Twine(microbatchSize) +
                  ": a positive number is needed");
    compile.microbatchSize = microbatchSize;
    if (!profileBatch.getNumOccurrences())
      profileBatch = microbatchSize;
  }
  std::string error;
  mlir::FailureOr<OptimizerSpec> spec = parseOptimizerSpec(optimizer, error);
  if (optimizer.getNumOccurrences() && (loss.empty() || mlir::failed(spec)))
    return fail(
        "--optimizer=" + Twine(optimizer) + ": " +
        (loss.empty() ? "a model is trained with --loss=.. only" : error));
  compile.input = input;
  compile.loss = loss;
  compile.lossInput = lossInput;
  compile.allowFolded = true; // Plans know no batch norm.
  compile.optimizer = *spec;
  return true;
}

static bool checkProfile() {
  if (profile)
    return fail("--profile: " + input + " is no model, but a profile already");
  for (auto [flag, occurrences] :
       {std::pair("dim", dims.getNumOccurrences()),
        {"microbatch-size", microbatchSize.getNumOccurrences()},
        {"loss", loss.getNumOccurrences()},
        {"loss-input", lossInput.getNumOccurrences()},
        {"optimizer", optimizer.getNumOccurrences()}})
    if (occurrences)
      return fail("--" + Twine(flag) + " is for models, and " + input +
                  " is a profile");
  return true;
}

/// Levels of devices and what connects them.
static bool checkDevices(PlanArguments &arguments) {
  PipeDreamOptions &options = arguments.pipeDream;
  if (!parseList("devices", devices, 1, options.devices))
    return false;
  for (int64_t members : options.devices)
    arguments.total *= static_cast<double>(members);
  if (arguments.total > 4096)
    return fail("--devices=" + devices + ": at most 4096 devices");
  if (bandwidth.empty())
    options.bandwidths.assign(options.devices.size(), 1e9);
  else if (!parseList("bandwidth", bandwidth, 1e-9, options.bandwidths))
    return false;
  if (options.bandwidths.size() != options.devices.size())
    return fail(formatv(
        "--bandwidth={0}: {1} levels, but --devices={2} has {3}", bandwidth,
        options.bandwidths.size(), devices, options.devices.size()));
  return true;
}

static bool checkAlgorithm(PlanArguments &arguments) {
  PipeDreamOptions &options = arguments.pipeDream;
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
    return false;
  options.memory.weightCopies = weightCopies;
  return true;
}

/// Flags that plan for devices of different speed, and those that do not.
static bool checkSpeeds(PlanArguments &arguments) {
  if (deviceSpeeds.empty()) {
    for (auto [flag, occurrences] :
         {std::pair("virtual-workers", virtualWorkers.getNumOccurrences()),
          {"policy", policy.getNumOccurrences()},
          {"distance", distance.getNumOccurrences()},
          {"wave", wave.getNumOccurrences()}})
      if (occurrences)
        return fail("--" + Twine(flag) +
                    " needs --device-speeds=S,S.., a speed for every device; 1 "
                    "for all if they are alike");
    return true;
  }
  std::string flag = "--device-speeds=" + deviceSpeeds, error;
  if (!devices.empty())
    return fail("--devices=" + devices +
                ": --device-speeds says how many "
                "there are; leave one of them out");
  if (algorithm.getNumOccurrences() || blocks.getNumOccurrences())
    return fail(Twine(algorithm.getNumOccurrences() ? "--algorithm=" + algorithm
                                                    : "--blocks") +
                ": --device-speeds plans lines without replicas; leave one of "
                "them out");
  std::optional<std::vector<DeviceKind>> kinds =
      parseDeviceKinds(deviceSpeeds, error);
  if (!kinds)
    return fail(Twine(flag) + ": " + error);
  arguments.kinds = std::move(*kinds);
  UnequalOptions &options = arguments.unequal;
  constexpr int64_t kMost = 1024;
  for (const cl::opt<int64_t> *number : {&virtualWorkers, &distance, &wave})
    if (int64_t least = number == &distance ? 0 : 1;
        number->getNumOccurrences() &&
        (number->getValue() < least || number->getValue() > kMost))
      return fail("--" + number->ArgStr + "=" + Twine(number->getValue()) +
                  ": a number from " + Twine(least) + " to " + Twine(kMost) +
                  " is needed");
  options.workers = virtualWorkers;
  options.distance = distance;
  options.wave = wave;
  if (policy != "node" && policy != "equal" && policy != "hybrid")
    return fail("--policy=" + policy +
                ": unknown; policies are node, equal, hybrid");
  options.policy = policy == "node"    ? WorkerPolicy::Node
                   : policy == "equal" ? WorkerPolicy::Equal
                                       : WorkerPolicy::Hybrid;
  arguments.policy = policy;
  std::vector<double> bandwidths;
  if (!bandwidth.empty() &&
      !parseList("bandwidth", bandwidth, 1e-9, bandwidths))
    return false;
  if (bandwidths.size() > 2)
    return fail("--bandwidth=" + bandwidth +
                ": one on a host and one between hosts, with --device-speeds");
  if (!bandwidths.empty()) {
    options.bandwidthInside = bandwidths.front();
    options.bandwidthBetween = bandwidths.back();
  }
  arguments.total = static_cast<double>(arguments.kinds.size());
  arguments.pipeDream.devices = {static_cast<int64_t>(arguments.kinds.size())};
  arguments.pipeDream.bandwidths = {options.bandwidthInside};
  return true;
}

/// Devices that are described rather than measured.
static bool checkDeviceModel(PlanArguments &arguments) {
  std::string error;
  std::optional<DeviceModel> model = readDeviceModel(
      {deviceModel, flops, memoryBandwidth, linkRate, latency}, error);
  if (!model)
    return fail(error);
  arguments.pipeDream.latencySeconds = model->latencySeconds;
  arguments.unequal.latencySeconds = model->latencySeconds;
  bool hasRates =
      !deviceModel.empty() || !flops.empty() || !memoryBandwidth.empty();
  if (hasRates && !arguments.isModel)
    return fail("--device-model, --flops, --memory-bandwidth: " + input +
                " is a profile, whose times are of the device that it was "
                "measured on");
  if (hasRates && profile)
    return fail("--profile measures this machine; leave it out, or "
                "--device-model, --flops and --memory-bandwidth");
  if (!linkRate.empty() && !bandwidth.empty())
    return fail("--link=" + linkRate +
                ": --bandwidth says the same by levels; "
                "leave one of them out");
  if (hasRates)
    arguments.rates = model->rates;
  if (model->linkBytesPerSecond != 0 && bandwidth.empty()) {
    std::vector<double> &levels = arguments.pipeDream.bandwidths;
    levels.assign(levels.size(), model->linkBytesPerSecond);
    arguments.unequal.bandwidthInside = model->linkBytesPerSecond;
    arguments.unequal.bandwidthBetween = model->linkBytesPerSecond;
  }
  if (model->memoryBytes != 0 && deviceMemory.empty()) {
    arguments.pipeDream.memory.limit = model->memoryBytes;
    arguments.deviceMemory = formatv("{0:F0}GB", model->memoryBytes / 1e9);
  }
  return true;
}

/// Models of devices say how many there are, and how fast each is.
static bool adoptDeviceGroups() {
  std::string error;
  std::optional<DeviceModels> found = findDeviceModels(deviceModel, error);
  // What is no model is said with all that is of models.
  if (!found || found->count == 0)
    return true;
  for (const cl::opt<std::string> *flag : {&devices, &deviceSpeeds})
    if (!flag->empty())
      return fail("--device-model=" + deviceModel +
                  ": says how many devices there are; leave --" + flag->ArgStr +
                  " out");
  if (found->speeds.empty())
    devices = std::to_string(found->count);
  else
    deviceSpeeds = found->speeds;
  return true;
}

/// Returns the options of --algorithm=2bw.
static DoubleBufferOptions getDoubleBuffer(const PlanArguments &arguments) {
  const PipeDreamOptions &asked = arguments.pipeDream;
  DoubleBufferOptions options;
  options.devices = static_cast<int64_t>(arguments.total);
  options.devicesPerServer = asked.devices.front();
  options.bandwidthInside = asked.bandwidths.front();
  options.bandwidthBetween = asked.bandwidths.back();
  options.latencySeconds = asked.latencySeconds;
  options.profileBatch = profileBatch;
  options.batch = batch ? batch : profileBatch * options.devices;
  options.blocks = blocks;
  options.recomputeFactor = recomputeFactor;
  options.memory = asked.memory;
  return options;
}

std::optional<PlanArguments> penstock::parseArguments(int argc,
                                                      const char *const *argv) {
  cl::HideUnrelatedOptions(category);
  if (!parseFlags({"penstock-plan", "spreads a model over devices",
                   "MODEL.onnx|PROFILE.txt --devices=N [options]"},
                  argc, argv, errs()))
    return std::nullopt;
  if (!adoptDeviceGroups())
    return std::nullopt;
  PlanArguments arguments;
  arguments.input = input;
  arguments.isModel = isModelPath(input);
  arguments.algorithm = algorithm;
  arguments.devices = devices;
  arguments.deviceMemory = deviceMemory;
  arguments.measures = profile;
  arguments.asJson = asJson;
  if (input.empty()) {
    fail("no model or profile given; usage: penstock-plan "
         "MODEL.onnx|PROFILE.txt --devices=N [options]");
    return std::nullopt;
  }
  if (devices.empty() && deviceSpeeds.empty()) {
    fail("--devices=N is needed");
    return std::nullopt;
  }
  if (!checkNotEmpty("penstock-plan",
                     {&bandwidth, &deviceMemory, &loss, &deviceSpeeds,
                      &deviceModel, &flops, &memoryBandwidth, &linkRate,
                      &latency},
                     errs()) ||
      !checkSpeeds(arguments) ||
      (arguments.kinds.empty() && !checkDevices(arguments)) ||
      !checkAlgorithm(arguments) || !checkDeviceModel(arguments) ||
      !(arguments.isModel ? checkModel(arguments) : checkProfile()))
    return std::nullopt;
  arguments.isTrained = arguments.isModel && !loss.empty();
  arguments.doubleBuffer = getDoubleBuffer(arguments);
  arguments.unequal.memory = arguments.pipeDream.memory;
  return arguments;
}
