//===- Instance.h - One opened program --------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The devices, channels and sources of a program, and the execution of one
// segment. A run has one instance, and a second one for --verify.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_RUN_INSTANCE_H
#define PENSTOCK_RUNTIME_RUN_INSTANCE_H

#include "runtime/device/cpu/Device.h"
#include "runtime/io/OutputArrays.h"
#include "runtime/observe/Memory.h"
#include "runtime/observe/SinkRing.h"
#include "runtime/support/Roles.h"

namespace penstock::runtime {

/// What stands behind a channel number.
struct Endpoint {
  std::unique_ptr<Channel> channel;
  std::unique_ptr<SinkRing> sink;
  /// Where a sink of inference writes.
  OutputArray *output = nullptr;
  bool isSource = false;
  /// Of a sink with several senders: whose message comes next.
  uint32_t turn = 0;
};

/// Waits until everything that the device issued is done.
void finishTransfers(penstock_device *device);

class Instance {
public:
  explicit Instance(const penstock_program &program);
  ~Instance();

  /// Builds devices and channels; initial values come out of `files`.
  Error open(const std::vector<MappedFile> &files, bool isTraced);

  /// Runs a segment of a schedule over `data` and calls `observe` from time to
  /// time and once after its end.
  void run(const penstock_schedule &schedule, int64_t first, int64_t updates,
           int64_t version, const DataSet &data,
           const std::function<void()> &observe);

  /// The value of a variable after `updates` updates, in its first copy.
  const char *value(const penstock_variable &variable, int64_t updates,
                    uint32_t copy = 0) const;

  /// The arenas that were allocated.
  std::vector<ArenaBytes> arenas() const;

  const std::vector<std::unique_ptr<penstock_device>> &devices() const {
    return deviceList;
  }
  Endpoint &endpoint(uint32_t channel) { return endpoints[channel]; }
  std::vector<Endpoint> &allEndpoints() { return endpoints; }
  AllReduce &allReduce(uint32_t group) { return *sums[group]; }
  WaitPolicy waitPolicy() const { return policy; }
  const DataSet &data() const { return *currentData; }

  double hyperparameter(uint32_t id) const { return hyperparameters[id]; }
  int64_t integerHyperparameter(uint32_t id) const { return integers[id]; }
  /// False when the program has none of that name.
  bool setHyperparameter(const char *name, double value);
  /// Of integers, of which a double holds only those of 53 bits.
  void setIntegerHyperparameter(const char *name, int64_t value);
  /// Zero when the program has none of that name.
  double findHyperparameter(const char *name) const;

  /// A device posted a receive on a source.
  void requestSource(Channel &channel) {
    if (channel.description.type.bytes >= kSourceThreadBytes)
      sourceRequests.bump(/*wake=*/true);
  }

  const penstock_program &program;
  Positions positions;

private:
  Error check() const;
  Error prepackWeights(penstock_device &device);
  Error openDevice(penstock_device &device,
                   const std::vector<MappedFile> &files);
  void buildEndpoints();
  void sourceLoop();
  bool fillSources();

  // Smaller messages are gathered by the device that needs them: that takes
  // less time than waking a thread.
  static constexpr uint64_t kSourceThreadBytes = 32 << 10;

  std::vector<Endpoint> endpoints;
  std::vector<std::unique_ptr<AllReduce>> sums;
  std::vector<double> hyperparameters;
  std::vector<int64_t> integers; // the same, in full
  WaitPolicy policy;
  const DataSet *currentData = nullptr;

  // The source thread holds the lock while it looks at channels; segments
  // begin under it. Device threads never take it.
  std::mutex sourceMutex;
  std::vector<int64_t> sourceNext; // by channel, the next message to fill
  WaitWord sourceRequests;
  std::atomic<bool> isSourceStopping{false};
  std::thread sourceThread;

  std::vector<std::unique_ptr<penstock_device>> deviceList;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_RUN_INSTANCE_H
