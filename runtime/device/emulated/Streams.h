//===- Streams.h - Streams that run as late as they may ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nothing runs when it is put on a stream. Somebody who waits runs work, of any
// stream that can go on, until what is waited for is done. Work that lacks a
// wait for other work so runs before it, in one order or the next.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_EMULATED_STREAMS_H
#define PENSTOCK_RUNTIME_DEVICE_EMULATED_STREAMS_H

#include "runtime/device/cuda/Driver.h"

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace penstock::runtime::emulated {

/// A position in a stream.
struct StreamPosition {
  bool isReached = false;
  int64_t nanoseconds = 0; // when it was
};
using Mark = std::shared_ptr<StreamPosition>;

/// Work, the wait for a mark, a mark, or what other processes have a part in:
/// asked from when the stream gets there, until it says that it is done.
struct Item {
  uint64_t number; // in the order in which items were enqueued
  std::function<void()> work;
  Mark wait, mark;
  std::function<bool()> isDone = {};
};

/// A stream that is captured.
struct Capture {
  uint64_t number;
  std::thread::id thread;
  std::vector<std::function<void()>> work;
  /// A call has failed that the graph could not repeat.
  bool isInvalid = false;
  /// Another stream waits for what is captured.
  bool isUnjoined = false;
};

} // namespace penstock::runtime::emulated

struct penstock::runtime::cuda::StreamState {
  DriverContext context;
  std::deque<emulated::Item> items;
  /// The graph that is recorded now, in place of items.
  std::unique_ptr<emulated::Capture> capture;

  bool canRun() const {
    return !items.empty() &&
           !(items.front().wait && !items.front().wait->isReached) &&
           !(items.front().isDone && !items.front().isDone());
  }
};

namespace penstock::runtime::emulated {

/// The streams of all GPUs. Not thread-safe.
class Streams {
public:
  /// Which of the streams that can go on runs next. 0: the one whose work came
  /// first; 1: the one whose work came last. 2n + 2 starves stream n while any
  /// other can go on and 2n + 3 prefers it, streams counted as they were
  /// created; between others these two choose by chance, with the number as
  /// seed.
  void setOrder(uint64_t order);
  uint64_t getOrder() const { return order; }

  cuda::Stream create(cuda::DriverContext context);
  void destroy(cuda::Stream stream);
  bool exists(cuda::Stream stream) const;
  /// Returns the stream that this thread captures, or null.
  cuda::Stream findCaptured() const;
  /// Returns the stream of that capture, or null.
  cuda::Stream findCaptured(uint64_t capture) const;
  /// Destroys the streams of a context with all that is on them.
  void destroyAll(cuda::DriverContext context);

  void enqueue(cuda::Stream stream, std::function<void()> work);
  Mark mark(cuda::Stream stream);
  void wait(cuda::Stream stream, Mark mark);
  void enqueueRemote(cuda::Stream stream, std::function<bool()> isDone);

  /// Runs the next item. Returns false if there is none.
  bool step();
  /// Runs items until a stream is empty, or a mark reached.
  void finish(cuda::Stream stream);
  void finish(Mark mark);
  /// Runs all items of the streams of a context.
  void finishAll(cuda::DriverContext context);

  /// Called by whoever waits while nothing can go on: other processes have to
  /// come, and streams may change meanwhile.
  std::function<void()> idle;

private:
  cuda::Stream choose();

  std::vector<std::unique_ptr<cuda::StreamState>> streams;
  uint64_t order = 0, random = 1, enqueued = 0;
};

} // namespace penstock::runtime::emulated

#endif // PENSTOCK_RUNTIME_DEVICE_EMULATED_STREAMS_H
