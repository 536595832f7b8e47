//===- DeadlockTest.cpp - What a deadlock's queues show -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each reason for which a run or a transfer waits, drawn from an execution that
// ends in it. Most of these orders would not pass a walk.
//===----------------------------------------------------------------------===//

#include "Line.h"

#include "gtest/gtest.h"

using namespace penstock::schedule;

namespace {

/// Two stages, and the events of each device.
class Deadlock : public testing::Test {
protected:
  using enum EventKind;

  Deadlock() : line(2, 2) {
    for (Channel &channel : line.model.channels)
      channel.slots = channel.staging = 2;
    x = line.channel("x");
    h = line.channel("h1");
    dh = line.channel("dh1");
  }

  static Event at(EventKind kind, int id, int64_t number = 0) {
    return {kind, id, number, 0, -1};
  }

  /// Returns what device 0 waits for.
  std::string draw(const std::vector<Event> &first,
                   const std::vector<Event> &second,
                   Awaits awaits = Awaits::Implied) {
    auto streams = [&](int device, int64_t) {
      return std::make_unique<EventList>(device == 0 ? first : second);
    };
    Execution execution = execute(line.model, streams, 1, awaits);
    if (!execution.violation)
      return "no deadlock";
    EXPECT_EQ(execution.violation->rule, 7);
    EXPECT_EQ(execution.violation->notes.size(), 2u);
    return execution.violation->notes.front();
  }

  Line line;
  int x, h, dh;
  int f0() const { return line.forward[0]; }
};

TEST_F(Deadlock, PeerHasNothingLeft) {
  EXPECT_EQ(draw({at(Recv, x), at(Run, f0()), at(Send, h)}, {}),
            "device 0: compute queue: empty; transfer queue: send @h1 of "
            "microbatch 0 (waits for device 1, which is at the end of its "
            "transfers)");
}

TEST_F(Deadlock, PeerIsElsewhere) {
  EXPECT_EQ(draw({at(Recv, dh), at(Recv, x)}, {at(Recv, h)}),
            "device 0: compute queue: empty; transfer queue: recv @dh1 of "
            "microbatch 0 (waits for device 1, which is at recv @h1 of "
            "microbatch 0)");
}

TEST_F(Deadlock, NothingWasPut) {
  EXPECT_EQ(draw({at(Send, h), at(Recv, x)}, {at(Recv, h)}),
            "device 0: compute queue: empty; transfer queue: send @h1 of "
            "microbatch 0 (waits for the run of @s0.F)");
}

TEST_F(Deadlock, NoSlotAtThePeer) {
  line.model.channels[h].slots = 1;
  EXPECT_EQ(draw({at(Recv, x), at(Run, f0()), at(Send, h), at(Recv, x, 1),
                  at(Run, f0(), 1), at(Send, h, 1)},
                 {at(Recv, h), at(Recv, h, 1)}),
            "device 0: compute queue: empty; transfer queue: send @h1 of "
            "microbatch 1 (waits for a free slot of @h1)");
}

TEST_F(Deadlock, NoSlotHere) {
  line.model.channels[line.channel("residuals0")].slots = 1;
  EXPECT_EQ(
      draw({at(Recv, x), at(Run, f0()), at(Recv, x, 1), at(Run, f0(), 1)}, {}),
      "device 0: compute queue: run @s0.F of microbatch 1 (waits for a "
      "free slot of @residuals0); transfer queue: empty");
}

TEST_F(Deadlock, NoStaging) {
  line.model.channels[h].staging = 1;
  EXPECT_EQ(
      draw({at(Recv, x), at(Run, f0()), at(Recv, x, 1), at(Run, f0(), 1)}, {}),
      "device 0: compute queue: run @s0.F of microbatch 1 (waits for "
      "free staging of @h1); transfer queue: empty");
}

TEST_F(Deadlock, NoMessage) {
  EXPECT_EQ(draw({at(Run, f0()), at(Send, h)}, {at(Recv, h)}),
            "device 0: compute queue: run @s0.F of microbatch 0 (waits for the "
            "message of @x); transfer queue: send @h1 of microbatch 0 (waits "
            "for the run of @s0.F)");
}

TEST_F(Deadlock, AnAwaitedTransfer) {
  EXPECT_EQ(draw({at(Recv, x), at(Await, x), at(Run, f0()), at(Send, h),
                  at(Await, h)},
                 {}, Awaits::Explicit),
            "device 0: compute queue: await @h1 of microbatch 0 (waits for the "
            "transfer of @h1); transfer queue: send @h1 of microbatch 0 (waits "
            "for device 1, which is at the end of its transfers)");
}

TEST_F(Deadlock, ASum) {
  line.model.groups.push_back({"sum", {line.weight[0] + 1}, {0, 1}});
  EXPECT_EQ(draw({at(AllReduce, 0), at(Run, line.update[0])}, {}),
            "device 0: compute queue: run @s0.U of update 0 (waits for "
            "all_reduce @sum); transfer queue: all_reduce @sum of update 0 "
            "(waits for the other devices)");
}

} // namespace
