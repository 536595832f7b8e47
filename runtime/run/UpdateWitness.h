//===- UpdateWitness.h - Whether updates move what they should --*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A replay that does the same nothing agrees. So --verify looks at the weights
// of the replay before each update: whether gradient and learning rate would
// move one of their elements, and whether they ever moved.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_RUN_UPDATEWITNESS_H
#define PENSTOCK_RUNTIME_RUN_UPDATEWITNESS_H

#include "runtime/run/Instance.h"

#include <mutex>

namespace penstock::runtime {

class UpdateWitness {
public:
  /// `replay` holds the values after `begin` updates, and runs nothing yet.
  UpdateWitness(Instance &replay, int64_t begin);
  ~UpdateWitness();

  /// Fails if a weight stood still over all updates before `end` that had to
  /// move.
  Error check(int64_t end);

private:
  struct Weight {
    const penstock_variable *variable, *gradient;
    /// The hash of its value at the start.
    size_t hash;
    bool hasMoved = false;
    /// The update that would have moved it, and its rate.
    int64_t update = -1;
    double rate = 0;
  };
  void look(uint32_t task, int64_t update);
  void readWeight(const Weight &weight, int64_t update,
                  std::vector<char> &bytes) const;

  Instance &replay;
  int64_t begin;
  std::vector<Weight> weights;
  /// Devices of several kinds update at once.
  std::mutex mutex;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_RUN_UPDATEWITNESS_H
