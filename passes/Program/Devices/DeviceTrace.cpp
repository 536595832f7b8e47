//===- DeviceTrace.cpp - What a device function does ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See DeviceTrace.h.
//===----------------------------------------------------------------------===//

#include "passes/Program/Devices/DeviceTrace.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

FailureOr<std::vector<TraceEvent>> penstock::traceDevice(const DeviceCode &code,
                                                         int64_t first,
                                                         int64_t updates,
                                                         int64_t newest) {
  DeviceRun run(code, first, updates, newest);
  std::vector<TraceEvent> events;
  if (failed(run.forEachEvent(
          [&](TraceEvent &event) { events.push_back(std::move(event)); })))
    return failure();
  return events;
}

static bool countsMicrobatches(const TraceEvent &event,
                               SymbolTableCollection &symbols) {
  if (event.kind != TraceEvent::Mark)
    return event.kind != TraceEvent::Sum;
  auto task = symbols.lookupNearestSymbolFrom<TaskOp>(event.op, event.symbol);
  return task && task.countsMicrobatches();
}

FailureOr<int64_t> penstock::getUpdatesUntilSteady(const DeviceCode &code,
                                                   int64_t microbatches) {
  constexpr int64_t kMost = 1 << 20;
  for (int64_t updates = 1; updates * microbatches <= kMost; updates *= 2) {
    DeviceRun run(code, 0, updates, 0);
    // The number that some have come to when the last of them begins.
    int64_t furthest = 0, lead = 0;
    llvm::DenseSet<std::pair<int, Attribute>> begun;
    LogicalResult ran = run.forEachEvent([&](const TraceEvent &event) {
      if (event.kind == TraceEvent::Call || event.kind == TraceEvent::Await)
        return;
      if (begun.insert({event.kind, event.symbol}).second &&
          countsMicrobatches(event, code.getSymbols()))
        lead = furthest;
      furthest = std::max(furthest, event.number);
    });
    if (failed(ran))
      return failure();
    // Behind the last update, all of them have begun however short it was.
    if (lead + 1 < updates * microbatches)
      return (lead + microbatches) / microbatches;
  }
  return code.getFunction().emitError(
      "S8: begins to do something only when all else is done, however long the "
      "segment");
}
