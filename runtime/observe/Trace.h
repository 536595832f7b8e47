//===- Trace.h - The run as a Chrome/Perfetto trace -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices record slices into buffers reserved when the program opens; the file
// is written at the end. Without --trace there is no buffer and no clock read.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_OBSERVE_TRACE_H
#define PENSTOCK_RUNTIME_OBSERVE_TRACE_H

#include "runtime/io/File.h"
#include "runtime/job/Job.h"
#include "runtime/support/Wait.h"

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace penstock::runtime {

/// The updates of which slices are recorded, from 0 on.
struct TraceSteps {
  int64_t first = 0, end = INT64_MAX;
  int64_t microbatches = 1; // per update, of each worker
  int64_t wave = 1;         // updates of a worker per update

  bool isAll() const { return first == 0 && end == INT64_MAX; }
  /// The update that the n-th run of a task of that letter belongs to.
  int64_t getUpdate(uint32_t letter, int64_t n) const {
    switch (letter) {
    case 'U':
      return n / wave;
    case 'P':
    case 'S':
      return n;
    default:
      return n / microbatches;
    }
  }
  /// Returns true if an action is traced. Evaluation belongs to no update.
  bool has(uint32_t letter, int64_t n) const {
    int64_t update = getUpdate(letter, n);
    return isAll() || (letter != 'E' && first <= update && update < end);
  }
};

/// The slices of one device, written by its thread only. Times are nanoseconds,
/// or numbers of points whose times are known later.
class TraceBuffer {
public:
  enum Kind : uint32_t { Action, Wait, Send };
  struct Slice {
    int64_t begin, end; // the same for a message that is sent
    int64_t n;
    uint32_t id; // task, or channel of a message
    uint32_t kind : 8;
    uint32_t task : 24; // that sends a message

    bool isAction() const { return kind == Action; }
    bool isWait() const { return kind == Wait; }
  };

  explicit TraceBuffer(const TraceSteps &steps = {});
  ~TraceBuffer();
  TraceBuffer(const TraceBuffer &) = delete;

  void begin(uint32_t letter, uint32_t task, int64_t n, int64_t now) {
    if (isOpen)
      close(now);
    isSkipping = !steps.has(letter, n);
    if (isSkipping)
      return;
    open = {now, now, n, task, Action, task};
    isOpen = hasAction = true;
  }
  bool hasBegun() const { return isOpen; }
  /// Ends the slice that has begun.
  void close(int64_t now) {
    open.end = now;
    add(open);
    isOpen = false;
  }
  /// A wait delays what stands before or after it, and is recorded with that.
  void wait(uint32_t channel, int64_t n, int64_t begin, int64_t end) {
    if (!isSkipping)
      add({begin, end, n, channel, Wait, 0});
  }
  /// A message that an action sends, now or behind its slice.
  void send(uint32_t channel, int64_t n, int64_t now) {
    if (isSkipping || !hasAction)
      return;
    int64_t time = isOpen ? now : open.end;
    add({time, time, n, channel, Send, open.task});
  }

  /// Puts the times of points into the slices since the last call. Waits that
  /// took less than `shortest` nanoseconds are none.
  template <typename GetTime> void resolve(GetTime getTime, int64_t shortest) {
    uint64_t next = resolved;
    for (uint64_t i = resolved; i < count; ++i) {
      Slice slice = slices[i];
      slice.begin = getTime(slice.begin);
      slice.end = getTime(slice.end);
      if (!slice.isWait() || slice.end - slice.begin >= shortest)
        slices[next++] = slice;
    }
    resolved = count = next;
  }

  uint64_t size() const { return slices ? count : 0; }
  std::span<const Slice> all() const { return {slices, size()}; }
  const Slice &operator[](uint64_t i) const { return slices[i]; }
  uint64_t lost() const { return dropped; }

private:
  void add(const Slice &slice) {
    if (count < kCapacity)
      slices[count++] = slice;
    else
      ++dropped;
  }

  // Pages come into being when they are written.
  static constexpr uint64_t kCapacity = 4 << 20;

  const TraceSteps steps;
  Slice *slices;
  Slice open;
  bool isOpen = false, hasAction = false, isSkipping;
  uint64_t count = 0, resolved = 0, dropped = 0;
};

/// Writes one row per stage (and device), one slice per action, of devices one
/// after the other, an arrow from where a message was sent to the end of the
/// wait for it, and a mark where each update is done on all devices.
class TraceWriter {
public:
  TraceWriter(const penstock_program &program, const Job &job,
              const TraceSteps &steps)
      : program(program), job(job), steps(steps) {}

  /// Times count from `start` of rank 0. Another process may begin a moment
  /// before: nothing is drawn there, as viewers ask for times that are not
  /// negative.
  Error open(const std::string &path, int64_t start);
  Error add(uint32_t device, std::span<const TraceBuffer::Slice> slices);
  /// Clocks of processes may differ by so many nanoseconds from what the times
  /// assume, by rank.
  Error close(const std::vector<int64_t> &clockErrors);

private:
  Error flush();
  uint64_t getThread(uint64_t row) const;
  int getProcess(uint32_t device) const;
  void nameRow(const penstock_task &task, uint32_t device);
  void addSlice(const TraceBuffer::Slice &slice, uint32_t device, uint64_t row);
  void keepEnd(const TraceBuffer::Slice &slice, uint32_t device, uint64_t row);
  Error addArrows(const std::vector<int64_t> &clockErrors);

  const penstock_program &program;
  const Job &job;
  const TraceSteps steps;
  /// An end of an arrow.
  struct ArrowEnd {
    uint32_t channel;
    int64_t n, time;
    uint32_t device;
    uint64_t row;
  };

  OutputFile file;
  std::string text;
  std::vector<ArrowEnd> sends, waits;
  std::vector<bool> isNamed;       // by row
  std::map<int64_t, int64_t> ends; // of updates
  int64_t origin = 0;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_OBSERVE_TRACE_H
