//===- ReplicasTest.cpp - Pipes that never drain, of any widths -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// 1F1B in turns as PipeDream has it: how many microbatches are in flight, which
// versions they read, that every segment can run, and how long it takes.
//===----------------------------------------------------------------------===//

#include "Line.h"

#include "penstock/Schedule/Generators.h"
#include "penstock/Schedule/Transfers.h"

#include "gtest/gtest.h"

#include <array>
#include <numeric>

using namespace penstock::schedule;

namespace {

using Widths = std::vector<int64_t>;

/// A line whose stages have so many replicas, with a sum for each.
Line makeLine(const Widths &widths, int64_t microbatches, bool skip = false) {
  Line line(static_cast<int>(widths.size()), microbatches, skip);
  int device = 0;
  for (auto [i, width] : llvm::enumerate(widths)) {
    Stage &stage = line.model.stages[i];
    stage.devices.clear();
    for (int64_t replica = 0; replica < width; ++replica)
      stage.devices.push_back(device++);
    if (width > 1)
      line.model.groups.push_back(
          {"g" + std::to_string(i),
           {line.weight[i] + 1},
           {stage.devices.begin(), stage.devices.end()}});
  }
  line.model.devices = device;
  return line;
}

/// The microbatches of a stage that are in flight when a replica of it begins
/// another one: PipeDream's NOAM, less one for each replica.
int64_t leadOf(const Widths &widths, size_t i) {
  int64_t devices = std::accumulate(widths.begin() + i, widths.end(), 0);
  return (devices + widths[i] - 1) / widths[i] * widths[i] - widths[i];
}

/// Weight stashing.
void setLags(Line &line, const Widths &widths) {
  for (size_t i = 0; i < widths.size(); ++i)
    for (int task : {line.forward[i], line.backward[i]})
      line.model.tasks[task].reads[0].lag = leadOf(widths, i);
}

int64_t leastMicrobatches(const Widths &widths) {
  int64_t turn = 1;
  for (int64_t width : widths)
    turn = std::lcm(turn, width);
  return turn;
}

const Widths kWidths[] = {
    {1},       {3},       {2, 1},       {1, 2},    {3, 1},    {1, 3},
    {2, 3},    {3, 2},    {15, 1},      {1, 15},   {3, 1, 2}, {1, 3, 2},
    {2, 3, 2}, {4, 2, 1}, {2, 1, 1, 3}, {1, 8, 2}, {1, 2, 7}, {9, 5, 1, 1}};

TEST(Replicas, Order) {
  // Two of a stage, one behind them: each has two microbatches in flight, and
  // an update is behind two.
  Line line = makeLine({2, 1}, 2);
  std::vector<Order> orders = generateOpen(line.model);
  EXPECT_EQ(runsOf(line.model, orders[0], 3), "F0 F2 B0 U0 F4 B2 U1 B4 U2 ");
  EXPECT_EQ(runsOf(line.model, orders[1], 3), "F1 F3 B1 U0 F5 B3 U1 B5 U2 ");
  EXPECT_EQ(runsOf(line.model, orders[2], 2), "F0 B0 F1 B1 U0 F2 B2 F3 B3 U1 ");
  // NOAM of PipeDream's 15-1: two for each replica of the first stage.
  line = makeLine({15, 1}, 15);
  orders = generateOpen(line.model);
  EXPECT_EQ(runsOf(line.model, orders[14], 3),
            "F14 F29 B14 U0 F44 B29 U1 B44 U2 ");
}

TEST(Replicas, TransfersKeepRuns) {
  for (const Widths &widths : kWidths)
    for (int64_t updates : {1, 2, 5}) {
      Line line = makeLine(widths, leastMicrobatches(widths) * updates);
      std::vector<Order> runs = generateOpen(line.model), orders = runs;
      ASSERT_EQ(placeTransfers(line.model, orders), std::nullopt);
      for (auto [before, after] : llvm::zip_equal(runs, orders))
        for (int64_t length : {1, 2, 7})
          EXPECT_EQ(runsOf(line.model, before, length),
                    runsOf(line.model, after, length));
    }
}

TEST(Replicas, OpenOrdersHold) {
  for (const Widths &widths : kWidths)
    for (int64_t updates : {1, 2, 3, 24})
      for (bool skip : {false, true}) {
        int64_t M = leastMicrobatches(widths) * updates;
        if (M > 128 || (skip && widths.size() < 3))
          continue;
        Line line = makeLine(widths, M, skip);
        std::vector<Order> orders = generateOpen(line.model);
        ASSERT_EQ(placeTransfers(line.model, orders), std::nullopt);
        std::vector<int64_t> lags = computeForwardLags(line.model, orders);
        for (size_t i = 0; i < widths.size(); ++i)
          EXPECT_EQ(lags[i], leadOf(widths, i));
        setLags(line, widths);
        ASSERT_EQ(line.size(orders), "") << widths.size() << " stages, M " << M;
        // PipeDream's versions: ceil(lag / M) + 1.
        for (size_t i = 0; i < widths.size(); ++i)
          EXPECT_EQ(line.model.variables[line.weight[i]].versions,
                    (lags[i] + M - 1) / M + 1);
        EXPECT_FALSE(verifyOrders(line.model, orders).violation);
        for (int64_t length = 1; length <= 6; ++length)
          EXPECT_TRUE(holdsFor(line.model, orders, length));
      }
}

TEST(Replicas, DrainingOrdersHold) {
  // Whatever the widths; a wide stage behind a narrow one wants more of it.
  for (const char *schedule : {"1f1b", "gpipe", "zb-h1", "zb-h2", "zb-auto"})
    for (const Widths &widths : kWidths)
      for (int64_t updates : {1, 2}) {
        int64_t M = leastMicrobatches(widths) * updates;
        if (M > 32)
          continue;
        Line line = makeLine(widths, M, /*skip=*/true);
        std::optional<std::vector<Order>> orders =
            generate(line.model, schedule);
        ASSERT_TRUE(orders);
        EXPECT_EQ(placeTransfers(line.model, *orders), std::nullopt)
            << schedule << " on " << widths.size() << " stages, M " << M;
        EXPECT_EQ(line.size(*orders), "");
      }
}

TEST(Replicas, NarrowStageGoesOn) {
  // Device 0 of 1F1B runs ahead by two; the second stage wants one more for
  // each of its replicas.
  Line line = makeLine({1, 3, 2}, 6);
  std::vector<Order> orders = *generate(line.model, "1f1b");
  EXPECT_EQ(runsOf(line.model, orders[0], 1),
            "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5 U0 ");
  EXPECT_EQ(runsOf(line.model, orders[1], 1), "F0 F3 B0 B3 U0 ");
  EXPECT_EQ(runsOf(line.model, orders[4], 1), "F0 B0 F2 B2 F4 B4 U0 ");
  // Where nothing waits in a circle, orders stay as they are.
  line = makeLine({3, 1, 2}, 6);
  orders = *generate(line.model, "1f1b");
  EXPECT_EQ(runsOf(line.model, orders[0], 1), "F0 F3 B0 B3 U0 ");
  EXPECT_EQ(runsOf(line.model, orders[3], 1),
            "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 B5 U0 ");
}

TEST(Replicas, MemoryLimitHolds) {
  // A narrow stage that wider ones want more of is refused, not let beyond it.
  int kept = 0, refused = 0;
  for (const Widths &widths : kWidths)
    for (int limit : {1, 2, 3}) {
      int64_t M = leastMicrobatches(widths) * 2;
      if (M > 32)
        continue;
      Line line = makeLine(widths, M);
      std::string error, text = "zb-auto:memory-limit=" + std::to_string(limit);
      ScheduleSpec spec = *parseScheduleSpec(text, error);
      std::optional<std::vector<Order>> orders =
          generate(line.model, spec, {}, error);
      if (!orders) {
        ++refused;
        EXPECT_NE(error.find("microbatches in flight"), std::string::npos)
            << error;
        continue;
      }
      ++kept;
      for (const Order &order : *orders) {
        int inFlight = 0;
        for (char letter : runsOf(line.model, order, 1)) {
          inFlight += letter == 'F' ? 1 : letter == 'B' ? -1 : 0;
          EXPECT_LE(inFlight, limit);
        }
      }
    }
  EXPECT_GT(kept, 20);
  EXPECT_GT(refused, 3);
}

TEST(Replicas, StaleVersionsAreGone) {
  // One version less than PipeDream keeps is too few, on every stage.
  Line line = makeLine({3, 1, 2}, 6);
  std::vector<Order> orders = generateOpen(line.model);
  ASSERT_EQ(placeTransfers(line.model, orders), std::nullopt);
  setLags(line, {3, 1, 2});
  ASSERT_EQ(line.size(orders), "");
  for (size_t i : {0, 1}) {
    --line.model.variables[line.weight[i]].versions;
    std::optional<Violation> violation =
        verifyOrders(line.model, orders).violation;
    ASSERT_TRUE(violation);
    EXPECT_EQ(violation->rule, 3) << violation->message;
    ++line.model.variables[line.weight[i]].versions;
  }
  // And none is there earlier than it says.
  line.model.tasks[line.forward[0]].reads[0].lag = leadOf({3, 1, 2}, 0) - 1;
  EXPECT_TRUE(verifyOrders(line.model, orders).violation);
}

TEST(Replicas, EvaluationInTurns) {
  for (const Widths &widths : kWidths) {
    Line line = makeLine(widths, leastMicrobatches(widths));
    for (size_t i = 0; i < widths.size(); ++i) {
      Task &forward = line.model.tasks[line.forward[i]];
      forward.letter = 'E';
      forward.reads.clear();
    }
    // Forward alone: the other tasks and what joins them are not there.
    Model model = line.model;
    model.tasks.clear();
    model.channels.clear();
    model.variables.clear();
    model.groups.clear();
    std::vector<int> ids(line.model.tasks.size(), -1);
    for (auto [id, task] : llvm::enumerate(line.model.tasks))
      if (task.letter == 'E') {
        ids[id] = model.tasks.size();
        model.tasks.push_back(task);
        model.tasks.back().takes.clear();
        model.tasks.back().puts.clear();
      }
    for (const Channel &channel : line.model.channels) {
      auto isGone = [&](int task) { return task >= 0 && ids[task] < 0; };
      if (isGone(channel.producer) || isGone(channel.consumer))
        continue;
      int id = model.channels.size();
      Channel copy = channel;
      if (copy.producer >= 0) {
        copy.producer = ids[copy.producer];
        model.tasks[copy.producer].puts.push_back(id);
        copy.stagingUsers.sends = {id};
      }
      copy.slotUsers.tasks.clear();
      if (copy.consumer >= 0) {
        copy.consumer = ids[copy.consumer];
        model.tasks[copy.consumer].takes.push_back(id);
        copy.slotUsers.tasks = {copy.consumer};
      }
      model.channels.push_back(copy);
    }
    std::vector<Order> orders = generateEvaluation(model);
    ASSERT_EQ(placeTransfers(model, orders), std::nullopt);
    std::optional<Violation> violation = verifyOrders(model, orders).violation;
    EXPECT_FALSE(violation) << violation->message;
  }
}

/// Time per microbatch of the steady state, in that of a stage whose replicas
/// are all busy.
double slownessOf(const Widths &widths, int64_t microbatches) {
  Line line = makeLine(widths, microbatches);
  std::vector<Order> orders = generateOpen(line.model);
  EXPECT_EQ(placeTransfers(line.model, orders), std::nullopt);
  setLags(line, widths);
  EXPECT_EQ(line.size(orders), "");
  Costs costs;
  for (const Task &task : line.model.tasks) {
    double width = line.model.stages[task.stage].devices.size();
    costs.task.push_back(task.letter == 'U'   ? 0
                         : task.letter == 'F' ? width
                                              : 2 * width);
  }
  costs.channel.resize(line.model.channels.size());
  auto makespan = [&](int64_t updates) {
    Execution execution = execute(
        line.model,
        [&](int device, int64_t n) {
          return expand(line.model, orders[device], n);
        },
        updates, Awaits::Implied, costs);
    EXPECT_FALSE(execution.violation);
    return execution.makespan;
  };
  int64_t fill = getFillUpdates(line.model, orders) + 4;
  return (makespan(2 * fill) - makespan(fill)) /
         (3.0 * static_cast<double>(fill * microbatches));
}

TEST(Replicas, SumsTakeTime) {
  // One microbatch each, and the sum before the update.
  Line line = makeLine({2}, 2);
  auto orders = generate(line.model, "1f1b");
  ASSERT_TRUE(orders.has_value());
  ASSERT_EQ(placeTransfers(line.model, *orders), std::nullopt);
  ASSERT_EQ(line.size(*orders), "");
  Costs costs;
  for (const Task &task : line.model.tasks)
    costs.task.push_back(task.letter == 'F' ? 1 : task.letter == 'B' ? 2 : 0.5);
  costs.group = {4};
  Execution execution = execute(
      line.model,
      [&](int device, int64_t n) {
        return expand(line.model, (*orders)[device], n);
      },
      /*updates=*/2, Awaits::Implied, costs, /*recordRuns=*/true);
  ASSERT_FALSE(execution.violation);
  EXPECT_DOUBLE_EQ(execution.makespan, 2 * (1 + 2 + 4 + 0.5));
}

TEST(Replicas, Throughput) {
  // Behind wide stages, one of a replica hides that they wait for each other.
  const int64_t kUpdates[] = {1, 2, 8};
  for (int64_t updates : kUpdates) {
    EXPECT_DOUBLE_EQ(slownessOf({2, 1}, 2 * updates), 1);
    EXPECT_DOUBLE_EQ(slownessOf({3, 1}, 3 * updates), 1);
    EXPECT_DOUBLE_EQ(slownessOf({15, 1}, 15 * updates), 1);
  }
  // Elsewhere a wide stage waits at every update for the last of its replicas,
  // which is some microbatches behind: the less, the rarer updates are.
  const std::pair<Widths, std::array<double, 3>> kSlow[] = {
      {{1, 3}, {1.34, 1.34, 1.09}},    {{2, 3}, {1.12, 1.09, 1.03}},
      {{3, 1, 2}, {1.34, 1.17, 1.05}}, {{2, 1, 1, 3}, {1.34, 1.17, 1.05}},
      {{4, 2, 1}, {1.51, 1.26, 1.07}}, {{9, 5, 1, 1}, {1.25, 1.22, 1.22}}};
  for (const auto &[widths, most] : kSlow)
    for (auto [index, updates] : llvm::enumerate(kUpdates)) {
      int64_t M = leastMicrobatches(widths) * updates;
      if (M <= 128)
        EXPECT_LE(slownessOf(widths, M), most[index]) << "M " << M;
    }
}

} // namespace
