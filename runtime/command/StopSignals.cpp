//===- StopSignals.cpp - Signals that a training obeys --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The handler only notes the signal; whoever trains looks from time to time.
//===----------------------------------------------------------------------===//

#include "runtime/command/StopSignals.h"

#include <atomic>
#include <csignal>

static std::atomic<int> received = 0;
static_assert(std::atomic<int>::is_always_lock_free);

/// SA_RESETHAND: the next one of this kind finds the default action; one of the
/// other kind is sent again to itself.
static void onStopSignal(int signal) {
  int none = 0;
  if (received.compare_exchange_strong(none, signal))
    return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void penstock::runtime::catchStopSignals() {
  for (int signal : {SIGINT, SIGTERM, SIGUSR2}) {
    struct sigaction action = {}, former = {};
    action.sa_handler = onStopSignal;
    action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
    // What a shell starts in the background ignores SIGINT.
    if (sigaction(signal, nullptr, &former) == 0 &&
        former.sa_handler != SIG_IGN)
      sigaction(signal, &action, nullptr);
  }
}

int penstock::runtime::getStopSignal() { return received.load(); }

static std::atomic<bool> isCheckpointAsked = false;

void penstock::runtime::catchCheckpointSignal() {
  struct sigaction action = {};
  action.sa_handler = [](int) { isCheckpointAsked.store(true); };
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
}

bool penstock::runtime::takeCheckpointSignal() {
  return isCheckpointAsked.exchange(false);
}
