//===- MetricTable.cpp - What a run tells a monitor -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names follow the conventions of Prometheus: base units, "_total" for
// counters.
//===----------------------------------------------------------------------===//

#include "runtime/observe/MetricTable.h"

#include "runtime/support/Error.h"

#include <cmath>

using namespace penstock::runtime;

static constexpr MeasureKind kMeasures[] = {
    {Measure::Step, "step", "gauge", "", "updates that are done"},
    {Measure::Loss, "loss", "gauge", "",
     "the loss of the last update, the mean of its microbatches"},
    {Measure::LearningRate, "learning_rate", "gauge", "",
     "that of the last update"},
    {Measure::Samples, "samples_total", "counter", "",
     "samples that this run has trained on"},
    {Measure::SamplesPerSecond, "samples_per_second", "gauge", "",
     "the rate since the values before"},
    {Measure::Evaluation, "evaluation", "gauge", "metric",
     "the last evaluation, by metric"},
    {Measure::DeviceBusy, "device_busy_ratio", "gauge", "device, stages, rank",
     "the share of the time since the values before in which a device did not "
     "wait for others"},
    {Measure::DeviceWait, "device_wait_seconds_total", "counter",
     "device, stages, rank", "the time that a device has waited for others"},
    {Measure::TransferBytes, "transfer_bytes_total", "counter",
     "channel, from, to",
     "messages that have moved between processes, as of the last beats"},
    {Measure::CheckpointStep, "checkpoint_step", "gauge", "",
     "the update of the last checkpoint that this run began"},
    {Measure::CheckpointAge, "checkpoint_age_seconds", "gauge", "",
     "the time since that one began"},
    {Measure::CheckpointSeconds, "checkpoint_pause_seconds_total", "counter",
     "", "the time in which training stood still for checkpoints"},
    {Measure::RankSilence, "rank_last_beat_seconds", "gauge", "rank, host",
     "the time since a sign of life of a process"},
    {Measure::MemoryBytes, "memory_bytes", "gauge", "kind",
     "memory of all processes: arenas, buffers of sums between processes, and "
     "what checkpoints wait in"},
};

std::span<const MeasureKind> penstock::runtime::listMeasures() {
  return kMeasures;
}

/// A label, as the format has it.
static std::string quote(const std::string &value) {
  std::string text = "\"";
  for (char c : value)
    text += c == '\n'               ? std::string("\\n")
            : c == '"' || c == '\\' ? std::string("\\") + c
                                    : std::string(1, c);
  return text + '"';
}

void MetricText::add(Measure measure, double value, const Labels &labels) {
  const MeasureKind &kind = kMeasures[uint32_t(measure)];
  std::string name = std::string("penstock_") + kind.name;
  if (&kind != last)
    text += "# HELP " + name + " " + kind.help + "\n# TYPE " + name + " " +
            kind.type + "\n";
  last = &kind;
  text += name;
  const char *separator = "{";
  for (const auto &[key, word] : labels) {
    text += std::string(separator) + key + "=" + quote(word);
    separator = ",";
  }
  text += labels.empty() ? " " : "} ";
  text += std::isnan(value)   ? "NaN"
          : std::isinf(value) ? (value > 0 ? "+Inf" : "-Inf")
                              : format("%.17g", value);
  text += "\n";
}
