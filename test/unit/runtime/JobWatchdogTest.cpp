//===- JobWatchdogTest.cpp - Does anything move, anywhere? ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States of two processes as beats would tell them, over hours that pass at
// once.
//===----------------------------------------------------------------------===//

#include "runtime/run/JobWatchdog.h"

#include <gtest/gtest.h>

using namespace penstock::runtime;

namespace {

constexpr int64_t kSecond = 1000000000;
constexpr uint32_t kNone = UINT32_MAX;

class JobWatchdogTest : public testing::Test {
protected:
  JobWatchdogTest() {
    channels[0].name = "a";
    channels[0].receiver = 1;
    channels[1].name = "b";
    channels[1].sender = 1;
    channels[2].name = "x";
    channels[2].role = PENSTOCK_CHANNEL_INPUT;
    channels[2].sender = -1;
    group.name = "g";
    group.summand_count = 2;
    group.devices = devices;
    tasks[0] = {"s0.F", 'F', 0, 0};
    tasks[1] = {"s1.B", 'B', 1, 1};
    program.device_count = 2;
    program.channel_count = 3;
    program.channels = channels;
    program.task_count = 2;
    program.tasks = tasks;
    program.group_count = 1;
    program.groups = &group;
    job.size = 2;
    job.place(2);
    states.resize(2);
    for (uint32_t device : {0, 1})
      states[device].positions = {{10, 7, 0, /*waited=*/0, device,
                                   /*task=*/device, kNone,
                                   /*isRunning=*/1}};
  }

  void wait(int device, uint32_t channel, int64_t n) {
    states[device].positions[0].waitChannel = channel;
    states[device].positions[0].waitNumber = n;
  }
  /// Looks ten times a second for so many seconds, or until there is an answer.
  std::string look(JobWatchdog &watchdog, double seconds, bool isFresh = true,
                   bool hasUpdated = true) {
    for (int64_t end = now + int64_t(seconds * kSecond); now < end;
         now += kSecond / 10)
      if (std::string why = watchdog.check(states, isFresh, hasUpdated, now);
          !why.empty())
        return why;
    return "";
  }
  std::string lookAuto(double seconds, bool isFresh = true) {
    JobWatchdog watchdog(program, job, JobWatchdog::kAuto, now);
    return look(watchdog, seconds, isFresh);
  }

  penstock_channel channels[3] = {};
  penstock_task tasks[2] = {};
  const uint32_t devices[2] = {0, 1};
  penstock_group group = {};
  penstock_program program = {};
  Job job;
  std::vector<ProcessState> states;
  int64_t now = 1000 * kSecond;
};

TEST_F(JobWatchdogTest, IsCertainOfADeadlock) {
  wait(0, 1, 5);
  wait(1, 0, 6);
  int64_t begin = now;
  EXPECT_EQ(lookAuto(10), "watchdog: a deadlock: device 0 (rank 0) waits for "
                          "device 1 (rank 1), which waits for device 0 "
                          "(rank 0)");
  EXPECT_GE(now - begin, 2 * kSecond);
  EXPECT_LT(now - begin, 4 * kSecond);
  // Whatever is too slow; and off is off.
  JobWatchdog patient(program, job, 3600, now), off(program, job, 0, now);
  EXPECT_NE(look(patient, 10), "");
  EXPECT_EQ(look(off, 10000), "");
}

TEST_F(JobWatchdogTest, NamesWhoHasNotComeToASum) {
  wait(0, 3, 5);
  wait(1, 0, 6);
  EXPECT_EQ(lookAuto(10), "watchdog: a deadlock: device 0 (rank 0) waits for "
                          "device 1 (rank 1), which waits for device 0 "
                          "(rank 0)");
}

// Transfers that are on streams, of devices that do not wait for them yet.
TEST_F(JobWatchdogTest, IsCertainOfOrdersThatDisagree) {
  states[0].counts = {{0, 1, 6, 5}, {1, 0, 4, 3}};
  states[1].counts = {{0, 0, 6, 5}, {1, 1, 4, 3}};
  int64_t begin = now;
  EXPECT_EQ(lookAuto(10),
            "watchdog: a deadlock: rank 0 is to transfer message 5 of 'a', "
            "rank 1 is to transfer message 3 of 'b': orders that cannot both "
            "be");
  EXPECT_LT(now - begin, 4 * kSecond);
  // A sum that the other has not come to.
  states[0].counts = {{1, 0, 4, 4}, {3, 1, 2, 1}};
  states[1].counts = {{1, 1, 5, 4}, {3, 0, 2, 1}};
  EXPECT_EQ(lookAuto(10),
            "watchdog: a deadlock: rank 0 is to transfer sum 1 of 'g', rank 1 "
            "is to transfer message 4 of 'b': orders that cannot both be");
  // Both have the same one, but one is behind; the other's waits for work of
  // its device; one has nothing to transfer.
  states[0].counts = {{0, 1, 6, 5}};
  states[1].counts = {{0, 1, 6, 5}};
  EXPECT_EQ(lookAuto(59), "");
  states[1].counts = {{0, 0, 6, 5}, {1, 0, 4, 3}};
  EXPECT_EQ(lookAuto(59), "");
  states[1].counts = {{0, 0, 5, 5}, {1, 1, 3, 3}};
  EXPECT_EQ(lookAuto(59), "");
}

TEST_F(JobWatchdogTest, TakesNoWorkForADeadlock) {
  // One works.
  wait(0, 1, 5);
  EXPECT_EQ(lookAuto(59), "");
  // Both wait, one of them for data.
  wait(0, 2, 5);
  wait(1, 0, 5);
  EXPECT_EQ(lookAuto(59), "");
  // A message is under way.
  wait(0, 1, 5);
  states[0].counts = {{1, 0, 6, 5}};
  states[1].counts = {{1, 0, 6, 6}};
  EXPECT_EQ(lookAuto(59), "");
  states[0].counts = {{1, 0, 6, 6}};
  EXPECT_NE(lookAuto(5), "");
  // A sum is.
  states[0].counts = {{3, 0, 1, 0}};
  states[1].counts = {{3, 0, 1, 0}};
  EXPECT_EQ(lookAuto(59), "");
  // What is known is old.
  states[0].counts.clear();
  EXPECT_EQ(lookAuto(59, /*isFresh=*/false), "");
  // All are done.
  for (ProcessState &state : states)
    state.positions[0].isRunning = 0;
  EXPECT_EQ(lookAuto(59), "");
}

TEST_F(JobWatchdogTest, KnowsWhatIsTooSlow) {
  wait(0, 1, 5);
  int64_t begin = now;
  EXPECT_EQ(lookAuto(100), "watchdog: no device made progress for 60.1 s: "
                           "device 1 (rank 1) of stage 1 is in B7");
  EXPECT_GT(now - begin, 60 * kSecond);
  // A first update may take longer.
  JobWatchdog first(program, job, JobWatchdog::kAuto, now);
  EXPECT_EQ(look(first, 599, true, /*hasUpdated=*/false), "");
  EXPECT_NE(look(first, 10, true, /*hasUpdated=*/false), "");
  // As may actions, where one took long before: 20 times as long.
  JobWatchdog slow(program, job, JobWatchdog::kAuto, now);
  EXPECT_EQ(look(slow, 30), "");
  ++states[1].positions[0].progress;
  EXPECT_EQ(look(slow, 590), "");
  EXPECT_NE(look(slow, 30), "");
  JobWatchdog strict(program, job, 5, now);
  EXPECT_EQ(look(strict, 4), "");
  EXPECT_NE(look(strict, 4), "");
}

// Neither for one that was stopped, nor for all.
TEST_F(JobWatchdogTest, ForgivesSuspensions) {
  wait(0, 1, 5);
  JobWatchdog watchdog(program, job, JobWatchdog::kAuto, now);
  EXPECT_EQ(look(watchdog, 50), "");
  now += 3600 * kSecond;
  EXPECT_EQ(look(watchdog, 50), "");
  EXPECT_NE(look(watchdog, 20), "");
}

} // namespace
