//===- Vectors.h - Vectors of several instruction sets ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inlined into functions that are compiled for several instruction sets, with
// the same bits.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_VECTORS_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_VECTORS_H

#include "runtime/support/InstructionSets.h"

#include <cstdint>
#include <cstring>

namespace penstock::runtime {

constexpr int kLanes = 16;

/// A vector of any width that the instruction set has, several registers at
/// worst. Passed by reference: how such values are passed depends on that
/// width.
typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));

PENSTOCK_INLINE void load(const float *from, Vector &to) {
  std::memcpy(&to, from, sizeof(Vector));
}
PENSTOCK_INLINE void store(const Vector &from, float *to) {
  std::memcpy(to, &from, sizeof(Vector));
}

/// The first `lanes` of them, and zeros.
PENSTOCK_INLINE void loadSome(const float *from, int64_t lanes, Vector &to) {
  if (lanes == kLanes)
    return load(from, to);
  float *lane = reinterpret_cast<float *>(&to);
  to = Vector{};
  int64_t l = 0;
  for (; l + 4 <= lanes; l += 4)
    std::memcpy(lane + l, from + l, 4 * sizeof(float));
  for (; l < lanes; ++l)
    lane[l] = from[l];
}

/// The first `lanes` of them.
PENSTOCK_INLINE void storeSome(const Vector &from, int64_t lanes, float *to) {
  if (lanes == kLanes)
    return store(from, to);
  const float *lane = reinterpret_cast<const float *>(&from);
  int64_t l = 0;
  for (; l + 4 <= lanes; l += 4)
    std::memcpy(to + l, lane + l, 4 * sizeof(float));
  for (; l < lanes; ++l)
    to[l] = lane[l];
}

/// All but the first `lanes`, which may be none.
PENSTOCK_INLINE void clearBehind(int64_t lanes, Vector &vector) {
  typedef int32_t Bits __attribute__((vector_size(sizeof(Vector))));
  constexpr Bits kNumbers = {0, 1, 2,  3,  4,  5,  6,  7,
                             8, 9, 10, 11, 12, 13, 14, 15};
  Bits bits;
  std::memcpy(&bits, &vector, sizeof(Bits));
  bits &= kNumbers < static_cast<int32_t>(lanes);
  std::memcpy(&vector, &bits, sizeof(Bits));
}

/// Rows become columns: four times, halves of the rows are interleaved.
PENSTOCK_INLINE void transpose(Vector (&rows)[kLanes]) {
  Vector other[kLanes];
  auto interleave = [](const Vector(&from)[kLanes],
                       Vector(&to)[kLanes]) __attribute__((always_inline)) {
    for (int64_t i = 0; i < kLanes / 2; ++i) {
      to[2 * i] =
          __builtin_shufflevector(from[i], from[i + kLanes / 2], 0, 16, 1, 17,
                                  2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      to[2 * i + 1] = __builtin_shufflevector(from[i], from[i + kLanes / 2], 8,
                                              24, 9, 25, 10, 26, 11, 27, 12, 28,
                                              13, 29, 14, 30, 15, 31);
    }
  };
  interleave(rows, other);
  interleave(other, rows);
  interleave(rows, other);
  interleave(other, rows);
}

/// The same of each four elements of four rows: element 4 * i + k of row j
/// becomes element 4 * i + j of row k.
PENSTOCK_INLINE void transposeFours(Vector (&rows)[4]) {
  Vector low[2], high[2];
  for (int64_t i = 0; i < 2; ++i) {
    const Vector &a = rows[2 * i], &b = rows[2 * i + 1];
    low[i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9,
                                     25, 12, 28, 13, 29);
    high[i] = __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26,
                                      11, 27, 14, 30, 15, 31);
  }
  auto join = [](const Vector(&from)[2], Vector &first,
                 Vector &second) __attribute__((always_inline)) {
    first = __builtin_shufflevector(from[0], from[1], 0, 1, 16, 17, 4, 5, 20,
                                    21, 8, 9, 24, 25, 12, 13, 28, 29);
    second = __builtin_shufflevector(from[0], from[1], 2, 3, 18, 19, 6, 7, 22,
                                     23, 10, 11, 26, 27, 14, 15, 30, 31);
  };
  join(low, rows[0], rows[1]);
  join(high, rows[2], rows[3]);
}

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_VECTORS_H
