//===- Csv.cpp - Orders as tables of actions ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers of microbatches are checked and then dropped: the n-th run of a task
// handles its n-th. Actions of other systems on parameters and gradients
// (UNSHARD, REDUCE_GRAD, ...) say nothing about order and are skipped.
//===----------------------------------------------------------------------===//

#include "penstock/Schedule/Csv.h"

#include "Compress.h"
#include "penstock/Schedule/Transfers.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <map>
#include <set>

using namespace llvm;

namespace penstock::schedule {

std::string CsvAction::where() const {
  return "row " + std::to_string(row) + ", cell " + std::to_string(cell) +
         " ('" + text + "')";
}

namespace {

struct Word {
  StringLiteral text;
  /// 0: skipped.
  char letter;
  bool isTransfer, isSend;
};

// The longer ones first.
constexpr Word kWords[] = {
    {"WAIT_REDUCE_GRAD", 0, false, false},
    {"WAIT_SEND_F", 0, false, false},
    {"WAIT_SEND_B", 0, false, false},
    {"REDUCE_GRAD", 0, false, false},
    {"UNSHARD", 0, false, false},
    {"RESHARD", 0, false, false},
    {"SEND_F", 'F', true, true},
    {"RECV_F", 'F', true, false},
    {"SEND_B", 'B', true, true},
    {"RECV_B", 'B', true, false},
    {"F", 'F', false, false},
    {"I", 'I', false, false},
    {"B", 'B', false, false},
    {"W", 'W', false, false},
};

class Parser {
public:
  explicit Parser(std::string &error) : error(error) {}
  bool parse(StringRef text);

  CsvSchedule result;

private:
  bool fail(const Twine &message) {
    error = message.str();
    return false;
  }
  bool parseCell(StringRef cell, int row, int column);
  bool parseAction(StringRef text, CsvAction action);
  bool check();

  std::string &error;
};

} // namespace

/// stage, word, microbatch.
bool Parser::parseAction(StringRef text, CsvAction action) {
  StringRef rest = text.trim();
  action.text = rest.str();
  if (rest.empty())
    return true;
  auto bad = [&](const char *why) {
    return fail(action.where() + " is " + why +
                "; actions are stage, letter, microbatch, as in 2F0, or "
                "transfers, as in 2SEND_F0");
  };
  const Word *word = nullptr;
  unsigned long long stage, microbatch;
  constexpr unsigned long long kMostStages = 1 << 16, kMost = 1ULL << 40;
  if (rest.consumeInteger(10, stage) || stage >= kMostStages)
    return bad("no action");
  for (const Word &known : kWords)
    if (!word && rest.consume_front(known.text))
      word = &known;
  if (!word)
    return bad("no action");
  if (!word->letter)
    return true;
  if (rest.getAsInteger(10, microbatch) || microbatch >= kMost)
    return bad("without a microbatch");
  action.letter = word->letter;
  action.isTransfer = word->isTransfer;
  action.isSend = word->isSend;
  action.stage = int(stage);
  action.microbatch = int64_t(microbatch);
  result.stages = std::max(result.stages, action.stage + 1);
  result.microbatches = std::max(result.microbatches, action.microbatch + 1);
  result.hasTransfers |= word->isTransfer;
  result.splitsBackward |=
      !word->isTransfer && (word->letter == 'I' || word->letter == 'W');
  result.rows[action.row - 1].push_back(std::move(action));
  return true;
}

/// One action, or the pair (0F1;3B0)OVERLAP_F_B, which runs one after the
/// other.
bool Parser::parseCell(StringRef cell, int row, int column) {
  CsvAction action;
  action.row = row;
  action.cell = column;
  cell = cell.trim();
  if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"')
    cell = cell.drop_front().drop_back().trim();
  if (!cell.consume_front("("))
    return parseAction(cell, action);
  auto [inside, after] = cell.split(')');
  if (after.trim() != "OVERLAP_F_B") {
    action.text = ("(" + cell).str();
    return fail(action.where() + " is no action: a pair is written "
                                 "(0F1;3B0)OVERLAP_F_B");
  }
  SmallVector<StringRef> actions;
  inside.split(actions, ';');
  return llvm::all_of(
      actions, [&](StringRef text) { return parseAction(text, action); });
}

bool Parser::check() {
  if (result.stages == 0)
    return fail("there is no action");
  result.devices.assign(result.stages, -1);
  std::map<std::pair<int, char>, int64_t> next;
  std::set<std::tuple<int, char, int64_t>> known;
  for (auto [device, row] : llvm::enumerate(result.rows))
    for (CsvAction &action : row) {
      int &place = result.devices[action.stage];
      if (place >= 0 && place != int(device))
        return fail(action.where() + ": stage " + Twine(action.stage) +
                    " is in row " + Twine(place + 1) +
                    " already; a stage has "
                    "one device");
      place = int(device);
      if (action.isTransfer)
        continue;
      // A whole backward is both halves, also where others are apart.
      StringRef parts(&action.letter, 1);
      int64_t number = action.microbatch;
      bool isFirst = true;
      for (char part : action.letter == 'B' ? StringRef("IW") : parts) {
        if (!known.insert({action.stage, part, action.microbatch}).second)
          return fail(action.where() + " is there already");
        int64_t due = next[{action.stage, part}]++;
        bool mayDiffer = part != 'F' && (isFirst || number == due);
        if (action.microbatch != due && !mayDiffer)
          return fail(action.where() + ": microbatch " + Twine(due) +
                      " is due; a stage's microbatches run in order");
        number = due;
        isFirst = false;
      }
      if (number != action.microbatch && !result.reordered)
        result.reordered = action;
      action.microbatch = number;
    }
  for (int stage = 0; stage < result.stages; ++stage) {
    int64_t forward = next[{stage, 'F'}], backward = next[{stage, 'I'}];
    if (forward != result.microbatches)
      return fail("stage " + Twine(stage) + " runs forward for " +
                  Twine(forward) + " of " + Twine(result.microbatches) +
                  " microbatches");
    if (backward != forward)
      return fail("stage " + Twine(stage) + " runs backward for " +
                  Twine(backward) + " of " + Twine(forward) + " microbatches");
  }
  return true;
}

bool Parser::parse(StringRef text) {
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  while (!lines.empty() && lines.back().trim().empty())
    lines.pop_back();
  for (auto [row, line] : llvm::enumerate(lines)) {
    result.rows.emplace_back();
    SmallVector<StringRef> cells;
    line.split(cells, ',');
    for (auto [column, cell] : llvm::enumerate(cells))
      if (!parseCell(cell, row + 1, column + 1))
        return false;
  }
  return check();
}

std::optional<CsvSchedule> parseCsv(StringRef text, std::string &error) {
  Parser parser(error);
  if (!parser.parse(text))
    return std::nullopt;
  return std::move(parser.result);
}

//===----------------------------------------------------------------------===//
// Orders
//===----------------------------------------------------------------------===//

namespace {

/// Cells of one row as entries of an order.
class RowWriter {
public:
  RowWriter(const Model &model, const CsvSchedule &schedule, int device,
            std::string &error)
      : model(model), schedule(schedule), device(device), error(error),
        runs(model.tasks.size()) {}
  std::optional<Order> write();

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
  if (runs[task] != action.microbatch) {
    error = action.where() + ": " + model.tasks[task].letter +
            " of microbatch " + std::to_string(runs[task]) +
            " is due; a stage's microbatches run in order";
    return false;
  }
  const Task &it = model.tasks[task];
  bool begins = runs[task]++ == 0;
  bool more = runs[task] < schedule.microbatches;
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

void RowWriter::addTransfers(const CsvAction &action) {
  for (char letter : StringRef(action.letter == 'F' ? "F" : "BI")) {
    int task = find(action.stage, letter);
    if (task < 0)
      continue;
    const Task &it = model.tasks[task];
    for (int channel : action.isSend ? it.puts : it.takes)
      if (model.channels[channel].hasPeer())
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

std::optional<Order> RowWriter::write() {
  Order order;
  order.device = device;
  order.loops.push_back({LoopKind::Updates, 1, {}});
  for (const CsvAction &action : schedule.rows[device])
    if (!addCell(action))
      return std::nullopt;
  for (auto [id, count] : llvm::enumerate(runs)) {
    const Task &task = model.tasks[id];
    if (!task.perUpdate() && task.letter != 'E' &&
        schedule.devices[task.stage] == device &&
        count != schedule.microbatches) {
      error = "stage " + std::to_string(task.stage) + " runs " + task.letter +
              " for " + std::to_string(count) + " of " +
              std::to_string(schedule.microbatches) + " microbatches";
      return std::nullopt;
    }
  }
  appendCompressed(order, items);
  for (char letter : {'G', 'U'})
    for (auto [id, task] : llvm::enumerate(model.tasks))
      if (task.letter == letter && schedule.devices[task.stage] == device) {
        Item item;
        item.id = id;
        order.loops.front().items.push_back(item);
      }
  return order;
}

std::optional<std::vector<Order>>
ordersOf(const Model &model, const CsvSchedule &schedule, std::string &error) {
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
  std::vector<Order> orders;
  for (int device = 0; device < int(schedule.rows.size()); ++device) {
    if (schedule.rows[device].empty())
      continue;
    std::optional<Order> order =
        RowWriter(model, schedule, device, error).write();
    if (!order)
      return std::nullopt;
    orders.push_back(std::move(*order));
  }
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
  /// A table has one transfer for all messages of a run.
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
