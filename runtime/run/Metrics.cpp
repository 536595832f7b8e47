//===- Metrics.cpp - What an evaluation gives -----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of metrics.
//===----------------------------------------------------------------------===//

#include "runtime/run/Metrics.h"

#include "runtime/support/Error.h"

using namespace penstock::runtime;

static constexpr MetricKind kMetrics[] = {
    {"loss", false, false},
    {"accuracy", true, true},
    {"perplexity", false, false},
};

const MetricKind *penstock::runtime::findMetric(const std::string &name) {
  for (const MetricKind &kind : kMetrics)
    if (name == kind.name)
      return &kind;
  return nullptr;
}

std::string penstock::runtime::listMetrics() {
  std::string text;
  for (const MetricKind &kind : kMetrics)
    text += (text.empty() ? "" : ", ") + std::string(kind.name);
  return text;
}

std::string penstock::runtime::metricText(const Metric &metric) {
  if (metric.kind->isPercentage)
    return format("%s %.2f %%", metric.kind->name, 100 * metric.value);
  return format("%s %.6f", metric.kind->name, metric.value);
}
