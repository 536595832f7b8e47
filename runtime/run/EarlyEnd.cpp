//===- EarlyEnd.cpp - How all processes end a segment early ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices are held only when every one of them has asked for its bound: one
// that is held might be what another one needs to come there.
//===----------------------------------------------------------------------===//

#include "runtime/run/EarlyEnd.h"

#include "runtime/job/Bytes.h"

#include <algorithm>

using namespace penstock::runtime;

/// Takes answers; true when all have come.
bool EarlyEnd::hearAll(uint16_t tag) {
  bool areAll = true;
  for (int rank = 1; rank < peers.getJob().size; ++rank) {
    if (answered[rank])
      continue;
    auto answer = peers.hear(rank, tag);
    answered[rank] = answer.has_value();
    areAll &= answered[rank];
    if (answer && !answer->empty())
      most = std::max(most, ByteReader(*answer).take<int64_t>());
  }
  return areAll;
}

void EarlyEnd::stepRoot(bool shallEnd) {
  if (phase == Running && shallEnd) {
    peers.tellAll(Peers::kAskBegun, "");
    answered.assign(peers.getJob().size, false);
    phase = Asking;
  }
  if (phase == Asking && hearAll(Peers::kHasBegun) && instance.haveAllAsked()) {
    peers.tellAll(Peers::kHold, "");
    answered.assign(peers.getJob().size, false);
    most = instance.hold();
    phase = Holding;
  }
  if (phase == Holding && hearAll(Peers::kHeld)) {
    peers.tellAll(Peers::kRelease, ByteWriter().add(most).bytes);
    instance.release(most);
    phase = Done;
  }
}

void EarlyEnd::step(bool shallEnd) {
  if (peers.isAlone()) {
    if (shallEnd)
      instance.shrink();
    return;
  }
  if (peers.isRoot())
    return stepRoot(shallEnd);
  if (phase == Running && peers.hear(0, Peers::kAskBegun))
    phase = Asking;
  if (phase == Asking && instance.haveAllAsked()) {
    peers.tell(0, Peers::kHasBegun, "");
    phase = Holding;
  }
  if (phase == Holding && peers.hear(0, Peers::kHold))
    peers.tell(0, Peers::kHeld, ByteWriter().add(instance.hold()).bytes);
  if (auto release = peers.hear(0, Peers::kRelease)) {
    instance.release(ByteReader(*release).take<int64_t>());
    phase = Done;
  }
}
