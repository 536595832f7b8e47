//===- ActionTimesTest.cpp - What traces say of actions -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Traces that are written here, with times of actions that are known.
//===----------------------------------------------------------------------===//

#include "lib/Driver/ActionTimes.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace llvm;
using namespace penstock;

namespace {

/// Microseconds, like a trace.
class Trace {
public:
  explicit Trace(int stages) {
    for (int stage = 0; stage < stages; ++stage) {
      std::string number = std::to_string(stage);
      add("'name':'thread_name','ph':'M','tid':" + number +
          ",'args':{'name':'stage " + number + " (device " + number + ")'}");
    }
  }
  void action(int row, const std::string &name, double begin, double end) {
    bar(row, name, "action", begin, end);
  }
  void wait(int row, double begin, double end) {
    bar(row, "wait", "wait", begin, end);
  }
  std::string text() const {
    std::string text = "{'traceEvents':[" + events + "]}";
    std::replace(text.begin(), text.end(), '\'', '"');
    return text;
  }

private:
  void bar(int row, const std::string &name, const std::string &kind,
           double begin, double end) {
    add("'name':'" + name + "','cat':'" + kind +
        "','tid':" + std::to_string(row) + ",'ts':" + std::to_string(begin) +
        ",'dur':" + std::to_string(end - begin));
  }
  void add(const std::string &event) {
    events += (events.empty() ? "{" : ",{") + event + "}";
  }
  std::string events;
};

/// One device, one microbatch; F, B and U take forwards[k], 20 and 5 in update
/// k, and the device is idle for 2 between actions.
std::string writeUpdates(ArrayRef<double> forwards) {
  Trace trace(1);
  double now = 100;
  for (auto [update, forward] : enumerate(forwards)) {
    std::string number = std::to_string(update);
    // What the device does in 2 counts for the action that follows.
    for (auto [letter, seconds] :
         {std::pair("F", forward), std::pair("B", 20.0), std::pair("U", 5.0)}) {
      trace.action(0, letter + number, now + 2, now + seconds);
      now += seconds;
    }
  }
  return trace.text();
}

TEST(ActionTimes, TakesMeansOverTheFasterHalf) {
  ActionTimes times(/*microbatches=*/1, /*warmup=*/2);
  std::string reason;
  // The first two warm up. Of the six others, 10, 12 and 17 are the fastest.
  ASSERT_TRUE(
      times.read(writeUpdates({900, 500, 17, 300, 10, 40, 12, 41}), reason));
  UnitSeconds means = times.getMeans(1).front();
  EXPECT_NEAR(means.forward, 13e-6, 1e-12);
  EXPECT_NEAR(means.backward, 20e-6, 1e-12);
  EXPECT_NEAR(means.update, 5e-6, 1e-12);
  // Of 10 12 17 40 41 300 the second.
  EXPECT_NEAR(times.getLowerQuartiles(1).front().forward, 12e-6, 1e-12);

  // Another program's updates are chosen from, too.
  ASSERT_TRUE(times.read(writeUpdates({900, 500, 11, 10}), reason));
  EXPECT_NEAR(times.getMeans(1).front().forward, 10.75e-6, 1e-12);
}

/// A wait ends before what is waited for begins, so that it is no part of it.
TEST(ActionTimes, LeavesWaitsOut) {
  Trace trace(2);
  double now = 0;
  for (int update = 0; update < 2; ++update) {
    std::string first = std::to_string(2 * update),
                second = std::to_string(2 * update + 1);
    trace.action(0, "F" + first, now, now + 10);
    trace.action(0, "F" + second, now + 10, now + 18);
    trace.wait(1, now, now + 10);
    trace.action(1, "F" + first, now + 11, now + 14);
    trace.wait(1, now + 14, now + 18);
    trace.action(1, "F" + second, now + 18, now + 23);
    trace.action(1, "U" + std::to_string(update), now + 23, now + 30);
    now += 30;
  }
  ActionTimes times(/*microbatches=*/2, /*warmup=*/1);
  std::string reason;
  ASSERT_TRUE(times.read(trace.text(), reason));
  std::vector<UnitSeconds> means = times.getMeans(2);
  // The first microbatch of the second update includes that its device was
  // idle since its last action: nothing says that it waited.
  EXPECT_NEAR(means[0].forward, (22.0 + 8.0) / 2 * 1e-6, 1e-12);
  EXPECT_NEAR(means[1].forward, (4.0 + 5.0) / 2 * 1e-6, 1e-12);
  EXPECT_NEAR(means[1].update, 7e-6, 1e-12);
}

TEST(ActionTimes, SaysWhatIsMissing) {
  ActionTimes times(1, 0);
  std::string reason;
  EXPECT_FALSE(times.read("{", reason));
  EXPECT_EQ(reason, "its trace cannot be read");
  EXPECT_FALSE(times.read("{}", reason));
  EXPECT_EQ(reason, "its trace has no events");
  EXPECT_FALSE(times.read(Trace(1).text(), reason));
  EXPECT_EQ(reason, "its trace has no actions");
}

} // namespace
