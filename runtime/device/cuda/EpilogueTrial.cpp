//===- EpilogueTrial.cpp - Tries epilogues of products --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands are random, and have what libraries and kernels may treat unlike:
// NaN, infinities, zeros of both signs, and sums that are subnormal.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/EpilogueTrial.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

static float flush(float value) {
  return std::fabs(value) < std::numeric_limits<float>::min()
             ? std::copysign(0.0f, value)
             : value;
}

float cuda::applyEpilogue(float sum, float bias,
                          const penstock_cuda_gemm &epilogue) {
  float result = flush(sum);
  if (epilogue.has_bias)
    result = flush(result + flush(bias));
  if (epilogue.has_relu && result <= 0.0f)
    result = 0.0f;
  return result;
}

namespace {

/// A matrix by its strides.
struct Matrix {
  int64_t rows, columns, rowStride, columnStride;

  size_t at(int64_t row, int64_t column) const {
    return size_t(row * rowStride + column * columnStride);
  }
  size_t getElements() const { return at(rows - 1, columns - 1) + 1; }
};

/// Elements of both signs, from 1/2 to 1 in magnitude. So many are made, and
/// repeated, that sums of rows differ.
std::vector<float> createElements(size_t count, uint32_t seed) {
  constexpr size_t kDistinct = 65521; // a prime
  std::minstd_rand random(seed);
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    auto bits = uint32_t(random());
    values[i] = i < kDistinct
                    ? std::bit_cast<float>(0x3f000000 | (bits & 0x7fffff) |
                                           (bits & 0x1000000) << 7)
                    : values[i - kDistinct];
  }
  return values;
}

/// Rows whose sums are NaN, subnormal or nearly, infinite, and zero.
void addSpecialRows(std::vector<float> &values, const Matrix &a) {
  auto forRow = [&](int64_t row, auto change) {
    if (row < a.rows)
      for (int64_t i = 0; i < a.columns; ++i)
        change(i, values[a.at(row, i)]);
  };
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(),
                  kInfinity = std::numeric_limits<float>::infinity();
  forRow(1, [](int64_t i, float &value) { value = i ? value : kNaN; });
  forRow(2, [](int64_t, float &value) { value *= 0x1p-126f; });
  forRow(3, [](int64_t i, float &value) { value = i ? value : kInfinity; });
  forRow(4, [](int64_t, float &value) { value = 0.0f; });
}

/// One element per column, among them zeros and a subnormal number.
std::vector<float> createBias(int64_t columns) {
  std::vector<float> values = createElements(size_t(columns), 3);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = i % 4 == 1   ? 0.0f
                : i % 8 == 2 ? -0.0f
                : i % 8 == 6 ? values[i] * 0x1p-126f
                             : values[i];
  return values;
}

bool isSame(float x, float y) {
  return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y) ||
         (std::isnan(x) && std::isnan(y));
}

} // namespace

bool EpilogueTrial::copy(Address to, const std::vector<float> &values) const {
  return !driver.cuMemcpyHtoDAsync(to, values.data(),
                                   values.size() * sizeof(float), stream);
}

bool EpilogueTrial::read(Address from, std::vector<float> &values) const {
  return !driver.cuMemcpyDtoHAsync(values.data(), from,
                                   values.size() * sizeof(float), stream) &&
         !driver.cuStreamSynchronize(stream);
}

bool EpilogueTrial::run(const penstock_gemm_descriptor &gemm,
                        const penstock_cuda_gemm &epilogue,
                        uint64_t workspaceBytes,
                        const Multiply &multiply) const {
  // 1. Places, one after the other, aligned as those of an arena.
  const Matrix a = {gemm.m, gemm.k, gemm.stride_a[0], gemm.stride_a[1]},
               b = {gemm.k, gemm.n, gemm.stride_b[0], gemm.stride_b[1]},
               c = {gemm.m, gemm.n, gemm.stride_c[0], gemm.stride_c[1]};
  uint64_t used = 0;
  auto place = [&](uint64_t size) {
    uint64_t begin = used;
    used += size + -size % kWorkspaceAlignment;
    return memory + begin;
  };
  Operands operands;
  operands.workspace = place(workspaceBytes);
  operands.a = place(a.getElements() * sizeof(float));
  operands.b = place(b.getElements() * sizeof(float));
  operands.c = place(c.getElements() * sizeof(float));
  operands.bias = place(size_t(gemm.n) * sizeof(float));
  if (used > bytes)
    return false;

  // 2. Operands.
  std::vector<float> left = createElements(a.getElements(), 1),
                     right = createElements(b.getElements(), 2),
                     bias = createBias(gemm.n);
  addSpecialRows(left, a);
  if (!copy(operands.a, left) || !copy(operands.b, right) ||
      !copy(operands.bias, bias))
    return false;

  // 3. Without the epilogue and with it, which overwrites the product.
  std::vector<float> sums(c.getElements()), results(c.getElements());
  for (bool isWhole : {false, true})
    if (multiply(operands, isWhole) ||
        !read(operands.c, isWhole ? results : sums))
      return false;
  for (int64_t i = 0; i < c.rows; ++i)
    for (int64_t j = 0; j < c.columns; ++j)
      if (!isSame(results[c.at(i, j)],
                  applyEpilogue(sums[c.at(i, j)], bias[size_t(j)], epilogue)))
        return false;
  return true;
}
