//===- ReportText.cpp - The plan, for people ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Report.h. No line is wider than kReportColumns.
//===----------------------------------------------------------------------===//

#include "penstock/Driver/Report.h"
#include "penstock/Methods/VersionTable.h"
#include "penstock/Support/Columns.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace penstock;

/// 1234567 as "1.18 MiB".
std::string penstock::formatBytes(int64_t bytes) {
  static constexpr llvm::StringLiteral kUnits[] = {"B", "KiB", "MiB", "GiB",
                                                   "TiB"};
  double value = static_cast<double>(bytes);
  unsigned unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit)
    value /= 1024;
  return unit == 0 ? llvm::formatv("{0} B", bytes).str()
                   : llvm::formatv("{0:F1} {1}", value, kUnits[unit]).str();
}

std::string penstock::formatNeed(int64_t bytes, int64_t limit) {
  return llvm::formatv("{0} ({1} bytes), {2} more", formatBytes(bytes), bytes,
                       formatBytes(bytes - limit));
}

std::string penstock::formatEnough(int64_t bytes) {
  static constexpr llvm::StringLiteral kUnits[] = {"B", "KiB", "MiB", "GiB",
                                                   "TiB"};
  constexpr int64_t kHundred = 100;
  unsigned unit = 0;
  while (unit + 1 < std::size(kUnits) && bytes >> (10 * (unit + 1)) > 0)
    ++unit;
  int64_t size = int64_t(1) << (10 * unit);
  // In hundredths, without a product that overflows.
  int64_t whole = bytes / size;
  int64_t part = llvm::divideCeilSigned((bytes % size) * kHundred, size);
  whole += part / kHundred;
  part %= kHundred;
  std::string text = std::to_string(whole);
  if (part)
    text += (part < 10 ? ".0" : ".") + std::to_string(part);
  return text + kUnits[unit].str();
}

void Report::printVersions(llvm::raw_ostream &stream) const {
  stream << llvm::formatv("without flushes: {0:F2} times the throughput of "
                          "the same pipeline with flushes\n",
                          speedupOverFlush);
  stream
      << "how old the weights are that a microbatch reads, in microbatches "
         "and in updates\n"
         "stage     forward         backward     versions   held      kept for "
         "it\n";
  for (auto [index, stage] : llvm::enumerate(stages)) {
    auto m = static_cast<double>(microbatches);
    stream << llvm::formatv(
        "{0,5} {1,7} {2,6:F2}  {3,9} {4,6:F2}  {5,9} {6,6} {7,16}\n", index,
        stage.lagForward, static_cast<double>(stage.lagForward) / m,
        stage.lagBackward, static_cast<double>(stage.lagBackward) / m,
        stage.versions, stage.versionsHeld, formatBytes(stage.bytes.versions));
  }
  for (auto [index, stage] : llvm::enumerate(stages))
    if (double factor = rateFactor(stage); factor != 1)
      stream << llvm::formatv("stage {0} begins with {1:F4} of the learning "
                              "rate\n",
                              index, factor);
}

void Report::printWaves(llvm::raw_ostream &stream) const {
  WaveTable table{waves.wave, waves.distance};
  stream << llvm::formatv(
      "{0} worker{1} of {2} microbatches per wave and update: at most {3} own "
      "updates are missing\n",
      waves.workers, waves.workers == 1 ? "" : "s", waves.wave,
      table.getLocalStaleness());
  if (waves.workers > 1)
    stream << llvm::formatv(
        "and {0} of each other worker; clocks are at most {1} wave{2} apart\n"
        "a wave is {3} to each other worker; {4} are kept for waves\n",
        table.getGlobalStaleness(), table.getClockDistance(),
        table.getClockDistance() == 1 ? "" : "s", formatBytes(waves.bytes),
        formatBytes(waves.keptBytes));
  for (auto [worker, own] : llvm::enumerate(waves.waits))
    stream << llvm::formatv(
        "worker {0}: a wave in {1:F3} ms, simulated; waits for others {2:F1} % "
        "of the time, in its line {3:F1} %\n",
        worker, 1e3 * own.waveSeconds, 100 * own.others, 100 * own.line);
}

/// Which program this is: one line, or two where one has no room.
std::string Report::describe() const {
  std::string text =
      infer ? llvm::formatv("{0} stages, inference, microbatches of {1} "
                            "samples",
                            stages.size(), microbatchSize)
                  .str()
            : llvm::formatv("{0} stages, {1}, {2}, {3} microbatches of {4} "
                            "samples per update, {5}",
                            stages.size(), method, schedule, microbatches,
                            microbatchSize, optimizer)
                  .str();
  std::string line = model + ": " + text;
  if (line.size() <= kReportColumns)
    return line;
  return cutBefore(model, kReportColumns - 1) + ":\n" + cutBehind("  " + text);
}

void Report::printStages(llvm::raw_ostream &stream) const {
  stream << "stage  device  nodes  Mflop/microbatch  staleness  versions"
            "       arena\n";
  for (auto [index, stage] : llvm::enumerate(stages))
    stream << llvm::formatv(
        "{0,5}  {1,6}  {2,5}  {3,16:F2}  {4,9:F2}  {5,8}{6,12}\n", index,
        stage.devices.empty() ? 0 : stage.devices.front(), stage.nodes,
        stage.flops / 1e6, stage.tau, stage.versions,
        formatBytes(stage.bytes.arena));
  stream << "arena:     weights   gradients   optimizer   residuals    channels"
            " temporaries\n";
  for (auto [index, stage] : llvm::enumerate(stages)) {
    const StageBytes &bytes = stage.bytes;
    stream << llvm::formatv("{0,5} ", index);
    for (int64_t size :
         {bytes.weights + bytes.versions, bytes.gradients, bytes.optimizer,
          bytes.residuals, bytes.channels, bytes.temporaries})
      stream << llvm::formatv("{0,12}", formatBytes(size));
    stream << "\n";
  }
}

void Report::print(llvm::raw_ostream &stream) const {
  stream << describe() << "\n";
  if (!infer) {
    stream << llvm::formatv("predicted bubble: {0:F1} %",
                            100 * predictedBubble);
    if (predictedBubble - steadyBubble >= 5e-4)
      stream << llvm::formatv(" where every update waits for all devices, "
                              "{0:F1} % where none does",
                              100 * steadyBubble);
    stream << "\n";
  }
  if (predictedSeconds > 0)
    stream << llvm::formatv("predicted time of an update, from measured costs: "
                            "{0:F3} ms\n",
                            1e3 * predictedSeconds);
  if (drainSeconds > 0)
    stream << llvm::formatv("predicted time of a drain, as for a checkpoint: "
                            "{0:F3} ms\n",
                            1e3 * drainSeconds);
  printStages(stream);
  printReplicaArenas(stream);
  if (speedupOverFlush > 1 || llvm::any_of(stages, [](const StageReport &s) {
        return s.lagForward > 0;
      }))
    printVersions(stream);
  if (waves.workers > 0)
    printWaves(stream);
  for (auto [index, stage] : llvm::enumerate(stages))
    if (stage.bytes.tied)
      stream << llvm::formatv("stage {0}: {1} of these for parameters that "
                              "several stages read\n",
                              index, formatBytes(stage.bytes.tied));
  if (clipGradNorm > 0)
    stream << llvm::formatv("gradients clipped {0}, to a norm of {1}\n",
                            method.isAsynchronous() ? "per stage"
                                                    : "over all stages",
                            clipGradNorm);
  if (!timeline.empty())
    stream << "timeline of "
           << (timelineUpdates == 1
                   ? std::string("one update")
                   : std::to_string(timelineUpdates) + " updates")
           << ", if every stage takes as long:\n";
  for (auto [device, line] : llvm::enumerate(timeline))
    stream << cutBehind(llvm::formatv("{0,5}: {1}", device, line).str())
           << "\n";
  if (infer)
    return;
  if (checkpointBytes)
    stream << llvm::formatv("memory of the host for checkpoints: {0}\n",
                            formatBytes(checkpointBytes));
  for (auto [index, stage] : llvm::enumerate(stages)) {
    std::string title = "stage " + std::to_string(index) + " trains";
    stream << (stage.parameters.empty() ? title + ": nothing"
                                        : listNames(title, stage.parameters))
           << "\n";
  }
  std::vector<std::string> held;
  for (const std::string &name : frozen)
    if (!llvm::is_contained(statistics, name) &&
        !llvm::is_contained(unreached, name))
      held.push_back(name);
  auto list = [&](llvm::StringRef title, llvm::ArrayRef<std::string> names) {
    if (!names.empty())
      stream << listNames(title, names) << "\n";
  };
  list("statistics", statistics);
  list("not reached by the loss", unreached);
  list("not trained", held);
}
