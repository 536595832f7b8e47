//===- LoopBackTest.cpp - One program in two instances --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The devices of a program in two instances, whatever the time that messages
// take, compute the bits that they compute in one. Also under the thread
// sanitizer.
//===----------------------------------------------------------------------===//

#include "LoopBack.h"
#include "LinearTraining.h"
#include "runtime/run/JobWatchdog.h"

using namespace penstock::runtime;
using namespace penstock::test;

namespace {

class LoopBackTest : public LinearTraining {};

TEST_F(LoopBackTest, ComputesTheBitsOfOneInstance) {
  Results expected = runTogether();
  for (uint32_t seed : {1, 2, 3, 4, 5}) {
    Wire wire(seed);
    auto first = wire.makeEnd(), second = wire.makeEnd();
    EXPECT_TRUE(runApart(std::move(first), std::move(second)) == expected)
        << seed;
  }
}

/// Returns what the process of an instance would say of it in a beat.
ProcessState getState(const Instance &instance) {
  return {record(instance.positions()), instance.countTransfers()};
}

// All live, nobody works, and the only message that would help does not move.
TEST_F(LoopBackTest, FindsADeadlockWithinSeconds) {
  constexpr int64_t kSecond = 1000000000, kHeldBehind = 11;
  uint32_t held = 0;
  while (linear.channels[held].sender != 1 ||
         linear.channels[held].receiver != 0)
    ++held;
  Job job;
  job.size = 2;
  job.place(2);

  Results expected = runTogether();
  Wire wire(6);
  wire.hold(held, kHeldBehind);
  auto first = wire.makeEnd(), second = wire.makeEnd();
  std::string why;
  int64_t stopped = 0, found = 0;
  auto watch = [&](const Instance &a, const Instance &b) {
    JobWatchdog watchdog(linear.program, job, JobWatchdog::kAuto,
                         nanoseconds());
    std::vector<ProcessState> states, before;
    for (int64_t end = nanoseconds() + 60 * kSecond;
         why.empty() && nanoseconds() < end;
         std::this_thread::sleep_for(std::chrono::milliseconds(100))) {
      states = {getState(a), getState(b)};
      found = nanoseconds();
      if (before.empty() ||
          states[0].positions[0].progress != before[0].positions[0].progress ||
          states[1].positions[0].progress != before[1].positions[0].progress)
        stopped = found;
      before = states;
      why =
          watchdog.check(states, /*isFresh=*/true, /*hasUpdated=*/true, found);
    }
    wire.release();
  };
  EXPECT_TRUE(runApart(std::move(first), std::move(second), watch) == expected);
  EXPECT_EQ(why, "watchdog: a deadlock: device 0 (rank 0) waits for device 1 "
                 "(rank 1), which waits for device 0 (rank 0)");
  EXPECT_GE(found - stopped, 2 * kSecond - kSecond / 5);
  // Two or three where this thread has a core when it wants one.
  EXPECT_LT(found - stopped, 20 * kSecond);
}

} // namespace
