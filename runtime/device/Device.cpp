//===- Device.cpp - What devices of all kinds do --------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The queue of transfers, and the start of a device function.
//===----------------------------------------------------------------------===//

#include "runtime/device/Device.h"

#include <bit>

using namespace penstock::runtime;

void penstock_device::openTransfers() {
  // 1. As many may be on their way as the channels hold, and one sum of each
  // group.
  uint64_t size = 1 + context.sums.size(), stagingBytes = 0;
  for (const Endpoint &endpoint : context.endpoints) {
    if (endpoint.isSource)
      stagingBytes =
          std::max(stagingBytes, endpoint.channel->description.type.bytes);
    else if (!endpoint.sink)
      size += uint64_t(2) * endpoint.channel->capacity();
  }
  transfers.resize(std::bit_ceil(size));
  transferMask = transfers.size() - 1;
  for (const auto &sum : context.sums)
    if (const AllReduce::Side *side = sum->find(index))
      cells.resize(std::max<uint64_t>(cells.size(), side->cells));

  // 2. Samples are gathered by the host.
  if (!isHostAddressable())
    staging.resize(stagingBytes);
}

void penstock_device::run(penstock_device_function function, int64_t first,
                          int64_t updates, int64_t version) {
  firstTransfer = endTransfer = 0;
  begun.store(0);
  noticesMarks = runsBehind || flight || trace || context.onMark;
  position.isRunning.store(true);
  start([=, this] {
    if (flight)
      recordFlight(flight, FlightKind::Segment, 0, first);
    function(this, first, updates, version);
    finishTransfers(this);
    drain();
    if (flight)
      recordFlight(flight, FlightKind::End, 0, first + updates);
    position.isRunning.store(false);
  });
}
