//===- PlanArguments.h - What the command line asks for ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The flags of penstock-plan, checked as far as the words alone tell.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TOOLS_PENSTOCK_PLAN_PLANARGUMENTS_H
#define PENSTOCK_TOOLS_PENSTOCK_PLAN_PLANARGUMENTS_H

#include "penstock/Cost/AnalyticCost.h"
#include "penstock/Driver/Options.h"
#include "penstock/Planner/DoubleBuffer.h"
#include "penstock/Planner/PipeDream.h"
#include "penstock/Planner/UnequalDevices.h"

namespace penstock {

struct PlanArguments {
  std::string input;
  bool isModel = false;   ///< Not a profile.
  bool isTrained = false; ///< A model with a loss.
  std::string algorithm;
  std::string devices, deviceMemory; ///< As they were written.
  double total = 1;                  ///< Devices of all levels.
  PipeDreamOptions pipeDream;
  DoubleBufferOptions doubleBuffer;
  /// The devices of --device-speeds; empty without it.
  std::vector<DeviceKind> kinds;
  UnequalOptions unequal;
  std::string policy;
  /// Options of a model: how it is read, and what its programs have in common.
  CompileOptions compile;
  bool measures = false; ///< What nodes cost.
  /// Rates of the devices that a model is planned for, if they are not this
  /// machine.
  std::optional<MachineRates> rates;
  bool asJson = false;
};

/// Nothing on a mistake, and one line on stderr.
std::optional<PlanArguments> parseArguments(int argc, const char *const *argv);

} // namespace penstock

#endif // PENSTOCK_TOOLS_PENSTOCK_PLAN_PLANARGUMENTS_H
