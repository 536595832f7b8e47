//===- TableTest.cpp - Tables of stages that send past their neighbors ----===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All small tables: what can be executed between neighbors can be so with a
// message from the first stage to the last, too, and no other.
//===----------------------------------------------------------------------===//

#include "Line.h"

#include "penstock/Schedule/Csv.h"
#include "penstock/Schedule/Transfers.h"

#include "gtest/gtest.h"

#include <algorithm>

using namespace penstock::schedule;

namespace {

constexpr int kStages = 3;

/// The cells of one microbatch of a stage, in the order that they have.
std::vector<std::string> chainOf(int stage, bool isForward) {
  char letter = isForward ? 'F' : 'B';
  bool receives = isForward ? stage > 0 : stage + 1 < kStages;
  bool sends = isForward ? stage + 1 < kStages : stage > 0;
  std::vector<std::string> chain;
  if (receives)
    chain.push_back(std::string("RECV_") + letter);
  chain.push_back(std::string(1, letter));
  if (sends)
    chain.push_back(std::string("SEND_") + letter);
  return chain;
}

/// All rows of a stage for so many microbatches: every sequence of its cells in
/// which each chain, and the microbatches of each cell, are in order. Runs and
/// transfers wait in queues of their own, so that rows with the same sequence
/// of both are one: that whose runs stand as far ahead as they can.
class Rows {
public:
  Rows(int stage, int microbatches, bool withTransfers)
      : stage(stage), microbatches(microbatches) {
    for (bool isForward : {true, false}) {
      chains.push_back({});
      for (const std::string &cell : chainOf(stage, isForward))
        if (withTransfers || cell.size() == 1)
          chains.back().push_back(cell);
      counts.emplace_back(chains.back().size(), 0);
    }
    extend("", false);
  }

  std::vector<std::string> rows;

private:
  void extend(const std::string &row, bool afterTransfer) {
    if (counts[1].back() == microbatches && counts[0].back() == microbatches) {
      rows.push_back(row);
      return;
    }
    for (size_t chain = 0; chain < chains.size(); ++chain)
      for (size_t at = 0; at < chains[chain].size(); ++at) {
        int number = counts[chain][at];
        const std::string &cell = chains[chain][at];
        bool isRun = cell.size() == 1;
        if (number == microbatches ||
            (at > 0 && counts[chain][at - 1] <= number))
          continue;
        // A backward follows its forward.
        if (cell == "B" && counts[0][forwardRun()] <= number)
          continue;
        // It could stand before the transfer.
        if (isRun && afterTransfer && !needsLast(row, cell, number))
          continue;
        ++counts[chain][at];
        extend(row + (row.empty() ? "" : ",") + std::to_string(stage) + cell +
                   std::to_string(number),
               !isRun);
        --counts[chain][at];
      }
  }
  size_t forwardRun() const {
    return std::find(chains[0].begin(), chains[0].end(), "F") -
           chains[0].begin();
  }
  /// Returns true if a run takes the last cell of a row.
  bool needsLast(const std::string &row, const std::string &cell,
                 int number) const {
    std::string last =
        std::to_string(stage) + "RECV_" + cell + std::to_string(number);
    return row.size() >= last.size() &&
           row.compare(row.size() - last.size(), last.size(), last) == 0;
  }

  int stage, microbatches;
  std::vector<std::vector<std::string>> chains;
  std::vector<std::vector<int>> counts;
};

/// Returns true if a model can execute a table.
bool isProved(Model model, const std::string &text, bool withTransfers) {
  std::string error;
  std::optional<CsvSchedule> table = parseCsv(text, {}, error);
  EXPECT_TRUE(table) << error << "\n" << text;
  if (!table)
    return false;
  // Sizes follow from the orders.
  for (Channel &channel : model.channels)
    channel.slots = channel.staging = 0;
  std::optional<std::vector<Order>> orders = buildOrders(model, *table, error);
  EXPECT_TRUE(orders) << error << "\n" << text;
  if (!orders)
    return false;
  if (withTransfers)
    completeTransfers(model, *orders);
  else if (placeTransfers(model, *orders))
    return false;
  return !verifyOrders(model, *orders).violation;
}

/// Tries all tables; how many there are, and how many can be executed.
std::pair<int, int> tryTables(int microbatches, bool withTransfers) {
  Line plain(kStages, microbatches), skipping(kStages, microbatches, true);
  std::vector<std::vector<std::string>> rows;
  for (int stage = 0; stage < kStages; ++stage)
    rows.push_back(Rows(stage, microbatches, withTransfers).rows);
  int tables = 0, proved = 0;
  for (const std::string &first : rows[0])
    for (const std::string &second : rows[1])
      for (const std::string &third : rows[2]) {
        std::string text = first + "\n" + second + "\n" + third + "\n";
        bool expected = isProved(plain.model, text, withTransfers);
        EXPECT_EQ(isProved(skipping.model, text, withTransfers), expected)
            << text;
        ++tables;
        proved += expected;
      }
  return {tables, proved};
}

TEST(Table, RunsOnly) {
  // A stage runs F0 F1 B0 B1 or F0 B0 F1 B1. None waits for a later one where
  // stages before one that runs both forwards first do so, too.
  EXPECT_EQ(tryTables(2, /*withTransfers=*/false), std::pair(8, 4));
}

TEST(Table, WithTransfers) {
  EXPECT_EQ(tryTables(2, /*withTransfers=*/true), std::pair(11550, 28));
}

/// Why a table is no order, rows apart by blanks.
std::string mistakeOf(std::string text) {
  std::replace(text.begin(), text.end(), ' ', '\n');
  std::string error;
  EXPECT_FALSE(parseCsv(text, {}, error)) << text;
  return error;
}

TEST(Table, RefusesWhatCannotBe) {
  // Runs of a stage before those that they need.
  EXPECT_EQ(mistakeOf("0F0,0B1,0F1,0B0 1F0,1B0,1F1,1B1"),
            "row 1, cell 2 ('0B1') comes before row 1, cell 3 ('0F1'), which "
            "it needs");
  EXPECT_EQ(mistakeOf("0F0,0F1,0W0,0I0,0W1,0I1 1F0,1B0,1F1,1B1"),
            "row 1, cell 3 ('0W0') comes before row 1, cell 4 ('0I0'), which "
            "it needs");
}

TEST(Table, RefusesTransfersOfOthers) {
  const std::string back = ",0RECV_B0,0B0,0RECV_B1,0B1 ",
                    last = ",1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1";
  auto mistake = [&](const std::string &first, const std::string &second) {
    return mistakeOf(first + back + second);
  };
  EXPECT_EQ(mistake("0F0,0SEND_F0,0F1,0SEND_F0", "1RECV_F0,1RECV_F1" + last),
            "row 1, cell 4 ('0SEND_F0') is there already");
  EXPECT_EQ(mistake("0F0,0F1,0SEND_F1,0SEND_F0", "1RECV_F0,1RECV_F1" + last),
            "row 2, cell 1 ('1RECV_F0'): row 1, cell 3 ('0SEND_F1') comes "
            "there first");
  EXPECT_EQ(mistake("0F0,0SEND_F1,0F1,0SEND_F0", "1RECV_F1,1RECV_F0" + last),
            "row 1, cell 2 ('0SEND_F1') comes before row 1, cell 3 ('0F1'), "
            "which it needs");
  EXPECT_EQ(mistake("0F0,0SEND_F0,0F1", "1RECV_F0,1RECV_F1" + last),
            "row 1, cell 3 ('0F1') has no SEND_F, but row 1, cell 2 "
            "('0SEND_F0') is there: a stage has its transfers for all "
            "microbatches in the table, or for none");
  EXPECT_EQ(
      mistake("0F0,0SEND_F0,0F1,0SEND_F1,0SEND_F2", "1RECV_F0,1RECV_F1" + last),
      "row 1, cell 5 ('0SEND_F2'): the row has no 0F2");
  // Nobody at the other end.
  EXPECT_EQ(mistake("0F0,0SEND_F0,0F1,0SEND_F1", "1F0" + last.substr(4)),
            "row 1, cell 2 ('0SEND_F0'): no stage receives that");
  EXPECT_EQ(mistake("0F0,0F1", "1RECV_F0,1RECV_F1" + last),
            "row 2, cell 1 ('1RECV_F0'): no stage sends that");
}

} // namespace
