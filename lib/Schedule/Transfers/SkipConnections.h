//===- SkipConnections.h - Messages that a table has no cell of -*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A table has one cell for what a run sends, and one for what it receives: they
// stand for the message between the nearest stages. Others, which go past a
// stage, get a place here.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_SCHEDULE_TRANSFERS_SKIPCONNECTIONS_H
#define PENSTOCK_LIB_SCHEDULE_TRANSFERS_SKIPCONNECTIONS_H

#include "penstock/Schedule/Order.h"

namespace penstock::schedule {

/// Returns true if no message that either of its runs sends or receives joins
/// nearer stages than this one.
bool isShortest(const Model &model, int channel);

/// How far apart the stages at the ends of a channel are.
int getDistance(const Model &model, const Channel &channel);

/// Adds the transfers of these channels to rows, by device, that have all
/// others: where the rows get to them when they are executed, each right
/// behind the nearest message of its run if it can be. Where the rows cannot be
/// executed, or leave no place, they stay as they are: false.
bool placeSkipConnections(const Model &model, llvm::ArrayRef<int> channels,
                          llvm::MutableArrayRef<std::vector<Item>> rows);

} // namespace penstock::schedule

#endif // PENSTOCK_LIB_SCHEDULE_TRANSFERS_SKIPCONNECTIONS_H
