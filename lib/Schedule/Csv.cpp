//===- Csv.cpp - Tables of actions ----------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers of microbatches are checked and then dropped: the n-th run of a task
// on a device handles the n-th of those that are for it. Actions of other
// systems on parameters and gradients (UNSHARD, REDUCE_GRAD, ...) say nothing
// about order and are skipped.
//===----------------------------------------------------------------------===//

#include "penstock/Schedule/Csv.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <map>
#include <set>

using namespace llvm;

// Cells by what they do; then each rule is about the numbers of two kinds.

namespace penstock::schedule {

namespace {

/// The sequence of the cells of one kind of one stage: runs of F, I (or B, as
/// far as it is one) or W, or transfers.
struct Kind {
  int stage;
  char letter;
  bool isTransfer, isSend;

  auto tie() const { return std::tie(stage, letter, isTransfer, isSend); }
  bool operator<(const Kind &other) const { return tie() < other.tie(); }
};

/// Cells by microbatch, and in their order.
struct Cells {
  std::map<int64_t, const CsvAction *> byNumber;
  std::vector<const CsvAction *> inOrder;
};

using Row = std::map<Kind, Cells>;

class Checker {
public:
  explicit Checker(const CsvSchedule &schedule) : schedule(schedule) {}
  std::string run();

private:
  bool fail(const Twine &message) {
    error = message.str();
    return false;
  }
  bool collect();
  bool checkRow(const Row &row);
  bool checkOrder(const Cells &first, const Cells &second);
  bool checkTransfers(const Cells &transfers, const Cells *runs);
  bool checkEnds(char letter);
  bool checkSequences(char letter);
  /// The transfers of a stage, in its first row that has any.
  const Cells *find(int stage, char letter, bool isSend) const;

  const CsvSchedule &schedule;
  std::vector<Row> rows;
  std::string error;
};

} // namespace

/// A whole backward is both halves.
bool Checker::collect() {
  for (ArrayRef<CsvAction> actions : schedule.rows) {
    Row &row = rows.emplace_back();
    for (const CsvAction &action : actions) {
      StringRef parts(&action.letter, 1);
      if (action.letter == 'B')
        parts = action.isTransfer ? "I" : "IW";
      for (char part : parts) {
        Cells &cells =
            row[{action.stage, part, action.isTransfer, action.isSend}];
        if (!cells.byNumber.emplace(action.microbatch, &action).second)
          return fail(action.where() + " is there already");
        cells.inOrder.push_back(&action);
      }
    }
  }
  return true;
}

/// A cell of `second` comes behind that of `first` with its number. Where they
/// do not follow each other whatever their numbers, the proof says so, with a
/// picture of where the devices stand.
bool Checker::checkOrder(const Cells &first, const Cells &second) {
  for (auto [n, action] : llvm::enumerate(second.inOrder)) {
    bool isProved = n < first.inOrder.size() &&
                    first.inOrder[n]->cell > action->cell &&
                    action->letter != 'W';
    auto it = first.byNumber.find(action->microbatch);
    if (!isProved && it != first.byNumber.end() &&
        it->second->cell > action->cell)
      return fail(action->where() + " comes before " + it->second->where() +
                  ", which it needs");
  }
  return true;
}

bool Checker::checkTransfers(const Cells &transfers, const Cells *runs) {
  const CsvAction &one = *transfers.inOrder.front();
  std::string letter = one.letter == 'F' ? "F" : "B";
  for (const CsvAction *action : transfers.inOrder)
    if (!runs || !runs->byNumber.count(action->microbatch))
      return fail(action->where() + ": the row has no " + Twine(action->stage) +
                  letter + Twine(action->microbatch));
  for (const auto &[number, run] : runs->byNumber)
    if (!transfers.byNumber.count(number))
      return fail(run->where() + " has no " + (one.isSend ? "SEND_" : "RECV_") +
                  letter + ", but " + one.where() +
                  " is there: a stage has its transfers for all microbatches "
                  "in the table, or for none");
  return one.isSend ? checkOrder(*runs, transfers)
                    : checkOrder(transfers, *runs);
}

bool Checker::checkRow(const Row &row) {
  auto get = [&](int stage, char letter) -> const Cells * {
    auto it = row.find({stage, letter, false, false});
    return it == row.end() ? nullptr : &it->second;
  };
  for (const auto &[kind, cells] : row) {
    if (kind.isTransfer) {
      if (!checkTransfers(cells, get(kind.stage, kind.letter)))
        return false;
      continue;
    }
    const Cells *first = kind.letter == 'I'   ? get(kind.stage, 'F')
                         : kind.letter == 'W' ? get(kind.stage, 'I')
                                              : nullptr;
    if (first && !checkOrder(*first, cells))
      return false;
  }
  return true;
}

const Cells *Checker::find(int stage, char letter, bool isSend) const {
  for (const Row &row : rows)
    if (auto it = row.find({stage, letter, true, isSend}); it != row.end())
      return &it->second;
  return nullptr;
}

/// As many stages receive as send, each behind one that sends: which is whose,
/// only the model knows.
bool Checker::checkEnds(char letter) {
  SmallVector<int> open;
  for (int i = 0; i < schedule.stages; ++i) {
    int stage = letter == 'F' ? i : schedule.stages - 1 - i;
    if (const Cells *received = find(stage, letter, false)) {
      if (open.empty())
        return fail(received->inOrder.front()->where() +
                    ": no stage sends that");
      open.pop_back();
    }
    if (find(stage, letter, true))
      open.push_back(stage);
  }
  if (open.empty())
    return true;
  // Most likely the next stage should.
  auto *lonely = llvm::find_if(open, [&](int stage) {
    return !find(letter == 'F' ? stage + 1 : stage - 1, letter, false);
  });
  const Cells *sent =
      find(lonely == open.end() ? open.back() : *lonely, letter, true);
  return fail(sent->inOrder.front()->where() + ": no stage receives that");
}

/// Checks that the next stage receives what a stage sends in the same order.
bool Checker::checkSequences(char letter) {
  for (int stage = 0; stage + 1 < schedule.stages; ++stage) {
    int from = letter == 'F' ? stage : stage + 1, to = 2 * stage + 1 - from;
    const Cells *sent = find(from, letter, true);
    const Cells *received = find(to, letter, false);
    if (!sent || !received || schedule.devices[from].size() != 1 ||
        schedule.devices[to].size() != 1)
      continue;
    for (auto [send, receive] : llvm::zip(sent->inOrder, received->inOrder))
      if (send->microbatch != receive->microbatch)
        return fail(receive->where() + ": " + send->where() +
                    " comes there first");
  }
  return true;
}

std::string Checker::run() {
  if (!collect() ||
      !llvm::all_of(rows, [&](const Row &row) { return checkRow(row); }))
    return error;
  for (char letter : {'F', 'I'})
    if (!checkEnds(letter) || !checkSequences(letter))
      break;
  return error;
}

/// In each row a backward follows its forward and a weight gradient its input
/// gradient; what is received comes before the run that takes it, and what is
/// sent behind the run that makes it. Transfers of a stage are for all of the
/// row's microbatches or for none; what one stage sends another receives, in
/// the same order. Returns a sentence that names the cell, or nothing.
static std::string findMistake(const CsvSchedule &schedule) {
  return Checker(schedule).run();
}

} // namespace penstock::schedule

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
  Parser(ArrayRef<int64_t> replicas, std::string &error)
      : replicas(replicas), error(error) {}
  bool parse(StringRef text);

  CsvSchedule result;

private:
  bool fail(const Twine &message) {
    error = message.str();
    return false;
  }
  bool parseCell(StringRef cell, int row, int column);
  bool parseAction(StringRef text, CsvAction action);
  bool checkReplicas();
  bool checkPlaces();
  bool place(const CsvAction &action, int device);
  bool checkRuns();

  ArrayRef<int64_t> replicas;
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

/// How many devices each stage has.
bool Parser::checkReplicas() {
  if (result.stages == 0)
    return fail("there is no action");
  if (replicas.size() > 1 && int(replicas.size()) != result.stages)
    return fail("it has " + Twine(result.stages) + " stages, and there are " +
                Twine(replicas.size()) + " numbers of replicas");
  for (int stage = 0; stage < result.stages; ++stage) {
    int64_t width = replicas.empty()       ? 1
                    : replicas.size() == 1 ? replicas.front()
                                           : replicas[stage];
    if (result.microbatches % width != 0)
      return fail("it has " + Twine(result.microbatches) +
                  " microbatches, no multiple of the " + Twine(width) +
                  " replicas of stage " + Twine(stage));
    result.devices.emplace_back(width, -1);
  }
  return true;
}

/// Microbatch k belongs to replica k modulo their number, which has one row.
bool Parser::place(const CsvAction &action, int device) {
  auto &places = result.devices[action.stage];
  int64_t width = places.size(), replica = action.microbatch % width;
  if (places[replica] == device)
    return true;
  if (width == 1 && places[0] >= 0)
    return fail(action.where() + ": stage " + Twine(action.stage) +
                " is in row " + Twine(places[0] + 1) +
                " already; without --replicas, a stage has one device");
  if (places[replica] >= 0)
    return fail(action.where() + ": microbatch " + Twine(action.microbatch) +
                " is for replica " + Twine(replica) + " of " + Twine(width) +
                " of stage " + Twine(action.stage) + ", which is in row " +
                Twine(places[replica] + 1));
  if (auto other = llvm::find(places, device); other != places.end())
    return fail(action.where() + ": microbatch " + Twine(action.microbatch) +
                " is for replica " + Twine(replica) + " of " + Twine(width) +
                " of stage " + Twine(action.stage) +
                ", and the row is replica " + Twine(other - places.begin()));
  places[replica] = device;
  return true;
}

bool Parser::checkPlaces() {
  for (auto [device, row] : llvm::enumerate(result.rows))
    for (const CsvAction &action : row)
      if (!place(action, int(device)))
        return false;
  return true;
}

/// The runs of a task go along the microbatches of their replica.
bool Parser::checkRuns() {
  std::map<std::tuple<int, char, int64_t>, int64_t> next;
  std::map<std::pair<int, char>, int64_t> count;
  std::set<std::tuple<int, char, int64_t>> known;
  for (std::vector<CsvAction> &row : result.rows)
    for (CsvAction &action : row) {
      if (action.isTransfer)
        continue;
      int64_t width = result.devices[action.stage].size();
      int64_t replica = action.microbatch % width;
      // A whole backward is both halves, also where others are apart.
      StringRef parts(&action.letter, 1);
      int64_t number = action.microbatch;
      bool isFirst = true;
      for (char part : action.letter == 'B' ? StringRef("IW") : parts) {
        if (!known.insert({action.stage, part, action.microbatch}).second)
          return fail(action.where() + " is there already");
        int64_t due = next[{action.stage, part, replica}]++ * width + replica;
        ++count[{action.stage, part}];
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
    int64_t forward = count[{stage, 'F'}], backward = count[{stage, 'I'}];
    if (forward != result.microbatches)
      return fail("stage " + Twine(stage) + " runs forward for " +
                  Twine(forward) + " of " + Twine(result.microbatches) +
                  " microbatches");
    // Where nothing is trained up to there, none is needed: buildOrders knows.
    if (backward != forward && backward != 0)
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
  if (!checkReplicas() || !checkPlaces())
    return false;
  error = findMistake(result);
  return error.empty() && checkRuns();
}

std::optional<CsvSchedule> parseCsv(StringRef text, ArrayRef<int64_t> replicas,
                                    std::string &error) {
  Parser parser(replicas, error);
  if (!parser.parse(text))
    return std::nullopt;
  return std::move(parser.result);
}

} // namespace penstock::schedule
