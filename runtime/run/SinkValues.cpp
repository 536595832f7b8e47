//===- SinkValues.cpp - What the sinks of a segment delivered -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replicas take turns, so that values have the order of the microbatches.
//===----------------------------------------------------------------------===//

#include "runtime/run/SinkValues.h"

#include <bit>

using namespace penstock::runtime;

void SinkValues::collect(Instance &instance) {
  SinkRing::Item item;
  for (Endpoint &endpoint : instance.allEndpoints()) {
    if (!endpoint.sink || endpoint.channel->description.offset)
      continue;
    uint32_t role = endpoint.channel->description.role;
    std::deque<SinkRing::Item> &values = role == PENSTOCK_CHANNEL_LOSS ? losses
                                         : role == PENSTOCK_CHANNEL_CORRECT
                                             ? corrects
                                             : counts;
    // Replicas take turns, whoever is first.
    uint32_t stride = endpoint.channel->description.stride;
    while ((&endpoint)[endpoint.turn].sink->pop(item)) {
      values.push_back(item);
      endpoint.turn = (endpoint.turn + 1) % stride;
    }
  }
}

float penstock::runtime::floatOf(const SinkRing::Item &item) {
  return std::bit_cast<float>(uint32_t(item.bits));
}

int64_t penstock::runtime::integerOf(const SinkRing::Item &item) {
  return std::bit_cast<int64_t>(item.bits);
}
