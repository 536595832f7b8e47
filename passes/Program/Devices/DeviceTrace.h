//===- DeviceTrace.h - What a device function does --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All transfers, waits, runs and calls of one execution of a device function,
// as a list.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_DEVICES_DEVICETRACE_H
#define PENSTOCK_PASSES_PROGRAM_DEVICES_DEVICETRACE_H

#include "passes/Program/Devices/DeviceCode.h"

namespace penstock {

/// Returns what the function does when called with these arguments; it need not
/// have the last.
mlir::FailureOr<std::vector<TraceEvent>> traceDevice(const DeviceCode &code,
                                                     int64_t first,
                                                     int64_t updates,
                                                     int64_t newest);

/// Returns true if an update is long enough for a steady state of its own, so
/// that several need not be followed to see one.
inline bool hasManyMicrobatches(int64_t microbatches) {
  return microbatches >= 1 << 10;
}

/// How many updates a segment must have until everything that the function does
/// for a microbatch goes on at once: from then on, it only repeats itself.
mlir::FailureOr<int64_t> getUpdatesUntilSteady(const DeviceCode &code,
                                               int64_t microbatches);

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_DEVICES_DEVICETRACE_H
