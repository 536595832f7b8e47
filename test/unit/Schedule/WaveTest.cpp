//===- WaveTest.cpp - Workers that push and fold waves --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lines beside each other that exchange waves are proved, with as many versions
// and slots as the closed forms say; what breaks the rule of folds is refused.
//===----------------------------------------------------------------------===//

#include "Line.h"

#include "penstock/Schedule/Generators.h"
#include "penstock/Schedule/Transfers.h"

#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

#include <algorithm>

using namespace penstock::schedule;

namespace {

/// Workers of so many stages each.
struct Workers {
  Workers(int workers, int depth, int64_t wave, int64_t distance)
      : depth(depth) {
    model.devices = workers * depth;
    model.wave = wave;
    model.distance = distance;
    int64_t lag = wave - 1;
    for (int v = 0; v < workers; ++v)
      for (int i = 0; i < depth; ++i) {
        std::string name = std::to_string(v) + "." + std::to_string(i);
        Stage stage{"s" + name, {v * depth + i}, v};
        int w = static_cast<int>(model.variables.size());
        for (const char *kind : {"w", "g", "global", "wave"})
          model.variables.push_back({kind + name, 0});
        auto add = [&](char letter, llvm::ArrayRef<Read> reads,
                       llvm::ArrayRef<int> writes) {
          Task task;
          task.name = "s" + name + "." + letter;
          task.letter = letter;
          task.stage = static_cast<int>(model.stages.size());
          task.reads.assign(reads.begin(), reads.end());
          task.writes.assign(writes.begin(), writes.end());
          model.tasks.push_back(std::move(task));
          return static_cast<int>(model.tasks.size()) - 1;
        };
        add('F', {{w, lag}}, {});
        add('B', {{w, lag}, {w + 1, std::nullopt}}, {w + 1});
        int update =
            add('U', {{w, std::nullopt}, {w + 1, std::nullopt}}, {w, w + 1});
        if (distance > 0)
          push.push_back(add('P', {{w, std::nullopt}, {w, wave}}, {w + 3}));
        else
          push.push_back(
              add('P', {{w, std::nullopt}, {w + 2, std::nullopt}}, {w + 3}));
        llvm::SmallVector<Read> reads = {{w + 2, std::nullopt}};
        for (int64_t lag = distance; lag >= 0 && distance > 0; --lag)
          reads.push_back({w + 3, lag});
        fold.push_back(add('S', reads, {w, w + 2}));
        model.variables[w].updater = model.variables[w + 1].updater = update;
        model.variables[w].folder = fold.back();
        model.variables[w + 2].updater = fold.back();
        model.variables[w + 3].updater = push.back();
        model.stages.push_back(std::move(stage));
      }
    for (int v = 0; v < workers; ++v)
      for (int i = 0; i < depth; ++i) {
        int first = 5 * (v * depth + i);
        std::string name = std::to_string(v) + "." + std::to_string(i);
        model.addChannel("residuals" + name, first, first + 1);
        if (i + 1 < depth) {
          model.addChannel("h" + name, first, first + 5);
          model.addChannel("dh" + name, first + 6, first + 1);
        }
        for (int u = 0; u < workers; ++u)
          if (u != v) {
            int channel =
                model.addChannel("wave" + name + "." + std::to_string(u),
                                 first + 3, 5 * (u * depth + i) + 4);
            model.channels[channel].ownQueue = !model.channels[channel].local;
            waves.push_back(channel);
          }
      }
  }

  /// Everything on device 0, as the replay has it.
  void merge() {
    model.devices = 1;
    for (Stage &stage : model.stages)
      stage.devices = {0};
    for (Channel &channel : model.channels) {
      channel.local = channel.producer >= 0 && channel.consumer >= 0;
      channel.ownQueue = false;
      channel.stagingUsers = {};
    }
  }

  std::vector<Order> generate() {
    std::vector<Order> orders = generateWaves(model);
    EXPECT_EQ(placeTransfers(model, orders), std::nullopt);
    return orders;
  }

  Model model;
  int depth;
  std::vector<int> push, fold, waves;
};

/// The entry of a run, which must be there.
Item &findRun(std::vector<Order> &orders, int task) {
  for (Order &order : orders)
    for (Item &item : order.loops.front().items)
      if (item.kind == EventKind::Run && item.id == task)
        return item;
  llvm_unreachable("a run of the task");
}

TEST(Wave, RunsOfTheFirstDevice) {
  Workers workers(2, 2, 2, 1);
  std::vector<Order> orders = workers.generate();
  EXPECT_EQ(runsOf(workers.model, orders[0], 6),
            "F0 F1 B0 U0 F2 B1 U1 P0 F3 B2 U2 F4 B3 U3 P1 S0 F5 B4 U4 B5 U5 "
            "P2 S1 S2 ");
}

TEST(Wave, ProvedWithTheLeastStorage) {
  for (int count : {2, 3})
    for (int depth : {1, 2, 3})
      for (int64_t wave : {1, 2, 3, 4})
        for (int64_t distance : {0, 1, 2}) {
          Workers workers(count, depth, wave, distance);
          Proof proof = verifyOrders(workers.model, workers.generate());
          std::string what = std::to_string(count) + " workers of " +
                             std::to_string(depth) + ", wave " +
                             std::to_string(wave) + ", distance " +
                             std::to_string(distance);
          ASSERT_FALSE(proof.violation)
              << what << ": " << proof.violation->message;
          for (size_t stage = 0; stage < workers.model.stages.size(); ++stage) {
            // One more where what the wave began with is read from the ring.
            EXPECT_EQ(proof.needs.versions[4 * stage],
                      wave + (distance > 0 ? 1 : 0))
                << what;
            EXPECT_LE(proof.needs.versions[4 * stage + 3], distance + 1);
          }
          for (int channel : workers.waves)
            EXPECT_EQ(proof.needs.slots[channel], distance + 1) << what;
        }
}

TEST(Wave, ReplayOnOneDevice) {
  for (int64_t wave : {1, 2, 3})
    for (int64_t distance : {0, 1, 2}) {
      Workers workers(3, 2, wave, distance);
      workers.merge();
      std::vector<Order> orders = generateReplay(workers.model);
      ASSERT_EQ(placeTransfers(workers.model, orders), std::nullopt);
      Proof proof = verifyOrders(workers.model, orders);
      ASSERT_FALSE(proof.violation) << proof.violation->message;
    }
}

TEST(Wave, OwnQueuesLetNobodyWait) {
  // The first worker takes twice as long; the second is as far ahead as the
  // distance allows, and no transfer of its line waits for a wave.
  Workers workers(2, 1, 2, 2);
  std::vector<Order> orders = workers.generate();
  Costs costs;
  for (const Task &task : workers.model.tasks)
    costs.task.push_back(task.perWave() ? 0 : task.stage == 0 ? 2 : 1);
  costs.channel.assign(workers.model.channels.size(), 0);
  Execution execution = execute(
      workers.model,
      [&](int device, int64_t updates) {
        return expand(workers.model, orders[device], updates);
      },
      20, Awaits::Implied, costs, /*recordRuns=*/true);
  ASSERT_FALSE(execution.violation) << execution.violation->message;
  // Wave c of the second worker needs wave c - 3 of the first to begin.
  std::vector<double> pushed[2];
  for (const Interval &run : execution.runs)
    if (workers.model.tasks[run.task].letter == 'P')
      pushed[run.device].push_back(run.end);
  ASSERT_EQ(pushed[0].size(), 10u);
  ASSERT_EQ(pushed[1].size(), 10u);
  for (size_t wave = 0; wave < 10; ++wave) {
    EXPECT_EQ(pushed[0][wave], 12.0 * double(wave + 1));
    double alone = 6.0 * double(wave + 1);
    double bound = wave < 3 ? 0 : pushed[0][wave - 3] + 6;
    EXPECT_EQ(pushed[1][wave], std::max(alone, bound)) << wave;
  }
}

TEST(Wave, RefusesWhatComesElsewhere) {
  auto refuse = [](Workers &workers, const std::vector<Order> &orders) {
    Proof proof = verifyOrders(workers.model, orders);
    EXPECT_TRUE(proof.violation);
    return proof.violation ? std::to_string(proof.violation->rule) + ": " +
                                 proof.violation->message
                           : "";
  };
  {
    // A wave earlier than the distance says.
    Workers workers(2, 1, 2, 1);
    std::vector<Order> orders = workers.generate();
    findRun(orders, workers.fold[0]).ahead = 0;
    EXPECT_EQ(refuse(workers, orders),
              "10: device 0: run @s0.0.S of wave 0 comes after 2 runs of "
              "@s0.0.U, not 4");
  }
  {
    // Later.
    Workers workers(2, 1, 2, 1);
    std::vector<Order> orders = workers.generate();
    findRun(orders, workers.fold[1]).ahead = -4;
    std::string why = refuse(workers, orders);
    EXPECT_NE(why.find("10: device 1: "), std::string::npos) << why;
  }
  {
    // Not at all.
    Workers workers(2, 1, 2, 1);
    std::vector<Order> orders = workers.generate();
    llvm::erase_if(orders[0].loops.front().items, [&](const Item &item) {
      return item.kind == EventKind::Run && item.id == workers.fold[0];
    });
    EXPECT_EQ(refuse(workers, orders),
              "1: device 0 runs @s0.0.S 0 times per wave, not 1 time");
  }
  {
    // A slot too few.
    Workers workers(2, 1, 2, 2);
    std::vector<Order> orders = workers.generate();
    workers.model.channels[workers.waves[0]].slots = 2;
    std::string why = refuse(workers, orders);
    EXPECT_NE(why.find("5: device 1: "), std::string::npos) << why;
  }
  {
    // A lag that asks for what is gone, or not there.
    Workers workers(2, 1, 2, 1);
    std::vector<Order> orders = workers.generate();
    for (Variable &variable : workers.model.variables)
      variable.versions = 3;
    workers.model.tasks[0].reads[0].lag = 4;
    EXPECT_NE(refuse(workers, orders).find("3: device 0: "), std::string::npos);
  }
}

} // namespace
