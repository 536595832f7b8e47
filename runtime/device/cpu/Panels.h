//===- Panels.h - Right operands of products, prepacked ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What products read fastest: rows at a distance that no cache minds, of as
// many columns as stay in one. A product of them has the bits of any other.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_PANELS_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_PANELS_H

#include "penstock/cpu.h"

#include <algorithm>
#include <string>

namespace penstock::runtime {

/// A matrix of so many rows and columns in panels of `width` columns, one
/// behind the other. The last one also has what would be too few for a panel.
struct Panels {
  int64_t rows, columns, width, stride;

  /// Those that a product reads, or that it makes.
  explicit Panels(const ProductCall &gemm)
      : rows(gemm.k), columns(gemm.n), width(gemm.panel),
        stride(gemm.weights == PENSTOCK_CPU_WEIGHTS_PREPACK
                   ? gemm.stride_c[0]
                   : gemm.stride_b[0]) {}
  Panels(int64_t rows, int64_t columns);

  int64_t count() const;
  int64_t floats() const { return count() * rows * stride; }
  /// The panel of a column, and the column behind it.
  int64_t getPanel(int64_t column) const {
    return std::min(column / width, count() - 1);
  }
  int64_t getEnd(int64_t panel) const {
    return panel + 1 == count() ? columns : (panel + 1) * width;
  }
  /// In floats.
  int64_t getOffset(int64_t row, int64_t column) const {
    int64_t panel = getPanel(column);
    return (panel * rows + row) * stride + column - panel * width;
  }

  /// Packing can be divided into parts.
  int64_t getParts() const;
  /// Element (i, j) comes from `from[i * strides[0] + j * strides[1]]`.
  void pack(int64_t part, const float *from, const int64_t *strides,
            float *to) const;
};

/// Why the descriptor's panels cannot be; empty if they can, or it has none.
std::string checkPanels(const ProductCall &gemm);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_PANELS_H
