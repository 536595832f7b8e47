//===- Walk.cpp - One pass along one device's events ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// S1 to S6 with counters: runs of tasks, transfers of channels, sums of groups.
// What stands earlier in the order has been issued; that it ends is S7's part.
//===----------------------------------------------------------------------===//

#include "Tables.h"
#include "WaveRule.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <limits>

using namespace llvm;

namespace penstock::schedule {

namespace {

class Walk {
public:
  Walk(const Model &model, int device, int64_t updates, Awaits awaits,
       Needs &needs)
      : model(model), device(device), updates(updates), awaits(awaits),
        needs(needs), tables(model), waves(model, updates),
        runs(model.tasks.size()), sends(model.channels.size()),
        recvs(model.channels.size()), awaitedSends(model.channels.size()),
        awaitedRecvs(model.channels.size()), reduces(model.groups.size()),
        sendTickets(model.channels.size()), recvTickets(model.channels.size()) {
  }

  std::optional<Violation> walk(EventStream &stream, int64_t &steps) {
    Event event;
    while (stream.next(event)) {
      ++steps;
      step(event);
      if (violation) {
        violation->device = device;
        violation->entry = event.entry;
        return violation;
      }
    }
    finish();
    if (violation)
      violation->device = device;
    return violation;
  }

private:
  void fail(int rule, const Twine &message) {
    if (!violation)
      violation = Violation{rule,
                            ("device " + Twine(device) + ": " + message).str(),
                            {},
                            device,
                            -1};
  }

  /// The n-th message of a channel has this number here.
  std::string message(const Channel &channel, EventKind end, int id,
                      int64_t n) {
    Numbering numbers = numberEvents(model, end, id, device);
    return describeNumber(countsUpdates(model, channel),
                          numbers.first + n * numbers.step);
  }

  void step(const Event &event) {
    if (event.kind == EventKind::Await)
      return await(event);
    Numbering numbers = numberEvents(model, event.kind, event.id, device);
    if (!numbers.here)
      return fail(1, describe(model, event) + " does not belong here");
    int64_t &count = getCounter(event);
    if (event.number != numbers.first + count * numbers.step) {
      Event expected = event;
      expected.number = numbers.first + count * numbers.step;
      return fail(1, describe(model, event) + " comes where " +
                         describe(model, expected) + " is due");
    }
    switch (event.kind) {
    case EventKind::Run:
      run(event, count);
      break;
    case EventKind::Send:
    case EventKind::Recv:
      if (model.channels[event.id].local)
        return fail(1, describe(model, event) +
                           ": both ends of the channel are on this device");
      event.kind == EventKind::Send ? send(event, count) : recv(event, count);
      break;
    case EventKind::AllReduce:
      reduce(event, count);
      break;
    case EventKind::Await:
      break;
    }
    ++count;
  }

  int64_t &getCounter(const Event &event) {
    switch (event.kind) {
    case EventKind::Run:
      return runs[event.id];
    case EventKind::Send:
      return sends[event.id];
    case EventKind::AllReduce:
      return reduces[event.id];
    default:
      return recvs[event.id];
    }
  }

  /// How many messages all users are done with.
  int64_t freed(const Users &users) {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int task : users.tasks)
      least = std::min(least, runs[task]);
    for (int channel : users.sends)
      least = std::min(least, sends[channel]);
    return least;
  }

  //===--------------------------------------------------------------------===//
  // Runs
  //===--------------------------------------------------------------------===//

  void run(const Event &event, int64_t n) {
    const Task &task = model.tasks[event.id];
    for (int id : task.takes)
      take(event, id, n);
    if (task.perWave()) {
      if (std::string wrong = waves.check(event, runs); !wrong.empty())
        fail(10, wrong);
    } else if (task.perUpdate()) {
      update(event, n);
    }
    for (const Read &read : task.reads)
      if (read.lag)
        readVersion(event, read);
      else if (task.letter == 'U')
        checkFolded(event, read.variable, n);
    for (int id : task.puts)
      put(event, id, n);
  }

  void take(const Event &event, int id, int64_t n) {
    const Channel &channel = model.channels[id];
    if (channel.local) {
      if (runs[channel.producer] <= n)
        fail(2, describe(model, event) + " takes from @" + channel.name +
                    " before @" + model.tasks[channel.producer].name +
                    " has put");
      return;
    }
    if (recvs[id] <= n)
      return fail(2, describe(model, event) + " takes from @" + channel.name +
                         " before the recv");
    if (awaits == Awaits::Explicit && !isAwaited(false, id, n))
      fail(2, describe(model, event) + " takes from @" + channel.name +
                  " without awaiting the message");
  }

  void put(const Event &event, int id, int64_t n) {
    const Channel &channel = model.channels[id];
    const Users &users =
        channel.local ? channel.slotUsers : channel.stagingUsers;
    if (users.empty())
      return;
    // The task may itself be the last reader of a message that it puts on.
    int64_t alive = n + 1 - std::min(freed(users), n);
    int64_t limit = channel.local ? channel.slots : channel.staging;
    int64_t &need = (channel.local ? needs.slots : needs.staging)[id];
    need = std::max(need, alive);
    if (limit == 0)
      return;
    if (alive > limit)
      return fail(
          5,
          describe(model, event) + " leaves " + formatCount(alive, "message") +
              (channel.local ? " alive in @" : " unsent in @") + channel.name +
              (channel.local ? ", slots(" : ", staging(") + Twine(limit) + ")");
    checkSendsAwaited(event, users, id, n - limit);
  }

  /// Storage of message n is used again: what was sent from it must have left.
  void checkSendsAwaited(const Event &event, const Users &users, int id,
                         int64_t n) {
    if (awaits == Awaits::Implied || n < 0)
      return;
    for (int send : users.sends)
      if (!isAwaited(true, send, n))
        fail(2, describe(model, event) + " overwrites " +
                    message(model.channels[send], EventKind::Send, send, n) +
                    " of @" + model.channels[send].name +
                    " in the storage of @" + model.channels[id].name +
                    " without awaiting its send");
  }

  void readVersion(const Event &event, const Read &read) {
    const Variable &variable = model.variables[read.variable];
    if (variable.updater < 0)
      return;
    // An update makes one more, of which it reads an older one.
    const Task &task = model.tasks[event.id];
    bool isUpdate = task.perUpdate() && !task.perWave();
    int64_t done = runs[variable.updater] + isUpdate;
    int64_t version =
        task.letter == 'P' ? (event.number + 1) * model.wave - *read.lag
        : task.letter == 'S'
            ? std::min(event.number + 1 + model.distance - *read.lag,
                       updates / model.wave)
        : isUpdate ? std::max<int64_t>(0, event.number + 1 - *read.lag)
                   : versionRead(event.number, *read.lag, model.microbatches);
    auto what = [&] {
      return describe(model, event) + " reads version " +
             std::to_string(version) + " of @" + variable.name;
    };
    if (version > done)
      return fail(3, what() + ", which is not there yet: " +
                         formatCount(done, "update") + " done");
    int64_t &need = needs.versions[read.variable];
    need = std::max(need, done - version + 1);
    if (variable.versions > 0 && done - version >= variable.versions)
      fail(3, what() + ", which is gone: " + formatCount(done, "update") +
                  " done, " + formatCount(variable.versions, "version") +
                  " kept");
    checkFolded(event, read.variable, version);
  }

  void checkFolded(const Event &event, int variable, int64_t version) {
    std::string wrong = waves.checkRead(event, variable, version, runs);
    if (!wrong.empty())
      fail(10, wrong);
  }

  void update(const Event &event, int64_t t) {
    const Task &task = model.tasks[event.id];
    for (int id : tables.writersFor[event.id]) {
      const Task &writer = model.tasks[id];
      int64_t due =
          writer.perUpdate()
              ? t + (writer.letter == 'U' && task.letter != 'U' ? 0 : 1)
              : (t + 1) * numberRuns(model, id, device).perUpdate;
      if (runs[id] != due)
        return fail(4, describe(model, event) + " comes after " +
                           formatCount(runs[id], "run") + " of @" +
                           writer.name + ", not " + Twine(due));
    }
    for (int group : tables.groupsBefore[event.id]) {
      if (!llvm::is_contained(model.groups[group].devices, device))
        continue;
      if (reduces[group] != t + 1)
        return fail(2, describe(model, event) + " comes before all_reduce @" +
                           model.groups[group].name + " of update " + Twine(t));
    }
  }

  //===--------------------------------------------------------------------===//
  // Transfers
  //===--------------------------------------------------------------------===//

  void send(const Event &event, int64_t n) {
    const Channel &channel = model.channels[event.id];
    if (runs[channel.producer] <= n)
      return fail(2, describe(model, event) + " stands before the run of @" +
                         model.tasks[channel.producer].name);
    if (channel.hasPeer())
      sendTickets[event.id].push_back(++issued);
  }

  void recv(const Event &event, int64_t n) {
    const Channel &channel = model.channels[event.id];
    int64_t alive = n + 1 - freed(channel.slotUsers);
    int64_t &need = needs.slots[event.id];
    need = std::max(need, alive);
    if (channel.slots > 0 && alive > channel.slots)
      return fail(5, describe(model, event) + " makes " +
                         formatCount(alive, "message") + " of @" +
                         channel.name + " alive, slots(" +
                         Twine(channel.slots) + ")");
    if (channel.hasPeer())
      recvTickets[event.id].push_back(++issued);
    else if (channel.slots > 0)
      checkSendsAwaited(event, channel.slotUsers, event.id, n - channel.slots);
  }

  void reduce(const Event &event, int64_t t) {
    for (int id : tables.groupWriters[event.id]) {
      Numbering numbers = numberRuns(model, id, device);
      if (!numbers.here)
        continue;
      int64_t due = (t + 1) * numbers.perUpdate;
      if (runs[id] != due)
        return fail(2, describe(model, event) + " stands after " +
                           formatCount(runs[id], "run") + " of @" +
                           model.tasks[id].name + ", not " + Twine(due));
    }
    ++issued;
  }

  /// Transfers with peers end in the order of issue, so that one await covers
  /// the earlier ones; sources and sinks have an engine of their own.
  void await(const Event &event) {
    if (event.number < 0)
      return;
    const Channel &channel = model.channels[event.id];
    for (bool sending : {false, true}) {
      EventKind kind = sending ? EventKind::Send : EventKind::Recv;
      Numbering numbers = numberEvents(model, kind, event.id, device);
      if (!numbers.here || channel.local ||
          event.number % numbers.step != numbers.first % numbers.step)
        continue;
      int64_t n = (event.number - numbers.first) / numbers.step;
      if ((sending ? sends : recvs)[event.id] <= n)
        return fail(2, describe(model, event) +
                           " stands before the transfer that it awaits");
      if (channel.hasPeer()) {
        int64_t ticket = (sending ? sendTickets : recvTickets)[event.id][n];
        awaitedTicket = std::max(awaitedTicket, ticket);
      } else {
        int64_t &upTo = (sending ? awaitedSends : awaitedRecvs)[event.id];
        upTo = std::max(upTo, n + 1);
      }
      return;
    }
    fail(1, describe(model, event) + " does not belong here");
  }

  bool isAwaited(bool sending, int id, int64_t n) {
    if (!model.channels[id].hasPeer())
      return (sending ? awaitedSends : awaitedRecvs)[id] > n;
    const std::vector<int64_t> &tickets =
        (sending ? sendTickets : recvTickets)[id];
    return n < int64_t(tickets.size()) && tickets[n] <= awaitedTicket;
  }

  //===--------------------------------------------------------------------===//
  // The end
  //===--------------------------------------------------------------------===//

  void finish() {
    std::string segment =
        "in a segment of " + formatCount(updates, "update") + " ";
    for (auto [id, task] : llvm::enumerate(model.tasks)) {
      Numbering numbers = numberRuns(model, static_cast<int>(id), device);
      if (numbers.here && runs[id] != numbers.count(model, updates))
        fail(1, Twine(segment) + "@" + task.name + " runs " +
                    formatCount(runs[id], "time") + ", not " +
                    Twine(numbers.count(model, updates)));
    }
    for (auto [id, channel] : llvm::enumerate(model.channels)) {
      if (channel.local)
        continue;
      Numbering in =
          numberEvents(model, EventKind::Recv, static_cast<int>(id), device);
      if (in.here && recvs[id] != runs[channel.consumer])
        fail(6, Twine(segment) + "@" + channel.name + " is not empty at the " +
                    "end: " + Twine(recvs[id]) + " received, " +
                    Twine(runs[channel.consumer]) + " taken");
      Numbering out =
          numberEvents(model, EventKind::Send, static_cast<int>(id), device);
      if (out.here && sends[id] != runs[channel.producer])
        fail(6, Twine(segment) + "@" + channel.name + " is not empty at the " +
                    "end: " + Twine(runs[channel.producer]) + " put, " +
                    Twine(sends[id]) + " sent");
    }
    for (auto [id, group] : llvm::enumerate(model.groups))
      if (llvm::is_contained(group.devices, device) && reduces[id] != updates)
        fail(1, Twine(segment) + "@" + group.name + " is summed " +
                    formatCount(reduces[id], "time") + ", not " +
                    Twine(updates));
  }

  const Model &model;
  int device;
  int64_t updates;
  Awaits awaits;
  Needs &needs;
  Tables tables;
  WaveRule waves;
  std::vector<int64_t> runs, sends, recvs, awaitedSends, awaitedRecvs, reduces;
  /// Positions in the transfer queue, by channel and message.
  std::vector<std::vector<int64_t>> sendTickets, recvTickets;
  int64_t issued = 0, awaitedTicket = 0;
  std::optional<Violation> violation;
};

} // namespace

std::optional<Violation> walkDevice(const Model &model, int device,
                                    EventStream &stream, int64_t updates,
                                    Awaits awaits, Needs &needs,
                                    int64_t &steps) {
  needs.slots.resize(model.channels.size());
  needs.staging.resize(model.channels.size());
  needs.versions.resize(model.variables.size());
  return Walk(model, device, updates, awaits, needs).walk(stream, steps);
}

} // namespace penstock::schedule
