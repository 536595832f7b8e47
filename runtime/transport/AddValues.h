//===- AddValues.h - Sums in the order of their summands --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bits of a sum depend neither on the transport nor on the thread that
// adds.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_TRANSPORT_ADDVALUES_H
#define PENSTOCK_RUNTIME_TRANSPORT_ADDVALUES_H

#include "runtime/support/Subnormals.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

namespace penstock::runtime {

/// Adds elements [begin, end) of `values`, the first one first, and calls
/// `store(at, sums, count)` for some of them at a time. It may overwrite values
/// at these places. The compiler must not reassociate; it has no license to.
template <typename T, typename Store>
void addValues(std::span<const void *const> values, uint64_t begin,
               uint64_t end, Store store) {
  constexpr uint64_t kBlock = 512;
  FlushSubnormals flush;
  T sums[kBlock];
  for (uint64_t count; begin < end; begin += count) {
    count = std::min(kBlock, end - begin);
    std::memcpy(sums, static_cast<const T *>(values[0]) + begin,
                count * sizeof(T));
    for (const void *each : values.subspan(1)) {
      const T *__restrict summand = static_cast<const T *>(each) + begin;
      for (uint64_t i = 0; i < count; ++i)
        sums[i] += summand[i];
    }
    store(begin, sums, count);
  }
}

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_TRANSPORT_ADDVALUES_H
