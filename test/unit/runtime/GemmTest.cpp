//===- GemmTest.cpp - Matrix products by oneDNN ---------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of odd, distinct sizes in all layouts against a plain loop, through
// a program whose only device function runs them, and the parallel loop.
//===----------------------------------------------------------------------===//

#include "GemmCases.h"

#include "penstock/onednn.h"

using namespace penstock::runtime;
using namespace penstock::test;

static std::vector<int64_t> calls;

static void runParallel(penstock_device *device, int64_t, int64_t, int64_t) {
  penstock_parallel(
      device,
      [](void *closure, int64_t i) {
        (*static_cast<std::vector<int64_t> *>(closure))[i] += i;
      },
      &calls, int64_t(calls.size()));
}

/// Runs all cases and compares with loops in double.
static void check() {
  std::mt19937 random(3);
  auto fill = [&](std::vector<std::vector<float>> &all, uint64_t Case::*size) {
    all.clear();
    for (const Case &each : cases)
      all.push_back(randomValues(random, each.*size));
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
  // Matrix by matrix: one operand is turned, or the result is a column whose
  // elements are apart.
  cases.push_back(makeCase({2}, 130, 140, 130, {16900, 1, 130}, {18200, 140, 1},
                           {18200, 140, 1}, true));
  cases.push_back(makeCase({2}, 20, 40, 30, {600, 30, 1}, {1200, 1, 30},
                           {800, 40, 1}, true));
  cases.push_back(
      makeCase({3}, 20, 1, 30, {600, 1, 20}, {30, 1, 1}, {100, 5, 1}, true));
  check();
}

// Neither dimension of A is contiguous: oneDNN has no fast way.
TEST_F(GemmTest, RefusesTheReferenceImplementation) {
  if (!oneDnn().roundsAlike())
    GTEST_SKIP() << "without AVX-512 operands are copied by rows";
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
