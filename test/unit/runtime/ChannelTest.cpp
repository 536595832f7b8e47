//===- ChannelTest.cpp - The rendezvous under stress ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two threads, many messages, few slots: every message arrives once, in order,
// whole, and no slot is overwritten early. Also under the thread sanitizer.
//===----------------------------------------------------------------------===//

#include "runtime/transport/threads/Channel.h"
#include "HostMemory.h"

#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

using namespace penstock::runtime;
using namespace penstock::test;

namespace {

constexpr int64_t kWords = 9;
constexpr int64_t kShape[] = {kWords};

penstock_channel describe(uint32_t slots, uint32_t staging) {
  return {"c",     PENSTOCK_CHANNEL_TRANSFER,
          nullptr, {PENSTOCK_I64, 1, kShape, 8 * kWords},
          0,       1,
          slots,   staging,
          1,       0,
          0,       -1};
}

HostMemory memory;

/// A channel between two devices, which has its description.
struct Description {
  penstock_channel description;
};
class TestChannel : Description, public Channel {
public:
  TestChannel(uint32_t slots, uint32_t staging)
      : Description{describe(slots, staging)},
        Channel(Description::description, 0) {
    from = to = &memory;
  }
};

/// Sends `count` messages from number `first`; policy with or without spin.
void stress(uint32_t slots, uint32_t staging, int64_t first, int64_t count,
            int64_t spin) {
  TestChannel channel(slots, staging);
  WaitPolicy policy = {spin};
  std::thread sender([&] {
    uint32_t ring = staging + slots;
    std::vector<int64_t> buffer(ring * kWords);
    for (int64_t i = 0; i < count; ++i) {
      if (i >= ring)
        channel.wait(i - ring, policy);
      int64_t *message = &buffer[i % ring * kWords];
      for (int64_t word = 0; word < kWords; ++word)
        message[word] = 1000 * (first + i) + word;
      ASSERT_EQ(channel.postSend(first + i, addressOf(message)),
                PostResult::Queued);
    }
    channel.wait(count - 1, policy);
  });
  std::vector<int64_t> buffer(slots * kWords);
  for (int64_t i = 0; i < count + slots - 1; ++i) {
    if (i < count)
      ASSERT_EQ(channel.postReceive(first + i,
                                    addressOf(&buffer[i % slots * kWords])),
                PostResult::Queued);
    int64_t due = i - (slots - 1);
    if (due < 0)
      continue;
    channel.wait(due, policy);
    for (int64_t word = 0; word < kWords; ++word)
      ASSERT_EQ(buffer[due % slots * kWords + word],
                1000 * (first + due) + word);
  }
  sender.join();
}

TEST(Channel, DeliversInOrderWithFewSlots) {
  for (uint32_t slots : {1u, 2u, 3u})
    for (uint32_t staging : {1u, 2u})
      for (int64_t spin : {0, 20000})
        stress(slots, staging, /*first=*/40, /*count=*/3000, spin);
}

TEST(Channel, TwoDirectionsAtOnce) {
  std::thread other([] { stress(2, 1, 0, 3000, 0); });
  stress(1, 1, 7, 3000, 1000);
  other.join();
}

TEST(Channel, RefusesMessagesOutOfOrder) {
  TestChannel channel(2, 1);
  int64_t buffer[kWords] = {};
  EXPECT_EQ(channel.postSend(5, addressOf(buffer)), PostResult::Queued);
  EXPECT_EQ(channel.postSend(7, addressOf(buffer)), PostResult::OutOfOrder);
}

TEST(Channel, RefusesPeersThatDisagreeOnNumbers) {
  TestChannel channel(2, 1);
  int64_t buffer[kWords] = {};
  EXPECT_EQ(channel.postSend(5, addressOf(buffer)), PostResult::Queued);
  EXPECT_EQ(channel.postReceive(6, addressOf(buffer)), PostResult::Mismatch);
}

TEST(Channel, RefusesMoreThanItHolds) {
  TestChannel channel(1, 1);
  int64_t buffer[kWords] = {};
  for (uint32_t i = 0; i < channel.capacity(); ++i)
    EXPECT_EQ(channel.postSend(i, addressOf(buffer)), PostResult::Queued);
  EXPECT_EQ(channel.postSend(channel.capacity(), addressOf(buffer)),
            PostResult::TooMany);
}

TEST(Channel, BeginsAnewAfterAReset) {
  TestChannel channel(1, 1);
  int64_t from[kWords] = {3}, to[kWords] = {};
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(channel.postSend(i, addressOf(from)), PostResult::Queued);
    EXPECT_EQ(channel.postReceive(i, addressOf(to)), PostResult::Queued);
  }
  channel.reset();
  from[0] = 4;
  EXPECT_EQ(channel.postReceive(9, addressOf(to)), PostResult::Queued);
  EXPECT_FALSE(channel.isDone(0));
  EXPECT_EQ(channel.postSend(9, addressOf(from)), PostResult::Queued);
  EXPECT_TRUE(channel.isDone(0));
  EXPECT_EQ(to[0], 4);
}

// A source: two threads race for each posted receive; one fills it.
TEST(Channel, ASourceMessageIsClaimedOnce) {
  TestChannel channel(3, 0);
  constexpr int64_t kCount = 3000;
  int64_t slots[3] = {};
  std::atomic<int64_t> filled{0};
  auto fill = [&](int64_t i) {
    int64_t n;
    Address slot;
    if (!channel.claim(i, n, slot))
      return;
    *reinterpret_cast<int64_t *>(slot) = 10 * n;
    ++filled;
    channel.finish(i);
  };
  std::thread source([&] {
    for (int64_t i = 0; i < kCount; ++i) {
      while (!channel.isTaken(i))
        fill(i);
    }
  });
  for (int64_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(channel.postReceive(i, addressOf(&slots[i % 3])),
              PostResult::Queued);
    fill(i);
    channel.wait(i, {});
    ASSERT_EQ(slots[i % 3], 10 * i);
  }
  source.join();
  EXPECT_EQ(filled.load(), kCount);
}

// A transport at the far end takes sends, in order, and says when they have
// left their slots.
TEST(Channel, ASentMessageIsClaimedOnce) {
  TestChannel channel(1, 1);
  int64_t slots[2][kWords] = {}, n = 0;
  Address slot = 0;
  EXPECT_FALSE(channel.claimSend(0, n, slot));
  for (int64_t i = 0; i < 100; ++i) {
    ASSERT_EQ(channel.postSend(7 + i, addressOf(slots[i % 2])),
              PostResult::Queued);
    EXPECT_FALSE(channel.claim(i, n, slot));
    ASSERT_TRUE(channel.claimSend(i, n, slot));
    EXPECT_EQ(n, 7 + i);
    EXPECT_EQ(slot, addressOf(slots[i % 2]));
    EXPECT_FALSE(channel.claimSend(i, n, slot));
    EXPECT_FALSE(channel.isDone(i));
    channel.finish(i);
    EXPECT_TRUE(channel.isDone(i));
  }
}

/// A device whose calls return early: it writes down what it is asked.
class EarlyMemory : public HostMemory {
public:
  struct EarlyMarker : Marker {
    explicit EarlyMarker(std::string name) : name(std::move(name)) {}
    void synchronize() override {}
    bool isReached() override { return *name.rbegin() <= '0' + reached; }
    std::string name;
  };
  EarlyMemory(std::string name, std::vector<std::string> &log)
      : name(std::move(name)), log(log) {}

  std::unique_ptr<Marker> createMarker() override {
    return std::make_unique<EarlyMarker>(name + std::to_string(count++));
  }
  void mark(Marker &marker) override { write("marks", marker); }
  void waitFor(Marker &marker) override { write("follows", marker); }
  void copy(Address at, DeviceMemory &from, Address fromAt, uint64_t bytes,
            const Handover &order) override {
    write(order.isApart ? "copies apart after" : "copies after", *order.ready);
    write("copies after", *order.free);
    write("copies and sets", *order.done);
    HostMemory::copy(at, from, fromAt, bytes, order);
  }

private:
  void write(const char *what, Marker &marker) {
    log.push_back(name + " " + what + " " +
                  static_cast<EarlyMarker &>(marker).name);
  }
  std::string name;
  std::vector<std::string> &log;
  int count = 0;

public:
  /// Its markers up to this number have been reached.
  static inline int reached = -1;
};

// A transport takes a message when its bytes are there, and a slot when it is
// free, which may be later than the posts.
TEST(Channel, ClaimsWhatIsReady) {
  std::vector<std::string> log;
  EarlyMemory a("a", log);
  penstock_channel description = describe(1, 1);
  int64_t slots[kWords] = {}, n = 0;
  Address slot = 0;
  for (bool isSender : {true, false}) {
    Channel channel(description, 0);
    (isSender ? channel.from : channel.to) = &a;
    channel.open();
    EarlyMemory::reached = -1;
    ASSERT_EQ(isSender ? channel.postSend(5, addressOf(slots))
                       : channel.postReceive(5, addressOf(slots)),
              PostResult::Queued);
    auto claim = [&] {
      return isSender ? channel.claimSend(0, n, slot)
                      : channel.claimReceive(0, n, slot);
    };
    EXPECT_FALSE(claim());
    EXPECT_FALSE(channel.isTaken(0));
    EarlyMemory::reached = 9;
    EXPECT_TRUE(claim());
    EXPECT_EQ(n, 5);
    EXPECT_EQ(slot, addressOf(slots));
    EXPECT_FALSE(claim());
  }
}

// Whoever comes second has the receiver copy, behind the markers of both; a
// marker of the first is set when it posts. A queue of its own is one for the
// device that copies, too.
TEST(Channel, OrdersDevicesWhoseCallsReturnEarly) {
  for (auto [sendsFirst, ownQueue] :
       {std::pair(false, false), {true, false}, {false, true}}) {
    std::vector<std::string> log;
    EarlyMemory a("a", log), b("b", log);
    penstock_channel description = describe(1, 1);
    description.own_queue = ownQueue;
    Channel channel(description, 0);
    channel.from = &a;
    channel.to = &b;
    channel.open();
    std::vector<int64_t> from(kWords, 7), to(kWords);
    if (sendsFirst)
      ASSERT_EQ(channel.postSend(5, addressOf(from.data())),
                PostResult::Queued);
    ASSERT_EQ(channel.postReceive(5, addressOf(to.data())), PostResult::Queued);
    if (!sendsFirst)
      ASSERT_EQ(channel.postSend(5, addressOf(from.data())),
                PostResult::Queued);
    ASSERT_TRUE(channel.isDone(0));
    channel.follow(0, a);
    channel.follow(0, b);
    // The first markers only told whether there are any.
    std::vector<std::string> posts = {"b marks b1", "a marks a1"};
    if (sendsFirst)
      std::swap(posts[0], posts[1]);
    posts.insert(posts.end(),
                 {ownQueue ? "b copies apart after a1" : "b copies after a1",
                  "b copies after b1", "b copies and sets b2", "a follows b2",
                  "b follows b2"});
    EXPECT_EQ(log, posts);
    EXPECT_EQ(to, from);
  }
}

// Where the receiver's calls are done when they return, it waits for the sender
// itself, and nobody has to follow.
TEST(Channel, CopiesFromADeviceWhoseCallsReturnEarly) {
  std::vector<std::string> log;
  EarlyMemory a("a", log);
  TestChannel channel(1, 1);
  channel.from = &a;
  channel.open();
  std::vector<int64_t> from(kWords, 7), to(kWords);
  ASSERT_EQ(channel.postReceive(5, addressOf(to.data())), PostResult::Queued);
  ASSERT_EQ(channel.postSend(5, addressOf(from.data())), PostResult::Queued);
  channel.follow(0, a);
  channel.follow(0, memory);
  EXPECT_EQ(log, std::vector<std::string>{"a marks a1"});
  EXPECT_EQ(to, from);
}

} // namespace
