//===- Lifetimes.h - When a device needs its messages -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A message takes its buffer from when it begins to be received or is computed
// until it was last read, or the device has waited for its sending.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_MEMORY_LIFETIMES_H
#define PENSTOCK_PASSES_PROGRAM_MEMORY_LIFETIMES_H

#include "passes/Program/Devices/DeviceTrace.h"

namespace penstock {

/// A field of a message, alive from one event of the trace to another, both
/// included.
struct MessageLife {
  CellRef cell;
  size_t first = 0, last = 0;
};

/// A segment of a device that is long enough for its steady state.
struct DeviceLives {
  std::vector<TraceEvent> trace;
  /// In the order of their beginnings.
  std::vector<MessageLife> messages;
  int64_t microbatches = 1;

  /// Returns true if message n has the same place in a ring of this size in
  /// every update, as far as messages are counted by microbatches.
  bool isSteady(int64_t ring) const { return microbatches % ring == 0; }
};

mlir::FailureOr<DeviceLives> getLifetimes(mlir::func::FuncOp function,
                                          pipeline::ScheduleOp schedule,
                                          mlir::SymbolTableCollection &tables);

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_MEMORY_LIFETIMES_H
