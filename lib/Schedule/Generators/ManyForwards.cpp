//===- ManyForwards.cpp - All forwards of an update, then its backwards ---===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// nF1B of TiMePReSt (2024), as far as its abstract and summaries describe it: a
// device forwards all microbatches of one update, then goes back through those
// of an earlier one, and updates. It never flushes. Forwards are as many
// updates ahead as there are devices behind, which is the least that leaves no
// device idle, or `ahead` updates where that is fewer.
//
// p = 3, M = 2:
//   0: F0 F1 F2 F3 F4 F5 B0 B1 F6 F7 B2 B3 ...
//   1: .  F0 F1 F2 F3 B0 B1 F4 F5 B2 B3 F6 F7 ...
//   2: .  .  F0 F1 B0 B1 F2 F3 B2 B3 F4 F5 ...
//===----------------------------------------------------------------------===//

#include "Families.h"

#include "../Tables.h"

#include <algorithm>

namespace penstock::schedule {

/// The microbatches of an update are written out.
static constexpr int64_t kMostMicrobatches = 64;

static int64_t getAhead(const Problem &problem, int device) {
  int64_t behind = problem.devices - 1 - device;
  int64_t ahead = problem.spec.getWhole("ahead");
  return ahead > 0 ? std::min(ahead, behind) : behind;
}

static std::vector<Order> generateManyForwards(const Problem &problem) {
  std::vector<Order> orders;
  for (int i = 0; i < problem.devices; ++i) {
    Order order = openOrder(i, LoopKind::Microbatches);
    Loop &loop = order.loops.front();
    loop.count = problem.microbatches;
    for (int64_t k = 0; k < problem.microbatches; ++k)
      append(loop, problem.task('F', i), getAhead(problem, i));
    for (int64_t k = 0; k < problem.microbatches; ++k)
      append(loop, problem.task('B', i));
    append(loop, problem.task('U', i));
    orders.push_back(std::move(order));
  }
  return orders;
}

static std::string refuseManyForwards(const Problem &problem) {
  int64_t ahead = problem.spec.getWhole("ahead"), most = problem.devices - 1;
  if (ahead > most)
    return "schedule nf1b on " + std::to_string(problem.devices) +
           (problem.devices == 1 ? " device" : " devices") +
           " runs forwards at most " + formatCount(most, "update") +
           " ahead, not " + std::to_string(ahead) + ": use " +
           (most > 0 ? "ahead=" + std::to_string(most) + " or leave it out"
                     : "it without ahead");
  if (problem.microbatches > kMostMicrobatches)
    return "schedule nf1b writes out the microbatches of an update, at most " +
           std::to_string(kMostMicrobatches) + " per device, not " +
           std::to_string(problem.microbatches) + ": use fewer microbatches";
  return "";
}

static constexpr SpecKey kParameters[] = {
    {.name = "ahead",
     .type = SpecKey::Whole,
     .below = kMostOfKey,
     .wants = "a number of updates, or 0 for as many as there are devices "
              "behind",
     .example = "1"}};

const Family kManyForwards = {
    {"nf1b", kParameters}, Placement::Line,      false, oneChunk,
    refuseManyForwards,    generateManyForwards,
    /*flushes=*/false};

} // namespace penstock::schedule
