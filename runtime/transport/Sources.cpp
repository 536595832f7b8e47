//===- Sources.cpp - Samples on their way to devices ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whoever claims a posted receive first, the thread or the waiting device,
// fills it: in place where the host can address the slot.
//===----------------------------------------------------------------------===//

#include "runtime/transport/Sources.h"

#include "runtime/support/ThreadName.h"

#include <algorithm>

using namespace penstock::runtime;

Sources::~Sources() {
  if (!thread.joinable())
    return;
  isStopping.store(true);
  requests.bump(/*wake=*/true);
  thread.join();
}

void Sources::open() {
  next.resize(endpoints.size());
  bool needsThread = false;
  uint64_t stagingBytes = 0;
  for (const Endpoint &endpoint : endpoints) {
    Channel &channel = *endpoint.channel;
    if (!endpoint.isSource)
      continue;
    channel.isPrivate = !isLarge(channel.description);
    needsThread |= isLarge(channel.description);
    if (!channel.isPrivate && channel.to && !channel.to->isHostAddressable())
      stagingBytes = std::max(stagingBytes, channel.description.type.bytes);
  }
  if (!needsThread)
    return;
  staging.resize(stagingBytes);
  thread = std::thread([this] { loop(); });
}

void Sources::begin(const DataSet &set) {
  std::lock_guard<std::mutex> lock(mutex);
  data = &set;
  for (uint32_t i = 0; i < endpoints.size(); ++i) {
    Endpoint &endpoint = endpoints[i];
    endpoint.channel->reset();
    if (endpoint.isSource)
      endpoint.channel->input = data->inputOf(endpoint.channel->description);
    next[i] = 0;
  }
}

bool Sources::fill(Channel &channel, int64_t i, char *staging) {
  int64_t n;
  Address slot;
  if (!channel.claim(i, n, slot))
    return false;
  const penstock_channel &description = channel.description;
  if (void *host = channel.to->hostAddress(slot)) {
    data->gather(description, channel.input, n, host);
  } else {
    data->gather(description, channel.input, n, staging);
    channel.to->receive(slot, staging, description.type.bytes,
                        channel.order(i));
  }
  channel.finish(i);
  return true;
}

bool Sources::fillAll() {
  bool hasFilled = false;
  std::lock_guard<std::mutex> lock(mutex);
  for (uint32_t id = 0; id < endpoints.size(); ++id) {
    Channel &channel = *endpoints[id].channel;
    if (!endpoints[id].isSource || channel.isPrivate)
      continue;
    while (true) {
      if (fill(channel, next[id], staging.data())) {
        ++next[id];
        hasFilled = true;
      } else if (channel.isTaken(next[id])) {
        ++next[id];
      } else {
        break;
      }
    }
  }
  return hasFilled;
}

void Sources::loop() {
  nameThread("data");
  while (!isStopping.load()) {
    uint32_t seen = requests.load();
    if (!fillAll() && !isStopping.load())
      requests.park(seen);
  }
}
