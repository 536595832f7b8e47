//===- Options.h - What a run was asked for ---------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options of a run as values, and the checks that need no flag's spelling.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_RUN_OPTIONS_H
#define PENSTOCK_RUNTIME_RUN_OPTIONS_H

#include "runtime/io/DataSet.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace penstock::runtime {

/// A run that is longer than anyone waits for; its microbatches can be counted.
inline constexpr int64_t kMostUpdates = 1'000'000'000'000;

/// The kind of program that has an option.
enum class For { Both, Training, Inference };

struct Options {
  std::vector<std::pair<std::string, std::string>> data, evalData;
  std::string labels, evalLabels, log, save, trace, memory, outputs;
  std::string checkpointDir, resume, flightRecord;
  std::string summaryJson, saveBest, saveRaw, model, tune;
  std::string metricsAddress, tensorboard;
  std::optional<int64_t> metricsPort;
  std::optional<int64_t> steps, epochs, evalEvery, seed;
  std::optional<int64_t> checkpointEvery, checkpointKeep;
  bool isEvalEveryEpochs = false; // evalEvery counts passes, not updates
  bool evalOnly = false, evaluatesRaw = false;
  std::vector<std::string> metrics; // besides those that come by themselves
  std::string bestMetric = "loss";
  std::optional<int64_t> mostWithoutGain; // evaluations
  /// Seconds between two lines of progress; none: as it fits who reads them.
  std::optional<double> progressSeconds;
  bool hidesProgress = false, quiet = false;
  /// The updates that --trace records, from 1 on; none: all.
  std::optional<std::pair<int64_t, int64_t>> traceSteps;
  std::optional<double> rate, watchdog, timeLimit;
  std::vector<int> gpus; // by device of that kind, in turn; empty: all
  bool shuffle = false, verify = false;
  // Of several processes.
  std::string transport = "auto";
  std::optional<double> startTimeout, peerTimeout;
  bool isAlone = false, mixedCpus = false;
  /// From the folder of checkpoints, if it has any; weights alone.
  bool resumeIfAny = false, resumeWeights = false;
  /// A checkpoint that cannot be written ends the run.
  bool stopsOfCheckpoints = false;
  Last last = Last::Drop;
  bool help = false, version = false, plan = false;
  /// Values that are not finite are reported, and training goes on.
  bool warnsOfNotFinite = false;

  struct Given {
    const char *name;
    For kind;
  };
  /// The options that were set, each once.
  std::vector<Given> given;

  /// Those that were asked for: of evaluations, and to find the best of them.
  std::vector<std::string> allMetrics() const {
    std::vector<std::string> names = metrics;
    if (std::find(names.begin(), names.end(), bestMetric) == names.end())
      names.push_back(bestMetric);
    return names;
  }
  /// Returns true if an input comes through a pipe.
  bool readsStream() const {
    return labels == "-" ||
           std::any_of(data.begin(), data.end(),
                       [](const auto &file) { return file.second == "-"; });
  }
  bool evaluates() const { return !evalData.empty() || !evalLabels.empty(); }

  /// Fails where options contradict each other, whatever the data.
  Error checkTogether() const;
  /// Refuses to write where an input of the run, or the program itself, is.
  Error checkOverwrite(const char *flag, const std::string &output,
                       const std::vector<std::string> &inputs) const;
  /// Refuses options of the other kind of program.
  Error checkMode(bool infers) const;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_RUN_OPTIONS_H
