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

/// A known model, or the one that a JSON file describes. Where there is none,
/// `error` says why.
std::optional<DeviceModel> findDeviceModel(llvm::StringRef name,
                                           std::string &error);

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

/// Reads "67TFLOPS", "3.35TB/s" or "1e9": a number of at least 1 with a
/// decimal prefix or, of bytes, a binary one, and a unit that may be left out.
std::optional<double> parseRate(llvm::StringRef text);

/// Reads "5us", "0.2ms" or "5e-6", which are seconds.
std::optional<double> parseSeconds(llvm::StringRef text);

} // namespace penstock

#endif // PENSTOCK_DRIVER_DEVICEMODELS_H
