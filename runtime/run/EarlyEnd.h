//===- EarlyEnd.h - How all processes end a segment early -------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any of them may be asked to stop. Rank 0 lets all devices of all processes go
// on to the most that any has begun, so that the segment is one that was as
// short from the start.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_RUN_EARLYEND_H
#define PENSTOCK_RUNTIME_RUN_EARLYEND_H

#include "runtime/run/Instance.h"
#include "runtime/run/Peers.h"

namespace penstock::runtime {

/// The part of one process in one segment.
class EarlyEnd {
public:
  EarlyEnd(Peers &peers, Instance &instance)
      : peers(peers), instance(instance) {}

  /// Called from time to time until the segment is over for all. `shallEnd`
  /// counts on rank 0 alone.
  void step(bool shallEnd);
  /// Devices wait for the agreement, which is near.
  bool isBusy() const { return phase == Holding; }

private:
  void stepRoot(bool shallEnd);
  bool hearAll(uint16_t tag);

  enum Phase { Running, Asking, Holding, Done };

  Peers &peers;
  Instance &instance;
  Phase phase = Running;
  std::vector<bool> answered; // by rank, on rank 0
  int64_t most = 0;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_RUN_EARLYEND_H
