//===- CsvCells.cpp - What a table says of its cells ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cells by what they do; then each rule is about the numbers of two kinds.
//===----------------------------------------------------------------------===//

#include "CsvCells.h"

#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace llvm;

namespace penstock::schedule {

namespace {

/// What the cells of one kind of one stage do in a row: runs of F, I (or B, as
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

/// What a stage sends, the next one receives in the same order.
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

std::string findMistake(const CsvSchedule &schedule) {
  return Checker(schedule).run();
}

} // namespace penstock::schedule
