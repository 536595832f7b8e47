//===- Profile.cpp - Measured costs of ONNX nodes -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Profile.h. A cut after every node makes its forward, backward and update
// actions of their own in the trace; between them nothing is fused, so what is
// measured is an upper bound for ops that a stage fuses.
//===----------------------------------------------------------------------===//

#include "penstock/Driver/Profile.h"

#include "ProfileCache.h"
#include "dialects/Pipeline/Pipeline.h"
#include "passes/Partition/Units.h"
#include "penstock/Driver/Compiler.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

#include <map>

using namespace mlir;
using namespace penstock;

/// Updates that are trained, the first of which warm up.
static constexpr int kSteps = 24, kWarmup = 4;

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
  std::optional<std::vector<UnitSeconds>> run(size_t units);

private:
  bool fail(const Twine &message) {
    reason = message.str();
    return false;
  }
  bool compileProgram(size_t units);
  bool writeData(std::vector<std::string> &arguments);
  bool writeArray(pipeline::ChannelOp source, StringRef path);
  bool train(const std::vector<std::string> &arguments);
  bool readTrace(std::vector<UnitSeconds> &seconds);

  ModuleOp module;
  const CompileOptions &options;
  std::string &reason;
  TemporaryFolder folder;
};
} // namespace

bool Profiler::compileProgram(size_t units) {
  OwningOpRef<ModuleOp> trial = module.clone();
  FailureOr<ForwardProgram> program = ForwardProgram::find(*trial);
  if (failed(program))
    return fail("the model has no forward task");
  auto cuts = llvm::to_vector(llvm::seq<int64_t>(1, units));
  insertBoundaries(*program, Units::collect(*program), cuts);
  std::error_code error;
  llvm::raw_fd_ostream stream(folder.file("model.mlir"), error);
  if (error)
    return fail(error.message());
  OpPrintingFlags flags;
  trial->print(stream, flags.enableDebugInfo());
  stream.close();

  CompileOptions plan;
  plan.input = folder.file("model.mlir");
  plan.output = folder.file("program");
  plan.march = options.march;
  plan.threads = options.threads;
  plan.optimizer = options.optimizer;
  plan.devices = 1;
  plan.schedule = "gpipe";
  if (compile(plan) != kDone)
    return fail("it cannot be cut after every node");
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
  std::string shape;
  for (int64_t size : type.getShape())
    shape += std::to_string(size) + ",";
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
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
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

bool Profiler::train(const std::vector<std::string> &arguments) {
  std::string program = folder.file("program"), said = folder.file("output");
  std::vector<StringRef> command{program};
  llvm::append_range(command, arguments);
  std::string steps = std::to_string(kSteps), trace = folder.file("trace.json");
  // Weights that grow without bounds would end in numbers that take longer.
  for (StringRef word : std::initializer_list<StringRef>{
           "--steps", steps, "--trace", trace, "--lr", "1e-12"})
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
  // Rows are called "stage 3 (device 0)".
  std::map<int64_t, unsigned> stageOf;
  std::map<std::pair<unsigned, char>, std::vector<double>> times;
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
      unsigned stage;
      if (title && title->consume_front("stage ") &&
          !title->consumeInteger(10, stage))
        stageOf[*row] = stage;
      continue;
    }
    std::optional<StringRef> kind = event->getString("cat");
    std::optional<double> duration = event->getNumber("dur");
    int64_t number;
    if (!kind || *kind != "action" || !duration || !stageOf.count(*row) ||
        name->drop_front().getAsInteger(10, number) || number < kWarmup)
      continue;
    times[{stageOf[*row], name->front()}].push_back(*duration * 1e-6);
  }
  if (times.empty())
    return fail("its trace has no actions");
  for (auto [stage, unit] : llvm::enumerate(seconds)) {
    auto index = static_cast<unsigned>(stage);
    unit.forward = getTypical(times[{index, 'F'}]);
    unit.backward = getTypical(times[{index, 'B'}]);
    unit.update = getTypical(times[{index, 'U'}]);
  }
  return true;
}

std::optional<std::vector<UnitSeconds>> Profiler::run(size_t units) {
  std::vector<std::string> arguments;
  std::vector<UnitSeconds> seconds(units);
  if (!folder.isMade) {
    reason = "there is no folder for temporary files";
    return std::nullopt;
  }
  if (!compileProgram(units) || !writeData(arguments) || !train(arguments) ||
      !readTrace(seconds))
    return std::nullopt;
  return seconds;
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
        Profiler(module, options, reason).run(units.units.size());
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
