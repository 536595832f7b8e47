//===- JobWatchdog.cpp - Does anything move, anywhere? --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counters of beats that are alike for some time. A gap between two looks, as
// after a suspension, begins anew.
//===----------------------------------------------------------------------===//

#include "runtime/run/JobWatchdog.h"

#include "runtime/support/Roles.h"

#include <algorithm>
#include <optional>
#include <set>

using namespace penstock::runtime;

constexpr int64_t kSecond = 1000000000;
/// How long all have to be seen waiting for nothing.
constexpr int64_t kCertain = 2 * kSecond;
/// A look that comes so late says that this process did not run.
constexpr int64_t kSuspension = kSecond;
constexpr int64_t kLeast = 60 * kSecond, kLeastFirst = 600 * kSecond;
constexpr int64_t kFactor = 20;

JobWatchdog::JobWatchdog(const penstock_program &program, const Job &job,
                         double seconds, int64_t now)
    : program(program), job(job), seconds(seconds), since(now), lastCheck(now) {
}

/// True if some message or sum has begun at all its ends and is not done.
bool JobWatchdog::isUnderWay(const std::vector<ProcessState> &states,
                             uint32_t id) const {
  size_t ends = 2;
  if (id >= program.channel_count) {
    const penstock_group &group = program.groups[id - program.channel_count];
    std::set<int> ranks;
    for (uint32_t k = 0; k < group.summand_count; ++k)
      ranks.insert(job.rankOfDevice[group.devices[k]]);
    ends = ranks.size();
  }
  size_t found = 0;
  int64_t begun = INT64_MAX, done = INT64_MAX;
  for (const ProcessState &state : states)
    for (const TransferCount &count : state.counts)
      if (count.id == id) {
        ++found;
        begun = std::min(begun, count.begun);
        done = std::min(done, count.done);
      }
  return found == ends && begun > done;
}

/// Everyone waits, for others and not for data, and nothing is on its way.
bool JobWatchdog::isStuck(const std::vector<ProcessState> &states) const {
  bool isAny = false;
  for (const ProcessState &state : states)
    for (const PositionRecord &position : state.positions) {
      if (!position.isRunning)
        continue;
      isAny = true;
      if (position.waitChannel == UINT32_MAX)
        return false;
      if (position.waitChannel < program.channel_count &&
          isSource(program.channels[position.waitChannel]))
        return false;
    }
  uint32_t count = program.channel_count + program.group_count;
  for (uint32_t id = 0; id < count; ++id)
    if (isUnderWay(states, id))
      return false;
  return isAny;
}

int64_t JobWatchdog::getLimit(bool hasUpdated) const {
  if (seconds != kAuto)
    return int64_t(seconds * double(kSecond));
  return std::max(hasUpdated ? kLeast : kLeastFirst, kFactor * longest);
}

static std::string nameDevice(const Job &job, uint32_t device) {
  return format("device %u (rank %d)", device, job.rankOfDevice[device]);
}

/// "device 0 (rank 0) waits for device 1 (rank 1), which waits for ...".
std::string
JobWatchdog::describeCircle(const std::vector<ProcessState> &states) const {
  std::vector<const PositionRecord *> byDevice(program.device_count);
  for (const ProcessState &state : states)
    for (const PositionRecord &position : state.positions)
      if (position.isRunning && position.device < program.device_count)
        byDevice[position.device] = &position;
  // Whom a device waits for: the other end, or a device that has not come to
  // the sum.
  auto follow = [&](const PositionRecord &position) -> int64_t {
    uint32_t id = position.waitChannel;
    if (id < program.channel_count) {
      const penstock_channel &channel = program.channels[id];
      return channel.sender == int32_t(position.device) ? channel.receiver
                                                        : channel.sender;
    }
    if (id - program.channel_count >= program.group_count)
      return -1;
    const penstock_group &group = program.groups[id - program.channel_count];
    for (uint32_t k = 0; k < group.summand_count; ++k) {
      const PositionRecord *other = byDevice[group.devices[k]];
      if (other && other->waitChannel != id)
        return group.devices[k];
    }
    return -1;
  };
  int64_t device = -1;
  for (const PositionRecord *position : byDevice)
    if (position && device < 0)
      device = position->device;
  if (device < 0)
    return "";

  std::vector<int64_t> line;
  while (device >= 0 && byDevice[device] &&
         std::find(line.begin(), line.end(), device) == line.end()) {
    line.push_back(device);
    device = follow(*byDevice[device]);
  }
  // What leads into the circle is not a part of it.
  line.erase(line.begin(),
             std::find(line.begin(), line.end(), device) == line.end()
                 ? line.begin()
                 : std::find(line.begin(), line.end(), device));
  line.push_back(device);
  std::string text;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] < 0)
      break;
    if (i > 0)
      text += i == 1 ? " waits for " : ", which waits for ";
    text += nameDevice(job, uint32_t(line[i]));
  }
  return text;
}

/// Where transfers are in one order, each process can only begin its next one.
/// Two that wait for each other with different ones wait for ever, whatever
/// devices compute meanwhile.
std::string
JobWatchdog::describeOrders(const std::vector<ProcessState> &states) const {
  // 1. The next transfer of each process.
  std::vector<const TransferCount *> next(states.size());
  for (size_t rank = 0; rank < states.size(); ++rank)
    for (const TransferCount &count : states[rank].counts)
      if (count.isNext && count.begun > count.done)
        next[rank] = &count;

  // 2. Whom it waits for: a process whose next one is another.
  auto follow = [&](size_t rank) -> std::optional<size_t> {
    uint32_t id = next[rank]->id;
    std::vector<int> others;
    if (id < program.channel_count) {
      const penstock_channel &channel = program.channels[id];
      others = {job.rankOfDevice[channel.sender],
                job.rankOfDevice[channel.receiver]};
    } else {
      const penstock_group &group = program.groups[id - program.channel_count];
      for (uint32_t k = 0; k < group.summand_count; ++k)
        others.push_back(job.rankOfDevice[group.devices[k]]);
    }
    for (int other : others)
      if (size_t(other) != rank && next[other] &&
          (next[other]->id != id || next[other]->done != next[rank]->done))
        return size_t(other);
    return std::nullopt;
  };

  // 3. The first circle.
  for (size_t first = 0; first < states.size(); ++first) {
    std::vector<size_t> line;
    std::optional<size_t> rank = first;
    while (rank && next[*rank] &&
           std::find(line.begin(), line.end(), *rank) == line.end()) {
      line.push_back(*rank);
      rank = follow(*rank);
    }
    if (!rank || !next[*rank] || *rank != first)
      continue;
    std::string text;
    for (size_t one : line) {
      uint32_t id = next[one]->id;
      bool isSum = id >= program.channel_count;
      text += format("%srank %zu is to transfer %s %lld of '%s'",
                     text.empty() ? "" : ", ", one, isSum ? "sum" : "message",
                     (long long)next[one]->done,
                     isSum ? program.groups[id - program.channel_count].name
                           : program.channels[id].name);
    }
    return text + ": orders that cannot both be";
  }
  return "";
}

/// Those that are in a task.
std::string
JobWatchdog::describeWorkers(const std::vector<ProcessState> &states) const {
  std::string text;
  for (const ProcessState &state : states)
    for (const PositionRecord &position : state.positions)
      if (position.isRunning && position.waitChannel == UINT32_MAX &&
          position.task < program.task_count)
        text +=
            format("%s%s of stage %u is in %c%lld", text.empty() ? "" : ", ",
                   nameDevice(job, position.device).c_str(),
                   program.tasks[position.task].stage,
                   char(program.tasks[position.task].letter),
                   (long long)position.taskNumber);
  return text.empty() ? "all devices wait" : text;
}

std::string JobWatchdog::check(const std::vector<ProcessState> &states,
                               bool isFresh, bool hasUpdated, int64_t now) {
  // 1. Has anything happened since?
  std::vector<int64_t> next;
  for (const ProcessState &state : states) {
    for (const PositionRecord &position : state.positions)
      next.insert(next.end(), {int64_t(position.progress), position.taskNumber,
                               position.waitNumber});
    for (const TransferCount &count : state.counts)
      next.insert(next.end(), {count.begun, count.done});
  }
  bool wasSuspended = now - lastCheck > kSuspension;
  lastCheck = now;
  if (next != signature || wasSuspended) {
    if (!wasSuspended && !signature.empty())
      longest = std::max(longest, now - since);
    signature = std::move(next);
    since = now;
    stuckSince = 0;
    return "";
  }

  // 2. Will anything ever happen?
  if (seconds == 0)
    return "";
  std::string orders = isFresh ? describeOrders(states) : "";
  if (!isFresh || (orders.empty() && !isStuck(states)))
    stuckSince = 0;
  else if (stuckSince == 0)
    stuckSince = now;
  else if (now - stuckSince > kCertain)
    return "watchdog: a deadlock: " +
           (orders.empty() ? describeCircle(states) : orders);

  // 3. Is it worth waiting for?
  if (now - since <= getLimit(hasUpdated))
    return "";
  return format("watchdog: no device made progress for %g s: %s",
                double(now - since) * 1e-9, describeWorkers(states).c_str());
}
