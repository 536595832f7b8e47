//===- Metrics.cpp - What an evaluation gives -----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of metrics.
//===----------------------------------------------------------------------===//

#include "runtime/run/Metrics.h"

#include "runtime/support/Error.h"

#include <charconv>
#include <list>
#include <string_view>

using namespace penstock::runtime;

static constexpr std::string_view kTop = "top-";

/// Kinds of classes are added when they are asked for; none ever moves.
static std::list<MetricKind> &getKinds() {
  static std::list<MetricKind> kinds = {
      {"loss", false, false},
      {"accuracy", true, true},
      {"perplexity", false, false},
      {"mae", false, false},
  };
  return kinds;
}

const MetricKind *penstock::runtime::findMetric(const std::string &name) {
  for (const MetricKind &kind : getKinds())
    if (name == kind.name)
      return &kind;
  int64_t classes = 0;
  const char *end = name.data() + name.size();
  if (!name.starts_with(kTop) || name.size() == kTop.size() ||
      name[kTop.size()] == '0')
    return nullptr;
  auto [stop, status] =
      std::from_chars(name.data() + kTop.size(), end, classes);
  if (status != std::errc() || stop != end || classes < 1)
    return nullptr;
  getKinds().push_back({name, true, true, classes});
  return &getKinds().back();
}

std::string penstock::runtime::listMetrics() {
  return "loss, accuracy, perplexity, top-K, mae";
}

std::string penstock::runtime::metricText(const Metric &metric) {
  const char *name = metric.kind->name.c_str();
  if (metric.kind->isPercentage)
    return format("%s %.2f %%", name, 100 * metric.value);
  return format("%s %.6f", name, metric.value);
}
