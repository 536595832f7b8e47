//===- Csv.h - Orders as tables of actions ----------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The format of torch.distributed.pipelining: a row per device, an action per
// cell, as 2F0: stage, letter, microbatch.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SCHEDULE_CSV_H
#define PENSTOCK_SCHEDULE_CSV_H

#include "penstock/Schedule/Order.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

namespace penstock::schedule {

struct CsvAction {
  /// F B I W, or f, b: transfers of what F and B send.
  char letter = 'F';
  bool isTransfer = false, isSend = false;
  int stage = 0;
  int64_t microbatch = 0;
  /// Where it stands, from 1, and what it says.
  int row = 0, cell = 0;
  std::string text;

  std::string where() const;
};

struct CsvSchedule {
  /// The actions of each device, in order.
  std::vector<std::vector<CsvAction>> rows;
  int stages = 0;
  int64_t microbatches = 0;
  bool hasTransfers = false, splitsBackward = false;
  /// The devices of each stage, one per replica.
  std::vector<llvm::SmallVector<int64_t, 1>> devices;
  /// The first backward whose microbatch was not due, if any.
  std::optional<CsvAction> reordered;

  bool isOn(int stage, int device) const {
    return llvm::is_contained(devices[stage], device);
  }
};

/// `replicas` has one number per stage, or one for all of them; none: stages
/// have one device. On a mistake, one sentence in `error` that names the cell.
/// Backwards of a stage that do not follow the forwards are renumbered so that
/// they do: as many of the next stage are done before each of them, so that
/// this takes no longer, and gradients add up in one order under every
/// schedule.
std::optional<CsvSchedule> parseCsv(llvm::StringRef text,
                                    llvm::ArrayRef<int64_t> replicas,
                                    std::string &error);

/// Orders of a model with as many stages and microbatches, placed the same
/// way; with the transfers of the table, or without any.
std::optional<std::vector<Order>> buildOrders(const Model &model,
                                              const CsvSchedule &schedule,
                                              std::string &error);

/// The runs of one update; with transfers, if wanted, where the orders have
/// the first one of a run.
std::string writeCsv(const Model &model, llvm::ArrayRef<Order> orders,
                     bool withTransfers = false);

} // namespace penstock::schedule

#endif // PENSTOCK_SCHEDULE_CSV_H
