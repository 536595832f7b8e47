//===- VerifyTest.cpp - Proofs against brute force ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is proved from a few segments must be what walking and executing many
// finds. Orders are damaged at random, so that most of them are wrong
// somewhere.
//===----------------------------------------------------------------------===//

#include "Line.h"

#include "penstock/Schedule/Generators.h"
#include "penstock/Schedule/Transfers.h"

#include "gtest/gtest.h"

#include <random>

using namespace penstock::schedule;

namespace {

/// 1F1B without flushes, and its transfers.
std::vector<Order> openOrders(const Line &line) {
  std::vector<Order> orders = generateOpen(line.model);
  EXPECT_EQ(placeTransfers(line.model, orders), std::nullopt);
  return orders;
}

void setLags(Line &line, int stage, int64_t forward,
             std::optional<int64_t> backward) {
  line.model.tasks[line.forward[stage]].reads[0].lag = forward;
  line.model.tasks[line.backward[stage]].reads[0].lag = backward;
}

TEST(Verify, VersionsOfReplay) {
  // Everything in turn: a lag of L microbatches needs ceil(L / M) + 1 versions,
  // the last of them only after so many updates.
  for (int64_t microbatches : {1, 2, 3})
    for (int64_t lag = 0; lag <= 7; ++lag) {
      Line line(1, microbatches);
      setLags(line, 0, lag, lag);
      auto orders = generateReplay(line.model);
      ASSERT_EQ(placeTransfers(line.model, orders), std::nullopt);
      ASSERT_EQ(line.size(orders), "");
      EXPECT_EQ(line.model.variables[line.weight[0]].versions,
                (lag + microbatches - 1) / microbatches + 1);
    }
}

TEST(Verify, VersionsPresentInOpenOrders) {
  // How many updates a stage has done when it runs F and B of the microbatches
  // 0 .. 11, with an update after every backward: the golden numbers of
  // PipeDream with four stages.
  const std::vector<int64_t> forwardOf[] = {
      {0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8},
      {0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
      {0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
      {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}};
  const std::vector<int64_t> backwardOf = {0, 1, 2, 3, 4,  5,
                                           6, 7, 8, 9, 10, 11};
  Line line(4, 1);
  std::vector<Order> orders = generateOpen(line.model);
  for (int i = 0; i < 4; ++i) {
    std::vector<int64_t> forward, backward;
    int64_t updates = 0;
    for (const Event &event : eventsOf(line.model, orders[i], 12)) {
      char letter = line.model.tasks[event.id].letter;
      if (letter == 'F')
        forward.push_back(updates);
      else if (letter == 'B')
        backward.push_back(updates);
      else if (letter == 'U')
        ++updates;
    }
    EXPECT_EQ(forward, forwardOf[i]) << "stage " << i;
    EXPECT_EQ(backward, backwardOf) << "stage " << i;
    for (int64_t k = 0; k < 12; ++k)
      EXPECT_EQ(versionRead(k, 3 - i, 1), forwardOf[i][k]);
  }
  // 2BW: max(floor(k / M) - 1, 0), whatever the stage.
  const int64_t delayed[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1};
  for (int64_t k = 0; k < 12; ++k)
    EXPECT_EQ(versionRead(k, 4, 4), delayed[k]);
}

TEST(Verify, LeadsOfOpenOrders) {
  for (int p = 1; p <= 6; ++p)
    for (int64_t microbatches : {1, 2, 4, 8}) {
      Line line(p, microbatches);
      std::vector<int64_t> expected;
      for (int i = 0; i < p; ++i)
        expected.push_back(p - 1 - i);
      EXPECT_EQ(computeForwardLags(line.model, generateOpen(line.model)),
                expected);
    }
}

TEST(Verify, VersionsOfPipeDream) {
  // Weight stashing keeps p - i versions at stage i; one less is not enough.
  for (int p = 1; p <= 6; ++p) {
    Line line(p, 1);
    for (int i = 0; i < p; ++i)
      setLags(line, i, p - 1 - i, p - 1 - i);
    auto orders = openOrders(line);
    ASSERT_EQ(line.size(orders), "");
    for (int i = 0; i < p; ++i)
      EXPECT_EQ(line.model.variables[line.weight[i]].versions, p - i);
    EXPECT_FALSE(verifyOrders(line.model, orders).violation);
    for (int i = 0; i + 1 < p; ++i) {
      --line.model.variables[line.weight[i]].versions;
      Proof proof = verifyOrders(line.model, orders);
      ASSERT_TRUE(proof.violation);
      EXPECT_EQ(proof.violation->rule, 3) << proof.violation->message;
      ++line.model.variables[line.weight[i]].versions;
    }
  }
}

TEST(Verify, VersionsOfOtherMethods) {
  for (int p = 1; p <= 5; ++p)
    for (int m = 1; m <= 9; ++m) {
      // 2BW: lag M everywhere, two versions, feasible where F runs at most M
      // ahead.
      Line line(p, m);
      auto orders = openOrders(line);
      for (int i = 0; i < p; ++i)
        setLags(line, i, m, m);
      std::string wrong = line.size(orders);
      EXPECT_EQ(wrong.empty(), m >= p - 1) << wrong;
      if (wrong.empty())
        for (int i = 0; i < p; ++i)
          EXPECT_EQ(line.model.variables[line.weight[i]].versions, 2);

      // Naive and PipeMare: the newest, one version.
      for (int i = 0; i < p; ++i)
        setLags(line, i, p - 1 - i, 0);
      ASSERT_EQ(line.size(orders), "");
      for (int i = 0; i < p; ++i)
        EXPECT_EQ(line.model.variables[line.weight[i]].versions, 1);

      // Weight stashing with M microbatches: ceil(a / M) + 1.
      for (int i = 0; i < p; ++i)
        setLags(line, i, p - 1 - i, p - 1 - i);
      ASSERT_EQ(line.size(orders), "");
      for (int i = 0; i < p; ++i)
        EXPECT_EQ(line.model.variables[line.weight[i]].versions,
                  (p - 1 - i + m - 1) / m + 1);

      // Where only F reads it, one is enough.
      for (int i = 0; i < p; ++i)
        setLags(line, i, p - 1 - i, std::nullopt);
      ASSERT_EQ(line.size(orders), "");
      for (int i = 0; i < p; ++i)
        EXPECT_EQ(line.model.variables[line.weight[i]].versions, 1);
    }
}

TEST(Verify, AgreesWithManySegments) {
  std::mt19937 random(11);
  auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  int right = 0, wrong = 0;
  for (int round = 0; round < 1500; ++round) {
    // 1. A schedule that holds.
    int p = pick(1, 4), m = pick(1, 4);
    Line line(p, m, pick(0, 1));
    bool open = pick(0, 1);
    std::vector<Order> orders;
    if (open) {
      for (int i = 0; i < p; ++i)
        setLags(line, i, p - 1 - i, pick(0, 1) ? 0 : p - 1 - i);
      orders = openOrders(line);
    } else {
      orders = *generate(line.model, pick(0, 1) ? "gpipe" : "1f1b");
      ASSERT_EQ(placeTransfers(line.model, orders), std::nullopt);
    }
    ASSERT_EQ(line.size(orders), "");

    // 2. Damage it.
    for (int damage = pick(0, 2); damage > 0; --damage) {
      Order &order = orders[pick(0, p - 1)];
      Loop &loop = order.loops[pick(0, order.loops.size() - 1)];
      int at = pick(0, loop.items.size() - 1);
      switch (pick(0, 4)) {
      case 0:
        std::swap(loop.items[at], loop.items[pick(0, loop.items.size() - 1)]);
        break;
      case 1:
        if (loop.items[at].loop < 0)
          loop.items[at].ahead += pick(-1, 2);
        break;
      case 2: {
        Channel &channel =
            line.model.channels[pick(0, line.model.channels.size() - 1)];
        channel.slots = std::max<int64_t>(1, channel.slots + pick(-1, 1));
        break;
      }
      case 3: {
        Task &task = line.model.tasks[pick(0, line.model.tasks.size() - 1)];
        if (task.letter != 'U' && task.reads[0].lag)
          *task.reads[0].lag = pick(0, 4);
        break;
      }
      default: {
        Variable &variable = line.model.variables[line.weight[pick(0, p - 1)]];
        variable.versions =
            std::max<int64_t>(1, variable.versions + pick(-1, 1));
      }
      }
    }

    // 3. The proof against 20 segments.
    Proof proof = verifyOrders(line.model, orders);
    bool holds = true;
    for (int64_t n = 1; n <= 20 && holds; ++n)
      holds = holdsFor(line.model, orders, n);
    EXPECT_EQ(!proof.violation, holds)
        << "round " << round << ": "
        << (proof.violation ? proof.violation->message : "proved");
    (holds ? right : wrong)++;
  }
  // Both kinds were tried.
  EXPECT_GT(right, 300);
  EXPECT_GT(wrong, 300);
}

TEST(Verify, StepsAreLinear) {
  Line line(64, 256);
  auto orders = generate(line.model, "1f1b");
  ASSERT_EQ(placeTransfers(line.model, *orders), std::nullopt);
  ASSERT_EQ(line.size(*orders), "");
  Proof proof = verifyOrders(line.model, *orders);
  ASSERT_FALSE(proof.violation);
  EXPECT_LT(proof.steps, 4000000);
  EXPECT_LE(proof.segments, 4);
}

TEST(Verify, OneSegmentStandsForShorterOnes) {
  // With one microbatch, updates of 128 stages are in flight at once: steps as
  // the square of the stages, not as their cube.
  const int p = 128;
  Line line(p, 1);
  for (int i = 0; i < p; ++i)
    setLags(line, i, p - 1 - i, p - 1 - i);
  auto orders = openOrders(line);
  ASSERT_EQ(line.size(orders), "");
  Proof proof = verifyOrders(line.model, orders);
  ASSERT_FALSE(proof.violation);
  EXPECT_GE(proof.segments, p);
  EXPECT_LT(proof.steps, 200 * p * p);
}

/// Events of one device, written out, under the rules of orders.
std::string walkEvents(const Line &line, std::vector<Event> events) {
  EventList stream(std::move(events));
  Needs needs;
  int64_t steps = 0;
  auto violation =
      walkDevice(line.model, 0, stream, 1, Awaits::Implied, needs, steps);
  return violation
             ? "S" + std::to_string(violation->rule) + ": " + violation->message
             : "";
}

TEST(Verify, EndOfSegment) {
  Line line(1, 1);
  int x = line.channel("x"), y = line.channel("labels"),
      loss = line.channel("loss");
  using enum EventKind;
  std::vector<Event> events;
  auto add = [&](EventKind kind, int id, int64_t number = 0) {
    events.push_back({kind, id, number, 0, -1});
  };
  add(Recv, x);
  add(Recv, y);
  add(Run, line.forward[0]);
  add(Send, loss);
  add(Run, line.backward[0]);
  EXPECT_EQ(walkEvents(line, events),
            "S1: device 0: in a segment of 1 update @s0.U runs 0 times, not 1");
  add(Run, line.update[0]);
  EXPECT_EQ(walkEvents(line, events), "");
  add(Recv, x, 1);
  EXPECT_EQ(walkEvents(line, events),
            "S6: device 0: in a segment of 1 update @x is not empty at the "
            "end: 2 received, 1 taken");
  events.pop_back();
  events.erase(events.begin() + 3);
  EXPECT_EQ(walkEvents(line, events),
            "S6: device 0: in a segment of 1 update @loss is not empty at the "
            "end: 1 put, 0 sent");
}

TEST(Verify, SumsOfGroups) {
  // Two replicas; their gradient is summed before the update.
  Line line(1, 2);
  line.model.stages[0].devices = {0, 1};
  line.model.devices = 2;
  line.model.groups.push_back({"g", {line.weight[0] + 1}, {0, 1}});
  std::vector<Order> orders = {
      makeOrder(0, LoopKind::Updates, 1,
                {entry(EventKind::Run, line.forward[0]),
                 entry(EventKind::Run, line.backward[0])},
                {entry(EventKind::Run, line.update[0])})};
  orders.push_back(orders[0]);
  orders[1].device = 1;
  EXPECT_EQ(line.size(orders),
            "device 0 sends @loss 0 times per update, not 1 time");
  ASSERT_EQ(placeTransfers(line.model, orders), std::nullopt);
  EXPECT_EQ(line.size(orders), "");
  EXPECT_FALSE(verifyOrders(line.model, orders).violation);

  // After the update, and before the backward.
  std::vector<Item> &items = orders[1].loops[0].items;
  ASSERT_EQ(items.size(), 3u);
  std::swap(items[1], items[2]);
  EXPECT_EQ(line.size(orders), "device 1: run @s0.U of update 0 comes before "
                               "all_reduce @g of update 0");
  std::swap(items[1], items[2]);
  std::swap(items[0], items[1]);
  EXPECT_EQ(line.size(orders), "device 1: all_reduce @g of update 0 stands "
                               "after 0 runs of @s0.B, not 1");
}

TEST(Verify, NeverSettles) {
  // All forward of the segment, then all backward: what is in between grows
  // with the segment.
  Line line(1, 1);
  for (Variable &variable : line.model.variables)
    variable.updater = -1;
  line.model.tasks[line.update[0]].reads.clear();
  auto stream = [&](int, int64_t updates) {
    std::vector<Event> events;
    using enum EventKind;
    for (int64_t t = 0; t < updates; ++t) {
      events.push_back({Recv, line.channel("x"), t, t, -1});
      events.push_back({Recv, line.channel("labels"), t, t, -1});
      events.push_back({Run, line.forward[0], t, t, -1});
      events.push_back({Send, line.channel("loss"), t, t, -1});
    }
    for (int64_t t = 0; t < updates; ++t) {
      events.push_back({Run, line.backward[0], t, updates, -1});
      events.push_back({Run, line.update[0], t, updates, -1});
    }
    return std::make_unique<EventList>(std::move(events));
  };
  Proof proof = verifyAll(line.model, stream, 1, Awaits::Implied);
  ASSERT_TRUE(proof.violation);
  EXPECT_EQ(proof.violation->message,
            "the execution does not settle within 66 updates");
}

//===----------------------------------------------------------------------===//
// Device programs: awaits are events
//===----------------------------------------------------------------------===//

class ExplicitAwaits : public testing::Test {
protected:
  ExplicitAwaits() : line(2, 1) {
    for (Channel &channel : line.model.channels)
      channel.slots = channel.staging = 1;
  }

  Event at(EventKind kind, int id, int64_t number = 0) {
    return {kind, id, number, 0, -1};
  }

  std::string walk(std::vector<Event> events) {
    EventList stream(std::move(events));
    Needs needs;
    int64_t steps = 0;
    auto violation =
        walkDevice(line.model, 0, stream, 1, Awaits::Explicit, needs, steps);
    return violation ? violation->message : "";
  }

  Line line;
};

TEST_F(ExplicitAwaits, Needed) {
  int x = line.channel("x"), h = line.channel("h1"), dh = line.channel("dh1");
  int f = line.forward[0], b = line.backward[0], u = line.update[0];
  using enum EventKind;
  EXPECT_EQ(walk({at(Recv, x), at(Await, x), at(Run, f), at(Send, h),
                  at(Recv, dh), at(Await, dh), at(Run, b), at(Run, u)}),
            "");
  EXPECT_EQ(walk({at(Recv, x), at(Run, f)}),
            "device 0: run @s0.F of microbatch 0 takes from @x without "
            "awaiting the message");
  EXPECT_EQ(walk({at(Await, x), at(Recv, x)}),
            "device 0: await @x of microbatch 0 stands before the transfer "
            "that it awaits");
  // Transfers with peers end in order: dh1 covers h1, not the other way round.
  EXPECT_EQ(walk({at(Recv, x), at(Await, x), at(Run, f), at(Send, h),
                  at(Recv, dh), at(Await, h), at(Run, b)}),
            "device 0: run @s0.B of microbatch 0 takes from @dh1 without "
            "awaiting the message");
  // A negative number waits for nothing.
  EXPECT_EQ(walk({at(Await, h, -1), at(Recv, x), at(Run, f)}),
            "device 0: run @s0.F of microbatch 0 takes from @x without "
            "awaiting the message");
}

TEST_F(ExplicitAwaits, BeforeStagingIsUsedAgain) {
  line.model.microbatches = 2;
  line.model.channels[line.channel("x")].slots = 2;
  line.model.channels[line.channel("residuals0")].slots = 2;
  int x = line.channel("x"), h = line.channel("h1");
  int f = line.forward[0];
  using enum EventKind;
  EXPECT_EQ(walk({at(Recv, x), at(Recv, x, 1), at(Await, x, 1), at(Run, f),
                  at(Send, h), at(Run, f, 1)}),
            "device 0: run @s0.F of microbatch 1 overwrites microbatch 0 of "
            "@h1 in the storage of @h1 without awaiting its send");
}

TEST_F(ExplicitAwaits, WrongNumber) {
  int x = line.channel("x");
  using enum EventKind;
  EXPECT_EQ(walk({at(Recv, x, 1)}),
            "device 0: recv @x of microbatch 1 comes where recv @x of "
            "microbatch 0 is due");
  EXPECT_EQ(walk({at(Run, line.forward[1])}),
            "device 0: run @s1.F of microbatch 0 does not belong here");
  EXPECT_EQ(walk({at(Send, line.channel("residuals0"))}),
            "device 0: send @residuals0 of microbatch 0: both ends of the "
            "channel are on this device");
}

} // namespace
