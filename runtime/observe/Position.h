//===- Position.h - Where a device is ---------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Written by the device's thread alone, read by whoever watches or reports. The
// observer knows devices by nothing else.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_OBSERVE_POSITION_H
#define PENSTOCK_RUNTIME_OBSERVE_POSITION_H

#include "penstock/abi.h"

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace penstock::runtime {

struct alignas(64) Position {
  /// Rises with every action that begins and every transfer that is done.
  std::atomic<uint64_t> progress{0};
  std::atomic<int64_t> waitedNanoseconds{0};
  std::atomic<uint32_t> task{UINT32_MAX}; // none yet
  std::atomic<int64_t> taskNumber{0};
  /// A channel, or from channel_count on a group; UINT32_MAX: waits for none.
  std::atomic<uint32_t> waitChannel{UINT32_MAX};
  std::atomic<int64_t> waitNumber{0};
  std::atomic<bool> isRunning{false};
};

/// The devices of a program that are in this process.
struct Positions {
  struct Entry {
    uint32_t device;
    const Position *position;
  };

  const penstock_program &program;
  std::vector<Entry> devices;
};

/// A position at some time, which may have come from another process.
struct PositionRecord {
  uint64_t progress;
  int64_t taskNumber, waitNumber, waited; // waited: nanoseconds
  uint32_t device, task, waitChannel, isRunning;
};

/// Reads the positions of this process.
std::vector<PositionRecord> record(const Positions &positions);

/// "at B17 (s1.backward), waits for message 18 of channel 'dh2'". What names
/// nothing of the program is left out.
std::string describe(const penstock_program &program,
                     const PositionRecord &position);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_OBSERVE_POSITION_H
