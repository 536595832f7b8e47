//===- TilePlanes.h - Planes as tiles see them ------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements that stand at the same place of tiles, of all samples, come to stand
// one after the other.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_TILEPLANES_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_TILEPLANES_H

#include "runtime/device/cpu/Tiles.h"
#include "runtime/device/cpu/Vectors.h"

#include <algorithm>

namespace penstock::runtime {

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

/// Rows that a strip reads or writes of planes: whole ones.
struct Rows {
  int64_t begin, end, top;

  Rows(const TileStrip &strip, const Planes &planes, int64_t more)
      : top(planes.top - strip.size * strip.firstRow) {
    begin = std::max<int64_t>(0, -top);
    end = std::min(planes.height, strip.size * strip.rows + more - top);
  }
};

/// Some elements of a row of four samples, of which there may be fewer, and
/// where they stand in the spread. Elements of the next rows may be read with
/// them, and written, as these rows are written later.
template <int kSize> struct RowPart {
  float *first; // of the first sample
  int64_t sampleStride, samples, elements, accessible;
  const Spread<kSize> &spread;
  int64_t row, column, sample;

  /// Element 4 * i + k of the samples is in lanes 4 * i of vector k.
  PENSTOCK_INLINE float *at(int k) const {
    return spread.at(row, column + k) + sample;
  }
  int64_t laneStride() const { return 4 / kSize * spread.batch; }
  bool isWhole() const {
    return elements == kLanes && samples == 4 && laneStride() == 4;
  }
  int64_t lanes(int k) const { return (elements - k + 3) / 4; }

  PENSTOCK_INLINE void spreadOut() const {
    Vector block[4] = {};
    for (int64_t n = 0; n < samples; ++n)
      loadSome(first + n * sampleStride, accessible, block[n]);
    transposeFours(block);
    for (int k = 0; k < 4; ++k) {
      if (isWhole()) {
        store(block[k], at(k));
        continue;
      }
      float *to = at(k);
      for (int64_t i = 0; i < lanes(k); ++i, to += laneStride())
        copySome(reinterpret_cast<const float *>(&block[k]) + 4 * i, samples,
                 to);
    }
  }
  PENSTOCK_INLINE void collect() const {
    Vector block[4] = {};
    for (int k = 0; k < 4; ++k) {
      if (isWhole()) {
        load(at(k), block[k]);
        continue;
      }
      const float *from = at(k);
      for (int64_t i = 0; i < lanes(k); ++i, from += laneStride())
        copySome(from, samples, reinterpret_cast<float *>(&block[k]) + 4 * i);
    }
    transposeFours(block);
    for (int64_t n = 0; n < samples; ++n)
      storeSome(block[n], accessible, first + n * sampleStride);
  }

private:
  PENSTOCK_INLINE static void copySome(const float *from, int64_t count,
                                       float *to) {
    if (count == 4)
      std::memcpy(to, from, 4 * sizeof(float));
    else
      for (int64_t i = 0; i < count; ++i)
        to[i] = from[i];
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

/// Some elements of sixteen samples from a place in the planes on.
template <int kSize> struct Block {
  float *first; // of the first sample
  int64_t sampleStride, elements;

  PENSTOCK_INLINE void spreadOut(Walk<kSize> &walk, int64_t sample) const {
    Vector block[kLanes];
    for (int64_t l = 0; l < kLanes; ++l)
      loadSome(first + l * sampleStride, elements, block[l]);
    // Streams of sixteen samples are more than the processor foresees.
    for (int64_t l = 0; l < kLanes; ++l)
      __builtin_prefetch(first + l * sampleStride + int64_t(2) * kLanes);
    transpose(block);
    for (int64_t i = 0; i < elements; ++i)
      store(block[i], walk.next() + sample);
  }
  PENSTOCK_INLINE void collect(Walk<kSize> &walk, int64_t sample) const {
    Vector block[kLanes] = {};
    for (int64_t i = 0; i < elements; ++i)
      load(walk.next() + sample, block[i]);
    for (int64_t l = 0; l < kLanes; ++l)
      __builtin_prefetch(first + l * sampleStride + int64_t(2) * kLanes, 1);
    transpose(block);
    for (int64_t l = 0; l < kLanes; ++l)
      storeSome(block[l], elements, first + l * sampleStride);
  }
};

/// Calls blocks(block, walk, sample) or parts(part) for all elements of the
/// rows.
template <int kSize, typename Blocks, typename Parts>
PENSTOCK_INLINE void forElements(const Planes &planes, const Rows &rows,
                                 const Spread<kSize> &spread, Blocks blocks,
                                 Parts parts) {
  int64_t n = 0, stride = planes.sampleStride;
  for (; n + kLanes <= spread.batch; n += kLanes) {
    Walk<kSize> walk(spread, planes, rows);
    int64_t end = rows.end * planes.width;
    for (int64_t p = rows.begin * planes.width; p < end; p += kLanes)
      blocks(Block<kSize>{planes.data + n * stride + p, stride,
                          std::min<int64_t>(kLanes, end - p)},
             walk, n);
  }
  for (; n < spread.batch; n += 4)
    for (int64_t y = rows.begin; y < rows.end; ++y)
      for (int64_t x = 0; x < planes.width; x += kLanes) {
        int64_t p = y * planes.width + x;
        parts(RowPart<kSize>{
            planes.data + n * stride + p, stride,
            std::min<int64_t>(4, spread.batch - n),
            std::min<int64_t>(kLanes, planes.width - x),
            std::min<int64_t>(kLanes, rows.end * planes.width - p), spread,
            y + rows.top, x + planes.left, n});
      }
}

template <int kSize>
PENSTOCK_INLINE void spreadOut(const Planes &from, const Rows &rows,
                               const Spread<kSize> &to) {
  forElements(
      from, rows, to,
      [](const Block<kSize> &block, Walk<kSize> &walk, int64_t sample)
          __attribute__((always_inline)) { block.spreadOut(walk, sample); },
      [](const RowPart<kSize> &part)
          __attribute__((always_inline)) { part.spreadOut(); });
}

/// The way back.
template <int kSize>
PENSTOCK_INLINE void collect(const Spread<kSize> &from, const Rows &rows,
                             const Planes &to) {
  forElements(
      to, rows, from,
      [](const Block<kSize> &block, Walk<kSize> &walk, int64_t sample)
          __attribute__((always_inline)) { block.collect(walk, sample); },
      [](const RowPart<kSize> &part)
          __attribute__((always_inline)) { part.collect(); });
}

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_TILEPLANES_H
