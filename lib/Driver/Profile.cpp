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

#include "Compilation.h"
#include "ProfileCache.h"
#include "dialects/Pipeline/Pipeline.h"
#include "passes/Partition/Passes.h"
#include "passes/Partition/Units.h"
#include "penstock/Driver/Compiler.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/thread.h"

#include <map>

using namespace mlir;
using namespace penstock;

/// Updates that are trained, the first of which warm up.
static constexpr int kSteps = 24, kWarmup = 4;
/// Of stages, whose updates take longer.
static constexpr int kStageSteps = 16;

namespace {
/// A folder that goes with the object.
class TemporaryFolder {
public:
  TemporaryFolder() {
    isMade = !llvm::sys::fs::createUniqueDirectory("penstock-profile", path);
  }
  ~TemporaryFolder() {
    if (isMade)
      llvm::sys::fs::remove_directories(path);
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
  /// Of every stage of a module at level stages, on so many devices.
  std::optional<std::vector<UnitSeconds>> measureStages(size_t stages,
                                                        int64_t devices);

private:
  bool fail(const Twine &message) {
    reason = message.str();
    return false;
  }
  bool compileUnits(size_t units);
  bool compileStages(int64_t devices);
  /// Starts with what both have in common.
  CompileOptions getPlan() const;
  bool print(ModuleOp program);
  std::optional<std::vector<UnitSeconds>> measure(size_t stages, int steps);
  bool writeData(std::vector<std::string> &arguments);
  bool writeArray(pipeline::ChannelOp source, StringRef path);
  bool train(std::vector<std::string> arguments, int steps);
  bool readTrace(std::vector<UnitSeconds> &seconds);

  ModuleOp module;
  const CompileOptions &options;
  std::string &reason;
  TemporaryFolder folder;
  /// Of an update.
  int64_t microbatches = 1;
};
} // namespace

CompileOptions Profiler::getPlan() const {
  CompileOptions plan;
  plan.input = folder.file("model.mlir");
  plan.output = folder.file("program");
  plan.march = options.march;
  plan.threads = options.threads;
  plan.optimizer = options.optimizer;
  plan.schedule = "gpipe";
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

bool Profiler::compileStages(int64_t devices) {
  // Choices of the plan, such as its schedule, are not those of this program.
  OwningOpRef<ModuleOp> trial = module.clone();
  (*trial)->removeAttr(kPlanAttr);
  if (!print(*trial))
    return false;
  CompileOptions plan = getPlan();
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
    return fail("input '" + *source.getSource() +
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
    bool isLabels = *channel.getSource() == "labels";
    arguments.push_back(isLabels ? "--labels" : "--data");
    arguments.push_back(isLabels ? path
                                 : (*channel.getSource() + "=" + path).str());
  }
  return true;
}

bool Profiler::train(std::vector<std::string> arguments, int steps) {
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

/// The lower quartile of an action's times, which others on the machine hardly
/// touch.
static double getTypical(std::vector<double> &seconds) {
  if (seconds.empty())
    return 0;
  llvm::sort(seconds);
  return seconds[seconds.size() / 4];
}

bool Profiler::readTrace(std::vector<UnitSeconds> &seconds) {
  auto buffer = llvm::MemoryBuffer::getFile(folder.file("trace.json"));
  if (!buffer)
    return fail("it left no trace");
  llvm::Expected<llvm::json::Value> trace =
      llvm::json::parse((*buffer)->getBuffer());
  if (!trace) {
    llvm::consumeError(trace.takeError());
    return fail("its trace cannot be read");
  }
  const llvm::json::Object *object = trace->getAsObject();
  const llvm::json::Array *events =
      object ? object->getArray("traceEvents") : nullptr;
  if (!events)
    return fail("its trace has no events");
  // 1. Rows are called "stage 3 (device 0)".
  struct Event {
    double begin = 0, end = 0;
    unsigned stage = 0;
    StringRef name;
    bool isAction = false;
  };
  std::map<int64_t, std::pair<unsigned, unsigned>> rows;
  std::map<unsigned, std::vector<Event>> devices;
  for (const llvm::json::Value &value : *events) {
    const llvm::json::Object *event = value.getAsObject();
    std::optional<int64_t> row =
        event ? event->getInteger("tid") : std::nullopt;
    std::optional<StringRef> name =
        event ? event->getString("name") : std::nullopt;
    if (!row || !name)
      continue;
    if (const llvm::json::Object *row_ = event->getObject("args")) {
      std::optional<StringRef> title = row_->getString("name");
      unsigned stage, device;
      if (title && title->consume_front("stage ") &&
          !title->consumeInteger(10, stage) &&
          title->consume_front(" (device ") &&
          !title->consumeInteger(10, device))
        rows[*row] = {stage, device};
      continue;
    }
    std::optional<StringRef> kind = event->getString("cat");
    std::optional<double> begin = event->getNumber("ts"),
                          duration = event->getNumber("dur");
    if (!kind || !begin || !duration || !rows.count(*row))
      continue;
    auto [stage, device] = rows[*row];
    devices[device].push_back(
        {*begin, *begin + *duration, stage, *name, *kind == "action"});
  }

  // 2. An action takes from when the device was done with what it did before,
  // or with waiting. In an update the first one of a kind finds less in caches
  // than others.
  std::map<std::tuple<unsigned, char, int64_t>, std::vector<double>> times;
  for (auto &[device, list] : devices) {
    llvm::sort(list, [](const Event &a, const Event &b) {
      return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
    });
    double free = list.front().begin;
    for (const Event &event : list) {
      double begin = std::min(event.begin, std::exchange(free, event.end));
      int64_t number;
      if (!event.isAction || event.name.drop_front().getAsInteger(10, number))
        continue;
      char letter = event.name.front();
      int64_t ofUpdate = letter == 'U' ? 1 : microbatches;
      if (number / ofUpdate >= kWarmup)
        times[{event.stage, letter, number % ofUpdate}].push_back(
            (event.end - begin) * 1e-6);
    }
  }
  if (times.empty())
    return fail("its trace has no actions");
  std::map<std::pair<unsigned, char>, double> sums;
  for (auto &[key, list] : times)
    sums[{std::get<0>(key), std::get<1>(key)}] += getTypical(list);
  for (auto [stage, unit] : llvm::enumerate(seconds)) {
    auto index = static_cast<unsigned>(stage);
    auto ofUpdate = static_cast<double>(microbatches);
    unit.forward = sums[{index, 'F'}] / ofUpdate;
    unit.backward = sums[{index, 'B'}] / ofUpdate;
    unit.update = sums[{index, 'U'}];
  }
  return true;
}

std::optional<std::vector<UnitSeconds>> Profiler::measure(size_t stages,
                                                          int steps) {
  std::vector<std::string> arguments;
  std::vector<UnitSeconds> seconds(stages);
  if (!writeData(arguments) || !train(std::move(arguments), steps) ||
      !readTrace(seconds))
    return std::nullopt;
  return seconds;
}

std::optional<std::vector<UnitSeconds>> Profiler::measureUnits(size_t units) {
  if (!folder.isMade)
    fail("there is no folder for temporary files");
  else if (compileUnits(units))
    return measure(units, kSteps);
  return std::nullopt;
}

std::optional<std::vector<UnitSeconds>>
Profiler::measureStages(size_t stages, int64_t devices) {
  // More do not cost more each.
  constexpr int64_t kMostMicrobatches = 8;
  microbatches = std::min(options.microbatches, kMostMicrobatches);
  if (!folder.isMade)
    fail("there is no folder for temporary files");
  else if (compileStages(devices))
    return measure(stages, kStageSteps);
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
  ProfileCache cache(options);
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
  // they take memory's bandwidth from each other.
  auto places = static_cast<int64_t>(count);
  if (options.devices > 0)
    places = std::min(places, options.devices);
  int64_t cores = llvm::thread::hardware_concurrency();
  int64_t devices =
      std::max<int64_t>(1, std::min(places, cores / options.threads));
  ProfileCache cache(options);
  std::string key = ProfileCache::getKey(module, options, devices);
  auto keyOf = [&](size_t stage) { return key + "." + std::to_string(stage); };
  std::vector<UnitSeconds> seconds;
  for (size_t stage : llvm::seq(count))
    if (std::optional<UnitSeconds> known = cache.find(keyOf(stage)))
      seconds.push_back(*known);
  if (seconds.size() != count) {
    std::optional<std::vector<UnitSeconds>> measured =
        Profiler(module, options, reason).measureStages(count, devices);
    if (!measured)
      return false;
    seconds = std::move(*measured);
    for (auto [stage, measuredStage] : llvm::enumerate(seconds))
      cache.insert(keyOf(stage), measuredStage);
    cache.save();
  }
  SmallVector<double> numbers;
  for (const UnitSeconds &stage : seconds)
    numbers.append({stage.forward, stage.backward, stage.update});
  module->setAttr(kStageSecondsAttr,
                  DenseF64ArrayAttr::get(module.getContext(), numbers));
  return true;
}
