//===- CsvCells.h - What a table says of its cells --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules that a table must keep as it stands, before runs are renumbered and
// numbers of transfers dropped.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_SCHEDULE_CSVCELLS_H
#define PENSTOCK_LIB_SCHEDULE_CSVCELLS_H

#include "penstock/Schedule/Csv.h"

namespace penstock::schedule {

/// In each row a backward follows its forward and a weight gradient its input
/// gradient; what is received comes before the run that takes it, and what is
/// sent behind the run that makes it. Transfers of a stage are for all of the
/// row's microbatches or for none; what one stage sends another receives, in
/// the same order. Returns a sentence that names the cell, or nothing.
std::string findMistake(const CsvSchedule &schedule);

} // namespace penstock::schedule

#endif // PENSTOCK_LIB_SCHEDULE_CSVCELLS_H
