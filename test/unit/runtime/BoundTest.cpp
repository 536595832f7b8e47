//===- BoundTest.cpp - How many updates a segment has ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All devices of a segment that becomes shorter do the same updates.
//===----------------------------------------------------------------------===//

#include "runtime/device/Bound.h"

#include <array>
#include <gtest/gtest.h>
#include <random>
#include <thread>

using namespace penstock::runtime;

namespace {

TEST(BoundTest, EndsAllDevicesAfterOneUpdate) {
  constexpr int kDevices = 3;
  constexpr int64_t kUpdates = 1 << 20;
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    Bound bound;
    bound.begin(kUpdates);
    std::array<Begun, kDevices> begun{};
    std::array<int64_t, kDevices> done{};
    {
      std::vector<std::jthread> threads;
      for (int device = 0; device < kDevices; ++device)
        threads.emplace_back([&, device] {
          for (int64_t i = 0; i < bound.get(begun[device], i + 1); ++i)
            done[device] = i + 1;
        });
      std::array<const Begun *, kDevices> all{&begun[0], &begun[1], &begun[2]};
      for (int tries = int(random() % 1000); tries-- > 0;)
        std::this_thread::yield();
      // Not before all of them have asked.
      while (std::any_of(all.begin(), all.end(),
                         [](const Begun *each) { return *each == 0; }))
        bound.shrink(all);
      bound.shrink(all);
    }
    EXPECT_GE(bound.updates(), 1);
    for (int64_t updates : done)
      EXPECT_EQ(updates, bound.updates());
  }
}

TEST(BoundTest, WaitsForDevicesThatHaveNotAsked) {
  Bound bound;
  bound.begin(7);
  Begun one{0}, other{0};
  EXPECT_EQ(bound.get(one, 3), 7);
  const Begun *all[] = {&one, &other};
  bound.shrink(all);
  EXPECT_EQ(bound.updates(), 7);
  EXPECT_EQ(bound.get(other, 2), 7);
  bound.shrink(all);
  EXPECT_EQ(bound.updates(), 3);
  EXPECT_EQ(bound.get(other, 3), 3);
  // What is behind the last update is no update.
  EXPECT_EQ(bound.get(one, 4), 3);
}

// A device that finds a reason to end and the thread that hears of another.
TEST(BoundTest, ShrinksOnceWhoeverAsks) {
  for (int round = 0; round < 200; ++round) {
    Bound bound;
    bound.begin(1 << 20);
    Begun begun{0}, other{0};
    const Begun *all[] = {&begun, &other};
    EXPECT_EQ(bound.get(other, 1), 1 << 20);
    int64_t done = 0, ended = 0;
    {
      std::jthread observer([&] {
        while (bound.updates() == 1 << 20)
          bound.shrink(all);
      });
      std::jthread device([&] {
        for (; done < bound.get(begun, done + 1); ++done)
          if (done == round)
            bound.shrink(all);
        ended = bound.updates();
      });
    }
    EXPECT_LE(done, round + 1);
    EXPECT_EQ(done, ended);
    EXPECT_EQ(ended, bound.updates());
  }
}

TEST(BoundTest, PausesForAWhile) {
  constexpr int64_t kShort = 20000000, kLong = 60000000000;
  Bound bound;
  bound.begin(7);
  Begun begun{0};
  EXPECT_EQ(bound.get(begun, 1), 7);
  // 1. Nobody agrees.
  int64_t start = nanoseconds();
  bound.pause(kShort);
  EXPECT_EQ(bound.get(begun, 2), 7);
  EXPECT_GE(nanoseconds() - start, kShort);
  // 2. Somebody does.
  bound.pause(kLong);
  int64_t length = 0;
  {
    std::jthread device([&] { length = bound.get(begun, 3); });
    while (begun.load() < 3)
      std::this_thread::yield();
    const Begun *all[] = {&begun};
    bound.release(bound.hold(all));
  }
  EXPECT_EQ(length, 3);
  EXPECT_LT(nanoseconds() - start, kLong);
  // 3. Too late for that.
  bound.pause(kLong);
  EXPECT_EQ(bound.get(begun, 4), 3);
}

// In the last iterations, a device counts on.
TEST(BoundTest, NeverGrows) {
  Bound bound;
  bound.begin(7);
  Begun begun{0};
  EXPECT_EQ(bound.get(begun, 9), 7);
  const Begun *all[] = {&begun};
  bound.shrink(all);
  EXPECT_EQ(bound.updates(), 7);
}

} // namespace
