//===- PlanSettings.h - What --explain lists as candidates ------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A setting is a command line that leaves less open than the user's: the size
// of microbatches, devices and replicas of the stages are said. Cuts are not,
// nor what is recomputed: these are planned for each setting by itself.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_DRIVER_PLANSETTINGS_H
#define PENSTOCK_LIB_DRIVER_PLANSETTINGS_H

#include "penstock/Driver/Options.h"

#include <vector>

namespace penstock {

struct Setting {
  CompileOptions options;
  /// Nodes that are compiled; 0 where nobody asked.
  int64_t units = 0;
  /// The estimated time of an update: settings with the least are tried first.
  /// It decides nothing else.
  double promise = 0;
};

/// The flags that a setting adds to what the user asked for.
std::string getFlags(const CompileOptions &setting,
                     const CompileOptions &asked);

/// Every size of microbatches that is asked about, larger ones first.
std::vector<CompileOptions> getSizes(const CompileOptions &asked);

/// For one size, all settings that there are; with --replicas=auto, every width
/// that all stages may have, and what PipeDream's dynamic program gives to
/// stages of any number of devices. Without any, `error` is what was said.
std::vector<Setting> getSettings(const CompileOptions &size,
                                 std::string &error);

/// Devices and replicas of a plan, as the flags would say them.
void setReplicas(CompileOptions &options, llvm::ArrayRef<int64_t> replicas,
                 int64_t chunks);

} // namespace penstock

#endif // PENSTOCK_LIB_DRIVER_PLANSETTINGS_H
