//===- Options.cpp - The command line of penstockc ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options of the public contract. Those whose machinery is not in this
// build are accepted with their default and refused with any other value.
//===----------------------------------------------------------------------===//

#include "penstock/Driver/Options.h"

#include "penstock/Schedule/Generators.h"
#include "penstock/Support/CommandLine.h"
#include "penstock/Training/MethodSpec.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Regex.h"

#include <cmath>

using namespace llvm;
using mlir::failed;
using mlir::FailureOr;
using namespace penstock;

namespace {
/// All flags, registered for the life of the object.
struct Flags {
  using Text = cl::opt<std::string>;
  using Texts = cl::list<std::string>;
  using Count = cl::opt<int64_t>;
  using Switch = cl::opt<bool>;

  /// Like the flags, after the parser's reset, which would forget it.
  cl::OptionCategory category{"penstockc options"};

  Texts inputs{cl::Positional,
               cl::desc("MODEL.onnx|MODEL.onnxtext|PROGRAM.mlir"),
               cl::cat(category)};
  Text output{"o", cl::desc("Output file"), cl::value_desc("file"),
              cl::cat(category)};
  Text emit{"emit",
            cl::desc("What to write: onnx, graph, stages, training, schedule, "
                     "program, llvm, obj or exe"),
            cl::init("exe"), cl::cat(category)};
  Text mode{"mode", cl::desc("What to compile: train or infer"),
            cl::init("train"), cl::cat(category)};
  Text target{"target", cl::desc("What to compile for: cpu"), cl::init("cpu"),
              cl::cat(category)};
  Text march{"march", cl::desc("CPU to compile for (default: native)"),
             cl::init("native"), cl::cat(category)};
  Text precision{"precision", cl::desc("Type of the arithmetic: f32"),
                 cl::init("f32"), cl::cat(category)};
  Texts dims{"dim",
             cl::desc("Bind a symbolic dimension: NAME=N or INPUT:AXIS=N"),
             cl::value_desc("name=n"), cl::cat(category)};
  Count microbatchSize{"microbatch-size",
                       cl::desc("Samples per microbatch; binds the batch "
                                "dimension"),
                       cl::init(0), cl::cat(category)};
  Count microbatches{"microbatches",
                     cl::desc("Microbatches per weight update (default 1)"),
                     cl::init(1), cl::cat(category)};
  Text loss{"loss",
            cl::desc("Loss: softmax-cross-entropy, bce-with-logits, mse or "
                     "output (default: the model's own scalar output)"),
            cl::init("output"), cl::cat(category)};
  Text lossInput{"loss-input", cl::desc("The output that enters the loss"),
                 cl::cat(category)};
  Count classAxis{"class-axis",
                  cl::desc("Axis of the classes (default: the last)"),
                  cl::init(-1), cl::cat(category)};
  Text ignoreLabel{"ignore-label",
                   cl::desc("Labels of this value do not count"),
                   cl::cat(category)};
  Text train{"train", cl::desc("Initialisers to train, a regular expression"),
             cl::cat(category)};
  Text freeze{"freeze",
              cl::desc("Initialisers not to train, a regular expression"),
              cl::cat(category)};
  Texts tie{"tie", cl::desc("Train two equal initialisers as one: A=B"),
            cl::cat(category)};
  Text stages{"stages",
              cl::desc("Number of stages, or auto: one per device, cut where "
                       "they fit in --device-memory"),
              cl::cat(category)};
  Texts splitAt{"split-at", cl::desc("ONNX nodes or values to cut after"),
                cl::CommaSeparated, cl::cat(category)};
  Count devices{"devices",
                cl::desc("Number of devices (default: one per stage)"),
                cl::init(0), cl::cat(category)};
  Count threads{"threads", cl::desc("Threads per device (default 1)"),
                cl::init(1), cl::cat(category)};
  Text replicas{"replicas",
                cl::desc("Replicas of every stage, or of each: 3,1"),
                cl::init("1"), cl::cat(category)};
  Text method{"method",
              cl::desc("Training method: sync, naive, pipedream, 2bw, "
                       "pipemare, spectrain, xpipe or pipeoptim, with "
                       "parameters: pipemare:anneal-steps=500"),
              cl::init("sync"), cl::cat(category)};
  // An option keeps a reference to its text.
  std::string scheduleText =
      "Schedule: " + llvm::join(schedule::scheduleNames(), ", ") +
      " (default: 1f1b)";
  Text schedule{"schedule", cl::desc(scheduleText), cl::init("1f1b"),
                cl::cat(category)};
  Text scheduleFile{"schedule-file",
                    cl::desc("Schedule from a CSV file, in the format of "
                             "torch.distributed.pipelining"),
                    cl::value_desc("file"), cl::cat(category)};
  Text emitSchedule{"emit-schedule",
                    cl::desc("Write the schedule as such a file"),
                    cl::value_desc("file"), cl::cat(category)};
  Text optimizer{"optimizer",
                 cl::desc("Optimizer: sgd, adam or adamw, with parameters: "
                          "sgd:lr=0.1,momentum=0.9"),
                 cl::init("sgd:lr=0.01"), cl::cat(category)};
  Text rateSchedule{"lr-schedule",
                    cl::desc("Course of the learning rate: constant, linear, "
                             "cosine, step or poly, with parameters: "
                             "cosine:total-steps=1000,warmup-steps=50"),
                    cl::init("constant"), cl::cat(category)};
  Text clip{"clip-grad-norm", cl::desc("Bound of the norm of the gradients"),
            cl::cat(category)};
  Text batchNorm{"batch-norm",
                 cl::desc("Statistics of batch normalisation in training: "
                          "train (those of the microbatch; default) or frozen"),
                 cl::init("train"), cl::cat(category)};
  Text convolution{"convolution",
                   cl::desc("Algorithms of convolutions: fastest (default; "
                            "Winograd's, too, which rounds more) or direct"),
                   cl::init("fastest"), cl::cat(category)};
  Text recompute{"recompute",
                 cl::desc("What the backward computes again instead of storing "
                          "it: none, full, auto (what --device-memory demands) "
                          "or an expression of ONNX nodes"),
                 cl::init("none"), cl::cat(category)};
  Text deviceMemory{"device-memory",
                    cl::desc("Memory of a device, e.g. 16GiB; exit code 3 when "
                             "a stage does not fit"),
                    cl::cat(category)};
  Text gpuArch{"gpu-arch", cl::desc("GPU architecture, for --target=cuda"),
               cl::cat(category)};
  Switch report{"report", cl::desc("Print the plan"), cl::cat(category)};
  Text reportJson{"report-json", cl::desc("Write the plan as JSON"),
                  cl::value_desc("file"), cl::cat(category)};
  Switch profile{"profile",
                 cl::desc("Measure what every node costs, here and now, and "
                          "plan with that; kept for the next time"),
                 cl::cat(category)};
  Switch explain{"explain", cl::desc("Say why each cut stands where it does"),
                 cl::cat(category)};
};

/// Turns flags into options; the first thing that is wrong is said.
class Checker {
public:
  Checker(Flags &flags, CompileOptions &options, raw_ostream &errors)
      : flags(flags), options(options), errors(errors) {}
  bool check();

private:
  bool fail(const Twine &message) {
    reportError("penstockc", message, errors);
    return false;
  }
  /// Flags whose empty value would say the same as leaving them out.
  bool checkEmpty();
  bool checkProduct();
  bool checkMode();
  /// Once nothing is wrong: a mistake is said in one line.
  void warnOfIgnored();
  bool checkModel();
  bool checkPlan();
  bool checkSchedule();
  bool checkReplicas();
  /// Flags whose machinery is not in this build: only the default is there.
  bool checkDefaults();
  bool checkRegex(StringRef flag, StringRef text,
                  StringRef wants = "a regular expression");
  bool positive(StringRef flag, int64_t value) {
    return value >= 1 || fail("--" + flag + "=" + Twine(value) +
                              ": a positive number is needed");
  }

  Flags &flags;
  CompileOptions &options;
  raw_ostream &errors;
};
} // namespace

std::optional<int64_t> penstock::parseBytes(StringRef text) {
  static constexpr std::pair<StringLiteral, int64_t> kUnits[] = {
      {"KiB", 1LL << 10}, {"MiB", 1LL << 20},
      {"GiB", 1LL << 30}, {"TiB", 1LL << 40},
      {"KB", 1000},       {"MB", 1000 * 1000},
      {"GB", 1000000000}, {"TB", 1000000000000LL},
      {"B", 1},
  };
  int64_t unit = 1;
  for (auto &[name, bytes] : kUnits) {
    if (text.consume_back_insensitive(name)) {
      unit = bytes;
      break;
    }
  }
  double number;
  if (text.trim().getAsDouble(number) || !(number > 0) ||
      number * static_cast<double>(unit) > 9e18)
    return std::nullopt;
  return static_cast<int64_t>(number * static_cast<double>(unit));
}

bool Checker::checkEmpty() {
  return checkNotEmpty("penstockc",
                       {&flags.march, &flags.lossInput, &flags.ignoreLabel,
                        &flags.train, &flags.freeze, &flags.stages,
                        &flags.scheduleFile, &flags.emitSchedule, &flags.clip,
                        &flags.deviceMemory, &flags.gpuArch, &flags.reportJson},
                       errors);
}

bool Checker::checkProduct() {
  if (!flags.inputs.empty())
    options.input = flags.inputs.front();
  options.output = flags.output;
  if (options.input.empty())
    return fail("no model given; usage: penstockc MODEL.onnx -o OUT [options]");
  if (flags.inputs.size() > 1)
    return fail("'" + flags.inputs[1] +
                "': one model is compiled at a time, "
                "and '" +
                options.input + "' is given already");
  StringRef emit = flags.emit;
  if (emit == "exe") {
    options.product = Product::Executable;
  } else if (emit == "obj") {
    options.product = Product::Object;
  } else if (std::optional<Level> level = parseLevel(emit)) {
    options.product = Product::Ir;
    options.level = *level;
  } else if (emit == "ptx") {
    return fail("--emit=ptx: this build has no CUDA target");
  } else {
    return fail("--emit=" + emit +
                ": unknown level; levels are onnx, graph, stages, training, "
                "schedule, program, llvm, obj, exe");
  }
  if (options.output.empty()) {
    if (options.product != Product::Ir)
      return fail("no output given: -o OUT");
    options.output = "-";
  }
  if (options.product == Product::Executable && options.output == "-")
    return fail("-o -: an executable needs a file name");
  options.march = flags.march;
  options.report = flags.report;
  options.reportJson = flags.reportJson;
  options.explain = flags.explain;
  options.profile = flags.profile;
  return true;
}

bool Checker::checkRegex(StringRef flag, StringRef text, StringRef wants) {
  std::string problem;
  if (!text.empty() && !Regex(text).isValid(problem))
    return fail("--" + flag + "=" + text + ": " + wants +
                " is needed, and this is no regular expression: " + problem);
  return true;
}

bool Checker::checkMode() {
  options.infer = flags.mode == "infer";
  if (!options.infer)
    return flags.mode == "train" ||
           fail("--mode=" + flags.mode + ": it is train or infer");
  options.given.insert("mode");
  return true;
}

void Checker::warnOfIgnored() {
  if (!options.infer)
    return;
  for (const cl::Option *flag : std::initializer_list<const cl::Option *>{
           &flags.loss, &flags.lossInput, &flags.classAxis, &flags.ignoreLabel,
           &flags.train, &flags.freeze, &flags.optimizer, &flags.rateSchedule,
           &flags.clip, &flags.batchNorm, &flags.recompute, &flags.method,
           &flags.microbatches, &flags.schedule})
    if (flag->getNumOccurrences())
      errors << "penstockc: warning: --" << flag->ArgStr
             << " has no effect with --mode=infer\n";
}

bool Checker::checkModel() {
  // A schedule is proved by executing it.
  constexpr int64_t kMostMicrobatches = 65536;
  for (StringRef dim : flags.dims) {
    auto [name, value] = dim.rsplit('=');
    int64_t size;
    if (name.empty() || value.getAsInteger(10, size) || size < 1)
      return fail("--dim " + dim +
                  ": expected NAME=N or INPUT:AXIS=N with N >= 1");
    auto [it, isNew] = options.dims.try_emplace(name.str(), size);
    if (!isNew && it->second != size)
      return fail("--dim " + name + " is given as " + Twine(it->second) +
                  " and as " + Twine(size));
  }
  if (flags.microbatchSize.getNumOccurrences()) {
    if (!positive("microbatch-size", flags.microbatchSize))
      return false;
    options.microbatchSize = flags.microbatchSize;
  }
  options.microbatches = flags.microbatches;
  options.loss = flags.loss;
  options.lossInput = flags.lossInput;
  options.classAxis = flags.classAxis;
  options.ignoreLabel = flags.ignoreLabel;
  options.trainRegex = flags.train;
  options.freezeRegex = flags.freeze;
  for (StringRef tie : flags.tie) {
    auto [first, second] = tie.split('=');
    if (first.empty() || second.empty())
      return fail("--tie " + tie + ": expected A=B, two initialisers");
    options.ties.emplace_back(first, second);
  }
  if (options.loss != "softmax-cross-entropy" &&
      options.loss != "bce-with-logits" && options.loss != "mse" &&
      options.loss != "output")
    return fail("--loss=" + options.loss +
                ": unknown loss; losses are softmax-cross-entropy, "
                "bce-with-logits, mse, output");
  int64_t label;
  if (!options.ignoreLabel.empty() &&
      StringRef(options.ignoreLabel).getAsInteger(10, label))
    return fail("--ignore-label=" + options.ignoreLabel +
                ": an integer is needed");
  if (options.loss != "softmax-cross-entropy") {
    if (!options.ignoreLabel.empty())
      return fail("--ignore-label=" + options.ignoreLabel +
                  " needs --loss=softmax-cross-entropy");
    if (flags.classAxis.getNumOccurrences())
      return fail("--class-axis=" + Twine(options.classAxis) +
                  " needs --loss=softmax-cross-entropy");
  }
  if (options.microbatches > kMostMicrobatches)
    return fail("--microbatches=" + Twine(options.microbatches) + ": at most " +
                Twine(kMostMicrobatches) + " per update");
  return positive("microbatches", options.microbatches) &&
         checkRegex("train", options.trainRegex) &&
         checkRegex("freeze", options.freezeRegex);
}

bool Checker::checkPlan() {
  StringRef stages = flags.stages;
  options.splitAt.assign(flags.splitAt.begin(), flags.splitAt.end());
  options.choosesStages = stages == "auto";
  if (options.choosesStages) {
    if (!options.splitAt.empty())
      return fail("--stages=auto contradicts --split-at, which says where to "
                  "cut; leave one of them out");
    if (!flags.devices.getNumOccurrences())
      return fail("--stages=auto needs --devices=N, the devices to use");
  } else if (!stages.empty() &&
             (stages.getAsInteger(10, options.stages) || options.stages < 1)) {
    return fail("--stages=" + stages + ": a positive number or auto is needed");
  }
  if (flags.devices.getNumOccurrences()) {
    if (!positive("devices", flags.devices))
      return false;
    options.devices = flags.devices;
  }
  if (!checkReplicas())
    return false;
  options.threads = flags.threads;
  if (!positive("threads", options.threads))
    return false;
  constexpr int64_t kMostThreads = 1024;
  if (options.threads > kMostThreads)
    return fail("--threads=" + Twine(options.threads) + ": at most " +
                Twine(kMostThreads) + " per device");
  options.recompute = flags.recompute;
  constexpr StringRef kRecompute =
      "none, full, auto or a regular expression of node names";
  if (options.recompute.empty())
    return fail("--recompute=: " + kRecompute + " is needed");
  if (!checkRegex("recompute", options.recompute, kRecompute))
    return false;
  if (!checkSchedule())
    return false;
  options.method = flags.method;
  std::string error;
  FailureOr<MethodSpec> method = parseMethodSpec(options.method, error);
  if (failed(method))
    return fail("--method=" + options.method + ": " + error);
  if (method->isAsynchronous() && options.schedule != "1f1b")
    return fail("--schedule=" + options.schedule +
                ": --method=" + options.method +
                " runs 1f1b without flushes; leave --schedule "
                "out, or use --method=sync");
  options.optimizer = flags.optimizer;
  options.batchNorm = flags.batchNorm;
  if (options.batchNorm != "train" && options.batchNorm != "frozen")
    return fail("--batch-norm=" + options.batchNorm +
                ": there are train and frozen");
  options.convolution = flags.convolution;
  if (options.convolution != "fastest" && options.convolution != "direct")
    return fail("--convolution=" + options.convolution +
                ": there are fastest and direct");
  options.rateSchedule = flags.rateSchedule;
  if (StringRef clip = flags.clip;
      !clip.empty() &&
      (clip.getAsDouble(options.clipGradNorm) || !(options.clipGradNorm > 0) ||
       !std::isfinite(options.clipGradNorm)))
    return fail("--clip-grad-norm=" + clip + ": a positive number is needed");
  for (const cl::Option *flag : std::initializer_list<const cl::Option *>{
           &flags.microbatches, &flags.optimizer, &flags.rateSchedule,
           &flags.clip, &flags.batchNorm, &flags.convolution, &flags.schedule,
           &flags.method})
    if (flag->getNumOccurrences())
      options.given.insert(flag->ArgStr.str());
  if (!flags.deviceMemory.empty()) {
    options.deviceMemory = parseBytes(flags.deviceMemory);
    if (!options.deviceMemory)
      return fail("--device-memory=" + flags.deviceMemory +
                  ": expected a size such as 16GiB or 512MiB");
  }
  return true;
}

/// What replicas need is said before anything is imported.
bool Checker::checkReplicas() {
  std::string flag = "--replicas=" + flags.replicas.getValue();
  SmallVector<StringRef> parts;
  StringRef(flags.replicas).split(parts, ',');
  constexpr int64_t kMost = 1024;
  for (StringRef part : parts) {
    int64_t width;
    if (part.getAsInteger(10, width) || width < 1 || width > kMost)
      return fail(Twine(flag) +
                  ": a number of replicas is needed, or one per stage "
                  "with commas");
    options.replicas.push_back(width);
  }
  if (llvm::all_of(options.replicas,
                   [](int64_t width) { return width == 1; })) {
    // Who says one per stage says how many stages there are.
    if (options.replicas.size() == 1)
      options.replicas.clear();
  }
  if (options.replicas.empty())
    return true;
  int64_t most = *llvm::max_element(options.replicas);
  if (options.choosesStages)
    return fail(Twine(flag) +
                ": --stages=auto plans stages of one replica; say "
                "--stages=N");
  if (most > 1 && options.infer)
    return fail(Twine(flag) + ": replicas are of training; leave it out with "
                              "--mode=infer");
  bool isEven = llvm::all_equal(options.replicas);
  if (!isEven && StringRef(flags.method) != "sync")
    return fail(
        Twine(flag) + ": --method=" + StringRef(flags.method) +
        " needs stages of equal width, such as --replicas=" + Twine(most));
  if (most > 1 && !flags.scheduleFile.empty())
    return fail(Twine(flag) +
                ": a table of --schedule-file has one device per stage; "
                "use --schedule");
  if (most > 1 && !flags.emitSchedule.empty())
    return fail(flag +
                ": --emit-schedule writes tables without replicas; leave "
                "one of them out");
  for (int64_t width : options.replicas)
    if (options.microbatches % width != 0)
      return fail(Twine(flag) +
                  ": --microbatches=" + Twine(options.microbatches) +
                  " is not a multiple of " + Twine(width));
  int64_t stages = options.replicas.size(), sum = 0;
  for (int64_t width : options.replicas)
    sum += width;
  if (stages == 1) {
    if (options.devices % options.replicas.front() != 0)
      return fail(Twine(flag) + ": --devices=" + Twine(options.devices) +
                  " counts all replicas, and is not a multiple of " +
                  Twine(options.replicas.front()));
    return true;
  }
  if (options.stages == 0 && options.splitAt.empty())
    options.stages = stages;
  int64_t given = options.splitAt.empty() ? options.stages
                                          : int64_t(options.splitAt.size()) + 1;
  if (given != stages)
    return fail(Twine(flag) + ": " + Twine(stages) +
                " numbers, and there are " + Twine(given) + " stages");
  if (options.devices != 0 && options.devices != sum)
    return fail(Twine(flag) + ": needs " + Twine(sum) +
                " devices, --devices=" + Twine(options.devices));
  return true;
}

bool Checker::checkSchedule() {
  options.schedule = flags.schedule;
  options.scheduleFile = flags.scheduleFile;
  options.emitSchedule = flags.emitSchedule;
  if (!options.scheduleFile.empty()) {
    if (flags.schedule.getNumOccurrences())
      return fail("--schedule=" + options.schedule +
                  ": --schedule-file says it already");
    return true;
  }
  std::string error;
  std::optional<schedule::ScheduleSpec> spec =
      schedule::parseScheduleSpec(options.schedule, error);
  if (!spec)
    return fail("--schedule=" + options.schedule + ": " + error);
  if (spec->replicas() > 1)
    return fail("--schedule=" + options.schedule + " runs " +
                Twine(spec->replicas()) +
                " replicas of every stage, which is not in this build");
  if (options.stages == 0 && options.splitAt.empty())
    options.stages = std::max<int64_t>(options.getPlaces(), 1) * spec->chunks();
  return true;
}

bool Checker::checkDefaults() {
  struct Only {
    StringLiteral flag;
    const Flags::Text &value;
    StringLiteral fallback;
  };
  for (const Only &only : {
           Only{"target", flags.target, "cpu"},
           Only{"precision", flags.precision, "f32"},
           Only{"gpu-arch", flags.gpuArch, ""},
       }) {
    if (StringRef(only.value) == only.fallback)
      continue;
    std::string wayOut =
        only.fallback.empty()
            ? "; leave it out"
            : ("; it has --" + only.flag + "=" + only.fallback).str();
    return fail("--" + only.flag + "=" + only.value + " is not in this build" +
                wayOut);
  }
  return true;
}

bool Checker::check() {
  if (!checkEmpty() || !checkProduct() || !checkMode() || !checkDefaults() ||
      !checkModel() || !checkPlan())
    return false;
  warnOfIgnored();
  return true;
}

bool penstock::parseCommandLine(int argc, const char *const *argv,
                                CompileOptions &options, raw_ostream &errors) {
  // The options of the LLVM libraries are not ours, and some share our names.
  cl::ResetCommandLineParser();
  static Flags flags;
  cl::HideUnrelatedOptions(flags.category);
  cl::SetVersionPrinter([](raw_ostream &stream) {
    stream << "penstockc " << PENSTOCK_VERSION << "\n";
  });
  return parseFlags("penstockc",
                    "compiles an ONNX model into a pipeline program that "
                    "trains it\n",
                    argc, argv, errors) &&
         Checker(flags, options, errors).check();
}
