//===- Chimera.cpp - Two pipelines in opposite directions -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Li and Hoefler (SC 2021). Two replicas of every stage: one pipeline runs down
// the devices, one up, with every other microbatch each. Units of p
// microbatches follow each other without a gap. Bubble (p - 2) / (2 M + p - 2)
// where B = F.
//
// p = 4, M = 4 (even microbatches down, odd ones up):
//   0: F0 .  F2 F1 B1 F3 B3 B0 .  B2
//   1: .  F0 F1 F2 F3 B1 B0 B3 B2 .
//   2: .  F1 F0 F3 F2 B0 B1 B2 B3 .
//   3: F1 .  F3 F0 B0 F2 B2 B1 .  B3
//===----------------------------------------------------------------------===//

#include "Families.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace penstock::schedule {

static std::vector<Order> generateChimera(const Problem &problem) {
  int64_t p = problem.devices, each = problem.microbatches / 2;
  std::vector<Order> orders;
  for (int64_t d = 0; d < p; ++d) {
    // No two of these slots are the same, as p is even.
    std::vector<std::pair<int64_t, int>> slots;
    for (int64_t stage : {d, p - 1 - d})
      for (int64_t k = 0; k < each; ++k) {
        int64_t unit = k / (p / 2) * 2 * p, local = k % (p / 2);
        slots.push_back({unit + stage + 2 * local, problem.task('F', stage)});
        slots.push_back(
            {unit + p + (p - 1 - stage) + 2 * local, problem.task('B', stage)});
      }
    llvm::sort(slots);
    std::vector<int> runs;
    for (auto [slot, task] : slots)
      runs.push_back(task);
    orders.push_back(buildOrder(problem, d, runs));
  }
  return orders;
}

/// Each direction has every other microbatch, and meets the other halfway.
static std::string checkEven(int64_t number, const std::string &what) {
  if (number % 2 == 0)
    return "";
  std::string error = "schedule chimera needs an even number of " + what +
                      ", not " + std::to_string(number) + "; use ";
  if (number > 1)
    error += std::to_string(number - 1) + " or ";
  return error + std::to_string(number + 1);
}

static std::string refuseChimera(const Problem &problem) {
  std::string error = checkEven(problem.devices, "devices");
  return error.empty() ? checkEven(problem.microbatches, "microbatches")
                       : error;
}

const Family kChimera = {{"chimera", {}}, Placement::Mirror, false,
                         oneChunk,        refuseChimera,     generateChimera};

} // namespace penstock::schedule
