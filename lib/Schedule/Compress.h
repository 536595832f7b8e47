//===- Compress.h - Loops in orders that are written out --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As numbers of microbatches are implied, entries that recur are a loop.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_SCHEDULE_COMPRESS_H
#define PENSTOCK_LIB_SCHEDULE_COMPRESS_H

#include "penstock/Schedule/Order.h"

namespace penstock::schedule {

/// Puts entries, none of which runs ahead, at the end of the outermost loop,
/// what recurs in them as loops.
void appendCompressed(Order &order, llvm::ArrayRef<Item> items);

} // namespace penstock::schedule

#endif // PENSTOCK_LIB_SCHEDULE_COMPRESS_H
