//===- TileFilters.h - Winograd's algorithm along one dimension -*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For tiles of both sizes, and how both dimensions are transformed with it.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_TILEFILTERS_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_TILEFILTERS_H

#include "runtime/device/cpu/Vectors.h"

namespace penstock::runtime {

/// The transformations along one dimension.
template <int kSize> struct Filter;

template <> struct Filter<2> {
  template <typename T>
  PENSTOCK_INLINE static void input(const T (&d)[4], T (&t)[4]) {
    t[0] = d[0] - d[2];
    t[1] = d[1] + d[2];
    t[2] = d[2] - d[1];
    t[3] = d[1] - d[3];
  }
  template <typename T>
  PENSTOCK_INLINE static void output(const T (&m)[4], T (&y)[2]) {
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] - m[3];
  }
  template <typename T>
  PENSTOCK_INLINE static void cotangent(const T (&y)[2], T (&m)[4]) {
    m[0] = y[0];
    m[1] = y[0] + y[1];
    m[2] = y[0] - y[1];
    m[3] = -y[1];
  }
  template <typename T>
  PENSTOCK_INLINE static void window(const T (&g)[3], T (&t)[4]) {
    T sum = g[0] + g[2];
    t[0] = g[0];
    t[1] = 0.5f * (sum + g[1]);
    t[2] = 0.5f * (sum - g[1]);
    t[3] = g[2];
  }
  template <typename T>
  PENSTOCK_INLINE static void gradient(const T (&m)[4], T (&g)[3]) {
    T sum = 0.5f * (m[1] + m[2]);
    g[0] = m[0] + sum;
    g[1] = 0.5f * (m[1] - m[2]);
    g[2] = m[3] + sum;
  }
};

/// Evaluates at 0, a, -a, b, -b and infinity. With 1 and 2 the numbers would be
/// rounder and the errors twice as large.
template <> struct Filter<4> {
  static constexpr float a = 0.625f, b = 1.5f;
  static constexpr float aa = a * a, bb = b * b;
  static constexpr float atZero = 1 / (aa * bb);
  static constexpr float atA = 1 / (2 * aa * (aa - bb));
  static constexpr float atB = 1 / (2 * bb * (bb - aa));

  template <typename T>
  PENSTOCK_INLINE static void input(const T (&d)[6], T (&t)[6]) {
    T evenA = d[4] - bb * d[2], oddA = a * (d[3] - bb * d[1]);
    T evenB = d[4] - aa * d[2], oddB = b * (d[3] - aa * d[1]);
    t[0] = aa * bb * d[0] - (aa + bb) * d[2] + d[4];
    t[1] = evenA + oddA;
    t[2] = evenA - oddA;
    t[3] = evenB + oddB;
    t[4] = evenB - oddB;
    t[5] = aa * bb * d[1] - (aa + bb) * d[3] + d[5];
  }
  template <typename T>
  PENSTOCK_INLINE static void output(const T (&m)[6], T (&y)[4]) {
    T evenA = m[1] + m[2], oddA = a * (m[1] - m[2]);
    T evenB = m[3] + m[4], oddB = b * (m[3] - m[4]);
    y[0] = m[0] + evenA + evenB;
    y[1] = oddA + oddB;
    y[2] = aa * evenA + bb * evenB;
    y[3] = aa * oddA + bb * oddB + m[5];
  }
  template <typename T>
  PENSTOCK_INLINE static void cotangent(const T (&y)[4], T (&m)[6]) {
    T evenA = y[0] + aa * y[2], oddA = a * (y[1] + aa * y[3]);
    T evenB = y[0] + bb * y[2], oddB = b * (y[1] + bb * y[3]);
    m[0] = y[0];
    m[1] = evenA + oddA;
    m[2] = evenA - oddA;
    m[3] = evenB + oddB;
    m[4] = evenB - oddB;
    m[5] = y[3];
  }
  template <typename T>
  PENSTOCK_INLINE static void window(const T (&g)[3], T (&t)[6]) {
    T evenA = atA * (g[0] + aa * g[2]), oddA = (atA * a) * g[1];
    T evenB = atB * (g[0] + bb * g[2]), oddB = (atB * b) * g[1];
    t[0] = atZero * g[0];
    t[1] = evenA + oddA;
    t[2] = evenA - oddA;
    t[3] = evenB + oddB;
    t[4] = evenB - oddB;
    t[5] = g[2];
  }
  template <typename T>
  PENSTOCK_INLINE static void gradient(const T (&m)[6], T (&g)[3]) {
    T evenA = atA * (m[1] + m[2]), oddA = (atA * a) * (m[1] - m[2]);
    T evenB = atB * (m[3] + m[4]), oddB = (atB * b) * (m[3] - m[4]);
    g[0] = atZero * m[0] + evenA + evenB;
    g[1] = oddA + oddB;
    g[2] = aa * evenA + bb * evenB + m[5];
  }
};

/// Along both dimensions: lines of kFrom values become lines of kTo, and then
/// columns do. calls read(line, values) and write(line, values).
template <int kFrom, int kTo, typename Read, typename Apply, typename Write>
PENSTOCK_INLINE void transformBoth(Read read, Apply apply, Write write) {
  Vector half[kTo][kFrom];
  for (int line = 0; line < kFrom; ++line) {
    Vector from[kFrom], to[kTo];
    read(line, from);
    apply(from, to);
    for (int i = 0; i < kTo; ++i)
      half[i][line] = to[i];
  }
  for (int i = 0; i < kTo; ++i) {
    Vector to[kTo];
    apply(half[i], to);
    write(i, to);
  }
}

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_TILEFILTERS_H
