//===- MetricTable.h - What a run tells a monitor ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of all metrics, and their values as text in the format of
// Prometheus, version 0.0.4. docs/metrics.md is made from the table.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_OBSERVE_METRICTABLE_H
#define PENSTOCK_RUNTIME_OBSERVE_METRICTABLE_H

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace penstock::runtime {

enum class Measure : uint32_t {
  Step,
  Loss,
  LearningRate,
  Samples,
  SamplesPerSecond,
  Evaluation,
  DeviceBusy,
  DeviceWait,
  TransferBytes,
  CheckpointStep,
  CheckpointAge,
  CheckpointSeconds,
  RankSilence,
  MemoryBytes
};

struct MeasureKind {
  Measure measure;
  const char *name; ///< without "penstock_"
  const char *type; ///< "gauge" or "counter"
  const char *labels;
  const char *help;
};
/// In the order of `Measure`.
std::span<const MeasureKind> listMeasures();

/// The values at one time. Those of one measure come one after the other.
class MetricText {
public:
  using Labels = std::vector<std::pair<const char *, std::string>>;
  void add(Measure measure, double value, const Labels &labels = {});
  std::string take() { return std::exchange(text, ""); }

private:
  std::string text;
  const MeasureKind *last = nullptr;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_OBSERVE_METRICTABLE_H
