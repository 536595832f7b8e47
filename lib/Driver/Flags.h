//===- Flags.h - The flags of penstockc -------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Their names, what --help says of them, and their defaults.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_DRIVER_FLAGS_H
#define PENSTOCK_LIB_DRIVER_FLAGS_H

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
  Text output{"o", llvm::cl::desc("Output file"), llvm::cl::value_desc("file"),
              llvm::cl::cat(category)};
  Text emit{
      "emit",
      llvm::cl::desc("What to write: onnx, graph, stages, training, schedule, "
                     "program, llvm, obj or exe"),
      llvm::cl::init("exe"), llvm::cl::cat(category)};
  Text mode{"mode", llvm::cl::desc("What to compile: train or infer"),
            llvm::cl::init("train"), llvm::cl::cat(category)};
  Text target{"target", llvm::cl::desc("What to compile for: cpu"),
              llvm::cl::init("cpu"), llvm::cl::cat(category)};
  Text march{"march", llvm::cl::desc("CPU to compile for (default: native)"),
             llvm::cl::init("native"), llvm::cl::cat(category)};
  Text precision{"precision", llvm::cl::desc("Type of the arithmetic: f32"),
                 llvm::cl::init("f32"), llvm::cl::cat(category)};
  Texts dims{
      "dim",
      llvm::cl::desc("Bind a symbolic dimension: NAME=N or INPUT:AXIS=N"),
      llvm::cl::value_desc("name=n"), llvm::cl::cat(category)};
  Count microbatchSize{"microbatch-size",
                       llvm::cl::desc("Samples per microbatch; binds the batch "
                                      "dimension"),
                       llvm::cl::init(0), llvm::cl::cat(category)};
  Count microbatches{
      "microbatches",
      llvm::cl::desc("Microbatches per weight update (default 1)"),
      llvm::cl::init(1), llvm::cl::cat(category)};
  Text loss{
      "loss",
      llvm::cl::desc("Loss: softmax-cross-entropy, bce-with-logits, mse or "
                     "output (default: the model's own scalar output)"),
      llvm::cl::init("output"), llvm::cl::cat(category)};
  Text lossInput{"loss-input",
                 llvm::cl::desc("The output that enters the loss"),
                 llvm::cl::cat(category)};
  Count classAxis{"class-axis",
                  llvm::cl::desc("Axis of the classes (default: the last)"),
                  llvm::cl::init(-1), llvm::cl::cat(category)};
  Text ignoreLabel{"ignore-label",
                   llvm::cl::desc("Labels of this value do not count"),
                   llvm::cl::cat(category)};
  Text train{"train",
             llvm::cl::desc("Initialisers to train, a regular expression"),
             llvm::cl::cat(category)};
  Text freeze{"freeze",
              llvm::cl::desc("Initialisers not to train, a regular expression"),
              llvm::cl::cat(category)};
  Texts tie{"tie", llvm::cl::desc("Train two equal initialisers as one: A=B"),
            llvm::cl::cat(category)};
  Text stages{
      "stages",
      llvm::cl::desc("Number of stages, or auto: one per device, cut where "
                     "they fit in --device-memory"),
      llvm::cl::cat(category)};
  Texts splitAt{"split-at", llvm::cl::desc("ONNX nodes or values to cut after"),
                llvm::cl::CommaSeparated, llvm::cl::cat(category)};
  Count devices{"devices",
                llvm::cl::desc("Number of devices (default: one per stage)"),
                llvm::cl::init(0), llvm::cl::cat(category)};
  Count threads{"threads", llvm::cl::desc("Threads per device (default 1)"),
                llvm::cl::init(1), llvm::cl::cat(category)};
  Text replicas{
      "replicas",
      llvm::cl::desc("Replicas of every stage, or of each: 3,1; auto: planned"),
      llvm::cl::init("1"), llvm::cl::cat(category)};
  Text method{"method",
              llvm::cl::desc("Training method: sync, naive, pipedream, 2bw, "
                             "pipemare, spectrain, xpipe or pipeoptim, with "
                             "parameters: pipemare:anneal-steps=500"),
              llvm::cl::init("sync"), llvm::cl::cat(category)};
  // An option keeps a reference to its text.
  std::string scheduleText =
      "Schedule: " + llvm::join(schedule::scheduleNames(), ", ") +
      " (default: 1f1b)";
  Text schedule{"schedule", llvm::cl::desc(scheduleText),
                llvm::cl::init("1f1b"), llvm::cl::cat(category)};
  Text scheduleFile{"schedule-file",
                    llvm::cl::desc("Schedule from a CSV file, in the format of "
                                   "torch.distributed.pipelining"),
                    llvm::cl::value_desc("file"), llvm::cl::cat(category)};
  Text emitSchedule{"emit-schedule",
                    llvm::cl::desc("Write the schedule as such a file"),
                    llvm::cl::value_desc("file"), llvm::cl::cat(category)};
  Text emitScheduleFormat{
      "emit-schedule-format",
      llvm::cl::desc("What stands in it: compute_only (default) or "
                     "compute_comms, with transfers"),
      llvm::cl::init("compute_only"), llvm::cl::cat(category)};
  Text optimizer{
      "optimizer",
      llvm::cl::desc("Optimizer: sgd, adam or adamw, with parameters: "
                     "sgd:lr=0.1,momentum=0.9"),
      llvm::cl::init("sgd:lr=0.01"), llvm::cl::cat(category)};
  Text rateSchedule{
      "lr-schedule",
      llvm::cl::desc("Course of the learning rate: constant, linear, "
                     "cosine, step or poly, with parameters: "
                     "cosine:total-steps=1000,warmup-steps=50"),
      llvm::cl::init("constant"), llvm::cl::cat(category)};
  Text clip{"clip-grad-norm",
            llvm::cl::desc("Bound of the norm of the gradients"),
            llvm::cl::cat(category)};
  Text batchNorm{
      "batch-norm",
      llvm::cl::desc("Statistics of batch normalisation in training: "
                     "train (those of the microbatch; default) or frozen"),
      llvm::cl::init("train"), llvm::cl::cat(category)};
  Text convolution{
      "convolution",
      llvm::cl::desc("Algorithms of convolutions: fastest (default; "
                     "Winograd's, too, which rounds more) or direct"),
      llvm::cl::init("fastest"), llvm::cl::cat(category)};
  Text recompute{
      "recompute",
      llvm::cl::desc("What the backward computes again instead of storing "
                     "it: none, full, auto (what --device-memory demands) "
                     "or an expression of ONNX nodes"),
      llvm::cl::init("none"), llvm::cl::cat(category)};
  Text deviceMemory{
      "device-memory",
      llvm::cl::desc("Memory of a device, e.g. 16GiB; exit code 3 when "
                     "a stage does not fit"),
      llvm::cl::cat(category)};
  Text gpuArch{"gpu-arch",
               llvm::cl::desc("GPU architecture, for --target=cuda"),
               llvm::cl::cat(category)};
  Switch report{"report", llvm::cl::desc("Print the plan"),
                llvm::cl::cat(category)};
  Text reportJson{"report-json", llvm::cl::desc("Write the plan as JSON"),
                  llvm::cl::value_desc("file"), llvm::cl::cat(category)};
  Switch profile{
      "profile",
      llvm::cl::desc("Measure what every node costs, here and now, and "
                     "plan with that; kept for the next time"),
      llvm::cl::cat(category)};
  Switch explain{"explain",
                 llvm::cl::desc("Say why each cut stands where it does"),
                 llvm::cl::cat(category)};
};

} // namespace penstock

#endif // PENSTOCK_LIB_DRIVER_FLAGS_H
