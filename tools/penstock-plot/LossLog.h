//===- LossLog.h - Losses that a run has logged -----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads what programs write with --log.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TOOLS_PLOT_LOSSLOG_H
#define PENSTOCK_TOOLS_PLOT_LOSSLOG_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace penstock {

struct LossLog {
  struct Point {
    double update, seconds;
    double loss; ///< NaN where it was no number
  };

  std::string name;
  std::vector<Point> updates, evaluations;
};

/// Reads a log, also of a run that goes on: a last line without an end is left
/// out. Seconds go on where a run was resumed. On failure returns nothing, and
/// sets `error` to what is wrong, with the file and the line.
std::optional<LossLog> readLossLog(llvm::StringRef path, std::string &error);

} // namespace penstock

#endif // PENSTOCK_TOOLS_PLOT_LOSSLOG_H
