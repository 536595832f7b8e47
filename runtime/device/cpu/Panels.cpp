//===- Panels.cpp - Right operands of products, prepacked -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/Panels.h"

#include "penstock/product.h"

#include "runtime/device/cpu/ProductPlan.h"
#include "runtime/device/cpu/Turn.h"

using namespace penstock::runtime;

/// Rows of a panel that one part packs.
static constexpr int64_t kPackedRows = 384;

Panels::Panels(int64_t rows, int64_t columns)
    : rows(rows), columns(columns), width(kPanelColumns),
      stride(turnedStride(std::min(columns, kPanelColumns + kFewRows - 1))) {}

int64_t Panels::count() const {
  return std::max<int64_t>((columns + width - kFewRows) / width, 1);
}

int64_t Panels::getParts() const {
  return count() * ((rows + kPackedRows - 1) / kPackedRows);
}

void Panels::pack(int64_t part, const float *from, const int64_t *strides,
                  float *to) const {
  int64_t panel = part % count(), row = part / count() * kPackedRows;
  int64_t end = std::min(row + kPackedRows, rows);
  int64_t column = panel * width, count = getEnd(panel) - column;
  from += row * strides[0] + column * strides[1];
  to += getOffset(row, column);
  copyByRows(from, strides, end - row, count, to, stride);
}

std::string penstock::runtime::checkPanels(const ProductCall &gemm) {
  if (gemm.weights == PENSTOCK_CPU_WEIGHTS_AS_THEY_ARE)
    return "";
  Panels panels(gemm);
  bool fits =
      gemm.batch_rank == 0 && panels.width >= kFewRows &&
      panels.stride >= std::min(panels.columns, panels.width + kFewRows - 1);
  return fits ? "" : "its weights do not fit into panels";
}

std::optional<PrepackedProduct>
penstock::runtime::prepackProduct(const ProductCall &gemm) {
  if (!canPrepack(gemm))
    return std::nullopt;
  Panels panels(gemm.k, gemm.n);
  PrepackedProduct result = {};
  result.prepack.element = gemm.element;
  result.prepack.n = gemm.n, result.prepack.k = gemm.k;
  std::copy_n(gemm.stride_b, 2, result.prepack.stride_b);
  result.prepack.stride_c[0] = panels.stride, result.prepack.stride_c[1] = 1;
  result.prepack.weights = PENSTOCK_CPU_WEIGHTS_PREPACK;
  result.product = gemm;
  result.product.stride_b[0] = panels.stride, result.product.stride_b[1] = 1;
  result.product.weights = PENSTOCK_CPU_WEIGHTS_PREPACKED;
  result.prepack.panel = result.product.panel = panels.width;
  result.bytes = uint64_t(panels.floats()) * sizeof(float);
  result.gains = gainsByPanels(gemm);
  return result;
}
