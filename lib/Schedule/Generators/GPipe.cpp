//===- GPipe.cpp - All forward, then all backward -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Huang et al., GPipe (NeurIPS 2019). Bubble (p - 1) / (M + p - 1).
//
// p = 3, M = 4:
//   0: F0 F1 F2 F3 .  .  .  .  B0 B1 B2 B3 U
//   1: .  F0 F1 F2 F3 .  .  B0 B1 B2 B3 U
//   2: .  .  F0 F1 F2 F3 B0 B1 B2 B3 U
//===----------------------------------------------------------------------===//

#include "Families.h"

namespace penstock::schedule {

static std::vector<Order> generateGPipe(const Problem &problem) {
  std::vector<Order> orders;
  for (int i = 0; i < problem.devices; ++i) {
    Order order = openOrder(i, LoopKind::Updates);
    Loop forward{LoopKind::Times, problem.microbatches, {}};
    Loop backward = forward;
    append(forward, problem.task('F', i));
    append(backward, problem.task('B', i));
    appendLoop(order, std::move(forward));
    appendLoop(order, std::move(backward));
    appendUpdates(problem, order);
    orders.push_back(std::move(order));
  }
  return orders;
}

const Family kGPipe = {{"gpipe", {}}, Placement::Line, false,
                       oneChunk,      nullptr,         generateGPipe};

} // namespace penstock::schedule
