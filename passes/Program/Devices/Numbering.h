//===- Numbering.h - Which message an entry of a loop handles ---*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instance numbers are implied in schedules: the n-th run of a task handles its
// n-th microbatch. Device programs state them, as a function of loop counters.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_DEVICES_NUMBERING_H
#define PENSTOCK_PASSES_PROGRAM_DEVICES_NUMBERING_H

#include "dialects/Pipeline/Pipeline.h"

#include "llvm/ADT/MapVector.h"

namespace penstock {

/// The extra iterations of a loop for entries that run ahead or behind. In the
/// iteration j of `count + furthest - nearest` ones, an entry handles index
/// j - (furthest - ahead) if that is in [0, count).
struct LoopRange {
  int64_t furthest = 0;
  int64_t nearest = 0;

  static LoopRange get(mlir::Block &body);
  int64_t getExtra() const { return furthest - nearest; }
  int64_t getShift(int64_t ahead) const { return furthest - ahead; }
};

/// How far an item of a loop runs ahead, and its period: those of an entry, 0
/// and none of an inner loop.
int64_t getAhead(mlir::Operation *item);
std::optional<int64_t> getPeriod(mlir::Operation *item);

/// Where an entry stands in the sequence of its task or channel: in one
/// iteration of the outermost loop, its number is base + sum of factor * index
/// over the inner loops, outermost first. `perIteration` entries of the same
/// task or channel (and kind) handle as many numbers in one iteration.
struct Number {
  int64_t base = 0;
  llvm::SmallVector<int64_t, 2> factors;
  int64_t perIteration = 0;
};

/// The numbers of all entries of an outermost loop.
mlir::FailureOr<llvm::MapVector<mlir::Operation *, Number>>
numberEntries(pipeline::RepeatOp outermost);

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_DEVICES_NUMBERING_H
