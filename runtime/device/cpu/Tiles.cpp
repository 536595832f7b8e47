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

/// Even columns of a row, and then odd ones, sample innermost.
struct Spread {
  int64_t batch, half; // floats of a half row
  float *data;

  Spread(const TileGrid &grid, float *data)
      : batch(grid.batch), half((grid.tileColumns() + 1) * grid.batch),
        data(data) {}
  float *row(int64_t row, int64_t parity) const {
    return data + (2 * row + parity) * half;
  }
  float *at(int64_t row, int64_t column) const {
    return this->row(row, column % 2) + column / 2 * batch;
  }
};

/// In blocks of 16 elements of a plane by as many samples.
PENSTOCK_INLINE void spreadOut(const Planes &from, const Spread &to) {
  int64_t size = from.height * from.width;
  for (int64_t n = 0; n < to.batch; n += kLanes) {
    int64_t samples = std::min<int64_t>(kLanes, to.batch - n);
    const float *first = from.data + n * from.sampleStride;
    int64_t i = 0, j = 0, p = 0;
    auto place = [&]() __attribute__((always_inline)) {
      float *out = to.at(i + from.top, j + from.left) + n;
      if (++j == from.width) {
        j = 0;
        ++i;
      }
      return out;
    };
    for (; p + kLanes <= size; p += kLanes) {
      Vector block[kLanes] = {};
      for (int64_t l = 0; l < samples; ++l)
        load(first + l * from.sampleStride + p, block[l]);
      transpose(block);
      for (const Vector &element : block)
        storeSome(element, samples, place());
    }
    for (; p < size; ++p) {
      float *out = place();
      for (int64_t l = 0; l < samples; ++l)
        out[l] = first[l * from.sampleStride + p];
    }
  }
}

/// The way back.
PENSTOCK_INLINE void collect(const Spread &from, const Planes &to) {
  int64_t size = to.height * to.width;
  for (int64_t n = 0; n < from.batch; n += kLanes) {
    int64_t samples = std::min<int64_t>(kLanes, from.batch - n);
    float *first = to.data + n * to.sampleStride;
    int64_t i = 0, j = 0, p = 0;
    auto place = [&]() __attribute__((always_inline)) {
      const float *in = from.at(i, j) + n;
      if (++j == to.width) {
        j = 0;
        ++i;
      }
      return in;
    };
    for (; p + kLanes <= size; p += kLanes) {
      Vector block[kLanes];
      // Behind the last sample are other ones, or the slack of the spread.
      for (Vector &element : block)
        load(place(), element);
      transpose(block);
      for (int64_t l = 0; l < samples; ++l)
        store(block[l], first + l * to.sampleStride + p);
    }
    for (; p < size; ++p) {
      const float *in = place();
      for (int64_t l = 0; l < samples; ++l)
        first[l * to.sampleStride + p] = in[l];
    }
  }
}

PENSTOCK_INLINE void inputs(const TileGrid &grid, const Planes &from,
                            float *spread, float *__restrict result,
                            int64_t stride) {
  Spread plane(grid, spread);
  spreadOut(from, plane);
  int64_t line = grid.tileColumns() * grid.batch;
  for (int64_t y = 0; y < grid.tileRows(); ++y, result += line) {
    const float *even[4], *odd[4];
    for (int r = 0; r < 4; ++r) {
      even[r] = plane.row(2 * y + r, 0);
      odd[r] = plane.row(2 * y + r, 1);
    }
    for (int64_t i = 0; i < line; ++i) {
      float h[4][4];
      for (int r = 0; r < 4; ++r) {
        float a = even[r][i], b = odd[r][i];
        float c = even[r][i + grid.batch], d = odd[r][i + grid.batch];
        h[r][0] = a - c;
        h[r][1] = b + c;
        h[r][2] = c - b;
        h[r][3] = b - d;
      }
      for (int p = 0; p < 4; ++p) {
        result[(0 + p) * stride + i] = h[0][p] - h[2][p];
        result[(4 + p) * stride + i] = h[1][p] + h[2][p];
        result[(8 + p) * stride + i] = h[2][p] - h[1][p];
        result[(12 + p) * stride + i] = h[1][p] - h[3][p];
      }
    }
  }
}

PENSTOCK_INLINE void cotangents(const TileGrid &grid, const Planes &from,
                                float *spread, float *__restrict result,
                                int64_t stride) {
  Spread plane(grid, spread);
  spreadOut(from, plane);
  int64_t line = grid.tileColumns() * grid.batch;
  for (int64_t y = 0; y < grid.tileRows(); ++y, result += line) {
    const float *even[2] = {plane.row(2 * y, 0), plane.row(2 * y + 1, 0)};
    const float *odd[2] = {plane.row(2 * y, 1), plane.row(2 * y + 1, 1)};
    for (int64_t i = 0; i < line; ++i) {
      float h[2][4];
      for (int r = 0; r < 2; ++r) {
        float a = even[r][i], b = odd[r][i];
        h[r][0] = a;
        h[r][1] = a + b;
        h[r][2] = a - b;
        h[r][3] = -b;
      }
      for (int p = 0; p < 4; ++p) {
        result[(0 + p) * stride + i] = h[0][p];
        result[(4 + p) * stride + i] = h[0][p] + h[1][p];
        result[(8 + p) * stride + i] = h[0][p] - h[1][p];
        result[(12 + p) * stride + i] = -h[1][p];
      }
    }
  }
}

PENSTOCK_INLINE void outputs(const TileGrid &grid,
                             const float *__restrict products, int64_t stride,
                             float *spread, const Planes &to) {
  Spread plane(grid, spread);
  int64_t line = grid.tileColumns() * grid.batch;
  for (int64_t y = 0; y < grid.tileRows(); ++y, products += line) {
    float *even[2] = {plane.row(2 * y, 0), plane.row(2 * y + 1, 0)};
    float *odd[2] = {plane.row(2 * y, 1), plane.row(2 * y + 1, 1)};
    for (int64_t i = 0; i < line; ++i) {
      float h[2][4];
      for (int p = 0; p < 4; ++p) {
        float a = products[(0 + p) * stride + i];
        float b = products[(4 + p) * stride + i];
        float c = products[(8 + p) * stride + i];
        float d = products[(12 + p) * stride + i];
        h[0][p] = a + b + c;
        h[1][p] = b - c - d;
      }
      for (int r = 0; r < 2; ++r) {
        even[r][i] = h[r][0] + h[r][1] + h[r][2];
        odd[r][i] = h[r][1] - h[r][2] - h[r][3];
      }
    }
  }
  collect(plane, to);
}

PENSTOCK_INLINE void windows(const float *from, int64_t count, bool isTurned,
                             float *__restrict result, int64_t stride) {
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
    Vector h[3][4];
    for (int r = 0; r < 3; ++r) {
      const Vector &a = taps[3 * r], &b = taps[3 * r + 1], &c = taps[3 * r + 2];
      h[r][0] = a;
      h[r][1] = 0.5f * (a + c + b);
      h[r][2] = 0.5f * (a + c - b);
      h[r][3] = c;
    }
    for (int p = 0; p < 4; ++p) {
      Vector sum = h[0][p] + h[2][p];
      float *out = result + p * stride + i;
      storeSome(h[0][p], lanes, out);
      storeSome(0.5f * (sum + h[1][p]), lanes, out + 4 * stride);
      storeSome(0.5f * (sum - h[1][p]), lanes, out + 8 * stride);
      storeSome(h[2][p], lanes, out + 12 * stride);
    }
  }
}

PENSTOCK_INLINE void gradients(const float *__restrict products, int64_t stride,
                               int64_t count, float *__restrict to) {
  for (int64_t i = 0; i < count; i += kLanes) {
    int64_t lanes = std::min<int64_t>(kLanes, count - i);
    Vector h[3][4];
    for (int p = 0; p < 4; ++p) {
      // Behind the last window are those of the next channel, or slack.
      const float *in = products + p * stride + i;
      Vector a, b, c, d;
      load(in, a);
      load(in + 4 * stride, b);
      load(in + 8 * stride, c);
      load(in + 12 * stride, d);
      Vector sum = 0.5f * (b + c);
      h[0][p] = a + sum;
      h[1][p] = 0.5f * (b - c);
      h[2][p] = d + sum;
    }
    Vector taps[kLanes] = {};
    for (int r = 0; r < 3; ++r) {
      Vector sum = 0.5f * (h[r][1] + h[r][2]);
      taps[3 * r] = h[r][0] + sum;
      taps[3 * r + 1] = 0.5f * (h[r][1] - h[r][2]);
      taps[3 * r + 2] = h[r][3] + sum;
    }
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

#if defined(__x86_64__)
#define PENSTOCK_FOR_VECTORS(name, body, parameters, arguments)                \
  __attribute__((target("avx512f"))) static void name##Avx512 parameters {     \
    body arguments;                                                            \
  }                                                                            \
  __attribute__((target("avx2"))) static void name##Avx2 parameters {          \
    body arguments;                                                            \
  }                                                                            \
  void penstock::runtime::name parameters {                                    \
    if (getVectors() == Vectors::Avx512)                                       \
      return name##Avx512 arguments;                                           \
    if (getVectors() == Vectors::Avx2)                                         \
      return name##Avx2 arguments;                                             \
    body arguments;                                                            \
  }
#else
#define PENSTOCK_FOR_VECTORS(name, body, parameters, arguments)                \
  void penstock::runtime::name parameters { body arguments; }
#endif

PENSTOCK_FOR_VECTORS(transformInputs, inputs,
                     (const TileGrid &grid, const Planes &from, float *spread,
                      float *result, int64_t pointStride),
                     (grid, from, spread, result, pointStride))
PENSTOCK_FOR_VECTORS(transformCotangents, cotangents,
                     (const TileGrid &grid, const Planes &from, float *spread,
                      float *result, int64_t pointStride),
                     (grid, from, spread, result, pointStride))
PENSTOCK_FOR_VECTORS(transformOutputs, outputs,
                     (const TileGrid &grid, const float *products,
                      int64_t pointStride, float *spread, const Planes &to),
                     (grid, products, pointStride, spread, to))
PENSTOCK_FOR_VECTORS(transformWindows, windows,
                     (const float *from, int64_t count, bool isTurned,
                      float *result, int64_t pointStride),
                     (from, count, isTurned, result, pointStride))
PENSTOCK_FOR_VECTORS(addWindows, gradients,
                     (const float *products, int64_t pointStride, int64_t count,
                      float *to),
                     (products, pointStride, count, to))
