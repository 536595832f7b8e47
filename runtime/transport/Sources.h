//===- Sources.h - Samples on their way to devices --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread gathers large messages ahead of the devices; small ones are gathered
// by the device that needs them, which takes less time than waking a thread.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_TRANSPORT_SOURCES_H
#define PENSTOCK_RUNTIME_TRANSPORT_SOURCES_H

#include "runtime/transport/Endpoint.h"

#include <mutex>
#include <thread>

namespace penstock::runtime {

class Sources {
public:
  explicit Sources(Endpoints &endpoints) : endpoints(endpoints) {}
  ~Sources();

  /// Starts the thread if some messages are large. The devices are open.
  void open();
  /// Begins a segment over `data`, with empty channels. No device runs.
  void begin(const DataSet &data);

  /// A device posted a receive on a source.
  void request(const Channel &channel) {
    if (isLarge(channel.description))
      requests.bump(/*wake=*/true);
  }
  /// Fills posted message i of a source. False when somebody else has begun to.
  /// `staging` holds a message where the host cannot address the receiver.
  bool fill(Channel &channel, int64_t i, char *staging);

private:
  static bool isLarge(const penstock_channel &channel) {
    return channel.type.bytes >= 32 << 10;
  }
  void loop();
  bool fillAll();

  Endpoints &endpoints;
  const DataSet *data = nullptr;
  /// The thread holds the lock while it looks at channels; segments begin under
  /// it. Devices never take it.
  std::mutex mutex;
  std::vector<int64_t> next; // by channel, the next message to fill
  std::vector<char> staging; // of the thread
  WaitWord requests;
  std::atomic<bool> isStopping{false};
  std::thread thread;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_TRANSPORT_SOURCES_H
