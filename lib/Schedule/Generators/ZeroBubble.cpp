//===- ZeroBubble.cpp - Weight gradients fill the gaps --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Qi et al., Zero Bubble Pipeline Parallelism (ICLR 2024). The half of a
// backward that nobody waits for runs later: with the memory of 1F1B (ZB-H1,
// bubble (p - 1) (F + I - W)), or twice that (ZB-H2, (p - 1) (F + I - 2 W)).
// The latter has no bubble in unit times, where the update is no barrier.
//
// zb-h1, p = 3, M = 4:
//   0: F0 F1 F2 .  .  I0 W0 F3 I1 W1 .  I2 W2 I3 W3
//   1: .  F0 F1 .  I0 F2 I1 W0 F3 I2 W1 I3 W2 W3
//   2: .  .  F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3
//
// zb-h2, p = 3, M = 5:
//   0: F0 F1 F2 F3 F4 I0 W0 I1 W1 I2 W2 I3 W3 I4 W4
//   1: .  F0 F1 F2 I0 F3 I1 F4 I2 W0 I3 W1 I4 W2 W3 W4
//   2: .  .  F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 W0 W1 W2 W3 W4
//===----------------------------------------------------------------------===//

#include "Families.h"

namespace penstock::schedule {

/// With F as far ahead of I on the last device as nothing, on the others as
/// `depth` times the devices that follow; W as far behind as the devices
/// before.
static std::vector<Order> generateHandcrafted(const Problem &problem,
                                              int depth) {
  std::vector<Order> orders;
  for (int i = 0; i < problem.devices; ++i) {
    Order order = openOrder(i, LoopKind::Updates);
    Loop loop{LoopKind::Times, problem.microbatches, {}};
    append(loop, problem.task('F', i), depth * (problem.devices - 1 - i));
    append(loop, problem.task('I', i));
    append(loop, problem.task('W', i), -depth * i);
    appendLoop(order, std::move(loop));
    appendUpdates(problem, order);
    orders.push_back(std::move(order));
  }
  return orders;
}

static std::vector<Order> generateH1(const Problem &problem) {
  return generateHandcrafted(problem, 1);
}

static std::vector<Order> generateH2(const Problem &problem) {
  return generateHandcrafted(problem, 2);
}

const Family kZeroBubbleH1 = {{"zb-h1", {}}, Placement::Line, true,
                              oneChunk,      nullptr,         generateH1};
const Family kZeroBubbleH2 = {{"zb-h2", {}}, Placement::Line, true,
                              oneChunk,      nullptr,         generateH2};

} // namespace penstock::schedule
