//===- Flags.h - The flags of penstockc -------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A row per flag: its name, what --help says of it, its default, what holds for
// it besides its value, and the field of CompileOptions that it sets by itself.
// A flag whose value needs a check has that in Options.cpp or PlanOptions.cpp.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_DRIVER_FLAGS_H
#define PENSTOCK_LIB_DRIVER_FLAGS_H

#include "penstock/Driver/DeviceModels.h"
#include "penstock/Driver/Options.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"

#include <string>
#include <variant>
#include <vector>

namespace penstock {

/// Traits of a flag besides its value; sums of these.
enum FlagTrait : unsigned {
  kNoTrait = 0,
  /// Its empty value would say the same as leaving it out, and is an error.
  kNotEmpty = 1,
  /// It has no effect with --mode=infer, and a warning says so.
  kOfTraining = 2,
  /// Printed programs hold its value, which it must not contradict.
  kRecorded = 4,
  /// The last level at which it decides something. On a printed program beyond
  /// that level it has no effect and is an error; on import, on all of them.
  kUntilImport = 1 << 3,
  kUntilGraph = 2 << 3,
  kUntilStages = 3 << 3,
  kUntilTraining = 4 << 3,
  kUntilSchedule = 5 << 3,
  kUntilProgram = 6 << 3,
  kUntilMask = 7 << 3,
};

/// All flags, registered for the life of the object.
struct Flags {
  using Text = llvm::cl::opt<std::string>;
  using Texts = llvm::cl::list<std::string>;
  using Count = llvm::cl::opt<int64_t>;
  using Switch = llvm::cl::opt<bool>;

  /// The field that a flag sets; none: it has to be checked first.
  using Field = std::variant<std::monostate, std::string CompileOptions::*,
                             int64_t CompileOptions::*, bool CompileOptions::*>;
  struct Row {
    llvm::StringRef name;
    unsigned traits;
    Field field;
  };
  /// In the order of the flags.
  std::vector<Row> rows;

  /// The flag of a row.
  static llvm::cl::Option &getOption(const Row &row) {
    return *llvm::cl::getRegisteredOptions().lookup(row.name);
  }
  /// Sets the fields of all flags that have one.
  void copyTo(CompileOptions &options) const;

  /// Like the flags, after the parser's reset, which would forget them. A flag
  /// is in the group that stands before it.
  struct Group {
    llvm::cl::OptionCategory category;
    Group(Flags &flags, llvm::StringRef name) : category(name) {
      flags.groups.push_back(&category);
    }
  };
  std::vector<const llvm::cl::OptionCategory *> groups;

  Group fileGroup{*this, "Files and levels"};
  Texts inputs{llvm::cl::Positional,
               llvm::cl::desc("MODEL.onnx|MODEL.onnxtext|PROGRAM.mlir"),
               llvm::cl::cat(getGroup())};
  Text output = file("o", "Output file", kNoTrait, &CompileOptions::output);
  Text emit = text("emit",
                   "What to write: onnx, graph, stages, training, schedule, "
                   "program, llvm, ptx (kernels of GPUs), obj or exe",
                   "exe");
  Text mode = text("mode", "What to compile: train or infer", "train");
  Group targetGroup{*this, "Target"};
  Text target =
      text("target", "What to compile for: cpu or cuda", "cpu", kRecorded);
  Texts deviceTargets =
      commaTexts("device-targets",
                 "What each device is, in order: cpu,cuda,cuda", kRecorded);
  Text march = text("march", "CPU to compile for (default: native)", "native",
                    kNotEmpty | kRecorded, &CompileOptions::march);
  Text precision =
      text("precision",
           "What f32 models are computed in: f32; tf32: products and "
           "convolutions on GPUs; bf16: weights, messages and products",
           "f32", kRecorded, &CompileOptions::precision);
  Group batchGroup{*this, "Shapes and batch"};
  Texts dims = texts("dim", "Bind a symbolic dimension: NAME=N or INPUT:AXIS=N",
                     kUntilImport, "name=n");
  Text microbatchSize = text("microbatch-size",
                             "Samples per microbatch, which binds the batch "
                             "dimension; auto: planned, with --global-batch",
                             "", kNotEmpty | kUntilImport);
  Count microbatches =
      count("microbatches", "Microbatches per weight update (default 1)", 1,
            kOfTraining | kRecorded);
  Count globalBatch =
      count("global-batch",
            "Samples per weight update, in place of one of --microbatch-size "
            "and --microbatches",
            0, kUntilImport);
  Group lossGroup{*this, "Loss, and what trains"};
  Text loss = text("loss",
                   "Loss: softmax-cross-entropy (with :label-smoothing=0.1, "
                   "class-weights=w.npy), bce-with-logits, mse or output "
                   "(default: the model's own scalar output)",
                   "output", kOfTraining | kUntilImport, &CompileOptions::loss);
  Text lossInput =
      text("loss-input", "The output that enters the loss", "",
           kNotEmpty | kOfTraining | kUntilImport, &CompileOptions::lossInput);
  Count classAxis =
      count("class-axis", "Axis of the classes (default: the last)", -1,
            kOfTraining | kUntilImport, &CompileOptions::classAxis);
  Text ignoreLabel = text("ignore-label", "Labels of this value do not count",
                          "", kNotEmpty | kOfTraining | kUntilImport,
                          &CompileOptions::ignoreLabel);
  Texts metrics = commaTexts(
      "metrics", "What evaluations count besides: top-K, as top-5, and mae",
      kOfTraining | kUntilStages);
  Text train =
      text("train", "Initializers to train, a regular expression", "",
           kNotEmpty | kOfTraining | kUntilImport, &CompileOptions::trainRegex);
  Text freeze = text(
      "freeze", "Initializers not to train, a regular expression", "",
      kNotEmpty | kOfTraining | kUntilImport, &CompileOptions::freezeRegex);
  Texts tie =
      texts("tie", "Train two equal initializers as one: A=B", kUntilImport);
  Switch allowFolded =
      toggle("allow-folded",
             "Train a model although its exporter has computed batch norms "
             "into the weights before them",
             kOfTraining | kUntilImport, &CompileOptions::allowFolded);
  Group stageGroup{*this, "Stages and devices"};
  Text stages = text("stages",
                     "Number of stages, or auto: one per device, cut where "
                     "they fit in --device-memory",
                     "", kNotEmpty | kUntilGraph);
  Texts splitAt =
      commaTexts("split-at",
                 "ONNX nodes or values to cut after; with --method=hetpipe, "
                 "'a,b|c' cuts its workers each for itself",
                 kUntilGraph);
  Count devices = count("devices", "Number of devices (default: one per stage)",
                        0, kUntilTraining);
  Text deviceSpeeds =
      text("device-speeds",
           "Speed of each device, 1,1,0.5, to cut by; with --method=hetpipe, "
           "'1,1;0.5,0.5' has those of each worker",
           "", kNotEmpty | kUntilGraph);
  Count threads = count("threads", "Threads per device (default 1)", 1,
                        kRecorded | kUntilProgram);
  Text replicas = text(
      "replicas", "Replicas of every stage, or of each: 3,1; auto: planned",
      "1", kUntilTraining);
  std::string deviceModelText =
      "Plan for devices that need not be there: " + listDeviceModels() +
      ", or FILE.json; their rates, link and memory. h100*4,a100-80g*4 says "
      "how many of each, too";
  Text deviceModel =
      text("device-model", deviceModelText, "", kNotEmpty | kUntilTraining);
  Text flops = text(
      "flops", "Operations per second of a device in products, as 67TFLOPS", "",
      kNotEmpty | kUntilTraining);
  Text memoryBandwidth =
      text("memory-bandwidth", "Bytes per second of its memory, as 3.35TB/s",
           "", kNotEmpty | kUntilTraining);
  Text link = text("link", "Bytes per second between devices, as 450GB/s", "",
                   kNotEmpty | kUntilTraining);
  Text latency = text("latency", "Seconds before a transfer moves, as 5us", "",
                      kNotEmpty | kUntilTraining);
  Group scheduleGroup{*this, "Method and schedule"};
  // An option keeps a reference to its text.
  std::string methodText =
      "Training method: " + listMethods() +
      " (default: sync), with parameters: pipemare:anneal-steps=500";
  Text method = text("method", methodText, "sync", kOfTraining | kRecorded);
  std::string scheduleText =
      "Schedule: " + llvm::join(schedule::scheduleNames(), ", ") +
      " (default: 1f1b)";
  Text schedule =
      text("schedule", scheduleText, "1f1b", kOfTraining | kRecorded);
  Text scheduleFile =
      file("schedule-file",
           "Schedule from a CSV file, in the format of "
           "torch.distributed.pipelining",
           kNotEmpty | kUntilTraining, &CompileOptions::scheduleFile);
  Text emitSchedule =
      file("emit-schedule", "Write the schedule as such a file",
           kNotEmpty | kUntilSchedule, &CompileOptions::emitSchedule);
  Text emitScheduleFormat = text("emit-schedule-format",
                                 "What stands in it: compute_only (default) or "
                                 "compute_comms, with transfers",
                                 "compute_only");
  Group updateGroup{*this, "Updates"};
  std::string optimizerText = "Optimizer: " + listOptimizers() +
                              ", with parameters: sgd:lr=0.1,momentum=0.9";
  Text optimizer =
      text("optimizer", optimizerText, "sgd:lr=0.01", kOfTraining | kRecorded);
  Text average = text("ema",
                      "Keep moving averages of the weights with this decay, as "
                      "0.999, which are evaluated and saved",
                      "", kNotEmpty | kOfTraining | kRecorded);
  std::string rateText =
      "Learning-rate schedule: " + listRateSchedules() +
      ", with parameters: cosine:total-steps=1000,warmup-steps=50";
  Text rateSchedule =
      text("lr-schedule", rateText, "constant", kOfTraining | kRecorded);
  Text clip = text("clip-grad-norm", "Bound of the norm of the gradients", "",
                   kNotEmpty | kOfTraining | kRecorded);
  Text noDecay = text(
      "no-decay", "Parameters without weight decay, a regular expression", "",
      kNotEmpty | kOfTraining | kUntilImport, &CompileOptions::noDecayRegex);
  Texts rateScale = texts("lr-scale",
                          "Parameters whose learning rate has a factor: "
                          "REGEX:0.1 (repeatable)",
                          kOfTraining | kUntilImport, "regex:factor");
  Text batchNorm = text("batch-norm",
                        "Statistics of batch normalization in training: "
                        "train (those of the microbatch; default) or frozen",
                        "train", kOfTraining | kRecorded);
  Group memoryGroup{*this, "Kernels and memory"};
  Text convolution = text("convolution",
                          "Algorithms of convolutions: fastest (default; "
                          "Winograd's, too, which rounds more) or direct",
                          "fastest", kRecorded, &CompileOptions::convolution);
  Text prepack = text("prepack",
                      "Weights of convolutions and products that are reordered "
                      "once per update instead of once per microbatch: auto "
                      "(where it pays and fits; default), none or all",
                      "auto", kUntilSchedule, &CompileOptions::prepack);
  Text recompute =
      text("recompute",
           "What the backward computes again instead of storing "
           "it: none, full, auto (what --device-memory demands) "
           "or an expression of ONNX nodes",
           "none", kOfTraining | kUntilStages, &CompileOptions::recompute);
  Text deviceMemory = text("device-memory",
                           "Memory of a device, e.g. 16GiB; exit code 3 when "
                           "a stage does not fit",
                           "", kNotEmpty | kUntilProgram);
  Text gpuArch = text("gpu-arch",
                      "GPU architectures to compile for, with commas: sm_80, "
                      "sm_90, ..; or emulated, by the host",
                      "sm_90", kNotEmpty | kRecorded, &CompileOptions::gpuArch);
  Text libraryWorkspace =
      text("library-workspace", "Scratch of a library call on a GPU, at most",
           "32MiB", kNotEmpty | kRecorded | kUntilProgram);
  Text gpuKernels =
      text("gpu-kernels",
           "How loops become threads of a GPU: classes (the way that fits the "
           "loop), or plain (a thread per element, to find faults)",
           "classes", kRecorded | kUntilProgram);
  Text cudaPath = text("cuda-path", "Where the CUDA toolkit is",
                       "/usr/local/cuda", kNotEmpty, &CompileOptions::cudaPath);
  Text ptxas = text("ptxas",
                    "The assembler of PTX; none: the driver compiles it "
                    "(default: that of the toolkit, or in PATH)",
                    "", kNotEmpty, &CompileOptions::ptxas);
  Switch embedWeights =
      toggle("embed-weights",
             "Put the model with its weights into the executable, which then "
             "needs no other file",
             kUntilProgram, &CompileOptions::embedWeights);
  Switch linkStatically =
      toggle("static",
             "Link the C++ library into the executable, for machines that "
             "lack it",
             kNoTrait, &CompileOptions::linksStatically);
  Group reportGroup{*this, "Reports"};
  Switch report = toggle("report", "Print the plan", kUntilProgram,
                         &CompileOptions::report);
  Text reportJson =
      file("report-json", "Write the plan as JSON", kNotEmpty | kUntilProgram,
           &CompileOptions::reportJson);
  Switch profile = toggle("profile",
                          "Measure what every node costs, here and now, and "
                          "plan with that; kept for the next time",
                          kUntilGraph, &CompileOptions::profile);
  Switch listNodes = toggle("list-nodes",
                            "Print the nodes that --split-at can name, with "
                            "their costs, and end",
                            kUntilGraph, &CompileOptions::listNodes);
  Switch explain = toggle("explain", "Say why each cut stands where it does",
                          kUntilGraph, &CompileOptions::explain);
  Texts plugins =
      texts("load-pass-plugin",
            "A plug-in with schedules, methods, operators, targets or passes",
            kNoTrait, "file");

private:
  llvm::cl::OptionCategory &getGroup() {
    return const_cast<llvm::cl::OptionCategory &>(*groups.back());
  }
  llvm::StringRef addRow(llvm::StringRef name, unsigned traits, Field field) {
    rows.push_back({name, traits, field});
    return name;
  }
  Text text(llvm::StringRef name, llvm::StringRef help,
            const char *initial = "", unsigned traits = kNoTrait,
            Field field = {}) {
    return Text(addRow(name, traits, field), llvm::cl::desc(help),
                llvm::cl::init(initial), llvm::cl::cat(getGroup()));
  }
  Text file(llvm::StringRef name, llvm::StringRef help,
            unsigned traits = kNoTrait, Field field = {}) {
    return Text(addRow(name, traits, field), llvm::cl::desc(help),
                llvm::cl::value_desc("file"), llvm::cl::cat(getGroup()));
  }
  Texts texts(llvm::StringRef name, llvm::StringRef help, unsigned traits,
              const char *value = "string") {
    return Texts(addRow(name, traits, {}), llvm::cl::desc(help),
                 llvm::cl::value_desc(value), llvm::cl::cat(getGroup()));
  }
  Texts commaTexts(llvm::StringRef name, llvm::StringRef help,
                   unsigned traits) {
    return Texts(addRow(name, traits, {}), llvm::cl::desc(help),
                 llvm::cl::CommaSeparated, llvm::cl::cat(getGroup()));
  }
  Count count(llvm::StringRef name, llvm::StringRef help, int64_t initial = 0,
              unsigned traits = kNoTrait, Field field = {}) {
    return Count(addRow(name, traits, field), llvm::cl::desc(help),
                 llvm::cl::value_desc("n"), llvm::cl::init(initial),
                 llvm::cl::cat(getGroup()));
  }
  Switch toggle(llvm::StringRef name, llvm::StringRef help, unsigned traits,
                Field field = {}) {
    return Switch(addRow(name, traits, field), llvm::cl::desc(help),
                  llvm::cl::cat(getGroup()));
  }
};

} // namespace penstock

#endif // PENSTOCK_LIB_DRIVER_FLAGS_H
