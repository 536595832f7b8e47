//===- CompiledPlan.h - Plans with the memory of their programs -*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of a model that can be trained, memory need not be reckoned.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TOOLS_PENSTOCK_PLAN_COMPILEDPLAN_H
#define PENSTOCK_TOOLS_PENSTOCK_PLAN_COMPILEDPLAN_H

#include "penstock/Driver/Options.h"
#include "penstock/Planner/PipeDream.h"

namespace penstock {

/// Whether a state is its layers in their order, up to one of them: so do
/// programs cut.
bool isLine(const std::vector<PlanState> &states);

/// On one level of devices, the fastest plan whose program `fits`, with the
/// bytes of that, or the one that comes closest. Nothing where there is no such
/// program, and one line on stderr that says why.
std::optional<Plan> planCompiled(const LayerGraph &graph,
                                 const std::vector<PlanState> &states,
                                 PipeDreamOptions options,
                                 CompileOptions compile, bool &fits);

} // namespace penstock

#endif // PENSTOCK_TOOLS_PENSTOCK_PLAN_COMPILEDPLAN_H
