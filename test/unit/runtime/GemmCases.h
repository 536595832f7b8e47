//===- GemmCases.h - Products to test ---------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products with their operands, a program whose only device function runs them,
// and a plain loop.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_RUNTIME_GEMMCASES_H
#define PENSTOCK_TEST_UNIT_RUNTIME_GEMMCASES_H

#include "Session.h"
#include "penstock/abi.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

namespace penstock::test {

/// A product with its operands; offsets of -1 are not in use.
struct Case {
  penstock_gemm_descriptor gemm;
  uint64_t bytesA, bytesB, bytesC; // spans of the operands
};

inline std::vector<Case> cases;
inline std::vector<std::vector<float>> operandsA, operandsB, results;

inline uint64_t span(const penstock_gemm_descriptor &gemm,
                     const int64_t *stride, int64_t rows, int64_t columns) {
  uint64_t last = 0;
  for (uint32_t i = 0; i < gemm.batch_rank; ++i)
    last += (gemm.batch[i] - 1) * stride[i];
  return 1 + last + (rows - 1) * stride[gemm.batch_rank] +
         (columns - 1) * stride[gemm.batch_rank + 1];
}

inline Case makeCase(std::vector<int64_t> batch, int64_t m, int64_t n,
                     int64_t k, std::vector<int64_t> a, std::vector<int64_t> b,
                     std::vector<int64_t> c, bool accumulate) {
  penstock_gemm_descriptor gemm = {};
  gemm.element = PENSTOCK_F32;
  gemm.batch_rank = uint32_t(batch.size());
  std::copy(batch.begin(), batch.end(), gemm.batch);
  gemm.m = m, gemm.n = n, gemm.k = k;
  std::copy(a.begin(), a.end(), gemm.stride_a);
  std::copy(b.begin(), b.end(), gemm.stride_b);
  std::copy(c.begin(), c.end(), gemm.stride_c);
  gemm.accumulate = accumulate;
  return {gemm, span(gemm, gemm.stride_a, m, k),
          span(gemm, gemm.stride_b, k, n), span(gemm, gemm.stride_c, m, n)};
}

inline void runGemms(penstock_device *device, int64_t, int64_t, int64_t) {
  for (uint32_t i = 0; i < cases.size(); ++i)
    penstock_gemm(device, i, operandsA[i].data(), operandsB[i].data(),
                  results[i].data());
}

inline std::vector<float> randomValues(std::mt19937 &random, uint64_t count) {
  std::vector<float> values(count);
  for (float &value : values)
    value = float(random() % 2001) / 1000.0f - 1.0f;
  return values;
}

/// A matrix that lies by rows, with other strides.
inline std::vector<float> place(const std::vector<float> &from,
                                const int64_t *stride, uint64_t span,
                                int64_t rows, int64_t columns) {
  std::vector<float> to(span);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      to[i * stride[0] + j * stride[1]] = from[i * columns + j];
  return to;
}

/// A program of one device and nothing but library calls.
struct Program {
  penstock_device_descriptor device = {16 << 20, 64, 1, "cpu", "any", ""};
  uint64_t scratchOffsets[1] = {0};
  penstock_device_function functions[1] = {runGemms};
  penstock_schedule schedule = {PENSTOCK_SCHEDULE_TRAIN, 1, 0.0, functions};
  std::vector<penstock_gemm_descriptor> gemms;
  penstock_program program = makeProgram(device, schedule);

  /// Empty when it went well.
  std::string run(int expectedCode = 0) {
    gemms.clear();
    for (const Case &each : cases) {
      gemms.push_back(each.gemm);
      gemms.back().scratch = {device.arena_bytes, scratchOffsets};
    }
    set(program.gemm_count, program.gemms, gemms);
    penstock_run *run = nullptr;
    int code = penstock_open(&program, nullptr, &run);
    if (!code)
      code = penstock_train(run, 1);
    EXPECT_EQ(code, expectedCode);
    std::string error = penstock_error(run);
    penstock_close(run);
    return error;
  }
};

/// In double.
inline void multiply(const penstock_gemm_descriptor &gemm,
                     const std::vector<float> &a, const std::vector<float> &b,
                     std::vector<float> &c) {
  uint32_t r = gemm.batch_rank;
  int64_t batches = 1;
  for (uint32_t i = 0; i < r; ++i)
    batches *= gemm.batch[i];
  for (int64_t batch = 0; batch < batches; ++batch) {
    int64_t offset[3] = {}, rest = batch;
    for (uint32_t i = r; i-- > 0;) {
      int64_t index = rest % gemm.batch[i];
      rest /= gemm.batch[i];
      offset[0] += index * gemm.stride_a[i];
      offset[1] += index * gemm.stride_b[i];
      offset[2] += index * gemm.stride_c[i];
    }
    for (int64_t m = 0; m < gemm.m; ++m)
      for (int64_t n = 0; n < gemm.n; ++n) {
        float &to =
            c[offset[2] + m * gemm.stride_c[r] + n * gemm.stride_c[r + 1]];
        double sum = gemm.accumulate ? to : 0.0;
        for (int64_t k = 0; k < gemm.k; ++k)
          sum += double(a[offset[0] + m * gemm.stride_a[r] +
                          k * gemm.stride_a[r + 1]]) *
                 b[offset[1] + k * gemm.stride_b[r] + n * gemm.stride_b[r + 1]];
        to = float(sum);
      }
  }
}

class GemmTest : public testing::Test {
protected:
  void SetUp() override {
    cases.clear();
    operandsA.clear(), operandsB.clear(), results.clear();
  }
};

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_RUNTIME_GEMMCASES_H
