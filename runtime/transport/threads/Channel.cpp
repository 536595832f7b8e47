//===- Channel.cpp - A rendezvous between two threads ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The posts and the claims. An address is written before the state that
// announces it (release) and read after that state was seen (acquire).
//===----------------------------------------------------------------------===//

#include "runtime/transport/threads/Channel.h"

#include "runtime/support/Roles.h"

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

void Channel::open() {
  // What a sink gets is its sender's to order.
  if (isSink(description))
    return;
  auto create = [](DeviceMemory *device) {
    return device ? device->createMarker() : nullptr;
  };
  std::unique_ptr<Marker> ofSender = create(from), ofReceiver = create(to);
  if (!ofSender && !ofReceiver)
    return;
  handovers = std::make_unique<Handover[]>(capacity());
  for (uint32_t i = 0; i <= mask; ++i)
    // Where the receiver is in another process, the sender has the end.
    handovers[i] = {create(from), create(to), create(to ? to : from),
                    description.own_queue != 0};
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
  uint32_t empty = getState(i, Empty), state = e.state.load();
  if (!WaitWord::hasReached(state, empty))
    return PostResult::TooMany;
  e.target = slot;
  e.receiveNumber = n;
  if (Marker *free = order(i).free.get())
    to->mark(*free);
  if (isPrivate) {
    e.state.reset(empty + ReceivePosted);
    return PostResult::Queued;
  }
  if (state == empty && e.state.exchange(state, empty + ReceivePosted))
    return PostResult::Queued;
  if (e.sendNumber != n)
    return PostResult::Mismatch;
  to->copy(slot, *from, e.source, description.type.bytes, order(i));
  finish(i);
  return PostResult::Queued;
}

PostResult Channel::postSend(int64_t n, Address slot) {
  if (PostResult result = number(sender, n); result != PostResult::Queued)
    return result;
  int64_t i = sender.posted - 1;
  Entry &e = entry(i);
  uint32_t empty = getState(i, Empty), state = e.state.load();
  if (!WaitWord::hasReached(state, empty))
    return PostResult::TooMany;
  e.source = slot;
  e.sendNumber = n;
  if (Marker *ready = order(i).ready.get())
    from->mark(*ready);
  if (state == empty && e.state.exchange(state, empty + SendPosted))
    return PostResult::Queued;
  if (e.receiveNumber != n)
    return PostResult::Mismatch;
  to->copy(e.target, *from, slot, description.type.bytes, order(i));
  finish(i);
  return PostResult::Queued;
}

void Channel::nap(int64_t i, int64_t nanoseconds) {
  WaitWord &state = entry(i).state;
  uint32_t value = state.load();
  if (!WaitWord::hasReached(value, getState(i, Done)))
    state.park(value, nanoseconds);
}

bool Channel::claim(int64_t i, State posted) {
  uint32_t expected = getState(i, posted);
  WaitWord &state = entry(i).state;
  return state.load() == expected &&
         (isPrivate || state.exchange(expected, getState(i, Claimed)));
}

bool Channel::claim(int64_t i, int64_t &n, Address &slot) {
  if (!claim(i, ReceivePosted))
    return false;
  n = entry(i).receiveNumber;
  slot = entry(i).target;
  return true;
}

/// Returns true if nothing is left to be done before a marker.
static bool isReached(const std::unique_ptr<Marker> &marker) {
  return !marker || marker->isReached();
}

bool Channel::claimReceive(int64_t i, int64_t &n, Address &slot) {
  return entry(i).state.load() == getState(i, ReceivePosted) &&
         isReached(order(i).free) && claim(i, n, slot);
}

bool Channel::claimSend(int64_t i, int64_t &n, Address &slot) {
  return entry(i).state.load() == getState(i, SendPosted) &&
         isReached(order(i).ready) && takeSend(i, n, slot);
}

bool Channel::takeSend(int64_t i, int64_t &n, Address &slot) {
  if (!claim(i, SendPosted))
    return false;
  n = entry(i).sendNumber;
  slot = entry(i).source;
  return true;
}
