//===- ProgramFlags.h - The command line that makes a plan ------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plan of a model is as good as the program that it stands for: what
// penstockc is told to make that.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TOOLS_PENSTOCK_PLAN_PROGRAMFLAGS_H
#define PENSTOCK_TOOLS_PENSTOCK_PLAN_PROGRAMFLAGS_H

#include "penstock/Driver/Options.h"
#include "penstock/Planner/LayerGraph.h"
#include "penstock/Planner/StageSearch.h"

#include <string>
#include <vector>

namespace penstock {

/// The model and all flags but -o. Nothing where --split-at cannot name a cut.
std::vector<std::string> getFlags(const CompileOptions &program,
                                  const StagePlan &plan,
                                  const LayerGraph &graph);

} // namespace penstock

#endif // PENSTOCK_TOOLS_PENSTOCK_PLAN_PROGRAMFLAGS_H
