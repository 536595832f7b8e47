//===- Progress.h - Who follows a training ----------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A run tells how far it is; how that is shown is not its business.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_RUN_PROGRESS_H
#define PENSTOCK_RUNTIME_RUN_PROGRESS_H

#include <cstdint>
#include <optional>

namespace penstock::runtime {

/// Follows a training. Called by the thread that trains.
class Progress {
public:
  virtual ~Progress() = default;

  struct Plan {
    int64_t updates;       // of the whole run
    int64_t updateSamples; // of each
    int64_t passUpdates;   // of a pass over the data
    /// Seconds between two reports; none: as it fits whoever follows.
    std::optional<double> seconds;
    bool isOff; // no reports
  };
  /// A segment begins.
  virtual void begin(const Plan &plan) = 0;
  /// So many updates are done; `loss` is that of the last one.
  virtual void show(int64_t updates, double loss, double samplesPerSecond) = 0;
  /// A message is about to be printed, or something failed.
  virtual void clear() = 0;
  /// The training is over.
  virtual void finish() = 0;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_RUN_PROGRESS_H
