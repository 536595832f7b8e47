//===- Engine.h - Walks and executes schedules ------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is proved about a schedule, rules S1 to S7, on plain numbers: streams of
// events per device, walked one device at a time and executed all together.
// Free of IR: the same engine serves orders, device programs and generators.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SCHEDULE_ENGINE_H
#define PENSTOCK_SCHEDULE_ENGINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace penstock::schedule {

//===----------------------------------------------------------------------===//
// What there is. Ids are positions in the vectors of Model.
//===----------------------------------------------------------------------===//

struct Stage {
  std::string name;
  /// One per replica; replica q of r handles the microbatches n * r + q.
  llvm::SmallVector<int, 1> devices;
  /// Stages of different workers are lines of their own.
  int worker = 0;
};

struct Variable {
  std::string name;
  /// How many versions are kept; 0: not decided yet, any number will do.
  int64_t versions = 1;
  /// The update task that writes it; of what no update writes, the push or
  /// fold; or -1.
  int updater = -1;
  /// The fold that writes the newest version anew, or -1.
  int folder = -1;
};

/// Who must be done with a message before its storage is used again: runs of
/// tasks and sends of channels, all with the message's number.
struct Users {
  llvm::SmallVector<int, 2> tasks;
  llvm::SmallVector<int, 2> sends;
  bool empty() const { return tasks.empty() && sends.empty(); }
};

struct Channel {
  std::string name;
  /// The task that puts, -1 for a source; the task that takes, -1 for a sink.
  int producer = -1, consumer = -1;
  /// Both ends on the same devices: no transfer.
  bool local = false;
  /// Waits for no other channel in the transfer queues of its devices.
  bool ownQueue = false;
  /// Messages that fit at the receiver, and at the sender; 0: not decided yet.
  int64_t slots = 0, staging = 0;
  /// Users of a message where it is received (or, if local, put).
  Users slotUsers;
  /// Users of a message where it waits to be sent. Empty: it is sent from the
  /// storage of another channel, which names this one among its users.
  Users stagingUsers;

  bool isSource() const { return producer < 0; }
  bool isSink() const { return consumer < 0; }
  /// Joins two devices.
  bool joinsDevices() const { return !local && producer >= 0 && consumer >= 0; }
  /// Joins two devices, and takes its turn in their transfer queues.
  bool hasPeer() const { return joinsDevices() && !ownQueue; }
};

struct Read {
  int variable = -1;
  /// Microbatch k reads version max(0, floor((k - lag) / M)), the update that
  /// makes version v max(0, v - lag); none: the newest. The push of wave c
  /// reads version (c + 1) * wave - lag, its fold what the push of wave c +
  /// distance - lag wrote, or the last one of the segment.
  std::optional<int64_t> lag;
};

struct Task {
  std::string name;
  /// F B I W G U E P S.
  char letter = 'F';
  int stage = -1;
  llvm::SmallVector<int, 4> takes, puts;
  llvm::SmallVector<Read, 4> reads;
  llvm::SmallVector<int, 4> writes;

  /// Runs once per wave of updates.
  bool perWave() const { return letter == 'P' || letter == 'S'; }
  /// Runs once per update or per wave; the others once per microbatch.
  bool perUpdate() const { return letter == 'U' || letter == 'G' || perWave(); }
};

/// Variables summed over devices by all_reduce.
struct Group {
  std::string name;
  llvm::SmallVector<int, 4> members;
  /// All that take part, in increasing order.
  llvm::SmallVector<int, 4> devices;
};

struct Model {
  /// M, per update.
  int64_t microbatches = 1;
  /// Updates per wave: a segment has a multiple of these. A wave is folded so
  /// many waves after it is pushed.
  int64_t wave = 1, distance = 0;
  /// Devices are 0 .. devices-1; some may have nothing to do.
  int devices = 0;
  std::vector<Stage> stages;
  std::vector<Variable> variables;
  std::vector<Channel> channels;
  std::vector<Task> tasks;
  std::vector<Group> groups;

  /// A channel from one task to another, -1 for the host: its number. It is
  /// local where both tasks run on the same devices, which are known by then.
  int addChannel(std::string name, int producer, int consumer);
};

/// The version that microbatch k reads.
inline int64_t versionRead(int64_t k, int64_t lag, int64_t microbatches) {
  return k < lag ? 0 : (k - lag) / microbatches;
}

//===----------------------------------------------------------------------===//
// What happens on one device, in order
//===----------------------------------------------------------------------===//

enum class EventKind : uint8_t {
  Run,
  Send,
  Recv,
  AllReduce,
  /// Only in device programs, see Awaits::Explicit: the runs that follow wait
  /// for the transfer of channel `id` with this number. Negative numbers wait
  /// for nothing.
  Await
};

struct Event {
  EventKind kind = EventKind::Run;
  /// A task, a channel, a channel, a group, a channel.
  int id = -1;
  /// The number of the microbatch or the update, counted from the start of the
  /// segment, over all replicas.
  int64_t number = 0;
  /// The update that the outermost loop is at. Never decreases along a stream.
  int64_t update = 0;
  /// Where it was written, for diagnostics: whatever the stream's maker says.
  int entry = -1;
};

class EventStream {
public:
  virtual ~EventStream();
  /// The next event, or false at the end.
  virtual bool next(Event &event) = 0;
};

/// A stream that was written out.
class EventList : public EventStream {
public:
  explicit EventList(std::vector<Event> events) : events(std::move(events)) {}
  bool next(Event &event) override;

private:
  std::vector<Event> events;
  size_t position = 0;
};

/// The events of a device in a segment of so many updates. May be asked for any
/// device and any length, often, and should expand as it goes. A segment has
/// the events of a longer one, without those of the updates that it lacks.
using StreamMaker = llvm::function_ref<std::unique_ptr<EventStream>(
    int device, int64_t updates)>;

/// How a run learns that what it needs has been transferred: by itself (level
/// `schedule`), or by an Await event earlier in its stream (level `program`).
enum class Awaits { Implied, Explicit };

//===----------------------------------------------------------------------===//
// What is proved
//===----------------------------------------------------------------------===//

/// A broken rule. The message names task or channel, device and number.
struct Violation {
  /// 1 for S1 and so on.
  int rule = 0;
  std::string message;
  /// More lines, as the queue heads of a deadlock: one note each.
  std::vector<std::string> notes;
  int device = -1;
  /// The entry of the event that breaks it, or -1.
  int entry = -1;
};

/// The requirements of a device; the maximum over walks.
struct Needs {
  /// The most messages alive at the receiver, and unsent at the sender, by
  /// channel.
  std::vector<int64_t> slots, staging;
  /// The oldest version read, as a number of versions, by variable.
  std::vector<int64_t> versions;

  void include(const Needs &other);
};

/// Walks along one device's stream: S1 to S6 as far as that device can tell.
/// Sizes that the model leaves at 0 are not limits. Adds to `steps` the events.
std::optional<Violation> walkDevice(const Model &model, int device,
                                    EventStream &stream, int64_t updates,
                                    Awaits awaits, Needs &needs,
                                    int64_t &steps);

/// The durations of an execution.
struct Costs {
  /// Durations by task, by channel and by group. Empty: all zero.
  std::vector<double> task, channel, group;
};

struct Interval {
  int device = -1;
  int task = -1;
  int64_t number = 0;
  double start = 0, end = 0;
};

struct Execution {
  /// S7, or none.
  std::optional<Violation> violation;
  /// The runs in the order of execution; only if asked for.
  std::vector<Interval> runs;
  /// From the first start to the last end of any run.
  double makespan = 0;
  /// The time that each device is busy.
  std::vector<double> busy;
  int64_t steps = 0;
};

/// Executes all devices: each has a queue of runs and a queue of transfers with
/// peers, both in order. A transfer starts when it heads both its queues, the
/// run it sends from is done and the slot it fills is free; a run starts when
/// what it takes is there and what it fills is free. Assumes that every walk
/// succeeded.
Execution execute(const Model &model, StreamMaker streams, int64_t updates,
                  Awaits awaits, const Costs &costs = {},
                  bool recordRuns = false);

/// The result of `verifyAll`.
struct Proof {
  std::optional<Violation> violation;
  Needs needs;
  /// The update from which on the execution repeats itself.
  int64_t steadyFrom = 0;
  /// Segments of up to so many updates are proved by execution.
  int64_t segments = 0;
  int64_t steps = 0;
};

/// Proves S1 to S7 for segments of any length from a few of them: once the
/// state at the end of an update equals the one before, a longer segment
/// repeats the same moves between the same fill and drain. `fill` is the most
/// updates that any entry runs ahead or behind, or until reads leave the first
/// version, rounded up. A size that no segment uses up is a violation too.
/// Where updates have nothing to do with each other (`flushes`: no entry runs
/// ahead of its update, no read lags), one that ends with everything done is
/// all of them.
Proof verifyAll(const Model &model, StreamMaker streams, int64_t fill,
                Awaits awaits, bool flushes = false);

} // namespace penstock::schedule

#endif // PENSTOCK_SCHEDULE_ENGINE_H
