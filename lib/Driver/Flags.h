//===- Flags.h - The flags of penstockc -------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Their names, what --help says of them, and their defaults.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_DRIVER_FLAGS_H
#define PENSTOCK_LIB_DRIVER_FLAGS_H

#include "penstock/Methods/MethodSpec.h"
#include "penstock/Optimizers/OptimizerSpec.h"
#include "penstock/Optimizers/RateSchedule.h"
#include "penstock/Schedule/Generators.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"

#include <string>

namespace penstock {

/// All flags, registered for the life of the object.
struct Flags {
  using Text = llvm::cl::opt<std::string>;
  using Texts = llvm::cl::list<std::string>;
  using Count = llvm::cl::opt<int64_t>;
  using Switch = llvm::cl::opt<bool>;

  /// Like the flags, after the parser's reset, which would forget it.
  llvm::cl::OptionCategory category{"penstockc options"};

  Texts inputs{llvm::cl::Positional,
               llvm::cl::desc("MODEL.onnx|MODEL.onnxtext|PROGRAM.mlir"),
               llvm::cl::cat(category)};
  Text output = file("o", "Output file");
  Text emit = text("emit",
                   "What to write: onnx, graph, stages, training, schedule, "
                   "program, llvm, obj or exe",
                   "exe");
  Text mode = text("mode", "What to compile: train or infer", "train");
  Text target = text("target", "What to compile for: cpu", "cpu");
  Text march = text("march", "CPU to compile for (default: native)", "native");
  Text precision = text("precision", "Type of the arithmetic: f32", "f32");
  Texts dims = texts("dim", "Bind a symbolic dimension: NAME=N or INPUT:AXIS=N",
                     "name=n");
  Text microbatchSize =
      text("microbatch-size", "Samples per microbatch, which binds the batch "
                              "dimension; auto: planned, with --global-batch");
  Count microbatches =
      count("microbatches", "Microbatches per weight update (default 1)", 1);
  Count globalBatch =
      count("global-batch", "Samples per weight update, in place of one of "
                            "--microbatch-size and --microbatches");
  Text loss = text("loss",
                   "Loss: softmax-cross-entropy, bce-with-logits, mse or "
                   "output (default: the model's own scalar output)",
                   "output");
  Text lossInput = text("loss-input", "The output that enters the loss");
  Count classAxis =
      count("class-axis", "Axis of the classes (default: the last)", -1);
  Text ignoreLabel = text("ignore-label", "Labels of this value do not count");
  Text train = text("train", "Initialisers to train, a regular expression");
  Text freeze =
      text("freeze", "Initialisers not to train, a regular expression");
  Texts tie = texts("tie", "Train two equal initialisers as one: A=B");
  Text stages =
      text("stages", "Number of stages, or auto: one per device, cut where "
                     "they fit in --device-memory");
  Texts splitAt = commaTexts("split-at", "ONNX nodes or values to cut after");
  Count devices =
      count("devices", "Number of devices (default: one per stage)");
  Count threads = count("threads", "Threads per device (default 1)", 1);
  Text replicas =
      text("replicas",
           "Replicas of every stage, or of each: 3,1; auto: planned", "1");
  // An option keeps a reference to its text.
  std::string methodText =
      "Training method: " + listMethods() +
      " (default: sync), with parameters: pipemare:anneal-steps=500";
  Text method = text("method", methodText, "sync");
  std::string scheduleText =
      "Schedule: " + llvm::join(schedule::scheduleNames(), ", ") +
      " (default: 1f1b)";
  Text schedule = text("schedule", scheduleText, "1f1b");
  Text scheduleFile =
      file("schedule-file", "Schedule from a CSV file, in the format of "
                            "torch.distributed.pipelining");
  Text emitSchedule =
      file("emit-schedule", "Write the schedule as such a file");
  Text emitScheduleFormat = text("emit-schedule-format",
                                 "What stands in it: compute_only (default) or "
                                 "compute_comms, with transfers",
                                 "compute_only");
  Text optimizer = text("optimizer",
                        "Optimizer: sgd, adam or adamw, with parameters: "
                        "sgd:lr=0.1,momentum=0.9",
                        "sgd:lr=0.01");
  Text rateSchedule = text("lr-schedule",
                           "Course of the learning rate: constant, linear, "
                           "cosine, step or poly, with parameters: "
                           "cosine:total-steps=1000,warmup-steps=50",
                           "constant");
  Text clip = text("clip-grad-norm", "Bound of the norm of the gradients");
  Text batchNorm = text("batch-norm",
                        "Statistics of batch normalisation in training: "
                        "train (those of the microbatch; default) or frozen",
                        "train");
  Text convolution = text("convolution",
                          "Algorithms of convolutions: fastest (default; "
                          "Winograd's, too, which rounds more) or direct",
                          "fastest");
  Text prepack = text("prepack",
                      "Weights of convolutions and products that are reordered "
                      "once per update instead of once per microbatch: auto "
                      "(where it pays and fits; default), none or all",
                      "auto");
  Text recompute = text("recompute",
                        "What the backward computes again instead of storing "
                        "it: none, full, auto (what --device-memory demands) "
                        "or an expression of ONNX nodes",
                        "none");
  Text deviceMemory =
      text("device-memory", "Memory of a device, e.g. 16GiB; exit code 3 when "
                            "a stage does not fit");
  Text gpuArch = text("gpu-arch", "GPU architecture, for --target=cuda");
  Switch report = toggle("report", "Print the plan");
  Text reportJson = file("report-json", "Write the plan as JSON");
  Switch profile =
      toggle("profile", "Measure what every node costs, here and now, and "
                        "plan with that; kept for the next time");
  Switch explain = toggle("explain", "Say why each cut stands where it does");

private:
  Text text(llvm::StringRef name, llvm::StringRef help,
            const char *initial = "") {
    return Text(name, llvm::cl::desc(help), llvm::cl::init(initial),
                llvm::cl::cat(category));
  }
  Text file(llvm::StringRef name, llvm::StringRef help) {
    return Text(name, llvm::cl::desc(help), llvm::cl::value_desc("file"),
                llvm::cl::cat(category));
  }
  Texts texts(llvm::StringRef name, llvm::StringRef help,
              const char *value = "string") {
    return Texts(name, llvm::cl::desc(help), llvm::cl::value_desc(value),
                 llvm::cl::cat(category));
  }
  Texts commaTexts(llvm::StringRef name, llvm::StringRef help) {
    return Texts(name, llvm::cl::desc(help), llvm::cl::CommaSeparated,
                 llvm::cl::cat(category));
  }
  Count count(llvm::StringRef name, llvm::StringRef help, int64_t initial = 0) {
    return Count(name, llvm::cl::desc(help), llvm::cl::init(initial),
                 llvm::cl::cat(category));
  }
  Switch toggle(llvm::StringRef name, llvm::StringRef help) {
    return Switch(name, llvm::cl::desc(help), llvm::cl::cat(category));
  }
};

} // namespace penstock

#endif // PENSTOCK_LIB_DRIVER_FLAGS_H
