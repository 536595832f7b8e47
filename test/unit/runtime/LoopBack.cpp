//===- LoopBack.cpp - A transport within one process ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The messages of one channel keep their order, as they do in MPI; those of
// several channels overtake each other.
//===----------------------------------------------------------------------===//

#include "LoopBack.h"

#include <chrono>
#include <gtest/gtest.h>

using namespace penstock::runtime;

namespace penstock::test {

constexpr auto kNap = std::chrono::microseconds(50);
constexpr int64_t kLongestWay = 300000; // nanoseconds

/// One end of the wire.
class LoopBack final : public Transport {
public:
  explicit LoopBack(Wire &wire) : wire(wire) {}

  Error open(Endpoints &all, const std::vector<AllReduce *> &,
             const Positions &, bool) override {
    std::lock_guard<std::mutex> lock(wire.mutex);
    wire.lines.resize(all.size());
    for (Endpoint &endpoint : all) {
      if (!endpoint.isFar)
        continue;
      Channel &channel = *endpoint.channel;
      Wire::Line &line = wire.lines[channel.index];
      (channel.from ? line.from : line.to) = &channel;
      (channel.from ? sending : receiving).push_back(channel.index);
    }
    return {};
  }

  void begin() override {
    std::lock_guard<std::mutex> lock(wire.mutex);
    for (uint32_t id : sending) {
      wire.lines[id].isSending = true;
      wire.lines[id].sent = 0;
    }
    for (uint32_t id : receiving) {
      wire.lines[id].isReceiving = true;
      wire.lines[id].received = 0;
    }
  }

  void posted(Channel &) override { wire.changed.notify_one(); }
  void posted(AllReduce &) override {}

  bool progress() override {
    std::lock_guard<std::mutex> lock(wire.mutex);
    return wire.move();
  }

  Error end() override {
    std::unique_lock<std::mutex> lock(wire.mutex);
    auto isDone = [&] {
      for (uint32_t id : sending)
        if (!wire.lines[id].messages.empty())
          return false;
      return true;
    };
    if (!wire.changed.wait_for(lock, std::chrono::seconds(60), isDone))
      return defect("the other end does not take a message");
    for (uint32_t id : sending)
      wire.lines[id].isSending = false;
    for (uint32_t id : receiving)
      wire.lines[id].isReceiving = false;
    return {};
  }

  void leave() noexcept override {
    {
      std::lock_guard<std::mutex> lock(wire.mutex);
      if (--wire.ends > 0)
        return;
    }
    wire.changed.notify_all();
    wire.thread.join();
  }

  /// A message is copied at once at either end.
  std::vector<TransferCount> count() const override {
    std::lock_guard<std::mutex> lock(wire.mutex);
    std::vector<TransferCount> counts;
    for (uint32_t id : sending)
      counts.push_back({id, 0, wire.lines[id].sent, wire.lines[id].sent});
    for (uint32_t id : receiving)
      counts.push_back(
          {id, 0, wire.lines[id].received, wire.lines[id].received});
    return counts;
  }

private:
  Wire &wire;
  std::vector<uint32_t> sending, receiving;
};

void Wire::hold(uint32_t channel, int64_t messages) {
  std::lock_guard<std::mutex> lock(mutex);
  heldChannel = channel;
  heldBehind = messages;
}

void Wire::release() { hold(UINT32_MAX, 0); }

std::unique_ptr<Transport> Wire::makeEnd() {
  std::lock_guard<std::mutex> lock(mutex);
  if (ends++ == 0)
    thread = std::thread([this] { loop(); });
  return std::make_unique<LoopBack>(*this);
}

void Wire::loop() {
  std::unique_lock<std::mutex> lock(mutex);
  while (ends > 0) {
    move();
    changed.wait_for(lock, kNap);
  }
}

bool Wire::move() {
  bool hasMoved = false;
  for (Line &line : lines) {
    while (line.isSending && take(line))
      hasMoved = true;
    while (line.isReceiving && deliver(line))
      hasMoved = true;
  }
  // An end may wait for the last of its messages.
  if (hasMoved)
    changed.notify_all();
  return hasMoved;
}

bool Wire::take(Line &line) {
  if (line.from->index == heldChannel && line.sent >= heldBehind)
    return false;
  // Sometimes the slot has to stay as it is for longer.
  if (random() % 2)
    return false;
  int64_t n;
  Address slot;
  if (!line.from->claimSend(line.sent, n, slot))
    return false;
  Message &message = line.messages.emplace_back();
  message.n = n;
  message.due = nanoseconds() + int64_t(random() % kLongestWay);
  message.bytes.resize(line.from->description.type.bytes);
  line.from->from->download(message.bytes.data(), slot, message.bytes.size());
  line.from->finish(line.sent++);
  return true;
}

bool Wire::deliver(Line &line) {
  if (line.messages.empty() || line.messages.front().due > nanoseconds())
    return false;
  int64_t n;
  Address slot;
  if (!line.to->claimReceive(line.received, n, slot))
    return false;
  const Message &message = line.messages.front();
  EXPECT_EQ(n, message.n);
  line.to->to->upload(slot, message.bytes.data(), message.bytes.size());
  line.to->finish(line.received++);
  line.messages.pop_front();
  return true;
}

} // namespace penstock::test
