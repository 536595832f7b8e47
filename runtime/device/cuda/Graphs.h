//===- Graphs.h - The recorded actions of a device --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An action runs once call by call, so that the driver and its libraries load
// what they need; from then on each of its keys is captured once and launched.
// What cannot be captured stays call by call, after a warning.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CUDA_GRAPHS_H
#define PENSTOCK_RUNTIME_DEVICE_CUDA_GRAPHS_H

#include "penstock/abi.h"
#include "runtime/device/cuda/Driver.h"

#include <string>
#include <vector>

namespace penstock::runtime::cuda {

/// The graphs of one device. Used on its thread, in its context.
class Graphs {
public:
  /// `isEnabled`: whether anything is captured.
  void open(const Driver &driver, const penstock_program &program,
            uint32_t device, bool isEnabled);
  void clear();

  /// Launches the graph of an action and sets `isIssued` to false, or begins to
  /// capture, or neither. Returns a status.
  int begin(uint32_t action, int64_t key, Stream stream, bool &isIssued);
  /// Ends what begin() began, and launches what was captured. `isIssuedAgain`:
  /// the calls had no effect.
  int end(uint32_t action, Stream stream, bool &isIssuedAgain);

  /// Returns true if calls are recorded now.
  bool isCapturing() const { return capturing; }
  /// Says why a call could not be recorded; the first reason counts.
  void reject(std::string reason);

  /// Graphs that were captured.
  uint64_t getCount() const { return count; }

private:
  struct Action {
    bool hasRun = false;
    bool isEager = false;
    std::vector<GraphExec> graphs; // by key; null: not captured yet
  };

  void makeEager(uint32_t action);

  const Driver *driver = nullptr;
  const penstock_program *program = nullptr;
  uint32_t device = 0;
  std::vector<Action> actions;
  int64_t key = 0; // of the action that has begun
  bool capturing = false;
  std::string reason; // why it cannot be captured
  uint64_t count = 0;
};

} // namespace penstock::runtime::cuda

#endif // PENSTOCK_RUNTIME_DEVICE_CUDA_GRAPHS_H
