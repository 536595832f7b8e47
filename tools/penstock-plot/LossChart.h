//===- LossChart.h - Losses over updates or time ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A line per log. Colors are those of Okabe and Ito, which people with any
// color vision tell apart; shapes and dashes tell the lines apart without
// colors.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TOOLS_PLOT_LOSSCHART_H
#define PENSTOCK_TOOLS_PLOT_LOSSCHART_H

#include "LossLog.h"
#include "penstock/Support/Svg.h"

namespace penstock {

struct ChartOptions {
  std::string title;
  double width = 720, height = 420;
  bool overSeconds = false, isLogarithmic = false;
  /// The thick line is the mean of so many updates.
  int64_t smooth = 1;
  /// Losses above it are not drawn; infinite without a bound.
  double mostLoss;
};

/// So many lines can be told apart.
constexpr size_t kMostLogs = 28;

/// Draws at most kMostLogs logs.
SvgPanel drawLossChart(llvm::ArrayRef<LossLog> logs,
                       const ChartOptions &options);

} // namespace penstock

#endif // PENSTOCK_TOOLS_PLOT_LOSSCHART_H
