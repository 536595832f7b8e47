//===- VShape.cpp - Two chunks per device, down and up again --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device i holds stages i and 2p - 1 - i: input and loss are both on the first.
// ZB-V: Qi et al. (ICLR 2024), the memory of 1F1B on every device and no bubble
// in unit times. V-Half and V-Min: Qi et al. (NeurIPS 2024), about a half and a
// third of it. A prime marks the second chunk.
//
// zb-v, p = 2, M = 5:
//   0: F0 F1 F2 F0' I0' W0' F1' I1' W1' F3 I0 W0 F2' I2' W2' F4 I1 W1 ...
//   1: .  F0 F0' F1 F1' I0' W0' F2 I0 W0 F2' ...
//
// v-half and v-min repeat a block of four runs every six units; where each of
// them stands is the formula below. W go where nothing else is.
//===----------------------------------------------------------------------===//

#include "Greedy.h"

#include <algorithm>
#include <deque>

using namespace llvm;

namespace penstock::schedule {

static int twoChunks(const ScheduleSpec &) { return 2; }

namespace {

/// The runs of one device, written one by one; those for which no microbatch is
/// left are dropped.
class Writer {
public:
  Writer(const Problem &problem, int device)
      : problem(problem), stages{device, 2 * problem.devices - 1 - device},
        left(problem.model.tasks.size(), problem.microbatches) {}

  bool add(char letter, int chunk) {
    int task = problem.task(letter, stages[chunk]);
    if (left[task] == 0)
      return false;
    --left[task];
    runs.push_back(task);
    return true;
  }
  int64_t countLeft(char letter, int chunk) const {
    return left[problem.task(letter, stages[chunk])];
  }

  std::vector<int> runs;

private:
  const Problem &problem;
  int stages[2];
  std::vector<int64_t> left;
};

} // namespace

static std::vector<int> writeZeroBubbleV(const Problem &problem, int i) {
  int p = problem.devices;
  Writer writer(problem, i);
  auto addGroup = [&](int chunk) {
    writer.add('F', chunk);
    if (writer.add('I', chunk))
      writer.add('W', chunk);
  };
  // Warm-up: 2p - 1 forwards.
  for (int n = 0; n < 2 * (p - i) - 1; ++n)
    writer.add('F', 0);
  for (int n = 0; n < i; ++n) {
    writer.add('F', 1);
    writer.add('F', 0);
  }
  // Until all forwards are done.
  for (int n = 0; n < p - 1 - i; ++n)
    if (writer.countLeft('F', 1) > 0)
      addGroup(1);
  while (writer.countLeft('F', 0) > 0 || writer.countLeft('F', 1) > 0) {
    addGroup(1);
    if (writer.countLeft('F', 0) > 0 || writer.countLeft('F', 1) > 0)
      addGroup(0);
  }
  return writer.runs;
}

static std::vector<Order> generateZeroBubbleV(const Problem &problem) {
  std::vector<std::vector<int>> lists;
  for (int i = 0; i < problem.devices; ++i)
    lists.push_back(writeZeroBubbleV(problem, i));
  // Then whatever backward is there, of the first chunk first, and W when there
  // is none.
  Greedy greedy(problem, Greedy::Clock::Unit);
  std::vector<size_t> written(problem.devices);
  greedy.run([&](int device) -> Greedy::Choice {
    size_t at = greedy.runs[device].size();
    if (at < lists[device].size())
      return greedy.choose(lists[device][at]);
    int second = 2 * problem.devices - 1 - device;
    Greedy::Choice best;
    for (auto [letter, stage] : {std::pair('I', device),
                                 {'I', second},
                                 {'W', second},
                                 {'W', device}}) {
      Greedy::Choice choice = greedy.choose(problem.task(letter, stage));
      if (choice.start < best.start)
        best = choice;
    }
    return best;
  });
  std::vector<Order> orders;
  for (int i = 0; i < problem.devices; ++i)
    orders.push_back(buildOrder(problem, i, greedy.runs[i]));
  return orders;
}

/// Offsets of F, F', I', I of microbatch 0 on device i; the others follow six
/// units apart.
static std::vector<Order>
generateBlocks(const Problem &problem,
               function_ref<std::array<int64_t, 4>(int64_t i)> offsets) {
  std::vector<Order> orders;
  for (int i = 0; i < problem.devices; ++i) {
    std::array<int64_t, 4> first = offsets(i);
    int other = 2 * problem.devices - 1 - i;
    const std::array<int, 4> tasks = {
        problem.task('F', i), problem.task('F', other),
        problem.task('I', other), problem.task('I', i)};
    std::vector<std::pair<int64_t, int>> placed;
    for (int64_t k = 0; k < problem.microbatches; ++k)
      for (auto [offset, task] : llvm::zip_equal(first, tasks))
        placed.push_back({offset + 6 * k, task});
    llvm::sort(placed);
    std::vector<int> runs;
    std::deque<int> weights;
    int64_t now = placed.front().first;
    for (auto [slot, task] : placed) {
      for (; now < slot && !weights.empty(); ++now) {
        runs.push_back(weights.front());
        weights.pop_front();
      }
      now = slot + 1;
      runs.push_back(task);
      if (problem.getLetter(task) == 'I')
        weights.push_back(problem.task('W', problem.getStage(task)));
    }
    runs.insert(runs.end(), weights.begin(), weights.end());
    orders.push_back(buildOrder(problem, i, runs));
  }
  return orders;
}

static std::vector<Order> generateHalf(const Problem &problem) {
  int64_t p = problem.devices, c = p % 2 == 0 ? 3 : 0;
  return generateBlocks(problem, [&](int64_t i) -> std::array<int64_t, 4> {
    return {2 * i, 3 * p - i - 2, 3 * p + c + 2 * i - 1, 6 * p + c - i - 2};
  });
}

static std::vector<Order> generateMin(const Problem &problem) {
  int64_t p = problem.devices, c = p % 3 == 0 ? 2 : 0;
  return generateBlocks(problem, [&](int64_t i) -> std::array<int64_t, 4> {
    return {i, 2 * p - i - 1, 2 * p + c + i, 4 * p + c - i - 1};
  });
}

// DeepSeek's DualPipe (2024), cut in half: forward of one chunk and backward of
// the other in pairs X, which run here one after the other.
//
// dualpipe-v, p = 2, M = 4 (B = I W):
//   0: F F F F' F F' B' ...
static std::vector<Order> generateDualPipe(const Problem &problem) {
  int64_t p = problem.devices, m = problem.microbatches;
  std::vector<Order> orders;
  for (int r = 0; r < p; ++r) {
    Writer writer(problem, r);
    std::deque<int> weights;
    auto forward = [&](int chunk) { writer.add('F', chunk); };
    auto input = [&](int chunk) {
      writer.add('I', chunk);
      weights.push_back(chunk);
    };
    auto weight = [&] {
      writer.add('W', weights.front());
      weights.pop_front();
    };
    auto backward = [&](int chunk) {
      writer.add('I', chunk);
      writer.add('W', chunk);
    };
    auto times = [](int64_t count, auto body) {
      for (int64_t n = 0; n < count; ++n)
        body(n);
    };
    times(2 * (p - r - 1), [&](int64_t) { forward(0); });
    times(r + 1, [&](int64_t) { forward(0), forward(1); });
    times(p - r - 1, [&](int64_t) { input(1), weight(), forward(1); });
    times(m - 2 * p + r + 1, [&](int64_t) {
      forward(0), backward(1);
      forward(1), backward(0);
    });
    times(p - r - 1, [&](int64_t) { backward(1), forward(1), backward(0); });
    bool apart = false;
    auto maybeApart = [&](int chunk) {
      apart ? input(chunk) : backward(chunk);
    };
    times(r + 1, [&](int64_t n) {
      bool middle = n == (r + 1) / 2;
      apart |= middle && r % 2 == 1;
      maybeApart(1);
      apart |= middle && r % 2 == 0;
      maybeApart(0);
    });
    times(p - r - 1, [&](int64_t) { weight(), input(0); });
    times(r + 1, [&](int64_t) { weight(); });
    orders.push_back(buildOrder(problem, r, writer.runs));
  }
  return orders;
}

static std::string refuseDualPipe(const Problem &problem) {
  if (problem.microbatches >= 2 * problem.devices)
    return "";
  return "schedule dualpipe-v on " + std::to_string(problem.devices) +
         " devices needs at least " + std::to_string(2 * problem.devices) +
         " microbatches, not " + std::to_string(problem.microbatches);
}

const Family kZeroBubbleV = {{"zb-v", {}}, Placement::Wave,    true, twoChunks,
                             nullptr,      generateZeroBubbleV};
const Family kVHalf = {{"v-half", {}}, Placement::Wave, true,
                       twoChunks,      nullptr,         generateHalf};
const Family kVMin = {{"v-min", {}}, Placement::Wave, true,
                      twoChunks,     nullptr,         generateMin};
const Family kDualPipeV = {{"dualpipe-v", {}}, Placement::Wave, true, twoChunks,
                           refuseDualPipe,     generateDualPipe};

} // namespace penstock::schedule
