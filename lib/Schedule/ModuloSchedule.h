//===- ModuloSchedule.h - Loops whose iterations overlap --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times that repeat with a period, and the transfers of a loop in the sequence
// that they give. As all devices agree on the times, nothing waits in a circle.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_SCHEDULE_MODULOSCHEDULE_H
#define PENSTOCK_LIB_SCHEDULE_MODULOSCHEDULE_H

#include "penstock/Schedule/Order.h"

namespace penstock::schedule {

/// `to` starts at least `weight` after what `from` does so many periods before.
struct Precedence {
  int from, to;
  int64_t weight, periods;
};

struct ModuloTimes {
  int64_t period = 1;
  /// Start times by node, in period 0.
  std::vector<int64_t> starts;
};

/// The shortest period in these bounds that leaves room for all, with the
/// earliest starts from 0 on; none if something waits for itself.
std::optional<ModuloTimes>
findModuloTimes(int nodes, llvm::ArrayRef<Precedence> precedences,
                int64_t shortest, int64_t longest);

/// A run of a loop.
struct ModuloEntry {
  Item item;
  /// When that of period 0 starts.
  int64_t start;
  /// Iterations that its data come earlier.
  int64_t fetchAhead;
};

/// A loop that begins an iteration per period, with its transfers.
class ModuloLoop {
public:
  /// `messages` is how many a channel moves in a period, on all devices.
  ModuloLoop(const Model &model, llvm::ArrayRef<ModuloEntry> entries,
             int64_t period, int64_t messages)
      : model(model), entries(entries), period(period), messages(messages) {}

  /// Adds a message that an entry sends: `time` is that of the message of
  /// period 0, `rank` and `number` decide between those of equal times, on all
  /// devices alike.
  void addSend(size_t entry, int channel, int64_t time, int64_t rank,
               int64_t number);
  /// Posted where the sender need not wait for this device.
  void addRecv(int channel, int64_t time, int64_t rank, int64_t number);
  /// Adds a sum that precedes an entry, behind transfers of the same time.
  void addSum(size_t entry, int group, int64_t time);

  /// The loop's items: runs and transfers. Data come when the entry says,
  /// results leave at once.
  std::vector<Item> write();

private:
  struct Transfer {
    EventKind kind;
    int id;
    /// When, modulo the period; then by rank, then by number.
    int64_t time, rank, number;
    /// Periods that the representative is ahead of period 0.
    int64_t shift;
    /// iteration * (entries + 1) + entry that it stands before.
    int64_t position;
  };
  /// Placed before an entry, in some iteration.
  struct Placed {
    int64_t iteration;
    size_t sequence;
    Item item;
  };

  void add(EventKind kind, int id, int64_t time, int64_t rank, int64_t number,
           int64_t position);
  int64_t findRecvPosition(int64_t time) const;
  void arrange();
  std::vector<std::vector<Placed>> placeBefore() const;

  const Model &model;
  llvm::ArrayRef<ModuloEntry> entries;
  int64_t period, messages;
  std::vector<Transfer> transfers;
};

} // namespace penstock::schedule

#endif // PENSTOCK_LIB_SCHEDULE_MODULOSCHEDULE_H
