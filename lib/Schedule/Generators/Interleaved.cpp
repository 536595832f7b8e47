//===- Interleaved.cpp - Chunks of stages in a loop of devices ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Narayanan et al. (SC 2021): 1F1B with v chunks per device; chunk c of device
// i is stage c * p + i, and p microbatches at a time go through each chunk. The
// bubble of 1F1B, divided by v. And breadth-first: Lamy-Poirier (MLSys 2023),
// all microbatches through a chunk before the next.
//
// interleaved, p = 2, v = 2, M = 4 (0, 1: first chunk; 2, 3: second):
//   0: 0F0 0F1 2F0 2F1 0F2 .   2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3
//   1: .   1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3
//===----------------------------------------------------------------------===//

#include "Families.h"

namespace penstock::schedule {

static int getChunks(const ScheduleSpec &spec) {
  return static_cast<int>(spec.get("chunks"));
}

/// The loop is over rounds of p microbatches; its entry number q runs the
/// forward that is w virtual microbatches further, and the backward of its own.
static Order interleave(const Problem &problem, int i) {
  int p = problem.devices, v = problem.spec.chunks(), round = p * v;
  Order order = openOrder(i, LoopKind::Updates);
  Loop forward{LoopKind::Times, problem.microbatches / p, {}};
  Loop backward = forward;
  // With a single round, all forwards come first.
  bool one = problem.microbatches == p;
  int ahead = one ? 0 : 2 * (p - i - 1) + (v - 1) * p;
  for (int q = 0; q < round; ++q) {
    int x = q + ahead;
    append(forward, problem.task('F', x % round / p * p + i), x / round);
    append(one ? backward : forward,
           problem.task('B', (v - 1 - q / p) * p + i));
  }
  appendLoop(order, std::move(forward));
  appendLoop(order, std::move(backward));
  appendUpdates(problem, order);
  return order;
}

static std::vector<Order> generateInterleaved(const Problem &problem) {
  std::vector<Order> orders;
  for (int i = 0; i < problem.devices; ++i)
    orders.push_back(interleave(problem, i));
  return orders;
}

static std::string refuseInterleaved(const Problem &problem) {
  if (problem.microbatches % problem.devices == 0)
    return "";
  return "schedule interleaved on " + std::to_string(problem.devices) +
         " devices needs a multiple of " + std::to_string(problem.devices) +
         " microbatches, not " + std::to_string(problem.microbatches);
}

// looped-bfs, p = 2, v = 2, M = 3:
//   0: 0F0 0F1 0F2 2F0 2F1 2F2 .   2B0 2B1 2B2 0B0 0B1 0B2
//   1: .   1F0 1F1 1F2 3F0 3F1 3F2 3B0 3B1 3B2 1B0 1B1 1B2
static std::vector<Order> generateBreadthFirst(const Problem &problem) {
  std::vector<Order> orders;
  for (int i = 0; i < problem.devices; ++i) {
    Order order = openOrder(i, LoopKind::Updates);
    auto addChunk = [&](char letter, int chunk) {
      Loop loop{LoopKind::Times, problem.microbatches, {}};
      append(loop, problem.task(letter, chunk * problem.devices + i));
      appendLoop(order, std::move(loop));
    };
    int chunks = problem.spec.chunks();
    for (int chunk = 0; chunk < chunks; ++chunk)
      addChunk('F', chunk);
    for (int chunk = chunks - 1; chunk >= 0; --chunk)
      addChunk('B', chunk);
    appendUpdates(problem, order);
    orders.push_back(std::move(order));
  }
  return orders;
}

static constexpr SpecKey kParameters[] = {
    {.name = "chunks",
     .type = SpecKey::Whole,
     .fallback = 2,
     .least = 1,
     .below = kMostOfKey,
     .wants = "a whole number of at least 1",
     .example = ""}};

const Family kInterleaved = {{"interleaved", kParameters},
                             Placement::Loop,
                             false,
                             getChunks,
                             refuseInterleaved,
                             generateInterleaved};

const Family kLoopedBreadthFirst = {
    {"looped-bfs", kParameters}, Placement::Loop, false, getChunks, nullptr,
    generateBreadthFirst};

} // namespace penstock::schedule
