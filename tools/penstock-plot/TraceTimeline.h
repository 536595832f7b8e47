//===- TraceTimeline.h - The timeline of a run ------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads what programs write with --trace, and penstock-schedule too.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TOOLS_PLOT_TRACETIMELINE_H
#define PENSTOCK_TOOLS_PLOT_TRACETIMELINE_H

#include "penstock/Schedule/TimelinePicture.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>

namespace penstock {

/// Updates from `first` to `last`, counted from 1.
struct UpdateRange {
  int64_t first, last;
};

/// Returns the actions while these updates were computed; by default the last
/// two of the trace. The title says the share of time in which devices were
/// idle. On failure returns nothing, and sets `error` to what is wrong, with
/// the file.
std::optional<schedule::TimelinePicture>
readTraceTimeline(llvm::StringRef path, std::optional<UpdateRange> updates,
                  std::string &error);

} // namespace penstock

#endif // PENSTOCK_TOOLS_PLOT_TRACETIMELINE_H
