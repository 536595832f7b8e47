//===- FiniteWatch.h - Messages that are not finite -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Remembers which messages of a channel held a value that is infinite or not a
// number, so that a loss of that kind can be traced to the stage where it
// began.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_OBSERVE_FINITEWATCH_H
#define PENSTOCK_RUNTIME_OBSERVE_FINITEWATCH_H

#include "runtime/io/Finite.h"

#include <algorithm>
#include <array>

namespace penstock::runtime {

class FiniteWatch {
public:
  explicit FiniteWatch(const penstock_tensor &type) : type(type) {}

  /// Looks at message `n`, on the thread of its sender. A channel that carries
  /// such values as a rule, as a mask of -inf does, is given up.
  void look(int64_t n, const void *values) {
    if (count < numbers.size() &&
        !areFinite(type, static_cast<const char *>(values))) [[unlikely]]
      numbers[count++] = n;
  }

  /// Returns true if message `n` was the first of its kind, or the first after
  /// one that was finite. Between segments.
  bool beginsAt(int64_t n) const { return has(n) && !has(n - 1); }

private:
  bool has(int64_t n) const {
    return std::find(numbers.begin(), numbers.begin() + count, n) !=
           numbers.begin() + count;
  }

  const penstock_tensor &type;
  std::array<int64_t, 64> numbers;
  size_t count = 0;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_OBSERVE_FINITEWATCH_H
