//===- OneForwardOneBackward.cpp - Backward as soon as there is one -------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PipeDream-Flush, or 1F1B: Narayanan et al. (ICML 2021). The bubble of GPipe,
// with at most p - i microbatches in flight on device i.
//
// p = 3, M = 4:
//   0: F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3 U
//   1: .  F0 F1 .  B0 F2 B1 F3 B2 .  B3 U
//   2: .  .  F0 B0 F1 B1 F2 B2 F3 B3 U
//===----------------------------------------------------------------------===//

#include "Families.h"

namespace penstock::schedule {

static std::vector<Order> generateFlush(const Problem &problem) {
  std::vector<Order> orders;
  for (int i = 0; i < problem.devices; ++i) {
    Order order = openOrder(i, LoopKind::Updates);
    Loop loop{LoopKind::Times, problem.microbatches, {}};
    append(loop, problem.task('F', i), problem.devices - 1 - i);
    append(loop, problem.task('B', i));
    appendLoop(order, std::move(loop));
    appendUpdates(problem, order);
    orders.push_back(std::move(order));
  }
  return orders;
}

const Family kOneForwardOneBackward = {
    {"1f1b", {}}, Placement::Line, false, oneChunk, nullptr, generateFlush};

} // namespace penstock::schedule
