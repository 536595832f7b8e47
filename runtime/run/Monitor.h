//===- Monitor.h - A run as other programs see it ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// On rank 0: values for whoever asks the port of metrics, and scalars for
// TensorBoard, a few times a second.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_RUN_MONITOR_H
#define PENSTOCK_RUNTIME_RUN_MONITOR_H

#include "runtime/observe/EventFile.h"
#include "runtime/observe/MetricTable.h"
#include "runtime/observe/MetricsServer.h"
#include "runtime/run/JobWatchdog.h"
#include "runtime/run/Options.h"

#include <map>

namespace penstock::runtime {

class Monitor {
public:
  explicit Monitor(const penstock_program &program) : program(program) {}

  /// Takes the port and begins the file, where they are asked for.
  Error open(const Options &options);
  bool isOpen() const { return server.isOpen() || events.isOpen(); }
  int64_t getPort() const { return server.getPort(); }

  /// A segment begins: devices were not measured before.
  void begin(int64_t now);
  Error addUpdate(int64_t step, double loss, double rate);
  Error
  addEvaluation(int64_t step,
                const std::vector<std::pair<std::string, double>> &values);
  /// Some time has passed since the values before.
  bool isDue(int64_t now) const { return now - published >= kPeriod; }

  /// The state of a run at one time.
  struct Snapshot {
    int64_t time; ///< in nanoseconds
    int64_t step, samples;
    std::vector<ProcessState> states; ///< by rank
    std::vector<int64_t> silences;    ///< by rank, in nanoseconds; alone: none
    int64_t checkpointStep = -1, checkpointTime = 0;
    double checkpointSeconds = 0;
    uint64_t arenaBytes = 0, transportBytes = 0, stagedBytes = 0;
  };
  Error publish(const Snapshot &snapshot, const Job &job);

private:
  static constexpr int64_t kPeriod = 250000000;

  std::string listStages(const PositionRecord &position) const;
  void addDevices(const Snapshot &snapshot, const Job &job,
                  std::vector<Scalar> &scalars);
  void addTransfers(const Snapshot &snapshot, const Job &job);

  const penstock_program &program;
  MetricsServer server;
  EventFile events;
  MetricText text;
  int64_t published = 0, samples = 0;
  std::map<uint32_t, int64_t> waited; // by device, in nanoseconds
  /// Messages of this segment, and those of segments before, by channel.
  std::map<uint32_t, std::pair<int64_t, int64_t>> moved;
  double loss = 0, rate = 0;
  bool hasLoss = false;
  std::vector<std::pair<std::string, double>> evaluation;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_RUN_MONITOR_H
