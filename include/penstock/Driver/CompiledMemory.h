//===- CompiledMemory.h - Plans that fit, by their programs -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For planners outside of penstockc: what the program of a plan allocates.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DRIVER_COMPILEDMEMORY_H
#define PENSTOCK_DRIVER_COMPILEDMEMORY_H

#include "penstock/Driver/Options.h"
#include "penstock/Planner/StageSearch.h"

namespace penstock {

/// As many microbatches per update as all numbers of replicas divide.
int64_t getMicrobatches(llvm::ArrayRef<int64_t> replicas);

/// Returns, per stage, the most bytes that one of its devices allocates when
/// the model is cut like this; the options say everything else. Returns
/// nothing, and sets `reason`, if that cannot be compiled or if the number of
/// the model's nodes that compute is not `units`.
std::optional<std::vector<int64_t>>
measureCompiled(const CompileOptions &options, const StagePlan &plan,
                int64_t units, std::string &reason);

/// Searches with every plan compiled down to its memory, with
/// `getMicrobatches` of its replicas. The problem is about the nodes of the
/// model that compute, in their order. Nothing, and why, where it cannot be
/// compiled or has other nodes.
std::optional<StageSearchResult>
searchCompiled(const CompileOptions &options, const StageSearchProblem &problem,
               std::string &reason);

} // namespace penstock

#endif // PENSTOCK_DRIVER_COMPILEDMEMORY_H
