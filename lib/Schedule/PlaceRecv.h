//===- PlaceRecv.h - Where a loop posts a receive ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For loops whose entries have times that repeat with a period.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_SCHEDULE_PLACERECV_H
#define PENSTOCK_LIB_SCHEDULE_PLACERECV_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cstdint>
#include <limits>

namespace penstock::schedule {

/// The position of a receive that is posted before the last entry which starts
/// earlier than the transfer; `starts` are those of iteration 0. Entry i of
/// iteration j has the position j * (entries + 1) + i.
inline int64_t placeRecv(llvm::ArrayRef<int64_t> starts, int64_t period,
                         int64_t time) {
  int64_t entries = starts.size();
  int64_t best = std::numeric_limits<int64_t>::min(), position = 0;
  for (auto [index, start] : llvm::enumerate(starts)) {
    int64_t ahead = llvm::divideFloorSigned(start - time, period) + 1;
    int64_t distance = start - period * ahead;
    int64_t candidate = -ahead * (entries + 1) + int64_t(index);
    if (distance > best || (distance == best && candidate > position)) {
      best = distance;
      position = candidate;
    }
  }
  return position;
}

} // namespace penstock::schedule

#endif // PENSTOCK_LIB_SCHEDULE_PLACERECV_H
