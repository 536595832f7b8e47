//===- Executor.h - All devices at once -------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The execution model, step by step, so that the steady state can be seen. No
// queue ever chooses: every sequence of steps gives the same times.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_SCHEDULE_EXECUTOR_H
#define PENSTOCK_LIB_SCHEDULE_EXECUTOR_H

#include "Tables.h"

#include <deque>
#include <map>

namespace penstock::schedule {

class Executor {
public:
  Executor(const Model &model, StreamMaker streams, int64_t updates,
           Awaits awaits, const Costs &costs, bool timed);

  /// Goes on until nothing can move, not beyond events of this update.
  void advance(int64_t lastUpdate);
  /// Returns true if every stream has been executed to its end.
  bool finished();
  /// Every counter, relative to the end of update `update`.
  std::vector<int64_t> snapshot(int64_t update) const;
  /// Draws the head of each device's queues, and why it waits.
  std::vector<std::string> drawQueues();
  /// Two events that wait for each other, as a sentence.
  std::string findCircle();

  std::vector<Interval> runs;
  std::vector<double> busy;
  int64_t steps = 0;

private:
  struct Queue {
    std::deque<Event> events;
    double time = 0;
  };
  struct Device {
    std::unique_ptr<EventStream> stream;
    std::optional<Event> ahead;
    bool ended = false;
    /// Runs (and awaits); transfers with peers; sources and sinks.
    Queue compute, transfer, io;
    /// Transfers that wait for no others, by channel and whether it sends.
    std::map<std::pair<int, bool>, Queue> own;
  };
  /// How many events of a task, or of an end of a channel, are done, by
  /// replica; with times, when each ended, by number. What happens once per
  /// update happens on every replica, and is done when it is done on all.
  struct Done {
    llvm::SmallVector<int64_t, 1> counts;
    bool onAll = false;
    std::vector<double> ends;
  };

  struct Place {
    int device;
    Queue Device::*queue;
  };
  std::optional<Place> waitsFor(const Place &place);
  const Event *head(Device &device, Queue Device::*queue);
  bool stepDevice(int device);
  bool stepRun(int device);
  bool stepIo(int device);
  bool stepTransfer(int device);
  bool stepOwn(int device);
  bool stepReduce(int device, const Event &event);

  /// Returns true if the event is over; raises `time` to its end.
  bool isDone(const Done &done, int64_t number, double &time) const;
  void setDone(Done &done, int64_t number, double time);
  void setRunDone(int task, int device, int64_t number, double time);
  bool isTransferred(int channel, int64_t number, double &time) const;
  /// Returns true if message number - size * replicas has been released by its
  /// users.
  bool isFree(const Users &users, int64_t size, int64_t step, int64_t number,
              double &time) const;
  bool canRun(const Event &event, double &time, std::string *why) const;
  std::string whyTransferWaits(int device, const Event &event);

  double costOfTask(int task) const {
    return costs.task.empty() ? 0 : costs.task[task];
  }
  double costOfChannel(int channel) const {
    return costs.channel.empty() ? 0 : costs.channel[channel];
  }
  double costOfGroup(int group) const {
    return costs.group.empty() ? 0 : costs.group[group];
  }

  const Model &model;
  Costs costs;
  bool timed;
  Tables tables;
  std::vector<Device> devices;
  std::vector<Done> taskDone, sendDone, recvDone, reduceDone;
  std::vector<int> work;
  std::vector<char> inWork;
  int64_t limit = -1;
};

} // namespace penstock::schedule

#endif // PENSTOCK_LIB_SCHEDULE_EXECUTOR_H
