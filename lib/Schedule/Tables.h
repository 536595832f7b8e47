//===- Tables.h - What the walk and the execution look up -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How events are numbered on a device, which writers a per-update task waits
// for, and how messages name events.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_SCHEDULE_TABLES_H
#define PENSTOCK_LIB_SCHEDULE_TABLES_H

#include "penstock/Schedule/Engine.h"

namespace penstock::schedule {

/// The n-th event of a kind on a device has number first + n * step.
struct Numbering {
  int64_t first = 0, step = 1;
  /// Events per update of this kind on this device.
  int64_t perUpdate = 1;
  /// Or one per wave.
  bool perWave = false;
  /// False: the event has no business on this device.
  bool here = false;

  /// Events in a segment.
  int64_t count(const Model &model, int64_t updates) const {
    return perWave ? updates / model.wave : updates * perUpdate;
  }
};

/// Numbering of the runs of a task on a device.
Numbering numberRuns(const Model &model, int task, int device);
/// Numbering of events of any kind.
Numbering numberEvents(const Model &model, EventKind kind, int id, int device);

/// The stage at the sending and at the receiving end; -1 for source and sink.
int senderStage(const Model &model, const Channel &channel);
int receiverStage(const Model &model, const Channel &channel);
/// Returns true if messages are counted by updates, or by waves.
bool countsUpdates(const Model &model, const Channel &channel);
bool countsWaves(const Model &model, const Channel &channel);
/// The device at which message `number` is received or sent, or -1.
int getReceiver(const Model &model, const Channel &channel, int64_t number);
int getSender(const Model &model, const Channel &channel, int64_t number);

/// For each per-update task, the other tasks of its stage that write what it
/// reads; for each group, the tasks that write its members before it is summed,
/// and for each task the groups that must be summed before it runs.
struct Tables {
  explicit Tables(const Model &model);
  std::vector<llvm::SmallVector<int, 2>> writersFor;
  std::vector<llvm::SmallVector<int, 2>> groupWriters;
  std::vector<llvm::SmallVector<int, 2>> groupsBefore;
};

/// "run @s0.F of microbatch 3", "send @h2 of microbatch 3", ...
std::string describe(const Model &model, const Event &event);
/// "microbatch 3" or "update 3".
std::string describeNumber(bool update, int64_t number);
std::string formatCount(int64_t count, const char *noun);

} // namespace penstock::schedule

#endif // PENSTOCK_LIB_SCHEDULE_TABLES_H
