//===- Recomputation.h - What to store and what to run again ----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The fewest seconds of ops that run again, so that no more bytes are stored
// than there is room for.
//
// With a Lagrange multiplier per byte this is a cheapest cut: a value that is
// needed is stored, or its op runs, and then what that op uses is needed. The
// multiplier at which the cut just fits bounds what any choice takes; branching
// over ops closes the gap that is left. With the highest multiplier the cut
// stores the fewest bytes there are, so that a choice that fits is found
// whenever there is one.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PLANNER_RECOMPUTATION_H
#define PENSTOCK_PLANNER_RECOMPUTATION_H

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <vector>

namespace penstock {

struct RecomputationGraph {
  struct Op {
    double seconds = 0;
    llvm::SmallVector<unsigned> uses; ///< Values.
  };
  struct Value {
    int64_t bytes = 0;
    int op = -1; ///< That makes it again; -1: it has to be stored.
    bool mayStore = true;
    bool isNeeded = false; ///< By the backward.
  };
  std::vector<Op> ops; ///< After those whose values they use.
  std::vector<Value> values;
};

struct RecomputationChoice {
  std::vector<bool> runs; ///< Per op.
  int64_t bytes = 0;      ///< Of the values that are stored.
  double seconds = 0;
  double leastSeconds = 0; ///< No choice that fits takes less.
};

/// The cheapest choice of at most `budget` bytes, or, where there is none, the
/// one of the fewest bytes. After the first bound, about `effort` more edges of
/// networks are looked at; then it is the best so far.
RecomputationChoice chooseRecomputation(const RecomputationGraph &graph,
                                        int64_t budget,
                                        int64_t effort = int64_t(1) << 22);

} // namespace penstock

#endif // PENSTOCK_PLANNER_RECOMPUTATION_H
