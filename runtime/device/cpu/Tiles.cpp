//===- Tiles.cpp - Transformations of Winograd's algorithm ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiled for several instruction sets, with the same bits: operations are the
// same ones, and none is contracted.
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/Tiles.h"

#include "runtime/device/cpu/TileFilters.h"
#include "runtime/device/cpu/TilePlanes.h"

#include <algorithm>

using namespace penstock::runtime;

namespace {

constexpr int kWindow = 9;

/// Transforms the inputs that each tile reads, or the cotangents of its
/// outputs.
template <int kSize, int kTaken>
PENSTOCK_INLINE void taken(const TileStrip &strip, const Planes &from,
                           float *spread, float *__restrict result,
                           int64_t stride) {
  constexpr int kPoints = kSize + 2;
  Spread<kSize> plane(strip, spread);
  spreadOut(from, Rows(strip, from, kTaken - kSize), plane);
  int64_t line = strip.line();
  for (int64_t y = 0; y < strip.rows; ++y, result += line)
    for (int64_t i = 0; i < line; i += kLanes) {
      int64_t lanes = strip.lanes() - i;
      transformBoth<kTaken, kPoints>(
          [&](int row, Vector(&d)[kTaken]) __attribute__((always_inline)) {
            for (int j = 0; j < kTaken; ++j) {
              load(plane.at(kSize * y + row, j) + i, d[j]);
              if (lanes < kLanes)
                clearBehind(lanes, d[j]);
            }
          },
          [](const Vector(&d)[kTaken], Vector(&t)[kPoints])
              __attribute__((always_inline)) {
                if constexpr (kTaken == kSize)
                  Filter<kSize>::cotangent(d, t);
                else
                  Filter<kSize>::input(d, t);
              },
          [&](int column, const Vector(&t)[kPoints])
              __attribute__((always_inline)) {
                for (int j = 0; j < kPoints; ++j)
                  store(t[j], result + (j * kPoints + column) * stride + i);
              });
    }
}

template <int kSize>
PENSTOCK_INLINE void inputs(const TileStrip &strip, const Planes &from,
                            float *spread, float *result, int64_t stride) {
  taken<kSize, kSize + 2>(strip, from, spread, result, stride);
}

template <int kSize>
PENSTOCK_INLINE void channels(const TileStrip &strip, const ChannelPlanes &from,
                              float *spread, float *__restrict result,
                              int64_t pointStride, int64_t tileStride) {
  constexpr int kPoints = kSize + 2;
  int64_t width = kSize * strip.columns + 2;
  int64_t top = from.top - kSize * strip.firstRow;
  int64_t begin = std::max<int64_t>(0, -top);
  int64_t end = std::min(from.height, kSize * strip.rows + 2 - top);
  // Elements behind those that a tile reads are left out.
  int64_t elements = std::min(from.width, width - from.left);
  for (int64_t y = begin; y < end; ++y)
    for (int64_t x = 0; x < elements; x += kLanes) {
      int64_t count = std::min<int64_t>(kLanes, elements - x);
      Vector block[kLanes] = {};
      for (int64_t c = 0; c < from.channels; ++c)
        loadSome(from.data + (c * from.height + y) * from.width + x, count,
                 block[c]);
      transpose(block);
      float *to = spread + ((y + top) * width + x + from.left) * kLanes;
      for (int64_t i = 0; i < count; ++i)
        store(block[i], to + i * kLanes);
    }
  for (int64_t y = 0; y < strip.rows; ++y)
    for (int64_t x = 0; x < strip.columns; ++x) {
      int64_t tile = y * strip.line() + x * strip.batch + from.sample;
      const float *first = spread + kSize * (y * width + x) * kLanes;
      transformBoth<kPoints, kPoints>(
          [&](int row, Vector(&d)[kPoints]) __attribute__((always_inline)) {
            for (int j = 0; j < kPoints; ++j)
              load(first + (row * width + j) * kLanes, d[j]);
          },
          [](const Vector(&d)[kPoints], Vector(&t)[kPoints])
              __attribute__((always_inline)) { Filter<kSize>::input(d, t); },
          [&](int column, const Vector(&t)[kPoints])
              __attribute__((always_inline)) {
                for (int j = 0; j < kPoints; ++j)
                  store(t[j], result + (j * kPoints + column) * pointStride +
                                  tile * tileStride);
              });
    }
}

template <int kSize>
PENSTOCK_INLINE void cotangents(const TileStrip &strip, const Planes &from,
                                float *spread, float *result, int64_t stride) {
  taken<kSize, kSize>(strip, from, spread, result, stride);
}

template <int kSize>
PENSTOCK_INLINE void outputs(const TileStrip &strip,
                             const float *__restrict products, int64_t stride,
                             float *spread, const Planes &to) {
  constexpr int kPoints = kSize + 2;
  Spread<kSize> plane(strip, spread);
  int64_t line = strip.line();
  for (int64_t y = 0; y < strip.rows; ++y, products += line)
    for (int64_t i = 0; i < line; i += kLanes) {
      int64_t lanes = std::min<int64_t>(kLanes, strip.lanes() - i);
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

/// A vector of windows, for the code that comes to them later.
PENSTOCK_INLINE void prefetch(const float *windows) {
  for (int64_t i = 0; i < kWindow; ++i)
    __builtin_prefetch(windows + i * kLanes);
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
    prefetch(group + kWindow * 4 * kLanes);
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
    prefetch(to + (i + 2 * kLanes) * kWindow);
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
    for (int64_t l = 0; l < kLanes; ++l)
      store(taps[l], group + l * kWindow);
    float *out = to + i * kWindow;
    for (int64_t j = 0; j < lanes * kWindow; ++j)
      out[j] += group[j];
  }
}

} // namespace

// Each for tiles of both sizes.
#define PENSTOCK_FOR_SIZES(size, body, arguments)                              \
  if ((size) == 2)                                                             \
    return body<2> arguments;                                                  \
  return body<4> arguments;

#define PENSTOCK_FOR_VECTORS(name, size, body, parameters, all, arguments)     \
  PENSTOCK_FOR_INSTRUCTION_SETS(void, name, parameters, all,                   \
                                PENSTOCK_FOR_SIZES(size, body, arguments))

PENSTOCK_FOR_VECTORS(transformInputs, strip.size, inputs,
                     (const TileStrip &strip, const Planes &from, float *spread,
                      float *result, int64_t pointStride),
                     (strip, from, spread, result, pointStride),
                     (strip, from, spread, result, pointStride))
PENSTOCK_FOR_VECTORS(transformChannels, strip.size, channels,
                     (const TileStrip &strip, const ChannelPlanes &from,
                      float *spread, float *result, int64_t pointStride,
                      int64_t tileStride),
                     (strip, from, spread, result, pointStride, tileStride),
                     (strip, from, spread, result, pointStride, tileStride))
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
