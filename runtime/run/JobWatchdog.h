//===- JobWatchdog.h - Does anything move, anywhere? ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two questions. Is it a deadlock: nobody works and nothing is under way, or
// transfers that come in one order wait for each other in a circle? That is
// certain after seconds. Is it too slow: nothing has moved for much longer
// than ever before?
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_RUN_JOBWATCHDOG_H
#define PENSTOCK_RUNTIME_RUN_JOBWATCHDOG_H

#include "runtime/job/Job.h"
#include "runtime/observe/Position.h"
#include "runtime/transport/Transport.h"

namespace penstock::runtime {

/// The known state of a process.
struct ProcessState {
  std::vector<PositionRecord> positions;
  std::vector<TransferCount> counts;
};

/// Watches a segment, in rank 0.
class JobWatchdog {
public:
  /// `seconds` without progress are too many; with kAuto what is too slow
  /// follows from the run so far. Zero: nothing is.
  static constexpr double kAuto = -1;
  JobWatchdog(const penstock_program &program, const Job &job, double seconds,
              int64_t now);

  /// Returns why the run has to end, or nothing. `states` are by rank, and are
  /// `isFresh` if all of them are of the last second. The first update may take
  /// longer than others, as primitives are built.
  std::string check(const std::vector<ProcessState> &states, bool isFresh,
                    bool hasUpdated, int64_t now);

private:
  bool isStuck(const std::vector<ProcessState> &states) const;
  bool isUnderWay(const std::vector<ProcessState> &states, uint32_t id) const;
  std::string describeCircle(const std::vector<ProcessState> &states) const;
  /// Returns the circle of transfers that wait for each other, each next in its
  /// process; nothing, if there is none.
  std::string describeOrders(const std::vector<ProcessState> &states) const;
  std::string describeWorkers(const std::vector<ProcessState> &states) const;
  int64_t getLimit(bool hasUpdated) const;

  const penstock_program &program;
  const Job &job;
  const double seconds;
  /// When all processes were seen to have done the same as last.
  std::vector<int64_t> signature;
  int64_t since, lastCheck, longest = 0;
  int64_t stuckSince = 0;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_RUN_JOBWATCHDOG_H
