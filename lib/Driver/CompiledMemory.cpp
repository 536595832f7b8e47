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

int64_t penstock::getMicrobatches(ArrayRef<int64_t> replicas) {
  int64_t microbatches = 1;
  for (int64_t width : replicas)
    microbatches = std::lcm(microbatches, width);
  return microbatches;
}

bool Compilation::loadUnits(int64_t expected, std::string &reason) {
  // Of a candidate nothing is written.
  if (plan(Level::Graph, std::numeric_limits<double>::infinity()) != kDone)
    return false; // It has been said why.
  FailureOr<int64_t> units = countUnits(*module);
  if (failed(units))
    return false;
  if (*units != expected)
    reason = "its stages are cut between other nodes";
  return *units == expected;
}

std::optional<std::vector<int64_t>>
Compilation::measurePlan(const StagePlan &plan, int64_t units,
                         std::string &reason) {
  if (!loadUnits(units, reason))
    return std::nullopt;
  std::optional<Report> report = tryPlan(plan, {});
  if (!report) {
    reason = "no plan could be compiled";
    return std::nullopt;
  }
  return getNeeds(*report);
}

std::optional<StageSearchResult>
Compilation::searchPlans(const StageSearchProblem &problem,
                         std::string &reason) {
  if (!loadUnits(static_cast<int64_t>(problem.floorBytes.size()), reason))
    return std::nullopt;
  std::vector<MeasuredPlan> measured;
  StageSearchResult result = searchStages(
      problem,
      [&](const StagePlan &plan) -> std::optional<std::vector<int64_t>> {
        options.microbatches = getMicrobatches(plan.replicas);
        if (options.microbatches > kMostMicrobatches)
          return std::nullopt;
        std::optional<Report> report = tryPlan(plan, {});
        if (!report)
          return std::nullopt;
        measured.push_back({plan, getNeeds(*report)});
        return measured.back().bytes;
      });
  result.measured = std::move(measured);
  if (result.bytes.empty())
    reason = result.trials > 0 ? "no plan could be compiled"
                               : "the weights alone take more than the limit";
  return result;
}

std::optional<std::vector<int64_t>>
penstock::measureCompiled(const CompileOptions &options, const StagePlan &plan,
                          int64_t units, std::string &reason) {
  llvm::raw_string_ostream log(reason);
  return Compilation(options, log).measurePlan(plan, units, reason);
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
