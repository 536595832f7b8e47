//===- Profile.cpp - Measured costs of ONNX nodes -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Profile.h. A cut after every node makes its forward, backward and update
// actions of their own in the trace; between them nothing is fused, so that the
// search for cuts goes by upper bounds. The stages of the cuts that were chosen
// are measured once more, as they are compiled.
//===----------------------------------------------------------------------===//

#include "penstock/Driver/Profile.h"

#include "ActionTimes.h"
#include "Compilation.h"
#include "ProfileCache.h"
#include "dialects/Pipeline/Pipeline.h"
#include "passes/Partition/Passes.h"
#include "penstock/Driver/Compiler.h"
#include "penstock/Methods/Method.h"
#include "penstock/Partition/Units.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/thread.h"

#include <algorithm>

using namespace mlir;
using namespace penstock;

/// Updates that are trained, the first of which warm up.
static constexpr int kUnitSteps = 24, kWarmup = 4;
/// Stages, whose times are not only compared, are trained several times: a
/// process has luck with its pages, or not. Each takes about so long, and has
/// so many updates.
static constexpr int kStageRuns = 3;
static constexpr double kStageSeconds = 0.7;
static constexpr int kFewestUpdates = 6, kMostUpdates = 500;

namespace {
/// A folder that goes with the object.
class TemporaryFolder {
public:
  TemporaryFolder() {
    isMade = !llvm::sys::fs::createUniqueDirectory("penstock-profile", path);
  }
  ~TemporaryFolder() {
    if (isMade)
      (void)llvm::sys::fs::remove_directories(path);
  }
  std::string file(StringRef name) const {
    llvm::SmallString<128> result(path);
    llvm::sys::path::append(result, name);
    return result.str().str();
  }
  bool isMade = false;

private:
  llvm::SmallString<128> path;
};

class Profiler {
public:
  Profiler(ModuleOp module, const CompileOptions &options, std::string &reason)
      : module(module), options(options), reason(reason) {}

  /// Seconds of forward, backward and update of every unit.
  std::optional<std::vector<UnitSeconds>> measureUnits(size_t units);
  /// Measures every stage of a module at level stages, on so many devices.
  std::optional<std::vector<UnitSeconds>> measureStages(size_t stages,
                                                        int64_t devices);

private:
  bool fail(const Twine &message) {
    reason = message.str();
    return false;
  }
  bool compileUnits(size_t units);
  bool compileStages(size_t stages, int64_t devices);
  /// Starts with what both have in common.
  CompileOptions getPlan() const;
  bool print(ModuleOp program);
  bool measure(ActionTimes &times, int runs, int steps);
  int getStageSteps() const;
  bool writeData(std::vector<std::string> &arguments);
  bool writeArray(pipeline::ChannelOp source, StringRef path);
  bool train(const std::vector<std::string> &arguments, int steps);
  bool readTrace(ActionTimes &times);

  ModuleOp module;
  const CompileOptions &options;
  std::string &reason;
  TemporaryFolder folder;
  /// The number of microbatches of an update.
  int64_t microbatches = 1;
};
} // namespace

CompileOptions Profiler::getPlan() const {
  CompileOptions plan;
  plan.input = folder.file("model.mlir");
  plan.output = folder.file("program");
  plan.march = options.march;
  plan.target = options.getFirstTarget();
  plan.gpuArch = options.gpuArch;
  plan.libraryWorkspace = options.libraryWorkspace;
  plan.plainKernels = options.plainKernels;
  plan.cudaPath = options.cudaPath;
  plan.ptxas = options.ptxas;
  plan.threads = options.threads;
  plan.optimizer = options.optimizer;
  plan.precision = options.precision;
  plan.setSchedule(schedule::getScheduleNamed("gpipe"));
  return plan;
}

bool Profiler::print(ModuleOp program) {
  std::error_code error;
  llvm::raw_fd_ostream stream(folder.file("model.mlir"), error);
  if (error)
    return fail(error.message());
  OpPrintingFlags flags;
  program->print(stream, flags.enableDebugInfo());
  stream.close();
  return !stream.has_error() || fail("it cannot be written");
}

bool Profiler::compileUnits(size_t units) {
  OwningOpRef<ModuleOp> trial = module.clone();
  FailureOr<ForwardProgram> program = ForwardProgram::find(*trial);
  if (failed(program))
    return fail("the model has no forward task");
  auto cuts = llvm::to_vector(llvm::seq<int64_t>(1, units));
  insertBoundaries(*program, Units::collect(*program), cuts);
  if (!print(*trial))
    return false;
  CompileOptions plan = getPlan();
  plan.devices = 1;
  plan.microbatches = microbatches;
  if (compile(plan) != kDone)
    return fail("it cannot be cut after every node");
  return true;
}

/// Backwards that follow their forward at once find in caches what it left: an
/// action of a small model takes less than where all forwards come first. So
/// stages are measured in an order of the kind that they will run in.
static StringRef getMeasuredOrder(const CompileOptions &options) {
  StringRef name = options.schedule;
  bool forwardsFirst = name.starts_with("gpipe") ||
                       name.starts_with("looped-bfs") ||
                       name.starts_with("nf1b");
  return forwardsFirst ? "gpipe" : "1f1b";
}

/// Versions of weights, and what a method does besides, take time in its own
/// program only. Elsewhere, stages are measured with a flush after each update:
/// where they share devices or have replicas, and where workers are made of
/// them.
static bool isMeasuredByMethod(const CompileOptions &options, int64_t stages,
                               int64_t devices) {
  return options.method.isAsynchronous() &&
         !options.method.getMethod().getWaves(options.method) &&
         options.scheduleFile.empty() && options.replicas.empty() &&
         devices == stages;
}

bool Profiler::compileStages(size_t stages, int64_t devices) {
  // Choices of the plan, such as its schedule, are not those of this program.
  OwningOpRef<ModuleOp> trial = module.clone();
  if (pipeline::TrainingOp training = pipeline::getTraining(*trial))
    training.erase();
  if (!print(*trial))
    return false;
  CompileOptions plan = getPlan();
  if (isMeasuredByMethod(options, stages, devices)) {
    plan.method = options.method;
    plan.setSchedule(options.generator);
  } else {
    plan.setSchedule(schedule::getScheduleNamed(getMeasuredOrder(options)));
  }
  plan.devices = devices;
  plan.microbatches = microbatches;
  plan.batchNorm = options.batchNorm;
  plan.recompute = options.recompute;
  plan.recomputeBudgets = options.recomputeBudgets;
  if (compile(plan) != kDone)
    return fail("its stages cannot be compiled by themselves");
  return true;
}

/// Numbers between -1/2 and 1/2 for floats; for integers, which may be indices
/// or labels, the smallest one that is not left out.
bool Profiler::writeArray(pipeline::ChannelOp source, StringRef path) {
  RankedTensorType type = source.getTensorType(0);
  Type element = type.getElementType();
  StringRef descr = element.isF32()         ? "<f4"
                    : element.isF64()       ? "<f8"
                    : element.isInteger(64) ? "<i8"
                    : element.isInteger(32) ? "<i4"
                    : element.isInteger(8)  ? "|u1"
                    : element.isInteger(1)  ? "|b1"
                                            : "";
  if (descr.empty())
    return fail("input '" + source.getSource()->getEndpoint() +
                "' has a type that no data is made up for");
  // Enough for an update.
  int64_t repeated = type.getRank() > 0 ? microbatches : 1;
  std::string shape;
  for (auto [dimension, size] : llvm::enumerate(type.getShape()))
    shape += std::to_string(dimension == 0 ? size * repeated : size) + ",";
  std::string header = ("{'descr': '" + descr +
                        "', 'fortran_order': False, 'shape': (" + shape + ")}")
                           .str();
  constexpr size_t kPrefix = 10, kAlignment = 64;
  header.append(kAlignment - (kPrefix + header.size() + 1) % kAlignment, ' ');
  header += '\n';
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  if (error)
    return fail(error.message());
  auto length = static_cast<uint16_t>(header.size());
  stream << StringRef("\x93NUMPY\x01\x00", 8);
  stream << static_cast<char>(length & 0xff) << static_cast<char>(length >> 8)
         << header;
  bool isFloat = isa<FloatType>(element);
  size_t bytes = descr[2] - '0';
  int64_t label = options.ignoreLabel == "0" ? 1 : 0;
  uint32_t state = 1;
  for (int64_t i = 0; i < type.getNumElements() * repeated; ++i) {
    state = state * 1664525 + 1013904223;
    double value = static_cast<double>(state >> 8) / (1 << 24) - 0.5;
    auto single = static_cast<float>(value);
    const void *source = !isFloat     ? static_cast<const void *>(&label)
                         : bytes == 4 ? static_cast<const void *>(&single)
                                      : &value;
    stream.write(static_cast<const char *>(source), descr == "|b1" ? 1 : bytes);
  }
  stream.close();
  return !stream.has_error() || fail("its data cannot be written");
}

bool Profiler::writeData(std::vector<std::string> &arguments) {
  for (auto channel : module.getOps<pipeline::ChannelOp>()) {
    if (!channel.getSource())
      continue;
    std::string path =
        folder.file("input" + std::to_string(arguments.size()) + ".npy");
    if (!writeArray(channel, path))
      return false;
    arguments.push_back(channel.isLabels() ? "--labels" : "--data");
    arguments.push_back(
        channel.isLabels()
            ? path
            : (channel.getSource()->getEndpoint() + "=" + path).str());
  }
  return true;
}

bool Profiler::train(const std::vector<std::string> &arguments, int steps) {
  std::string program = folder.file("program"), said = folder.file("output");
  std::vector<StringRef> command{program};
  llvm::append_range(command, arguments);
  std::string updates = std::to_string(steps),
              trace = folder.file("trace.json");
  // Weights that grow without bounds would end in numbers that take longer.
  for (StringRef word : std::initializer_list<StringRef>{
           "--steps", updates, "--trace", trace, "--lr", "1e-12"})
    command.push_back(word);
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(said),
                                          StringRef(said)};
  if (llvm::sys::ExecuteAndWait(program, command, std::nullopt, redirects) == 0)
    return true;
  auto output = llvm::MemoryBuffer::getFile(said);
  return fail("the program that measures it failed: " +
              (output ? (*output)->getBuffer().split('\n').first
                      : StringRef("no output")));
}

bool Profiler::readTrace(ActionTimes &times) {
  auto buffer = llvm::MemoryBuffer::getFile(folder.file("trace.json"));
  if (!buffer)
    return fail("it left no trace");
  return times.read((*buffer)->getBuffer(), reason);
}

/// From the estimate of a step that the module has: what the stages of one
/// device take.
int Profiler::getStageSteps() const {
  auto estimate =
      module->getAttrOfType<DenseF64ArrayAttr>(pipeline::kStageSecondsAttr);
  double seconds = 0;
  for (auto [index, part] :
       llvm::enumerate(estimate ? estimate.asArrayRef() : ArrayRef<double>()))
    seconds += part * (index % 3 == 2 ? 1 : static_cast<double>(microbatches));
  double updates = seconds > 0 ? kStageSeconds / seconds : kMostUpdates;
  return kWarmup + static_cast<int>(std::clamp<double>(updates, kFewestUpdates,
                                                       kMostUpdates));
}

bool Profiler::measure(ActionTimes &times, int runs, int steps) {
  std::vector<std::string> arguments;
  if (!writeData(arguments))
    return false;
  for (int run = 0; run < runs; ++run)
    if (!train(arguments, steps) || !readTrace(times))
      return false;
  return true;
}

std::optional<std::vector<UnitSeconds>> Profiler::measureUnits(size_t units) {
  if (!folder.isMade)
    fail("there is no folder for temporary files");
  else if (ActionTimes times(microbatches, kWarmup);
           compileUnits(units) && measure(times, 1, kUnitSteps))
    return times.getLowerQuartiles(units);
  return std::nullopt;
}

std::optional<std::vector<UnitSeconds>>
Profiler::measureStages(size_t stages, int64_t devices) {
  // More do not cost more each, but a method may need them.
  constexpr int64_t kMostMicrobatches = 8;
  microbatches = options.microbatches;
  if (!isMeasuredByMethod(options, stages, devices))
    microbatches = std::min(microbatches, kMostMicrobatches);
  if (!folder.isMade)
    fail("there is no folder for temporary files");
  else if (ActionTimes times(microbatches, kWarmup);
           compileStages(stages, devices) &&
           measure(times, kStageRuns, getStageSteps()))
    return times.getMeans(stages);
  return std::nullopt;
}

bool penstock::profileUnits(ModuleOp module, const CompileOptions &options,
                            std::string &reason) {
  FailureOr<ForwardProgram> program = ForwardProgram::find(module);
  if (failed(program)) {
    reason = "it has no forward task";
    return false;
  }
  Units units = Units::collect(*program);
  ProfileCache cache;
  std::vector<std::string> keys;
  std::vector<UnitSeconds> seconds;
  for (const Unit &unit : units.units) {
    keys.push_back(ProfileCache::getKey(unit, options));
    if (std::optional<UnitSeconds> known = cache.find(keys.back()))
      seconds.push_back(*known);
  }
  if (seconds.size() != units.units.size()) {
    std::optional<std::vector<UnitSeconds>> measured =
        Profiler(module, options, reason).measureUnits(units.units.size());
    if (!measured)
      return false;
    seconds = std::move(*measured);
    for (auto [key, unit] : llvm::zip(keys, seconds))
      cache.insert(key, unit);
    cache.save();
  }
  setMeasuredSeconds(*program, seconds);
  return true;
}

bool penstock::profileStages(ModuleOp module, const CompileOptions &options,
                             std::string &reason) {
  auto count =
      static_cast<size_t>(llvm::range_size(module.getOps<pipeline::StageOp>()));
  // As many at a time as will be, as far as this machine has cores for them:
  // they take memory's bandwidth from each other. GPUs have their own.
  auto places = static_cast<int64_t>(count);
  if (options.devices > 0)
    places = std::min(places, options.devices);
  int64_t cores = llvm::thread::hardware_concurrency();
  int64_t devices =
      options.getFirstTarget() == "cuda"
          ? 1
          : std::max<int64_t>(1, std::min(places, cores / options.threads));
  ProfileCache cache;
  std::string order = getMeasuredOrder(options).str();
  if (isMeasuredByMethod(options, count, devices))
    order = options.schedule + " " + options.method.getText();
  std::string key = ProfileCache::getKey(module, options, devices, order);
  auto getKey = [&](size_t stage) { return key + "." + std::to_string(stage); };
  std::vector<UnitSeconds> seconds;
  for (size_t stage : llvm::seq(count))
    if (std::optional<UnitSeconds> known = cache.find(getKey(stage)))
      seconds.push_back(*known);
  if (seconds.size() != count) {
    std::optional<std::vector<UnitSeconds>> measured =
        Profiler(module, options, reason).measureStages(count, devices);
    if (!measured)
      return false;
    seconds = std::move(*measured);
    for (auto [stage, measuredStage] : llvm::enumerate(seconds))
      cache.insert(getKey(stage), measuredStage);
    cache.save();
  }
  SmallVector<double> numbers;
  for (const UnitSeconds &stage : seconds)
    numbers.append({stage.forward, stage.backward, stage.update});
  module->setAttr(pipeline::kStageSecondsAttr,
                  DenseF64ArrayAttr::get(module.getContext(), numbers));
  return true;
}
