//===- LoopBack.h - A transport within one process --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two instances of a program, each with some of its devices, and a wire between
// them on which every message takes its own time.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_RUNTIME_LOOPBACK_H
#define PENSTOCK_TEST_UNIT_RUNTIME_LOOPBACK_H

#include "runtime/transport/Transport.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <thread>

namespace penstock::test {

/// The link between two instances. A thread moves messages, and so does every
/// device that waits.
class Wire {
public:
  explicit Wire(uint32_t seed) : random(seed) {}

  /// The transport of one end; both ends are made before either is used.
  std::unique_ptr<runtime::Transport> makeEnd();

  /// From now on, takes no more messages of a channel than so many.
  void hold(uint32_t channel, int64_t messages);
  void release();

private:
  friend class LoopBack;

  struct Message {
    int64_t n, due;
    std::vector<char> bytes;
  };
  /// A channel of one direction. An end is there while its segment runs.
  struct Line {
    runtime::Channel *from = nullptr, *to = nullptr;
    bool isSending = false, isReceiving = false;
    int64_t sent = 0, received = 0;
    std::deque<Message> messages;
  };

  /// Needs the lock.
  bool move();
  bool take(Line &line);
  bool deliver(Line &line);
  void loop();

  std::mutex mutex;
  std::condition_variable changed;
  std::mt19937 random;
  std::vector<Line> lines; // by channel
  /// The channel that is held, and behind how many of its messages.
  uint32_t heldChannel = UINT32_MAX;
  int64_t heldBehind = 0;
  uint32_t ends = 0;
  std::thread thread;
};

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_RUNTIME_LOOPBACK_H
