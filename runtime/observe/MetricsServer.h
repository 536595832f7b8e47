//===- MetricsServer.h - The metrics of a run for a monitor -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread that answers GET /metrics, by HTTP 1, with what was published last.
// Whoever asks never holds up the run, and a run without a monitor pays
// nothing.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_OBSERVE_METRICSSERVER_H
#define PENSTOCK_RUNTIME_OBSERVE_METRICSSERVER_H

#include "runtime/support/Error.h"

#include <cstdint>
#include <mutex>
#include <thread>

namespace penstock::runtime {

class MetricsServer {
public:
  MetricsServer() = default;
  MetricsServer(const MetricsServer &) = delete;
  ~MetricsServer();

  /// Port 0: one that is free.
  Error open(const std::string &address, int64_t port);
  bool isOpen() const { return listener >= 0; }
  int64_t getPort() const { return port; }
  void publish(std::string text);

private:
  struct Client;
  void loop();
  bool advance(Client &client);
  std::string answer(const std::string &request);

  int listener = -1, stopper = -1;
  int64_t port = 0;
  std::mutex mutex; // of the text
  std::string text;
  std::thread thread;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_OBSERVE_METRICSSERVER_H
