//===- BudgetSearch.h - How much stages may store ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Residuals that are not stored are made again, which takes memory, too: what a
// stage needs is known when it has been built with a budget, and may well grow
// as the budget falls.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PLANNER_BUDGETSEARCH_H
#define PENSTOCK_PLANNER_BUDGETSEARCH_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace penstock {

/// The measured memory of a stage that was built.
struct BuiltStage {
  int64_t need = 0;   ///< Bytes of its device.
  int64_t stored = 0; ///< Bytes of residuals per microbatch.
  int64_t slots = 1;  ///< For how many microbatches.
  int64_t fixed = 0;  ///< Of `need`, what no budget changes, as far as known.
};

/// Builds stages with budgets of residuals per microbatch, -1 for none; nothing
/// if they cannot be built.
using BuildStages = std::function<std::optional<std::vector<BuiltStage>>(
    llvm::ArrayRef<int64_t> budgets)>;

class BudgetSearch {
public:
  BudgetSearch(int64_t limit, BuildStages build)
      : limit(limit), build(std::move(build)) {}

  /// Lowers the budgets of stages that do not fit, by what is missing, until
  /// all fit or nothing helps. Whether it could be built.
  bool lower();
  /// Where all fit: raises what was lowered as far as it still fits, between
  /// what did and what did not.
  void raise();

  bool fits() const { return worst <= limit; }
  /// The plan that fits, or comes closest: none if nothing is lowered.
  llvm::ArrayRef<int64_t> getBudgets() const { return budgets; }
  /// Bytes of the device of each stage.
  llvm::ArrayRef<int64_t> getNeeds() const { return needs; }

private:
  /// Builds, and learns.
  std::optional<std::vector<BuiltStage>> tryBudgets(std::vector<int64_t> trial);
  std::optional<int64_t> getLower(size_t stage, const BuiltStage &built,
                                  int64_t budget) const;
  std::optional<int64_t> getBetween(size_t stage, int64_t slots) const;

  int64_t limit;
  BuildStages build;
  std::vector<int64_t> budgets, needs;
  int64_t worst = 0;
  /// The bytes that a stage needed, by the bytes that it stored; for every
  /// stage.
  std::vector<std::map<int64_t, int64_t>> known;
};

} // namespace penstock

#endif // PENSTOCK_PLANNER_BUDGETSEARCH_H
