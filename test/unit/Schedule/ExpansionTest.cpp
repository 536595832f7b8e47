//===- ExpansionTest.cpp - Orders against their definition ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lazy expansion against the sentence that defines `ahead` and `every`, and
// the generators against the rules of their papers.
//===----------------------------------------------------------------------===//

#include "Line.h"

#include "penstock/Schedule/Generators.h"

#include "gtest/gtest.h"

#include <random>

using namespace penstock::schedule;

namespace {

/// Entry e runs in iteration j when 0 <= j + a < c and (j + a + 1) mod m = 0.
std::vector<int> byDefinition(const Loop &loop, int64_t count) {
  std::vector<int> result;
  for (int64_t j = -200; j < count + 200; ++j)
    for (const Item &item : loop.items) {
      int64_t k = j + item.ahead;
      if (k >= 0 && k < count && (k + 1) % item.every == 0)
        result.push_back(item.id);
    }
  return result;
}

TEST(Expansion, MatchesDefinition) {
  std::mt19937 random(7);
  auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int round = 0; round < 300; ++round) {
    int64_t microbatches = pick(1, 5), updates = pick(1, 4);
    bool open = pick(0, 1);
    Line line(3, microbatches);
    std::vector<Item> items;
    for (int n = pick(1, 5); n > 0; --n)
      items.push_back(entry(EventKind::Run, line.forward[0] + pick(0, 1),
                            pick(-3, 6), open ? pick(1, 3) : 1));
    Order order = open ? makeOrder(0, LoopKind::Microbatches, -1, items)
                       : makeOrder(0, LoopKind::Updates, microbatches, items);

    std::vector<int> expected;
    const Loop &loop = order.loops.back();
    if (open)
      expected = byDefinition(loop, updates * microbatches);
    else
      for (int64_t t = 0; t < updates; ++t)
        for (int id : byDefinition(loop, microbatches))
          expected.push_back(id);

    std::vector<int> got;
    int64_t numbers[16] = {}, former = -1000;
    for (const Event &event : eventsOf(line.model, order, updates)) {
      got.push_back(event.id);
      // The n-th run of a task handles its n-th microbatch.
      EXPECT_EQ(event.number, numbers[event.id]++);
      EXPECT_GE(event.update, former);
      former = event.update;
    }
    EXPECT_EQ(got, expected);
  }
}

TEST(Expansion, NestedLoops) {
  // An inner loop runs in every iteration of the outer one, however far the
  // entries beside it run ahead.
  Line line(1, 6);
  Order order = makeOrder(0, LoopKind::Updates, 3,
                          {entry(EventKind::Run, line.forward[0], 1)},
                          {entry(EventKind::Run, line.update[0])});
  order.loops.push_back(
      {LoopKind::Times, 2, {entry(EventKind::Run, line.backward[0])}});
  Item inner;
  inner.loop = 2;
  order.loops[1].items.push_back(inner);
  EXPECT_EQ(runsOf(line.model, order, 1), "F0 F1 B0 B1 F2 B2 B3 B4 B5 U0 ");
}

TEST(Expansion, ReplicasCountTheirOwn) {
  Line line(1, 4);
  line.model.stages[0].devices = {0, 1};
  line.model.devices = 2;
  Order order = makeOrder(1, LoopKind::Updates, 2,
                          {entry(EventKind::Run, line.forward[0], 1),
                           entry(EventKind::Run, line.backward[0])},
                          {entry(EventKind::Run, line.update[0])});
  EXPECT_EQ(runsOf(line.model, order, 2), "F1 F3 B1 B3 U0 F5 F7 B5 B7 U1 ");
}

TEST(Generators, FollowTheRules) {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 12; ++m) {
      Line line(p, m);
      auto gpipe = generate(line.model, "gpipe");
      auto flush = generate(line.model, "1f1b");
      ASSERT_TRUE(gpipe && flush);
      ASSERT_EQ(flush->size(), size_t(p));
      for (int i = 0; i < p; ++i) {
        std::string all, expected;
        for (int k = 0; k < m; ++k)
          all += "F" + std::to_string(k) + " ";
        for (int k = 0; k < m; ++k)
          all += "B" + std::to_string(k) + " ";
        EXPECT_EQ(runsOf(line.model, (*gpipe)[i], 1), all + "U0 ");

        int warm = std::min(p - 1 - i, m), f = 0, b = 0;
        while (f < warm)
          expected += "F" + std::to_string(f++) + " ";
        while (f < m) {
          expected += "F" + std::to_string(f++) + " ";
          expected += "B" + std::to_string(b++) + " ";
        }
        while (b < m)
          expected += "B" + std::to_string(b++) + " ";
        EXPECT_EQ(runsOf(line.model, (*flush)[i], 1), expected + "U0 ")
            << "p = " << p << ", M = " << m << ", stage " << i;
      }
    }
}

TEST(Generators, KnowTheirNames) {
  Line line(2, 2);
  for (llvm::StringRef name : {"gpipe", "1f1b"})
    EXPECT_TRUE(generate(line.model, name).has_value()) << name.str();
  EXPECT_FALSE(generate(line.model, "1f1b2").has_value());
}

} // namespace
