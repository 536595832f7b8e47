//===- SkipConnections.cpp - Messages that a table has no cell of ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows without the skip-connection messages are executed, one thing after the
// other. Whatever is added to that sequence between the run that sends and the
// run that receives leaves it a sequence that can be executed, so that the rows
// with it have no deadlock either.
//===----------------------------------------------------------------------===//

#include "lib/Schedule/Transfers/SkipConnections.h"

#include "lib/Schedule/Tables.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cstdlib>
#include <map>

using namespace llvm;

namespace penstock::schedule {

int getDistance(const Model &model, const Channel &channel) {
  return std::abs(senderStage(model, channel) - receiverStage(model, channel));
}

bool isShortest(const Model &model, int channel) {
  const Channel &own = model.channels[channel];
  auto isNoNearer = [&](int other) {
    const Channel &it = model.channels[other];
    return !it.hasPeer() || getDistance(model, it) >= getDistance(model, own);
  };
  return llvm::all_of(model.tasks[own.producer].puts, isNoNearer) &&
         llvm::all_of(model.tasks[own.consumer].takes, isNoNearer);
}

namespace {

/// An item of a row: which message or run it is, and when it was done.
struct Step {
  EventKind kind;
  int id;
  int64_t number;
  int64_t time = -1;
};

struct Row {
  /// As the items stand; runs and transfers go along them on their own.
  std::vector<Step> steps;
  size_t run = 0, transfer = 0;
};

/// A skip-connection message: between which times it can move, and when it
/// does.
struct Message {
  int channel;
  int64_t number;
  int sender, receiver;
  /// Positions of the runs in their rows.
  size_t producer, consumer;
  double after, before, time = 0;
};

class FarPlacement {
public:
  FarPlacement(const Model &model, ArrayRef<int> far,
               MutableArrayRef<std::vector<Item>> rows)
      : model(model), far(far), items(rows) {}

  bool place() {
    number();
    if (!carryOut())
      return false;
    for (int channel : far)
      if (!findTimes(channel))
        return false;
    insert();
    return true;
  }

private:
  bool isTransfer(const Step &step) const {
    return step.kind != EventKind::Run && model.channels[step.id].hasPeer();
  }
  bool isDone(EventKind kind, int id, int64_t number) const {
    return done.count({kind, id, number});
  }
  void setDone(Step &step) {
    step.time = clock++;
    done.insert({{step.kind, step.id, step.number}, step.time});
  }
  void number();
  bool carryOut();
  bool stepRun(Row &row);
  bool stepTransfer(Row &row);
  bool mayPass(const Row &row) const;
  bool findTimes(int channel);
  Message getMessage(int channel, int64_t number);
  void insert();

  const Model &model;
  ArrayRef<int> far;
  MutableArrayRef<std::vector<Item>> items;
  std::vector<Row> rows;
  /// When runs and receives were done.
  std::map<std::tuple<EventKind, int, int64_t>, int64_t> done;
  int64_t clock = 0;
  std::vector<Message> messages;
};

} // namespace

/// The n-th of its kind on a device has the number that is implied.
void FarPlacement::number() {
  rows.resize(items.size());
  for (auto [device, row] : llvm::enumerate(rows)) {
    std::map<std::pair<EventKind, int>, int64_t> count;
    for (const Item &item : items[device]) {
      Numbering numbers =
          numberEvents(model, item.kind, item.id, static_cast<int>(device));
      int64_t n = count[{item.kind, item.id}]++;
      row.steps.push_back(
          {item.kind, item.id, numbers.first + n * numbers.step});
    }
  }
}

bool FarPlacement::stepRun(Row &row) {
  while (row.run < row.steps.size() &&
         row.steps[row.run].kind != EventKind::Run)
    ++row.run;
  if (row.run == row.steps.size())
    return false;
  Step &step = row.steps[row.run];
  for (int id : model.tasks[step.id].takes) {
    const Channel &channel = model.channels[id];
    if (channel.isSource())
      continue;
    bool hasCell = channel.hasPeer() && !llvm::is_contained(far, id);
    if (hasCell ? !isDone(EventKind::Recv, id, step.number)
                : !isDone(EventKind::Run, channel.producer, step.number))
      return false;
  }
  setDone(step);
  ++row.run;
  return true;
}

/// A skip-connection message moves before the run that takes it, and so before
/// the transfers behind that run.
bool FarPlacement::mayPass(const Row &row) const {
  for (size_t at = row.run; at < row.transfer; ++at)
    if (const Step &step = row.steps[at]; step.kind == EventKind::Run)
      for (int id : model.tasks[step.id].takes)
        if (llvm::is_contained(far, id) &&
            !isDone(EventKind::Run, model.channels[id].producer, step.number))
          return false;
  return true;
}

/// A transfer that heads the rows of both its ends.
bool FarPlacement::stepTransfer(Row &row) {
  auto findHead = [&](Row &of) -> Step * {
    while (of.transfer < of.steps.size() && !isTransfer(of.steps[of.transfer]))
      ++of.transfer;
    return of.transfer < of.steps.size() ? &of.steps[of.transfer] : nullptr;
  };
  Step *send = findHead(row);
  if (!send || send->kind != EventKind::Send ||
      !isDone(EventKind::Run, model.channels[send->id].producer, send->number))
    return false;
  int receiver = getReceiver(model, model.channels[send->id], send->number);
  Step *recv = findHead(rows[receiver]);
  if (!recv || recv->kind != EventKind::Recv || recv->id != send->id ||
      recv->number != send->number || !mayPass(row) || !mayPass(rows[receiver]))
    return false;
  setDone(*recv);
  send->time = recv->time;
  ++row.transfer;
  ++rows[receiver].transfer;
  return true;
}

bool FarPlacement::carryOut() {
  for (bool changed = true; changed;) {
    changed = false;
    for (Row &row : rows)
      while (stepRun(row) || stepTransfer(row))
        changed = true;
  }
  return llvm::all_of(rows, [&](const Row &row) {
    return llvm::all_of(row.steps, [&](const Step &step) {
      return step.time >= 0 ||
             (step.kind != EventKind::Run && !isTransfer(step));
    });
  });
}

Message FarPlacement::getMessage(int id, int64_t number) {
  const Channel &channel = model.channels[id];
  auto find = [&](int device, int task) -> size_t {
    return llvm::find_if(rows[device].steps,
                         [&](const Step &step) {
                           return step.kind == EventKind::Run &&
                                  step.id == task && step.number == number;
                         }) -
           rows[device].steps.begin();
  };
  Message message{id,
                  number,
                  getSender(model, channel, number),
                  getReceiver(model, channel, number),
                  0,
                  0,
                  0,
                  0};
  message.producer = find(message.sender, channel.producer);
  message.consumer = find(message.receiver, channel.consumer);
  // Behind its run and the transfers before that, before the run that takes it
  // and the transfers behind that.
  ArrayRef<Step> from = rows[message.sender].steps;
  ArrayRef<Step> to = rows[message.receiver].steps;
  int64_t after = from[message.producer].time;
  for (const Step &step : from.take_front(message.producer))
    if (isTransfer(step))
      after = std::max(after, step.time);
  int64_t before = to[message.consumer].time;
  for (const Step &step : to.drop_front(message.consumer))
    if (isTransfer(step))
      before = std::min(before, step.time);
  message.after = static_cast<double>(after) + 0.5;
  message.before = static_cast<double>(before) - 0.5;
  // With what else its run receives.
  message.time = message.before;
  for (int other : model.tasks[channel.consumer].takes)
    if (auto place = done.find({EventKind::Recv, other, number});
        place != done.end() && model.channels[other].hasPeer())
      message.time = static_cast<double>(place->second) + 0.5;
  message.time = std::clamp(message.time, message.after,
                            std::max(message.after, message.before));
  return message;
}

/// Both ends have the messages of a channel in order.
bool FarPlacement::findTimes(int channel) {
  std::vector<Message> own;
  for (int64_t number = model.microbatches - 1; number >= 0; --number) {
    Message message = getMessage(channel, number);
    double least = message.before;
    for (const Message &later : own)
      if (later.sender == message.sender || later.receiver == message.receiver)
        least = std::min(least, later.time);
    if (least < message.after)
      return false;
    message.time = std::min(message.time, least);
    own.push_back(message);
  }
  llvm::append_range(messages, own);
  return true;
}

void FarPlacement::insert() {
  llvm::sort(messages, [&](const Message &a, const Message &b) {
    auto key = [&](const Message &message) {
      return std::tuple(message.time,
                        getDistance(model, model.channels[message.channel]),
                        message.number, message.channel);
    };
    return key(a) < key(b);
  });
  for (auto [device, row] : llvm::enumerate(rows)) {
    // What stands before an item; what comes later stands no earlier.
    std::vector<std::vector<Item>> before(row.steps.size() + 1);
    size_t reached = 0;
    for (const Message &message : messages)
      for (EventKind kind : {EventKind::Send, EventKind::Recv}) {
        bool sends = kind == EventKind::Send;
        if (int(device) != (sends ? message.sender : message.receiver))
          continue;
        if (sends)
          reached = std::max(reached, message.producer + 1);
        for (size_t at = row.steps.size(); at > reached; --at)
          if (const Step &step = row.steps[at - 1];
              isTransfer(step) && static_cast<double>(step.time) < message.time)
            reached = at;
        Item &item = before[reached].emplace_back();
        item.kind = kind;
        item.id = message.channel;
      }
    std::vector<Item> result;
    for (size_t at = 0; at <= row.steps.size(); ++at) {
      llvm::append_range(result, before[at]);
      if (at < row.steps.size())
        result.push_back(items[device][at]);
    }
    items[device] = std::move(result);
  }
}

bool placeSkipConnections(const Model &model, ArrayRef<int> channels,
                          MutableArrayRef<std::vector<Item>> rows) {
  return channels.empty() || FarPlacement(model, channels, rows).place();
}

} // namespace penstock::schedule
