//===- SimulateTest.cpp - Bubbles against closed forms --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With free transfers, the blocking execution of the placed orders is as fast
// as the schedule itself: (M + p - 1) (F + B), bubble (p - 1) / (M + p - 1).
//===----------------------------------------------------------------------===//

#include "Line.h"

#include "penstock/Schedule/Generators.h"
#include "penstock/Schedule/Simulator.h"
#include "penstock/Schedule/Timeline.h"
#include "penstock/Schedule/Transfers.h"

#include "gtest/gtest.h"

using namespace penstock::schedule;

namespace {

Execution simulate(const Line &line, llvm::ArrayRef<Order> orders, double f,
                   double b, double comm, int64_t updates = 1) {
  Costs costs;
  for (const Task &task : line.model.tasks)
    costs.task.push_back(task.letter == 'F'   ? f
                         : task.letter == 'B' ? b
                         : task.perUpdate()   ? 0
                                              : b / 2); // A half.
  for (const Channel &channel : line.model.channels)
    costs.channel.push_back(channel.hasPeer() ? comm : 0);
  return execute(
      line.model,
      [&](int device, int64_t n) {
        return expand(line.model, orders[device], n);
      },
      updates, Awaits::Implied, costs, true);
}

TEST(Simulate, ClosedForms) {
  for (const char *name : {"gpipe", "1f1b"})
    for (bool skip : {false, true})
      for (int p = 1; p <= 8; ++p)
        for (int m = 1; m <= 12; ++m) {
          Line line(p, m, skip);
          auto orders = generate(line.model, name);
          ASSERT_TRUE(orders.has_value());
          ASSERT_EQ(placeTransfers(line.model, *orders), std::nullopt);
          ASSERT_EQ(line.size(*orders), "") << name << " " << p << " " << m;
          ASSERT_FALSE(verifyOrders(line.model, *orders).violation);
          for (double b : {1.0, 2.0, 3.0}) {
            Execution execution = simulate(line, *orders, 1, b, 0);
            ASSERT_FALSE(execution.violation);
            double ideal = (m + p - 1) * (1 + b);
            // The sequence of transfers supposes B = 2 F; where a far one
            // shares the queue of near ones, other costs may have to wait.
            if (skip && b != 2) {
              EXPECT_LE(execution.makespan, 1.15 * ideal);
              continue;
            }
            EXPECT_DOUBLE_EQ(execution.makespan, ideal)
                << name << " p = " << p << ", M = " << m << ", skip " << skip;
            EXPECT_NEAR(computeBubble(line.model, execution),
                        double(p - 1) / (m + p - 1), 1e-12);
          }
        }
}

TEST(Simulate, ZeroBubble) {
  // The closed forms of the runs, (p - 1) (F + I - W) and nothing at all, hold
  // with transfers between them.
  std::string error;
  for (int p = 1; p <= 6; ++p)
    for (int m : {2 * p, 2 * p + 3, 32})
      for (const char *name : {"zb-h1", "zb-h2"}) {
        Problem problem(*parseScheduleSpec(name, error), p, m);
        std::vector<Order> orders = generate(problem);
        Line line(1, 1);
        line.model = problem.model;
        ASSERT_EQ(placeTransfers(line.model, orders), std::nullopt);
        ASSERT_EQ(line.size(orders), "") << name << " " << p << " " << m;
        auto makespan = [&](int64_t updates) {
          return simulate(line, orders, 1, 2, 0, updates).makespan;
        };
        EXPECT_DOUBLE_EQ(makespan(1), 3 * m + p - 1)
            << name << " " << p << " " << m;
        EXPECT_DOUBLE_EQ(makespan(4) - makespan(3),
                         name == std::string("zb-h2") ? 3 * m : 3 * m + p - 1)
            << name << " " << p << " " << m;
      }
}

TEST(Simulate, UnevenStages) {
  // Where stages differ, transfers come in the sequence in which these stages
  // send, not that of even ones: free ones delay no run. An order of a single
  // loop keeps it, with the sequence of even stages.
  const double shares[] = {1.09, 0.63, 0.71, 1.27, 0.94, 1.38, 0.83, 1.21, 0.52,
                           1.13, 0.97, 0.88, 1.31, 0.58, 1.02, 1.44, 0.77};
  std::string error;
  for (const char *name :
       {"interleaved", "looped-bfs", "zb-h2", "zb-auto", "zb-v", "v-half",
        "v-min", "dualpipe-v", "chimera", "hanayo"})
    for (int p : {2, 4, 6})
      for (int m : {2 * p, 4 * p})
        for (size_t next : {0, 1, 2, 3, 4}) {
          Problem problem(*parseScheduleSpec(name, error), p, m);
          ASSERT_EQ(checkProblem(problem), "");
          auto share = [&] { return shares[next++ % std::size(shares)]; };
          for (int stage = 0; stage < problem.stages; ++stage)
            problem.stageTimes.push_back({share(), share(), share(), 0});
          Costs costs;
          costs.channel.resize(problem.model.channels.size());
          for (size_t task = 0; task < problem.model.tasks.size(); ++task)
            costs.task.push_back(problem.getTime(int(task)));

          std::vector<Order> orders = generate(problem);
          double makespan = simulate(problem, orders).withBarrier;
          Line line(1, 1);
          line.model = problem.model;
          ASSERT_EQ(placeTransfers(line.model, orders, costs.task),
                    std::nullopt);
          ASSERT_EQ(line.size(orders), "") << name << " " << p << " " << m;
          Execution execution = execute(
              line.model,
              [&](int device, int64_t n) {
                return expand(line.model, orders[device], n);
              },
              1, Awaits::Implied, costs, true);
          ASSERT_FALSE(execution.violation);
          EXPECT_NEAR(execution.makespan, makespan, 1e-9 * makespan)
              << name << " p = " << p << ", M = " << m;
        }
}

TEST(Simulate, MessagesInFlight) {
  // 1F1B holds min(p - i, M) microbatches at stage i, gpipe all M.
  for (int p = 1; p <= 6; ++p)
    for (int m = 1; m <= 9; ++m) {
      Line line(p, m);
      for (const char *name : {"gpipe", "1f1b"}) {
        auto orders = generate(line.model, name);
        ASSERT_EQ(placeTransfers(line.model, *orders), std::nullopt);
        ASSERT_EQ(line.size(*orders), "");
        for (int i = 0; i < p; ++i) {
          int id = line.channel("residuals" + std::to_string(i));
          EXPECT_EQ(line.model.channels[id].slots,
                    name[0] == 'g' ? m : std::min(p - i, m));
        }
        for (int id : line.weight)
          EXPECT_EQ(line.model.variables[id].versions, 1);
      }
    }
}

TEST(Simulate, TransfersTakeTime) {
  // Two stages, one microbatch: F, transfer, F, B, transfer, B.
  Line line(2, 1);
  auto orders = generate(line.model, "1f1b");
  ASSERT_EQ(placeTransfers(line.model, *orders), std::nullopt);
  ASSERT_EQ(line.size(*orders), "");
  EXPECT_DOUBLE_EQ(simulate(line, *orders, 1, 2, 0.25).makespan, 6.5);
}

TEST(Simulate, Timeline) {
  Line line(2, 4);
  auto orders = generate(line.model, "1f1b");
  ASSERT_EQ(placeTransfers(line.model, *orders), std::nullopt);
  ASSERT_EQ(line.size(*orders), "");
  std::vector<std::string> lines =
      drawTimeline(line.model, simulate(line, *orders, 1, 1, 0));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "F0 F1 .  B0 F2 B1 F3 B2 .  B3 U");
  EXPECT_EQ(lines[1], ".  F0 B0 F1 B1 F2 B2 F3 B3 U");
}

} // namespace
