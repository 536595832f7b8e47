//===- PlanPrinter.h - Plans for people and programs ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plan as a table that says which layers, on how many devices, and why; and
// as JSON.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PLANNER_PLANPRINTER_H
#define PENSTOCK_PLANNER_PLANPRINTER_H

#include "penstock/Planner/DoubleBuffer.h"
#include "penstock/Planner/Plan.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace penstock {

/// A plan with what it is about.
struct PlanReport {
  const LayerGraph &graph;
  const std::vector<PlanState> &states;
  const Plan &plan;
  /// The plan of PipeDream-2BW; null for others.
  const DoubleBufferPlan *doubleBuffer = nullptr;
  std::string title; ///< Model, devices and algorithm.
};

/// 0.0123 as "12.300 ms".
std::string formatSeconds(double seconds);
/// 1536 as "1.5 KiB".
std::string formatBytes(double bytes);

void printPlan(const PlanReport &report, llvm::raw_ostream &stream);

/// {"stages": [{"first", "last", "replicas", ..}], "slowest_seconds",
/// "speedup_over_one", ..}
llvm::json::Value toJson(const PlanReport &report);

} // namespace penstock

#endif // PENSTOCK_PLANNER_PLANPRINTER_H
