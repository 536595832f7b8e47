//===- UnequalPlan.h - Plans for devices of different speed -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What --device-speeds prints: the line of every worker, how long its waves
// take, and how long it waits for the others.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TOOLS_PENSTOCK_PLAN_UNEQUALPLAN_H
#define PENSTOCK_TOOLS_PENSTOCK_PLAN_UNEQUALPLAN_H

#include "penstock/Planner/UnequalDevices.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace penstock {

void printUnequal(const UnequalPlan &plan, const LayerGraph &graph,
                  const UnequalOptions &options, llvm::raw_ostream &stream);

llvm::json::Value toJson(const UnequalPlan &plan, const LayerGraph &graph,
                         const UnequalOptions &options);

} // namespace penstock

#endif // PENSTOCK_TOOLS_PENSTOCK_PLAN_UNEQUALPLAN_H
