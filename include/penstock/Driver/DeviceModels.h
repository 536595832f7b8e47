//===- DeviceModels.h - Devices that need not be there ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a plan for a kind of device takes of it: --device-model, and the flags
// that say the same one by one.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DRIVER_DEVICEMODELS_H
#define PENSTOCK_DRIVER_DEVICEMODELS_H

#include "penstock/Cost/AnalyticCost.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CommandLine.h"

#include <optional>
#include <string>

namespace penstock {

struct DeviceModel {
  MachineRates rates;
  double linkBytesPerSecond = 0; ///< To one other device; 0: not said.
  double memoryBytes = 0;        ///< 0: not said.
  double latencySeconds = 0;     ///< Of a transfer.
};

/// Names of the models that are known, as "a100-80g, h100".
std::string listDeviceModels();

/// Devices of one kind, or of several.
struct DeviceModels {
  /// The first kind, with the least link and memory of all, and the largest
  /// latency.
  DeviceModel model;
  int64_t count = 0; ///< 0: not said.
  /// The products of each device per second, relative to the first one, as
  /// --device-speeds has them; empty where all are alike, and on one host.
  std::string speeds;
};

/// Reads "h100", "h100*8" or "h100*4,a100-80g*4", with semicolons between
/// hosts. Where it is none, `error` says why.
std::optional<DeviceModels> findDeviceModels(llvm::StringRef text,
                                             std::string &error);

/// The flags that describe devices, of several tools.
struct DeviceModelFlags {
  const llvm::cl::opt<std::string> &model, &flops, &memoryBandwidth, &link,
      &latency;

  bool areEmpty() const {
    return model.empty() && flops.empty() && memoryBandwidth.empty() &&
           link.empty() && latency.empty();
  }
};

/// Reads the model, and what flags say of it one by one. Where one of them is
/// wrong, `error` says so.
std::optional<DeviceModel> readDeviceModel(const DeviceModelFlags &flags,
                                           std::string &error);

} // namespace penstock

#endif // PENSTOCK_DRIVER_DEVICEMODELS_H
