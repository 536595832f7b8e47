//===- CompiledMemory.cpp - Plans that fit, by their programs -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See CompiledMemory.h.
//===----------------------------------------------------------------------===//

#include "penstock/Driver/CompiledMemory.h"

#include "Compilation.h"
#include "PlanSearch.h"

#include <limits>
#include <numeric>

using namespace mlir;
using namespace penstock;

std::optional<StageSearchResult>
Compilation::searchPlans(const StageSearchProblem &problem,
                         std::string &reason) {
  // Of a candidate nothing is written.
  if (plan(Level::Graph, std::numeric_limits<double>::infinity()) != kDone)
    return std::nullopt; // It has been said why.
  FailureOr<int64_t> units = countUnits(*module);
  if (failed(units))
    return std::nullopt;
  if (*units != static_cast<int64_t>(problem.floorBytes.size())) {
    reason = "its stages are cut between other nodes";
    return std::nullopt;
  }
  StageSearchResult result = searchStages(
      problem,
      [&](const StagePlan &plan) -> std::optional<std::vector<int64_t>> {
        options.microbatches = 1;
        for (int64_t width : plan.replicas)
          options.microbatches = std::lcm(options.microbatches, width);
        if (options.microbatches > kMostMicrobatches)
          return std::nullopt;
        std::optional<Report> report = tryPlan(plan, {});
        if (!report)
          return std::nullopt;
        return getNeeds(*report);
      });
  if (result.bytes.empty())
    reason = result.trials > 0 ? "no plan could be compiled"
                               : "the weights alone take more than the limit";
  return result;
}

std::optional<StageSearchResult>
penstock::searchCompiled(const CompileOptions &options,
                         const StageSearchProblem &problem,
                         std::string &reason) {
  llvm::raw_string_ostream log(reason);
  std::optional<StageSearchResult> result =
      Compilation(options, log).searchPlans(problem, reason);
  return reason.empty() ? result : std::nullopt;
}
