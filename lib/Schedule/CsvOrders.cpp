//===- CsvOrders.cpp - Orders as tables of actions ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of a table become orders of a model's tasks, and back.
//===----------------------------------------------------------------------===//

#include "penstock/Schedule/Csv.h"

#include "Compress.h"
#include "lib/Schedule/Transfers/SkipConnections.h"
#include "penstock/Schedule/Transfers.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace llvm;

namespace penstock::schedule {

namespace {

/// Cells of one row as entries of an order, without the transfers of some
/// channels.
class RowWriter {
public:
  RowWriter(const Model &model, const CsvSchedule &schedule, int device,
            ArrayRef<int> left, std::string &error)
      : model(model), schedule(schedule), device(device), left(left),
        error(error), runs(model.tasks.size()) {}
  std::optional<std::vector<Item>> write();

private:
  int find(int stage, char letter) const;
  bool addCell(const CsvAction &action);
  bool addRun(const CsvAction &action, int task);
  void addTransfers(const CsvAction &action);
  void add(EventKind kind, int id) {
    Item item;
    item.kind = kind;
    item.id = id;
    items.push_back(item);
  }

  const Model &model;
  const CsvSchedule &schedule;
  int device;
  ArrayRef<int> left;
  std::string &error;
  std::vector<Item> items;
  std::vector<int64_t> runs;
};

} // namespace

int RowWriter::find(int stage, char letter) const {
  for (auto [id, task] : llvm::enumerate(model.tasks))
    if (task.stage == stage && task.letter == letter)
      return id;
  return -1;
}

bool RowWriter::addRun(const CsvAction &action, int task) {
  const auto &replicas = schedule.devices[action.stage];
  int64_t width = replicas.size();
  int64_t due =
      runs[task] * width + (llvm::find(replicas, device) - replicas.begin());
  if (due != action.microbatch) {
    error = action.where() + ": " + model.tasks[task].letter +
            " of microbatch " + std::to_string(due) +
            " is due; a stage's microbatches run in order";
    return false;
  }
  const Task &it = model.tasks[task];
  bool begins = runs[task]++ == 0;
  bool more = due + width < schedule.microbatches;
  if (schedule.hasTransfers)
    for (int channel : it.takes)
      if (model.channels[channel].isSource())
        for (int n = begins + more; n > 0; --n)
          add(EventKind::Recv, channel);
  add(EventKind::Run, task);
  if (schedule.hasTransfers)
    for (int channel : it.puts)
      if (model.channels[channel].isSink())
        add(EventKind::Send, channel);
  return true;
}

/// One cell may stand for several messages, those of the nearest stage first.
void RowWriter::addTransfers(const CsvAction &action) {
  for (char letter : StringRef(action.letter == 'F' ? "F" : "BI")) {
    int task = find(action.stage, letter);
    if (task < 0)
      continue;
    const Task &it = model.tasks[task];
    SmallVector<std::pair<int, int>> channels;
    for (int id : action.isSend ? it.puts : it.takes) {
      const Channel &channel = model.channels[id];
      if (channel.hasPeer() && !llvm::is_contained(left, id))
        channels.push_back({getDistance(model, channel), id});
    }
    llvm::sort(channels);
    for (auto [distance, channel] : channels)
      add(action.isSend ? EventKind::Send : EventKind::Recv, channel);
  }
}

/// As with generated orders: a whole backward in halves, or a half whose whole
/// there is.
bool RowWriter::addCell(const CsvAction &action) {
  if (action.isTransfer) {
    addTransfers(action);
    return true;
  }
  int whole = find(action.stage, 'B');
  SmallVector<int, 2> tasks;
  switch (action.letter) {
  case 'B':
  case 'I':
    tasks.push_back(whole >= 0 ? whole : find(action.stage, 'I'));
    if (whole < 0 && action.letter == 'B')
      tasks.push_back(find(action.stage, 'W'));
    break;
  default:
    tasks.push_back(find(action.stage, action.letter));
  }
  return llvm::all_of(
      tasks, [&](int task) { return task < 0 || addRun(action, task); });
}

std::optional<std::vector<Item>> RowWriter::write() {
  for (const CsvAction &action : schedule.rows[device])
    if (!addCell(action))
      return std::nullopt;
  for (auto [id, count] : llvm::enumerate(runs)) {
    const Task &task = model.tasks[id];
    int64_t all =
        schedule.microbatches / int64_t(schedule.devices[task.stage].size());
    if (!task.perUpdate() && task.letter != 'E' &&
        schedule.isOn(task.stage, device) && count != all) {
      error = "row " + std::to_string(device + 1) + ": stage " +
              std::to_string(task.stage) + " runs " + task.letter + " for " +
              std::to_string(count) + " of " + std::to_string(all) +
              " microbatches";
      return std::nullopt;
    }
  }
  return std::move(items);
}

/// Channels between devices that no cells stand for: one of the runs has none,
/// or has them for the message of a nearer stage.
static std::vector<int> findFar(const Model &model,
                                const CsvSchedule &schedule) {
  std::set<std::tuple<int, bool, bool>> cells;
  for (ArrayRef<CsvAction> row : schedule.rows)
    for (const CsvAction &action : row)
      if (action.isTransfer)
        cells.insert({action.stage, action.letter == 'F', action.isSend});
  auto hasCell = [&](int task, bool isSend) {
    const Task &it = model.tasks[task];
    return cells.count({it.stage, it.letter == 'F', isSend}) > 0;
  };
  std::vector<int> far;
  for (auto [id, channel] : llvm::enumerate(model.channels))
    if (channel.hasPeer() && !model.tasks[channel.producer].perUpdate() &&
        !(hasCell(channel.producer, true) && hasCell(channel.consumer, false) &&
          isShortest(model, int(id))))
      far.push_back(int(id));
  return far;
}

/// Returns the actions of a device in an update: its row, then what is done
/// once.
static Order buildOrder(const Model &model, const CsvSchedule &schedule,
                        int device, ArrayRef<Item> items) {
  Order order;
  order.device = device;
  order.loops.push_back({LoopKind::Updates, 1, {}});
  appendCompressed(order, items);
  for (char letter : {'G', 'U'})
    for (auto [id, task] : llvm::enumerate(model.tasks))
      if (task.letter == letter && schedule.isOn(task.stage, device)) {
        Item item;
        item.id = id;
        order.loops.front().items.push_back(item);
      }
  return order;
}

std::optional<std::vector<Order>> buildOrders(const Model &model,
                                              const CsvSchedule &schedule,
                                              std::string &error) {
  if (int(model.stages.size()) != schedule.stages) {
    error = "the table has " + std::to_string(schedule.stages) +
            " stages, the program " + std::to_string(model.stages.size());
    return std::nullopt;
  }
  if (model.microbatches != schedule.microbatches) {
    error = "the table has " + std::to_string(schedule.microbatches) +
            " microbatches, the program " + std::to_string(model.microbatches);
    return std::nullopt;
  }
  auto write = [&](ArrayRef<int> left) {
    std::optional<std::vector<std::vector<Item>>> rows(std::in_place);
    for (int device = 0; rows && device < int(schedule.rows.size()); ++device) {
      std::optional<std::vector<Item>> items =
          RowWriter(model, schedule, device, left, error).write();
      if (items)
        rows->push_back(std::move(*items));
      else
        rows.reset();
    }
    return rows;
  };
  std::vector<int> far;
  if (schedule.hasTransfers)
    far = findFar(model, schedule);
  std::optional<std::vector<std::vector<Item>>> rows = write(far);
  // What cannot be executed is drawn with all that its cells stand for.
  if (rows && !placeSkipConnections(model, far, *rows))
    rows = write({});
  if (!rows)
    return std::nullopt;
  std::vector<Order> orders;
  for (auto [device, items] : llvm::enumerate(*rows))
    if (!items.empty())
      orders.push_back(buildOrder(model, schedule, int(device), items));
  return orders;
}

namespace {

/// The cells of one device.
class CellWriter {
public:
  CellWriter(const Model &model, bool withTransfers)
      : model(model), withTransfers(withTransfers) {}
  std::string write(const Order &order);

private:
  void add(int stage, StringRef word, int64_t number);
  void addRun(const Event &event);
  void addTransfer(const Event &event);

  const Model &model;
  bool withTransfers;
  std::string row;
  /// Sends of forwards and of others that no cell has waited for.
  struct Pending {
    int stage;
    bool isForward;
    int64_t number;
  };
  std::vector<Pending> pending;
  /// A table has one transfer for all messages of a run: that of the nearest
  /// stage.
  std::set<std::tuple<int, bool, int64_t>> known;
};

} // namespace

void CellWriter::add(int stage, StringRef word, int64_t number) {
  if (!row.empty())
    row += ',';
  row += (Twine(stage) + word + Twine(number)).str();
}

/// Readers of tables with transfers want to wait for every send, which ours
/// does by itself. What was sent on has arrived when its gradient is there.
void CellWriter::addRun(const Event &event) {
  const Task &task = model.tasks[event.id];
  if (task.perUpdate())
    return;
  add(task.stage, StringRef(&task.letter, 1), event.number);
  auto sent = llvm::find_if(pending, [&](const Pending &send) {
    return send.isForward && send.stage == task.stage &&
           send.number == event.number;
  });
  if (sent == pending.end() || (task.letter != 'B' && task.letter != 'I'))
    return;
  add(task.stage, "WAIT_SEND_F", event.number);
  pending.erase(sent);
}

void CellWriter::addTransfer(const Event &event) {
  const Channel &channel = model.channels[event.id];
  bool isSend = event.kind == EventKind::Send;
  int id = isSend ? channel.producer : channel.consumer;
  if (!channel.hasPeer() || id < 0 || model.tasks[id].perUpdate() ||
      !isShortest(model, event.id) ||
      !known.insert({id, isSend, event.number}).second)
    return;
  const Task &task = model.tasks[id];
  bool isForward = task.letter == 'F';
  add(task.stage,
      isForward ? (isSend ? "SEND_F" : "RECV_F")
                : (isSend ? "SEND_B" : "RECV_B"),
      event.number);
  if (isSend)
    pending.push_back({task.stage, isForward, event.number});
}

std::string CellWriter::write(const Order &order) {
  std::unique_ptr<EventStream> stream = expand(model, order, 1);
  Event event;
  while (stream->next(event)) {
    if (event.kind == EventKind::Run)
      addRun(event);
    else if (withTransfers &&
             (event.kind == EventKind::Send || event.kind == EventKind::Recv))
      addTransfer(event);
  }
  for (const Pending &send : pending)
    add(send.stage, send.isForward ? "WAIT_SEND_F" : "WAIT_SEND_B",
        send.number);
  return std::move(row);
}

std::string writeCsv(const Model &model, ArrayRef<Order> orders,
                     bool withTransfers) {
  std::vector<std::string> rows(model.devices);
  for (const Order &order : orders)
    rows[order.device] = CellWriter(model, withTransfers).write(order);
  std::string text;
  for (const std::string &row : rows)
    text += row + "\n";
  return text;
}

} // namespace penstock::schedule
