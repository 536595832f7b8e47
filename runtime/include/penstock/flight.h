//===- flight.h - What a flight record is -----------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file that every process of a run keeps of the last actions of its
// devices, as penstock-doctor reads it. It is shared memory while the process
// lives, so what was written survives its end.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_FLIGHT_H
#define PENSTOCK_FLIGHT_H

#include <atomic>
#include <cstdint>

namespace penstock::runtime {

inline constexpr char kFlightMagic[8] = {'P', 'S', 'F', 'L',
                                         'I', 'G', 'H', 'T'};
inline constexpr uint32_t kFlightVersion = 2;
inline constexpr uint64_t kFlightEntries = 4096; // of a device

enum class FlightKind : uint32_t {
  Segment = 1, // `number` is its first update
  Mark,        // a task begins; `id` is its number
  Post, // of a message or a sum; numbers from channel_count on are groups
  Wait,
  Done,
  End // of the segment
};

struct FlightEntry {
  int64_t time; // CLOCK_MONOTONIC, in nanoseconds
  int64_t number;
  uint32_t id;
  FlightKind kind;
  uint64_t reserved;
};
static_assert(sizeof(FlightEntry) == 32);

/// The last actions of a device. Entry i is at i mod kFlightEntries.
struct FlightRing {
  uint32_t device, reserved;
  std::atomic<uint64_t> count;
  FlightEntry entries[kFlightEntries];
};

enum class FlightEnd : uint32_t {
  None,   // the process runs, or ended without a word
  Failed, // it knew that all end
  Origin, // because it failed itself, or stood still
  Agreed, // all processes came to the same end, which was no success
};

/// Stands first. Behind it are `names_bytes` of names, and from `rings_offset`
/// on a ring for each of the devices.
///
/// The names are lines: "task LETTER STAGE NAME", "channel SENDER RECEIVER
/// NAME", "group DEVICE,DEVICE,... NAME", in the order of the program.
struct FlightHeader {
  char magic[8];
  uint32_t version, header_bytes;
  uint8_t run[16]; // the same in all processes of a run
  int32_t rank, size;
  uint32_t device_count;
  std::atomic<FlightEnd> end;
  /// The wall clock at time 0 of CLOCK_MONOTONIC, and how far the latter is
  /// behind that of rank 0.
  int64_t epoch, offset, offset_error;
  uint64_t names_offset, names_bytes, rings_offset;
  /// The rank that this process was the first to miss, plus 1, and when. A
  /// stopped process that goes on later finds others missing in its turn.
  std::atomic<int64_t> lost_at;
  std::atomic<int32_t> lost;
  uint32_t reserved;
  char host[256];
};

} // namespace penstock::runtime

#endif // PENSTOCK_FLIGHT_H
