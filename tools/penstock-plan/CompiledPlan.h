//===- CompiledPlan.h - Plans with the memory of their programs -*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of a model that can be trained, memory need not be reckoned. States are those
// of a line of layers; `compile` says how the model is read, and what is
// trained. Nothing where there is no program at all, and one line on stderr
// that says why.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TOOLS_PENSTOCK_PLAN_COMPILEDPLAN_H
#define PENSTOCK_TOOLS_PENSTOCK_PLAN_COMPILEDPLAN_H

#include "penstock/Driver/Options.h"
#include "penstock/Planner/DoubleBuffer.h"
#include "penstock/Planner/PipeDream.h"

namespace penstock {

/// The fastest plan whose program fits, with the bytes of that, or the one that
/// comes closest.
struct CompiledPlan {
  Plan plan;
  bool fits = false;
};

std::optional<CompiledPlan> planCompiled(const LayerGraph &graph,
                                         const std::vector<PlanState> &states,
                                         PipeDreamOptions options,
                                         CompileOptions compile);

/// The same of PipeDream-2BW.
struct CompiledDoubleBuffer {
  DoubleBufferPlan found;
  bool fits = false;
};

std::optional<CompiledDoubleBuffer>
planCompiled(const LayerGraph &graph, const std::vector<PlanState> &states,
             DoubleBufferOptions options, CompileOptions compile);

} // namespace penstock

#endif // PENSTOCK_TOOLS_PENSTOCK_PLAN_COMPILEDPLAN_H
