//===- DeviceSpeeds.h - Lines of devices of unlike speed --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// --device-speeds: stages are cut, and updates simulated, by what the device of
// each stage does in a second.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_DRIVER_DEVICESPEEDS_H
#define PENSTOCK_LIB_DRIVER_DEVICESPEEDS_H

#include "penstock/Driver/Options.h"

#include <string>
#include <vector>

namespace penstock {

/// Sets the speeds, and stages where nothing says how many there are. On a
/// mistake, what is wrong in `error`.
bool adoptDeviceSpeeds(llvm::StringRef text, CompileOptions &options,
                       bool saysStages, std::string &error);

/// Returns those of the stages of all workers; empty: they are equal.
std::vector<double> listDeviceSpeeds(const CompileOptions &options);

} // namespace penstock

#endif // PENSTOCK_LIB_DRIVER_DEVICESPEEDS_H
