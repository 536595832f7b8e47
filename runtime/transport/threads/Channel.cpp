//===- Channel.cpp - A rendezvous between two threads ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The two posts and the claim. An address is written before the state that
// announces it (release) and read after that state was seen (acquire).
//===----------------------------------------------------------------------===//

#include "runtime/transport/threads/Channel.h"

#include <bit>

using namespace penstock::runtime;

Channel::Channel(const penstock_channel &description, uint32_t index)
    : description(description), index(index) {
  // Receives run ahead by up to `slots`, sends by up to staging + slots of the
  // oldest message that is not done.
  uint32_t size =
      std::bit_ceil(2 * description.slots + description.staging + 6);
  entries = std::make_unique<Entry[]>(size);
  mask = size - 1;
  shift = std::countr_zero(size);
}

void Channel::reset() {
  for (uint32_t i = 0; i <= mask; ++i)
    entries[i].state.reset(0);
  sender = receiver = {};
}

PostResult Channel::number(Side &side, int64_t n) {
  if (side.posted == 0)
    side.base = n;
  else if (n != side.base + side.posted)
    return PostResult::OutOfOrder;
  ++side.posted;
  return PostResult::Queued;
}

PostResult Channel::postReceive(int64_t n, Address slot) {
  if (PostResult result = number(receiver, n); result != PostResult::Queued)
    return result;
  int64_t i = receiver.posted - 1;
  Entry &e = entry(i);
  uint32_t empty = emptyState(i), state = e.state.load();
  if (!WaitWord::hasReached(state, empty))
    return PostResult::TooMany;
  e.target = slot;
  e.receiveNumber = n;
  if (state == empty && e.state.exchange(state, empty + 1))
    return PostResult::Queued;
  if (e.sendNumber != n)
    return PostResult::Mismatch;
  to->copy(slot, *from, e.source, description.type.bytes);
  finish(i);
  return PostResult::Queued;
}

PostResult Channel::postSend(int64_t n, Address slot) {
  if (PostResult result = number(sender, n); result != PostResult::Queued)
    return result;
  int64_t i = sender.posted - 1;
  Entry &e = entry(i);
  uint32_t empty = emptyState(i), state = e.state.load();
  if (!WaitWord::hasReached(state, empty))
    return PostResult::TooMany;
  e.source = slot;
  e.sendNumber = n;
  if (state == empty && e.state.exchange(state, empty + 2))
    return PostResult::Queued;
  if (e.receiveNumber != n)
    return PostResult::Mismatch;
  to->copy(e.target, *from, slot, description.type.bytes);
  finish(i);
  return PostResult::Queued;
}

bool Channel::claim(int64_t i, int64_t &n, Address &slot) {
  Entry &e = entry(i);
  uint32_t posted = emptyState(i) + 1;
  if (e.state.load() != posted || !e.state.exchange(posted, posted + 1))
    return false;
  n = e.receiveNumber;
  slot = e.target;
  return true;
}
