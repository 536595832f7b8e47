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

namespace penstock::runtime {

/// Follows a training. Called by the thread that trains.
class Progress {
public:
  virtual ~Progress() = default;

  /// A segment begins, of a run that makes `total` updates.
  virtual void begin(int64_t total) = 0;
  /// So many updates are done; `loss` is that of the last one.
  virtual void show(int64_t updates, double loss, double samplesPerSecond) = 0;
  /// The segment is over, or a message is about to be printed.
  virtual void clear() = 0;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_RUN_PROGRESS_H
