//===- SinkValues.cpp - What the sinks of a segment delivered -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replicas take turns, so that values have the order of the microbatches.
//===----------------------------------------------------------------------===//

#include "runtime/run/SinkValues.h"

#include "runtime/job/Bytes.h"

#include <bit>

using namespace penstock::runtime;

void SinkValues::collect(Instance &instance) {
  SinkRing::Item item;
  Endpoints &endpoints = instance.allEndpoints();
  auto pop = [&](size_t id) {
    if (id >= far.size() || far[id].empty())
      return endpoints[id].sink->pop(item);
    item = far[id].front();
    far[id].pop_front();
    return true;
  };
  for (Endpoint &endpoint : endpoints) {
    if (!endpoint.sink || endpoint.channel->description.offset)
      continue;
    uint32_t role = endpoint.channel->description.role;
    std::deque<SinkRing::Item> &values =
        role == PENSTOCK_CHANNEL_LOSS      ? losses
        : role == PENSTOCK_CHANNEL_CORRECT ? corrects
        : role == PENSTOCK_CHANNEL_METRIC
            ? metrics[endpoint.channel->description.endpoint]
            : counts;
    // Replicas take turns, whoever is first.
    uint32_t stride = endpoint.channel->description.stride;
    while (pop(size_t(&endpoint - endpoints.data()) + endpoint.turn)) {
      values.push_back(item);
      endpoint.turn = (endpoint.turn + 1) % stride;
    }
  }
}

void SinkValues::send(Instance &instance, Peers &peers) {
  // 64 KiB at a time.
  constexpr size_t kMost = (64 << 10) / sizeof(SinkRing::Item);
  const Endpoints &endpoints = instance.allEndpoints();
  for (uint32_t id = 0; id < endpoints.size(); ++id) {
    if (!endpoints[id].sink)
      continue;
    while (peers.canSendSinks()) {
      std::vector<SinkRing::Item> items;
      SinkRing::Item item;
      while (items.size() < kMost && endpoints[id].sink->pop(item)) {
        item.time = peers.toRootTime(item.time);
        items.push_back(item);
      }
      if (items.empty())
        break;
      ByteWriter writer;
      writer.add(id);
      for (const SinkRing::Item &one : items)
        writer.add(one);
      peers.sendSinks(std::move(writer.bytes));
    }
  }
}

void SinkValues::take(const std::string &bytes) {
  ByteReader reader(bytes);
  auto id = reader.take<uint32_t>();
  if (id >= far.size())
    return;
  while (reader.left() >= sizeof(SinkRing::Item))
    far[id].push_back(reader.take<SinkRing::Item>());
}

void SinkValues::collect(Instance &instance, Peers &peers) {
  if (!peers.isRoot())
    return send(instance, peers);
  far.resize(instance.allEndpoints().size());
  while (auto bytes = peers.takeSinks())
    take(*bytes);
  collect(instance);
}

float penstock::runtime::toFloat(const SinkRing::Item &item) {
  return std::bit_cast<float>(uint32_t(item.bits));
}

int64_t penstock::runtime::toInteger(const SinkRing::Item &item) {
  return std::bit_cast<int64_t>(item.bits);
}
