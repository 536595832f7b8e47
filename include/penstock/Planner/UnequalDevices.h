//===- UnequalDevices.h - Lines of devices of different speed ---*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where devices differ, it matters which of them gets which part of the model,
// and, in HetPipe (Park et al., USENIX ATC 2020), which of them form a virtual
// worker: a pipeline with weights of its own, which exchanges whole waves of
// updates with the others. Assigns devices to workers, cuts the model for each
// of them, and simulates how long they wait for each other.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PLANNER_UNEQUALDEVICES_H
#define PENSTOCK_PLANNER_UNEQUALDEVICES_H

#include "penstock/Planner/Plan.h"

#include <optional>
#include <string>
#include <vector>

namespace penstock {

/// A device: on which host it is, and its work per second in multiples of that
/// of the device that layers were measured on.
struct DeviceKind {
  int64_t host = 0;
  double speed = 1;

  friend bool operator==(const DeviceKind &, const DeviceKind &) = default;
};

/// Parses speeds between commas, hosts between semicolons. On a mistake, what
/// is wrong in `error`.
std::optional<std::vector<DeviceKind>> parseDeviceKinds(llvm::StringRef text,
                                                        std::string &error);

/// How devices are shared out among virtual workers.
enum class WorkerPolicy {
  /// The devices of a host are a worker.
  Node,
  /// Every worker gets as many devices of each speed.
  Equal,
  /// The assignment with the least spread of total speed; among these, with the
  /// fewest hosts per worker.
  Hybrid
};

struct UnequalOptions {
  int64_t workers = 1;
  WorkerPolicy policy = WorkerPolicy::Equal;
  /// Bytes per second on a host, and between hosts.
  double bandwidthInside = 1e9, bandwidthBetween = 1e9;
  double latencySeconds = 0; ///< Of a message between stages.
  /// D: whole waves of others that a worker may lack.
  int64_t distance = 0;
  /// N: microbatches of a wave, and in flight in a worker; 0: as many as there
  /// are stages, or as many as fit in memory if that is fewer.
  int64_t wave = 0;
  MemoryModel memory;
};

/// A stage of a worker: states first to last on a device.
struct UnequalStage {
  DeviceKind device;
  int64_t first = 0, last = 0;
  double computeSeconds = 0; ///< Of a microbatch, on this device.
  double inputSeconds = 0;   ///< Of what comes from the stage before, and back.
  double memoryBytes = 0;
};

struct WorkerPlan {
  std::vector<UnequalStage> stages;
  double slowestSeconds = 0; ///< Of a stage or a transfer.
  double latencySeconds = 0; ///< Of one microbatch, through all and back.
  int64_t wave = 1;          ///< N.
  /// Returns the seconds of a wave that waits for no other worker.
  double getWaveSeconds() const {
    return std::max(static_cast<double>(wave) * slowestSeconds, latencySeconds);
  }
};

/// The result of a simulation of the workers' clocks, in its steady state.
struct ClockSimulation {
  double microbatchesPerSecond = 0; ///< Of all workers.
  std::vector<double> waitingShare; ///< By worker.
  int64_t largestDistance = 0;      ///< Of the clocks, in waves.
};

struct UnequalPlan {
  std::vector<WorkerPlan> workers;
  ClockSimulation clocks;
};

/// Assigns devices to workers. On failure `error` says what would work.
std::optional<std::vector<std::vector<DeviceKind>>>
assignDevices(llvm::ArrayRef<DeviceKind> devices, int64_t workers,
              WorkerPolicy policy, std::string &error);

/// The fastest line of all these devices, in any order, that fits in memory;
/// nothing if there is none. States must be those of a line of layers.
std::optional<WorkerPlan> planWorker(const std::vector<PlanState> &states,
                                     llvm::ArrayRef<DeviceKind> devices,
                                     const UnequalOptions &options);

/// Simulates workers whose microbatch k may lack at most `distance` whole waves
/// of others, as HetPipe's does.
ClockSimulation simulateClocks(llvm::ArrayRef<WorkerPlan> workers,
                               int64_t distance);

/// All of it. On failure `error` says what would work.
std::optional<UnequalPlan> planUnequal(const std::vector<PlanState> &states,
                                       llvm::ArrayRef<DeviceKind> devices,
                                       const UnequalOptions &options,
                                       std::string &error);

} // namespace penstock

#endif // PENSTOCK_PLANNER_UNEQUALDEVICES_H
