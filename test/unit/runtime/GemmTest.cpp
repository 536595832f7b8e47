//===- GemmTest.cpp - Matrix products by oneDNN ---------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of odd, distinct sizes in all layouts against a plain loop, through
// a program whose only device function runs them, and the parallel loop.
//===----------------------------------------------------------------------===//

#include "penstock/abi.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

namespace {

/// A product with its operands; offsets of -1 are not in use.
struct Case {
  penstock_gemm_descriptor gemm;
  uint64_t bytesA, bytesB, bytesC; // spans of the operands
};

std::vector<Case> cases;
std::vector<std::vector<float>> operandsA, operandsB, results;
std::vector<int64_t> calls;

uint64_t span(const penstock_gemm_descriptor &gemm, const int64_t *stride,
              int64_t rows, int64_t columns) {
  uint64_t last = 0;
  for (uint32_t i = 0; i < gemm.batch_rank; ++i)
    last += (gemm.batch[i] - 1) * stride[i];
  return 1 + last + (rows - 1) * stride[gemm.batch_rank] +
         (columns - 1) * stride[gemm.batch_rank + 1];
}

Case makeCase(std::vector<int64_t> batch, int64_t m, int64_t n, int64_t k,
              std::vector<int64_t> a, std::vector<int64_t> b,
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

void runGemms(penstock_device *device, int64_t, int64_t, int64_t) {
  for (uint32_t i = 0; i < cases.size(); ++i)
    penstock_gemm(device, i, operandsA[i].data(), operandsB[i].data(),
                  results[i].data());
}

void runParallel(penstock_device *device, int64_t, int64_t, int64_t) {
  penstock_parallel(
      device,
      [](void *closure, int64_t i) {
        (*static_cast<std::vector<int64_t> *>(closure))[i] += i;
      },
      &calls, int64_t(calls.size()));
}

/// A program of one device and nothing but library calls.
struct Program {
  penstock_device_descriptor device = {1 << 20, 64, 1};
  uint64_t scratchOffsets[1] = {0};
  penstock_device_function functions[1] = {runGemms};
  penstock_schedule schedule = {"train", 1, 0.0, functions};
  std::vector<penstock_gemm_descriptor> gemms;
  penstock_program program = {};

  Program() {
    program.abi_version = PENSTOCK_ABI_VERSION;
    program.stage_count = 1;
    program.microbatch_size = 1;
    program.device_count = 1;
    program.devices = &device;
    program.schedule_count = 1;
    program.schedules = &schedule;
  }
  /// Empty when it went well.
  std::string run(int expectedCode = 0) {
    gemms.clear();
    for (const Case &each : cases) {
      gemms.push_back(each.gemm);
      gemms.back().scratch = {device.arena_bytes, scratchOffsets};
    }
    program.gemms = gemms.data();
    program.gemm_count = uint32_t(gemms.size());
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

class GemmTest : public testing::Test {
protected:
  void SetUp() override {
    cases.clear();
    operandsA.clear(), operandsB.clear(), results.clear();
  }

  /// Runs all cases and compares with loops in double.
  void check() {
    std::mt19937 random(3);
    auto fill = [&](std::vector<std::vector<float>> &all,
                    uint64_t Case::*size) {
      all.clear();
      for (const Case &each : cases) {
        std::vector<float> &values = all.emplace_back(each.*size);
        for (float &value : values)
          value = float(random() % 2001) / 1000.0f - 1.0f;
      }
    };
    fill(operandsA, &Case::bytesA);
    fill(operandsB, &Case::bytesB);
    fill(results, &Case::bytesC);
    std::vector<std::vector<float>> expected = results;
    for (size_t i = 0; i < cases.size(); ++i)
      multiply(cases[i].gemm, operandsA[i], operandsB[i], expected[i]);
    Program program;
    ASSERT_EQ(program.run(), "");
    for (size_t i = 0; i < cases.size(); ++i)
      for (size_t j = 0; j < expected[i].size(); ++j)
        ASSERT_NEAR(results[i][j], expected[i][j],
                    1e-6 * double(cases[i].gemm.k + 8))
            << "case " << i << " element " << j;
  }

  static void multiply(const penstock_gemm_descriptor &gemm,
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
            sum +=
                double(a[offset[0] + m * gemm.stride_a[r] +
                         k * gemm.stride_a[r + 1]]) *
                b[offset[1] + k * gemm.stride_b[r] + n * gemm.stride_b[r + 1]];
          to = float(sum);
        }
    }
  }
};

// Row-major and transposed operands, with and without accumulation, from the
// smallest sizes to odd ones.
TEST_F(GemmTest, AllLayouts) {
  const int64_t sizes[][3] = {
      {1, 1, 1},  {1, 7, 1},  {7, 1, 3},    {1, 1, 9},    {5, 11, 7},
      {3, 1, 64}, {1, 33, 5}, {64, 10, 32}, {37, 48, 80}, {40, 336, 320}};
  for (auto [m, n, k] : sizes)
    for (int layout = 0; layout < 16; ++layout) {
      bool isAT = layout & 1, isBT = layout & 2, isPadded = layout & 8;
      int64_t pad = isPadded ? 3 : 0;
      std::vector<int64_t> a = {k + pad, 1}, b = {n + pad, 1};
      if (isAT)
        a = {1, m + pad};
      if (isBT)
        b = {1, k + pad};
      cases.push_back(makeCase({}, m, n, k, a, b, {n, 1}, layout & 4));
    }
  check();
}

// Batches, among them one that is repeated (stride 0) and attention's layout,
// with the heads between the rows.
TEST_F(GemmTest, Batches) {
  cases.push_back(
      makeCase({4}, 5, 7, 3, {15, 3, 1}, {21, 7, 1}, {35, 7, 1}, false));
  cases.push_back(
      makeCase({4}, 5, 7, 3, {15, 3, 1}, {0, 7, 1}, {35, 7, 1}, true));
  cases.push_back(
      makeCase({4}, 5, 7, 3, {0, 3, 1}, {21, 1, 3}, {35, 7, 1}, false));
  // [batch 2, sequence 6, heads 3, size 4]: scores = q . transposed k.
  cases.push_back(makeCase({2, 3}, 6, 6, 4, {72, 4, 12, 1}, {72, 4, 1, 12},
                           {108, 36, 6, 1}, false));
  check();
}

// Matrices are slices of larger ones in one place and tensors of their own in
// another, on the other side of a cut; and zeros that a product adds to may
// have been written beforehand. The bits are the same.
TEST_F(GemmTest, SlicesRoundAlike) {
  const int64_t sizes[][3] = {{5, 64, 48},
                              {1, 33, 48},
                              {11, 8, 80},
                              {5, 1, 32},
                              {1, 8, 4},
                              {33, 16, 100},
                              {17, 70, 64},
                              {64, 96, 320},
                              {40, 336, 320},
                              // Rows a multiple of 4096 bytes apart, or not,
                              // and long sums: other algorithms.
                              {100, 1024, 1000},
                              {256, 512, 1024},
                              {33, 1024, 512}};
  constexpr int kForms = 5;
  std::mt19937 random(7);
  for (auto [m, n, k] : sizes)
    for (int transposed = 0; transposed < 4; ++transposed) {
      std::vector<float> a(m * k), b(k * n);
      for (float &value : a)
        value = float(random() % 2001) / 1000.0f - 1.0f;
      for (float &value : b)
        value = float(random() % 2001) / 1000.0f - 1.0f;
      for (int form = 0; form < kForms; ++form) {
        auto strides = [](bool isTransposed, bool isSlice, int64_t rows,
                          int64_t columns) {
          int64_t width = isTransposed ? rows : columns;
          if (isSlice)
            width = 3 * width + 8;
          return isTransposed ? std::vector<int64_t>{1, width}
                              : std::vector<int64_t>{width, 1};
        };
        Case &each = cases.emplace_back(makeCase(
            {}, m, n, k, strides(transposed & 1, form == 1 || form == 4, m, k),
            strides(transposed & 2, form == 2 || form == 4, k, n),
            strides(false, form == 3 || form == 4, m, n), form == 3));
        auto place = [](const std::vector<float> &from, const int64_t *stride,
                        uint64_t bytes, int64_t rows, int64_t columns) {
          std::vector<float> to(bytes);
          for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < columns; ++j)
              to[i * stride[0] + j * stride[1]] = from[i * columns + j];
          return to;
        };
        const penstock_gemm_descriptor &gemm = each.gemm;
        operandsA.push_back(place(a, gemm.stride_a, each.bytesA, m, k));
        operandsB.push_back(place(b, gemm.stride_b, each.bytesB, k, n));
        results.emplace_back(each.bytesC);
      }
    }
  Program program;
  ASSERT_EQ(program.run(), "");
  for (size_t i = 0; i < cases.size(); ++i) {
    const penstock_gemm_descriptor &dense = cases[i - i % kForms].gemm;
    const penstock_gemm_descriptor &gemm = cases[i].gemm;
    for (int64_t row = 0; row < gemm.m; ++row)
      for (int64_t column = 0; column < gemm.n; ++column)
        ASSERT_EQ(results[i][row * gemm.stride_c[0] + column],
                  results[i - i % kForms][row * dense.stride_c[0] + column])
            << "case " << i << ": " << gemm.m << " x " << gemm.n << " x "
            << gemm.k;
  }
}

// The library divides products by rules of its own, and rounds by them. We do,
// so that the bits are those of one thread.
TEST_F(GemmTest, ThreadsRoundAlike) {
  const int64_t sizes[][3] = {
      {64, 128, 1000}, {300, 128, 1024}, {16, 1536, 500}, {17, 768, 512},
      {33, 1024, 700}, {999, 40, 70},    {768, 600, 385}, {61, 1, 9000}};
  for (auto [m, n, k] : sizes)
    for (int layout = 0; layout < 8; ++layout)
      cases.push_back(makeCase(
          {}, m, n, k,
          layout & 1 ? std::vector<int64_t>{1, m} : std::vector<int64_t>{k, 1},
          layout & 2 ? std::vector<int64_t>{1, k} : std::vector<int64_t>{n, 1},
          {n, 1}, layout & 4));
  for (bool accumulate : {false, true}) {
    cases.push_back(makeCase({3}, 65, 130, 400, {26000, 400, 1},
                             {52000, 130, 1}, {8450, 130, 1}, accumulate));
    cases.push_back(makeCase({1, 5}, 65, 70, 100, {0, 6500, 1, 65},
                             {0, 7000, 1, 100}, {0, 4550, 70, 1}, accumulate));
  }
  std::mt19937 random(5);
  for (const Case &each : cases)
    for (auto [all, size] : {std::pair{&operandsA, each.bytesA},
                             {&operandsB, each.bytesB},
                             {&results, each.bytesC}})
      for (float &value : all->emplace_back(size))
        value = float(random() % 2001) / 1000.0f - 1.0f;
  const std::vector<std::vector<float>> old = results;
  std::vector<std::vector<float>> former;
  for (uint32_t threads : {1u, 2u, 3u}) {
    Program program;
    program.device.arena_bytes = 4 << 20;
    program.device.threads = threads;
    results = old;
    ASSERT_EQ(program.run(), "");
    if (threads > 1)
      for (size_t i = 0; i < cases.size(); ++i)
        ASSERT_EQ(results[i], former[i])
            << threads << " threads, case " << i << ": " << cases[i].gemm.m
            << " x " << cases[i].gemm.n << " x " << cases[i].gemm.k;
    former = results;
  }
}

// Neither dimension of A is contiguous: oneDNN has no fast way.
TEST_F(GemmTest, RefusesTheReferenceImplementation) {
  cases.push_back(makeCase({}, 5, 7, 3, {30, 2}, {7, 1}, {7, 1}, false));
  Program program;
  std::string error = program.run(PENSTOCK_DEFECT);
  EXPECT_NE(error.find("reference implementation"), std::string::npos) << error;
  EXPECT_NE(error.find("the product (5 x 3 by 3 x 7), strides [30, 2], [7, 1], "
                       "[7, 1]"),
            std::string::npos)
      << error;
}

TEST_F(GemmTest, RefusesOtherTypes) {
  cases.push_back(makeCase({}, 5, 7, 3, {3, 1}, {7, 1}, {7, 1}, false));
  cases[0].gemm.element = PENSTOCK_F64;
  Program program;
  EXPECT_EQ(program.run(PENSTOCK_DEFECT).rfind("a product that is not f32", 0),
            0u);
}

TEST_F(GemmTest, ParallelRunsEveryIndexOnce) {
  for (uint32_t threads : {1u, 2u, 3u})
    for (size_t count : {0, 1, 2, 7, 100}) {
      calls.assign(count, 1);
      Program program;
      program.device.threads = threads;
      program.functions[0] = runParallel;
      ASSERT_EQ(program.run(), "");
      for (size_t i = 0; i < count; ++i)
        ASSERT_EQ(calls[i], int64_t(i) + 1);
    }
}

} // namespace
