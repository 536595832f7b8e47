//===- Tiles.cpp - Transformations of Winograd's algorithm ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiled for several instruction sets, with the same bits: operations are the
// same ones, and none is contracted.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/Tiles.h"

#include <algorithm>
#include <cstring>

using namespace penstock::runtime;

namespace {

// Each function of the interface is this inline body in three wrappers.
#define PENSTOCK_INLINE inline __attribute__((always_inline))

constexpr int kLanes = 16;
constexpr int kWindow = 9;

/// Of whatever width the instruction set has, several registers at worst.
/// Passed by reference: how such values are passed depends on that width.
typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));

PENSTOCK_INLINE void load(const float *from, Vector &to) {
  std::memcpy(&to, from, sizeof(Vector));
}
PENSTOCK_INLINE void store(const Vector &from, float *to) {
  std::memcpy(to, &from, sizeof(Vector));
}

/// The first `lanes` of them.
PENSTOCK_INLINE void storeSome(const Vector &from, int64_t lanes, float *to) {
  if (lanes == kLanes)
    return store(from, to);
  if (lanes % 4 == 0) {
    for (int64_t l = 0; l < lanes; l += 4)
      std::memcpy(to + l, reinterpret_cast<const float *>(&from) + l,
                  4 * sizeof(float));
    return;
  }
  for (int64_t l = 0; l < lanes; ++l)
    to[l] = from[l];
}

/// Rows become columns: four times, halves of the rows are interleaved.
PENSTOCK_INLINE void transpose(Vector (&rows)[kLanes]) {
  Vector other[kLanes];
  auto interleave = [](const Vector(&from)[kLanes],
                       Vector(&to)[kLanes]) __attribute__((always_inline)) {
    for (int i = 0; i < kLanes / 2; ++i) {
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

/// The columns of a row by their remainders, sample innermost.
template <int kSize> struct Spread {
  int64_t batch, part; // floats of a remainder
  float *data;

  Spread(const TileStrip &strip, float *data)
      : batch(strip.batch), part((strip.columns + 1) * strip.batch),
        data(data) {}
  float *at(int64_t row, int64_t column) const {
    return data + (row * kSize + column % kSize) * part +
           column / kSize * batch;
  }
};

/// What a strip reads or writes of planes: whole rows.
struct Rows {
  int64_t begin, end, top;

  Rows(const TileStrip &strip, const Planes &planes, int64_t more)
      : top(planes.top - strip.size * strip.firstRow) {
    begin = std::max<int64_t>(0, -top);
    end = std::min(planes.height, strip.size * strip.rows + more - top);
  }
};

/// Walks along the elements of planes in the spread.
template <int kSize> struct Walk {
  const Spread<kSize> &spread;
  int64_t row, column, width, left;

  Walk(const Spread<kSize> &spread, const Planes &planes, const Rows &rows)
      : spread(spread), row(rows.begin + rows.top), column(0),
        width(planes.width), left(planes.left) {}
  PENSTOCK_INLINE float *next() {
    float *at = spread.at(row, column + left);
    if (++column == width) {
      column = 0;
      ++row;
    }
    return at;
  }
};

/// In blocks of 16 elements of a plane by as many samples.
template <int kSize>
PENSTOCK_INLINE void spreadOut(const Planes &from, const Rows &rows,
                               const Spread<kSize> &to) {
  int64_t begin = rows.begin * from.width, end = rows.end * from.width;
  for (int64_t n = 0; n < to.batch; n += kLanes) {
    int64_t samples = std::min<int64_t>(kLanes, to.batch - n);
    const float *first = from.data + n * from.sampleStride;
    Walk<kSize> walk(to, from, rows);
    int64_t p = begin;
    for (; p + kLanes <= end; p += kLanes) {
      Vector block[kLanes] = {};
      for (int64_t l = 0; l < samples; ++l)
        load(first + l * from.sampleStride + p, block[l]);
      transpose(block);
      for (const Vector &element : block)
        storeSome(element, samples, walk.next() + n);
    }
    for (; p < end; ++p) {
      float *out = walk.next() + n;
      for (int64_t l = 0; l < samples; ++l)
        out[l] = first[l * from.sampleStride + p];
    }
  }
}

/// The way back.
template <int kSize>
PENSTOCK_INLINE void collect(const Spread<kSize> &from, const Rows &rows,
                             const Planes &to) {
  int64_t begin = rows.begin * to.width, end = rows.end * to.width;
  for (int64_t n = 0; n < from.batch; n += kLanes) {
    int64_t samples = std::min<int64_t>(kLanes, from.batch - n);
    float *first = to.data + n * to.sampleStride;
    Walk<kSize> walk(from, to, rows);
    int64_t p = begin;
    for (; p + kLanes <= end; p += kLanes) {
      Vector block[kLanes];
      // Behind the last sample are other ones, or the slack of the spread.
      for (Vector &element : block)
        load(walk.next() + n, element);
      transpose(block);
      for (int64_t l = 0; l < samples; ++l)
        store(block[l], first + l * to.sampleStride + p);
    }
    for (; p < end; ++p) {
      const float *in = walk.next() + n;
      for (int64_t l = 0; l < samples; ++l)
        first[l * to.sampleStride + p] = in[l];
    }
  }
}

template <int kSize>
PENSTOCK_INLINE void inputs(const TileStrip &strip, const Planes &from,
                            float *spread, float *__restrict result,
                            int64_t stride) {
  constexpr int kPoints = kSize + 2;
  Spread<kSize> plane(strip, spread);
  spreadOut(from, Rows(strip, from, 2), plane);
  int64_t line = strip.columns * strip.batch;
  for (int64_t y = 0; y < strip.rows; ++y, result += line)
    for (int64_t i = 0; i < line; i += kLanes) {
      int64_t lanes = std::min<int64_t>(kLanes, line - i);
      transformBoth<kPoints, kPoints>(
          [&](int row, Vector(&d)[kPoints]) __attribute__((always_inline)) {
            for (int j = 0; j < kPoints; ++j)
              load(plane.at(kSize * y + row, j) + i, d[j]);
          },
          [](const Vector(&d)[kPoints], Vector(&t)[kPoints])
              __attribute__((always_inline)) { Filter<kSize>::input(d, t); },
          [&](int column, const Vector(&t)[kPoints])
              __attribute__((always_inline)) {
                for (int j = 0; j < kPoints; ++j)
                  storeSome(t[j], lanes,
                            result + (j * kPoints + column) * stride + i);
              });
    }
}

template <int kSize>
PENSTOCK_INLINE void cotangents(const TileStrip &strip, const Planes &from,
                                float *spread, float *__restrict result,
                                int64_t stride) {
  constexpr int kPoints = kSize + 2;
  Spread<kSize> plane(strip, spread);
  spreadOut(from, Rows(strip, from, 0), plane);
  int64_t line = strip.columns * strip.batch;
  for (int64_t y = 0; y < strip.rows; ++y, result += line)
    for (int64_t i = 0; i < line; i += kLanes) {
      int64_t lanes = std::min<int64_t>(kLanes, line - i);
      transformBoth<kSize, kPoints>(
          [&](int row, Vector(&d)[kSize]) __attribute__((always_inline)) {
            for (int j = 0; j < kSize; ++j)
              load(plane.at(kSize * y + row, j) + i, d[j]);
          },
          [](const Vector(&d)[kSize], Vector(&t)[kPoints]) __attribute__((
              always_inline)) { Filter<kSize>::cotangent(d, t); },
          [&](int column, const Vector(&t)[kPoints])
              __attribute__((always_inline)) {
                for (int j = 0; j < kPoints; ++j)
                  storeSome(t[j], lanes,
                            result + (j * kPoints + column) * stride + i);
              });
    }
}

template <int kSize>
PENSTOCK_INLINE void outputs(const TileStrip &strip,
                             const float *__restrict products, int64_t stride,
                             float *spread, const Planes &to) {
  constexpr int kPoints = kSize + 2;
  Spread<kSize> plane(strip, spread);
  int64_t line = strip.columns * strip.batch;
  for (int64_t y = 0; y < strip.rows; ++y, products += line)
    for (int64_t i = 0; i < line; i += kLanes) {
      int64_t lanes = std::min<int64_t>(kLanes, line - i);
      transformBoth<kPoints, kSize>(
          [&](int row, Vector(&m)[kPoints]) __attribute__((always_inline)) {
            for (int j = 0; j < kPoints; ++j)
              load(products + (row * kPoints + j) * stride + i, m[j]);
          },
          [](const Vector(&m)[kPoints], Vector(&t)[kSize])
              __attribute__((always_inline)) { Filter<kSize>::output(m, t); },
          [&](int column, const Vector(&t)[kSize])
              __attribute__((always_inline)) {
                for (int j = 0; j < kSize; ++j)
                  storeSome(t[j], lanes, plane.at(kSize * y + j, column) + i);
              });
    }
  collect(plane, Rows(strip, to, 0), to);
}

template <int kSize>
PENSTOCK_INLINE void windows(const float *from, int64_t count, bool isTurned,
                             float *__restrict result, int64_t stride) {
  constexpr int kPoints = kSize + 2;
  for (int64_t i = 0; i < count; i += kLanes) {
    int64_t lanes = std::min<int64_t>(kLanes, count - i);
    // A vector of the last windows would reach behind them.
    float copy[kLanes * kWindow + kLanes - kWindow];
    const float *group = from + i * kWindow;
    if (i + kLanes >= count) {
      std::copy_n(group, lanes * kWindow, copy);
      group = copy;
    }
    Vector taps[kLanes] = {};
    for (int64_t l = 0; l < lanes; ++l)
      load(group + l * kWindow, taps[l]);
    transpose(taps);
    if (isTurned)
      for (int j = 0; j < kWindow / 2; ++j)
        std::swap(taps[j], taps[kWindow - 1 - j]);
    transformBoth<3, kPoints>(
        [&](int row, Vector(&g)[3]) __attribute__((always_inline)) {
          for (int j = 0; j < 3; ++j)
            g[j] = taps[3 * row + j];
        },
        [](const Vector(&g)[3], Vector(&t)[kPoints])
            __attribute__((always_inline)) { Filter<kSize>::window(g, t); },
        [&](int column, const Vector(&t)[kPoints])
            __attribute__((always_inline)) {
              for (int j = 0; j < kPoints; ++j)
                storeSome(t[j], lanes,
                          result + (j * kPoints + column) * stride + i);
            });
  }
}

template <int kSize>
PENSTOCK_INLINE void gradients(const float *__restrict products, int64_t stride,
                               int64_t count, float *__restrict to) {
  constexpr int kPoints = kSize + 2;
  for (int64_t i = 0; i < count; i += kLanes) {
    int64_t lanes = std::min<int64_t>(kLanes, count - i);
    Vector taps[kLanes] = {};
    transformBoth<kPoints, 3>(
        // Behind the last window are those of the next channel, or slack.
        [&](int row, Vector(&m)[kPoints]) __attribute__((always_inline)) {
          for (int j = 0; j < kPoints; ++j)
            load(products + (row * kPoints + j) * stride + i, m[j]);
        },
        [](const Vector(&m)[kPoints], Vector(&g)[3])
            __attribute__((always_inline)) { Filter<kSize>::gradient(m, g); },
        [&](int column, const Vector(&g)[3]) __attribute__((always_inline)) {
          for (int j = 0; j < 3; ++j)
            taps[3 * j + column] = g[j];
        });
    transpose(taps);
    // Each window overwrites what the vector before it has too much.
    float group[kLanes * kWindow + kLanes - kWindow];
    for (int l = 0; l < kLanes; ++l)
      store(taps[l], group + l * kWindow);
    float *out = to + i * kWindow;
    for (int64_t j = 0; j < lanes * kWindow; ++j)
      out[j] += group[j];
  }
}

enum class Vectors { Narrow, Avx2, Avx512 };

Vectors findVectors() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f"))
    return Vectors::Avx512;
  if (__builtin_cpu_supports("avx2"))
    return Vectors::Avx2;
#endif
  return Vectors::Narrow;
}

Vectors getVectors() {
  static const Vectors found = findVectors();
  return found;
}

} // namespace

// Each for tiles of both sizes.
#define PENSTOCK_FOR_SIZES(size, body, arguments)                              \
  if ((size) == 2)                                                             \
    return body<2> arguments;                                                  \
  return body<4> arguments;

#if defined(__x86_64__)
#define PENSTOCK_FOR_VECTORS(name, size, body, parameters, all, arguments)     \
  __attribute__((target("avx512f"))) static void name##Avx512 parameters {     \
    PENSTOCK_FOR_SIZES(size, body, arguments)                                  \
  }                                                                            \
  __attribute__((target("avx2"))) static void name##Avx2 parameters {          \
    PENSTOCK_FOR_SIZES(size, body, arguments)                                  \
  }                                                                            \
  void penstock::runtime::name parameters {                                    \
    if (getVectors() == Vectors::Avx512)                                       \
      return name##Avx512 all;                                                 \
    if (getVectors() == Vectors::Avx2)                                         \
      return name##Avx2 all;                                                   \
    PENSTOCK_FOR_SIZES(size, body, arguments)                                  \
  }
#else
#define PENSTOCK_FOR_VECTORS(name, size, body, parameters, all, arguments)     \
  void penstock::runtime::name parameters {                                    \
    PENSTOCK_FOR_SIZES(size, body, arguments)                                  \
  }
#endif

PENSTOCK_FOR_VECTORS(transformInputs, strip.size, inputs,
                     (const TileStrip &strip, const Planes &from, float *spread,
                      float *result, int64_t pointStride),
                     (strip, from, spread, result, pointStride),
                     (strip, from, spread, result, pointStride))
PENSTOCK_FOR_VECTORS(transformCotangents, strip.size, cotangents,
                     (const TileStrip &strip, const Planes &from, float *spread,
                      float *result, int64_t pointStride),
                     (strip, from, spread, result, pointStride),
                     (strip, from, spread, result, pointStride))
PENSTOCK_FOR_VECTORS(transformOutputs, strip.size, outputs,
                     (const TileStrip &strip, const float *products,
                      int64_t pointStride, float *spread, const Planes &to),
                     (strip, products, pointStride, spread, to),
                     (strip, products, pointStride, spread, to))
PENSTOCK_FOR_VECTORS(transformWindows, size, windows,
                     (int64_t size, const float *from, int64_t count,
                      bool isTurned, float *result, int64_t pointStride),
                     (size, from, count, isTurned, result, pointStride),
                     (from, count, isTurned, result, pointStride))
PENSTOCK_FOR_VECTORS(addWindows, size, gradients,
                     (int64_t size, const float *products, int64_t pointStride,
                      int64_t count, float *to),
                     (size, products, pointStride, count, to),
                     (products, pointStride, count, to))
