//===- DeviceTrace.h - What a device function does --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Interprets the index code of a device function, data left out: what remains
// is a list of transfers, waits, runs and the buffers that kernels touch.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_DEVICES_DEVICETRACE_H
#define PENSTOCK_PASSES_PROGRAM_DEVICES_DEVICETRACE_H

#include "dialects/Pipeline/Replicas.h"

namespace penstock {

/// A buffer of a ring: message or version `number` of a field of a symbol.
struct CellRef {
  // Traces of many microbatches are long: small numbers are kept small.
  mlir::StringAttr symbol;
  int64_t number = 0;
  int64_t ring = 1;
  int32_t field = 0;

  /// Of a gradient that is kept in parts; then `number` is the update's.
  std::optional<int32_t> part = {};

  int64_t getIndex() const { return part ? *part : number % ring; }
};

/// A buffer in a call.
struct Access {
  CellRef cell;
  bool reads = false, writes = false;
};

struct TraceEvent {
  enum Kind { Mark, Call, Recv, Send, Await, Sum };
  Kind kind;
  mlir::Operation *op;
  /// The task, channel or group, and its run, message or update.
  mlir::StringAttr symbol;
  int64_t number = 0;
  /// One for a transfer, any for a call or a sum.
  llvm::SmallVector<Access, 1> accesses;
};

/// A segment that becomes shorter while it runs: the device learns of it at the
/// head of the iteration whose `least` (of pipeline.bound) reaches `reached`.
struct Shortening {
  int64_t updates, reached;
};

/// Returns what the function does when called with these arguments; it need not
/// have the last.
mlir::FailureOr<std::vector<TraceEvent>>
traceDevice(mlir::func::FuncOp function, int64_t first, int64_t updates,
            int64_t newest,
            std::optional<Shortening> shortening = std::nullopt);

/// Whether an update is long enough for a steady state of its own, so that
/// several need not be followed to see one.
inline bool hasManyMicrobatches(int64_t microbatches) {
  return microbatches >= 1 << 10;
}

/// How many updates a segment must have until everything that the function does
/// for a microbatch goes on at once: from then on, it only repeats itself.
mlir::FailureOr<int64_t> getUpdatesUntilSteady(mlir::func::FuncOp function,
                                               int64_t microbatches);

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_DEVICES_DEVICETRACE_H
