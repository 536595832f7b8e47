//===- Metrics.h - What an evaluation gives ---------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A row for each metric that can be asked for: whether more of it is better,
// and how it is printed.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_RUN_METRICS_H
#define PENSTOCK_RUNTIME_RUN_METRICS_H

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::runtime {

struct MetricKind {
  std::string name;
  bool isMoreBetter;
  bool isPercentage;
  /// The number k of "top-k"; 0 for other metrics.
  int64_t classes = 0;
};

/// The metric of that name, or null. It stays where it is.
const MetricKind *findMetric(const std::string &name);
/// "loss, accuracy, perplexity, top-K, mae".
std::string listMetrics();

struct Metric {
  const MetricKind *kind;
  double value;

  /// A value that is not a number is never better.
  bool isBetterThan(double other) const {
    return kind->isMoreBetter ? value > other : value < other;
  }
};

/// "accuracy 97.22 %".
std::string metricText(const Metric &metric);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_RUN_METRICS_H
