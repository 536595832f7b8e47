//===- Endpoint.h - What stands behind a channel number ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Another device, a file to read, a log or a file to write.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_TRANSPORT_ENDPOINT_H
#define PENSTOCK_RUNTIME_TRANSPORT_ENDPOINT_H

#include "runtime/io/OutputArrays.h"
#include "runtime/observe/FiniteWatch.h"
#include "runtime/observe/SinkRing.h"
#include "runtime/transport/threads/Channel.h"

namespace penstock::runtime {

struct Endpoint {
  std::unique_ptr<Channel> channel;
  std::unique_ptr<SinkRing> sink;
  /// Looks at what a forward of training sends, where the host can.
  std::unique_ptr<FiniteWatch> watch;
  bool isWatched = false; // in this segment
  /// Where a sink of inference writes.
  OutputArray *output = nullptr;
  bool isSource = false;
  /// Its transfers end apart from the others of its devices.
  bool hasOwnQueue = false;
  /// One end is in another process.
  bool isFar = false;
  /// The sender whose message comes next, where a sink has several.
  uint32_t turn = 0;
};

/// The ends of all channels, by channel number.
using Endpoints = std::vector<Endpoint>;

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_TRANSPORT_ENDPOINT_H
