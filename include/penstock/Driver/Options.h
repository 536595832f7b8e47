//===- Options.h - The command line of penstockc ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the user asks for, checked as far as the words alone tell.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DRIVER_OPTIONS_H
#define PENSTOCK_DRIVER_OPTIONS_H

#include "penstock/Cost/AnalyticCost.h"
#include "penstock/Levels/Level.h"
#include "penstock/Methods/MethodSpec.h"
#include "penstock/Optimizers/OptimizerSpec.h"
#include "penstock/Optimizers/RateSchedule.h"
#include "penstock/Schedule/Generators.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace penstock {

/// Where the compiler stops: at a level of the IR, at the text of the kernels
/// that devices launch, or at a file of machine code.
enum class Product { Ir, KernelCode, Object, Executable };

/// Per update: a schedule is proved by executing it.
constexpr int64_t kMostMicrobatches = 65536;

/// Samples of a microbatch, at most: tensors of more have no use, and lists of
/// candidate shapes no end.
constexpr int64_t kMostSamples = 1LL << 31;

struct CompileOptions {
  std::string input;
  std::string output;

  Product product = Product::Executable;
  Level level = Level::Llvm; ///< Of Product::Ir.
  std::string march = "native";
  std::string target = "cpu"; ///< Of all devices: cpu or cuda.
  /// Kinds of the devices, one by one; empty: all are alike.
  std::vector<std::string> deviceTargets;
  const std::string &getFirstTarget() const {
    return deviceTargets.empty() ? target : deviceTargets.front();
  }
  std::string gpuArch = "sm_90";         ///< Or several, with commas.
  std::string precision = "f32";         ///< Or bf16, or tf32 on GPUs.
  int64_t libraryWorkspace = 32LL << 20; ///< Bytes.
  bool plainKernels = false;             ///< On GPUs, a thread per element.
  std::string cudaPath, ptxas;

  std::map<std::string, int64_t> dims;
  std::optional<int64_t> microbatchSize;
  int64_t microbatches = 1;
  int64_t globalBatch = 0; ///< Samples of an update; 0: not said.
  /// --microbatch-size=auto: of the divisors of the batch, the fastest.
  bool choosesMicrobatches = false;

  /// Forward only: every output is written, nothing trains.
  bool infer = false;
  std::string loss = "output";
  std::string lossInput;
  int64_t classAxis = -1;
  std::string ignoreLabel;
  /// Replaces the rates of the target when stages are cut and updates simulated
  /// (--device-model and single rates); none: the target's own.
  std::optional<MachineRates> deviceRates;
  /// Metrics that evaluations add up: top-K, mae.
  std::vector<std::string> metrics;
  /// For softmax-cross-entropy: the part of the target that all classes share,
  /// and the weight of each class (empty: all equal), from this file.
  double labelSmoothing = 0;
  std::vector<double> classWeights;
  std::string classWeightsFile;
  std::string trainRegex;
  std::string freezeRegex;
  /// Parameters without weight decay, and factors of learning rates.
  std::string noDecayRegex;
  std::vector<std::pair<std::string, double>> rateScales;
  std::vector<std::pair<std::string, std::string>> ties;

  bool allowFolded = false; ///< Batch norms that an exporter folded.

  int64_t stages = 0; ///< 0: one per device, or as many as the cuts make.
  std::vector<std::string> splitAt;
  /// Those of workers behind the first, where each is cut for itself.
  std::vector<std::vector<std::string>> workerCuts;
  /// Speeds of the devices of a line, or of a line per worker; empty: they are
  /// equal.
  std::vector<std::vector<double>> deviceSpeeds;
  bool choosesReplicas = false; ///< --replicas=auto: with the stages.
  bool choosesStages = false;   ///< --stages=auto: where they fit in memory.
  int64_t devices = 0; ///< Of all replicas; 0: one per stage and replica.
  /// One number for all stages, or one per stage; none: no replicas.
  std::vector<int64_t> replicas;
  /// How many devices there would be with one replica each; 0: one per stage.
  int64_t getPlaces() const {
    return replicas.empty()       ? devices
           : replicas.size() == 1 ? devices / replicas.front()
                                  : int64_t(replicas.size());
  }
  int64_t threads = 1;
  MethodSpec method;
  void setSchedule(const schedule::ScheduleSpec &spec) {
    schedule = spec.getText();
    generator = spec;
  }
  std::string schedule = "1f1b";    ///< `file` if it is a table.
  schedule::ScheduleSpec generator; ///< The schedule, unless it is a table.
  std::string scheduleFile;         ///< A table, in place of a schedule's name.
  std::string emitSchedule;         ///< Where to write such a table.
  bool emitTransfers = false;       ///< Into that table, too.
  OptimizerSpec optimizer;
  pipeline::BatchNorm batchNorm = pipeline::BatchNorm::Train;
  std::string convolution = "fastest"; ///< Or direct.
  /// Which weights are reordered once per update: auto, none or all.
  std::string prepack = "auto";
  RateSchedule rateSchedule;
  double clipGradNorm = 0;             ///< 0: not clipped.
  std::optional<int64_t> deviceMemory; ///< Bytes.
  /// none, full, auto, or an expression of ONNX nodes.
  std::string recompute = "none";
  /// For auto: bytes per microbatch that a stage may store; -1: no limit.
  std::vector<int64_t> recomputeBudgets;
  /// Which of the flags were said that a printed program may contradict.
  std::set<std::string> given;
  /// The flags that were said and decide nothing beyond a level of the IR;
  /// none: only on import.
  std::vector<std::pair<std::string, std::optional<Level>>> lastLevels;
  /// The flags that were said and are of training, as "--loss".
  std::vector<std::string> ofTraining;

  bool embedWeights = false;    ///< Into the executable.
  bool linksStatically = false; ///< What can be.
  bool listNodes = false;       ///< In place of compiling.
  bool report = false;
  std::string reportJson;
  bool explain = false;
  bool profile = false; ///< Costs are measured.
};

/// Parses argv; exits after --help and --version. On a mistake it prints one
/// line to `errors`, "penstockc: ...", and returns false.
bool parseCommandLine(int argc, const char *const *argv,
                      CompileOptions &options, llvm::raw_ostream &errors);

/// Bytes of a size such as 16GiB, 512MiB, 4096 or 2GB; nothing if it is none.
std::optional<int64_t> parseBytes(llvm::StringRef text);

} // namespace penstock

#endif // PENSTOCK_DRIVER_OPTIONS_H
