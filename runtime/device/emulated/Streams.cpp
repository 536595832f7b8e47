//===- Streams.cpp - Streams that run as late as they may -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A wait is for a mark that is on a stream already, so that of all items that
// are left the oldest can always run: waits cannot form a cycle. All but those
// that wait for other processes.
//===----------------------------------------------------------------------===//

#include "runtime/device/emulated/Streams.h"

#include "runtime/support/Wait.h"

#include <algorithm>

using namespace penstock::runtime;
using namespace penstock::runtime::emulated;
using cuda::DriverContext, cuda::Stream;

void Streams::setOrder(uint64_t number) {
  order = number;
  random = 2 * number + 1;
}

Stream Streams::create(DriverContext context) {
  streams.push_back(std::make_unique<cuda::StreamState>());
  streams.back()->context = context;
  return streams.back().get();
}

void Streams::destroy(Stream stream) {
  finish(stream);
  std::erase_if(streams, [&](auto &other) { return other.get() == stream; });
}

void Streams::destroyAll(DriverContext context) {
  std::erase_if(streams,
                [&](auto &stream) { return stream->context == context; });
}

bool Streams::exists(Stream stream) const {
  return std::any_of(streams.begin(), streams.end(),
                     [&](auto &other) { return other.get() == stream; });
}

Stream Streams::findCaptured() const {
  for (auto &stream : streams)
    if (stream->capture &&
        stream->capture->thread == std::this_thread::get_id())
      return stream.get();
  return nullptr;
}

Stream Streams::findCaptured(uint64_t capture) const {
  for (auto &stream : streams)
    if (stream->capture && stream->capture->number == capture)
      return stream.get();
  return nullptr;
}

void Streams::enqueue(Stream stream, std::function<void()> work) {
  stream->items.push_back({enqueued++, std::move(work), nullptr, nullptr});
}

Mark Streams::mark(Stream stream) {
  auto mark = std::make_shared<StreamPosition>();
  stream->items.push_back({enqueued++, {}, nullptr, mark});
  return mark;
}

void Streams::wait(Stream stream, Mark mark) {
  stream->items.push_back({enqueued++, {}, std::move(mark), nullptr});
}

void Streams::enqueueRemote(Stream stream, std::function<bool()> isDone) {
  stream->items.push_back(
      {enqueued++, {}, nullptr, nullptr, std::move(isDone)});
}

Stream Streams::choose() {
  std::vector<Stream> ready;
  Stream special = nullptr;
  for (uint64_t i = 0; i < streams.size(); ++i)
    if (streams[i]->canRun()) {
      ready.push_back(streams[i].get());
      if (order >= 2 && i == (order - 2) / 2)
        special = ready.back();
    }
  if (ready.empty())
    return nullptr;
  if (order < 2) {
    auto isOlder = [](Stream a, Stream b) {
      return a->items.front().number < b->items.front().number;
    };
    auto [oldest, newest] =
        std::minmax_element(ready.begin(), ready.end(), isOlder);
    return order == 0 ? *oldest : *newest;
  }
  bool isPreferred = order % 2 == 1;
  if (special && (isPreferred || ready.size() == 1))
    return special;
  std::erase(ready, special);
  random = random * 6364136223846793005ull + 1442695040888963407ull;
  return ready[(random >> 33) % ready.size()];
}

bool Streams::step() {
  Stream stream = choose();
  if (!stream)
    return false;
  Item item = std::move(stream->items.front());
  stream->items.pop_front();
  if (item.work)
    item.work();
  if (item.mark)
    *item.mark = {true, nanoseconds()};
  return true;
}

void Streams::finish(Stream stream) {
  while (exists(stream) && !stream->items.empty())
    if (!step())
      idle();
}

void Streams::finish(Mark mark) {
  while (!mark->isReached)
    if (!step())
      idle();
}

void Streams::finishAll(DriverContext context) {
  for (size_t i = 0; i < streams.size(); ++i)
    if (streams[i]->context == context)
      finish(streams[i].get());
}
