//===- FlightRecord.h - What devices did last -------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A mapped file per process: whatever ends the process, what stands in it can
// be read.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_OBSERVE_FLIGHTRECORD_H
#define PENSTOCK_RUNTIME_OBSERVE_FLIGHTRECORD_H

#include "penstock/abi.h"
#include "penstock/flight.h"
#include "runtime/job/Clock.h"

#include <ctime>

namespace penstock::runtime {

/// Adds to the ring of a device, on its thread. The coarse clock, of some
/// milliseconds, costs a few nanoseconds.
inline void recordFlight(FlightRing *ring, FlightKind kind, uint32_t id,
                         int64_t number) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  uint64_t at = ring->count.load(std::memory_order_relaxed);
  ring->entries[at % kFlightEntries] = {
      int64_t(now.tv_sec) * 1000000000 + now.tv_nsec, number, id, kind, 0};
  ring->count.store(at + 1, std::memory_order_release);
}

class FlightRecord {
public:
  FlightRecord() = default;
  FlightRecord(const FlightRecord &) = delete;
  ~FlightRecord();

  /// Creates DIR/rank-R.flight, and the folder if it is missing.
  Error open(const std::string &folder, const penstock_program &program,
             const Job &job, const Token &run, const ClockOffset &clock);
  bool isOpen() const { return header; }
  const std::string &getFolder() const { return folder; }
  /// Null for a device of another process.
  FlightRing *find(uint32_t device);
  /// The process ends, and knows why. The first word counts.
  void setEnd(FlightEnd end);
  /// This process misses another one. The first time counts.
  void setLost(int rank);
  /// All is well: the file goes, and the folder if nothing else is in it.
  void remove();

private:
  std::string folder, path;
  int lock = -1; // on the file, as long as the process lives
  FlightHeader *header = nullptr;
  uint64_t bytes = 0;
};

/// Where runs leave their records that are not told where: TMPDIR.
std::string getRecordFolder(const std::string &name);
/// Removes the oldest of them but for some, which nobody has looked at since;
/// not those of runs that go on.
void removeOldRecords(const std::string &own);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_OBSERVE_FLIGHTRECORD_H
