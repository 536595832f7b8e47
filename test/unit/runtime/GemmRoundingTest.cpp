//===- GemmRoundingTest.cpp - The bits of matrix products -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// They depend neither on strides nor on threads nor on blocks.
//===----------------------------------------------------------------------===//

#include "GemmCases.h"

using namespace penstock::test;

namespace {

class GemmRoundingTest : public GemmTest {};

// Matrices are slices of larger ones in one place and tensors of their own in
// another, on the other side of a cut; and zeros that a product adds to may
// have been written beforehand. The bits are the same.
TEST_F(GemmRoundingTest, SlicesRoundAlike) {
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
                              {33, 1024, 512},
                              // A in two blocks of rows.
                              {300, 136, 400}};
  constexpr int kForms = 5;
  std::mt19937 random(7);
  for (auto [m, n, k] : sizes)
    for (int transposed = 0; transposed < 4; ++transposed) {
      std::vector<float> a = randomValues(random, m * k),
                         b = randomValues(random, k * n);
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

// Columns and rows whose elements are apart are those of larger matrices; on
// the other side of a cut they are in one piece.
TEST_F(GemmRoundingTest, VectorsRoundAlike) {
  std::mt19937 random(11);
  auto pick = [&](std::initializer_list<int64_t> values) {
    return values.begin()[random() % values.size()];
  };
  constexpr int kBases = 120, kForms = 6;
  for (int base = 0; base < kBases; ++base) {
    SetUp();
    int64_t k = pick({2, 8, 13, 25, 86, 380, 384, 577}), m = 1, n = 1;
    (base % 2 ? m : n) = pick({1, 2, 11, 29, 59, 94, 378});
    bool isAT = base & 2, isBT = base & 4, accumulates = base & 8;
    std::vector<float> a = randomValues(random, m * k),
                       b = randomValues(random, k * n),
                       c = randomValues(random, m * n);
    for (int form = 0; form < kForms; ++form) {
      // The first form is dense.
      auto strides = [&](bool isTransposed, int64_t rows, int64_t columns) {
        int64_t width = isTransposed ? rows : columns, apart = 1;
        if (form) {
          width = pick(
              {width, width + 8, 3 * width + 8, (width + 1023) / 1024 * 1024});
          apart = pick({1, 2, 3, 16, 256, 1031});
        }
        if (rows == 1 && columns > 1)
          return std::vector<int64_t>{apart * columns, apart};
        if (columns == 1 && rows > 1)
          return std::vector<int64_t>{apart, 1};
        return isTransposed ? std::vector<int64_t>{1, width}
                            : std::vector<int64_t>{width, 1};
      };
      std::vector<int64_t> rows =
          n > 1 ? std::vector<int64_t>{n, 1} : strides(false, m, n);
      Case &each =
          cases.emplace_back(makeCase({}, m, n, k, strides(isAT, m, k),
                                      strides(isBT, k, n), rows, accumulates));
      const penstock_gemm_descriptor &gemm = each.gemm;
      operandsA.push_back(place(a, gemm.stride_a, each.bytesA, m, k));
      operandsB.push_back(place(b, gemm.stride_b, each.bytesB, k, n));
      results.push_back(place(c, gemm.stride_c, each.bytesC, m, n));
    }
    Program program;
    ASSERT_EQ(program.run(), "");
    for (size_t i = 1; i < cases.size(); ++i)
      for (int64_t row = 0; row < m; ++row)
        for (int64_t column = 0; column < n; ++column)
          ASSERT_EQ(results[i][row * cases[i].gemm.stride_c[0] + column],
                    results[0][row * n + column])
              << "base " << base << " form " << i << ": " << m << " x " << n
              << " x " << k;
  }
}

// Large products of short sums go in blocks of rows; so few rows that there is
// one block have the bits that they have among others.
TEST_F(GemmRoundingTest, BlocksRoundAlike) {
  constexpr int64_t m = 1040, few = 250, n = 1030, k = 64;
  std::mt19937 random(13);
  const std::vector<float> a = randomValues(random, m * k);
  for (bool isTransposed : {false, true})
    for (bool accumulates : {false, true})
      for (int64_t rows : {few, m}) {
        Case &each = cases.emplace_back(
            makeCase({}, rows, n, k,
                     isTransposed ? std::vector<int64_t>{1, rows}
                                  : std::vector<int64_t>{k, 1},
                     {n, 1}, {n, 1}, accumulates));
        operandsA.push_back(place(a, each.gemm.stride_a, each.bytesA, rows, k));
      }
  const std::vector<float> b = randomValues(random, cases[0].bytesB),
                           c = randomValues(random, m * n);
  for (const Case &each : cases) {
    operandsB.push_back(b);
    results.emplace_back(c.begin(), c.begin() + int64_t(each.bytesC));
  }
  std::vector<float> expected = results[7];
  multiply(cases[7].gemm, operandsA[7], b, expected);
  Program program;
  ASSERT_EQ(program.run(), "");
  for (size_t i = 0; i < cases.size(); i += 2)
    ASSERT_TRUE(std::equal(results[i].begin(), results[i].end(),
                           results[i + 1].begin()))
        << "case " << i;
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(results[7][i], expected[i], 1e-6 * double(k + 8)) << i;
}

// Some of the rows or columns, as a thread may get them, have the bits that
// they have in the whole.
TEST_F(GemmRoundingTest, PartsRoundAlike) {
  std::mt19937 random(17);
  auto pick = [&](std::initializer_list<int64_t> values) {
    return values.begin()[random() % values.size()];
  };
  for (int base = 0; base < 60; ++base) {
    SetUp();
    int64_t m = pick({25, 32, 47, 54, 100, 145}),
            n = pick({16, 33, 90, 257, 384, 400, 775, 1024}),
            k = pick({3, 64, 191, 192, 385, 640});
    bool isAT = base & 1, isBT = base & 2, accumulates = base & 4;
    int64_t apart = base & 8 ? 1024 : 0; // rows share sets of the cache
    auto strides = [&](bool isTransposed, int64_t rows, int64_t columns) {
      int64_t width = std::max(isTransposed ? rows : columns, apart);
      return isTransposed ? std::vector<int64_t>{1, width}
                          : std::vector<int64_t>{width, 1};
    };
    std::vector<int64_t> strideA = strides(isAT, m, k),
                         strideB = strides(isBT, k, n),
                         strideC = strides(false, m, n);
    std::vector<std::pair<int64_t, int64_t>> begins;
    std::vector<float> a, b, c;
    auto add = [&](int64_t row, int64_t rows, int64_t column, int64_t columns) {
      Case &each = cases.emplace_back(makeCase({}, rows, columns, k, strideA,
                                               strideB, strideC, accumulates));
      if (begins.empty()) {
        a = randomValues(random, each.bytesA);
        b = randomValues(random, each.bytesB);
        c = randomValues(random, each.bytesC);
      }
      begins.emplace_back(row, column);
      operandsA.emplace_back(a.begin() + row * strideA[0], a.end());
      operandsB.emplace_back(b.begin() + column * strideB[1], b.end());
      results.emplace_back(c.begin() + row * strideC[0] + column, c.end());
    };
    // A range of whole units, at least so many; the last one has what is left.
    auto choose = [&](int64_t size, int64_t unit, int64_t least) {
      int64_t units = std::max<int64_t>(size / unit, least);
      int64_t count = least + int64_t(random()) % (units - least + 1),
              begin = int64_t(random()) % (units - count + 1);
      int64_t end = begin + count < units ? (begin + count) * unit : size;
      return std::pair(begin * unit, end - begin * unit);
    };
    add(0, m, 0, n);
    for (int part = 0; part < 4; ++part) {
      auto [row, rows] = choose(m, 8, 3);
      add(row, rows, 0, n);
      auto [column, columns] = choose(n, 16, 1);
      add(0, m, column, columns);
    }
    Program program;
    ASSERT_EQ(program.run(), "");
    for (size_t i = 1; i < cases.size(); ++i) {
      auto [firstRow, firstColumn] = begins[i];
      for (int64_t row = 0; row < cases[i].gemm.m; ++row)
        for (int64_t column = 0; column < cases[i].gemm.n; ++column)
          ASSERT_EQ(
              results[i][row * strideC[0] + column],
              results[0][(firstRow + row) * strideC[0] + firstColumn + column])
              << "base " << base << ", part " << i << ": " << cases[i].gemm.m
              << " x " << cases[i].gemm.n << " of " << m << " x " << n << " x "
              << k;
    }
  }
}

// The library divides products by rules of its own, and rounds by them. We do,
// so that the bits are those of one thread.
TEST_F(GemmRoundingTest, ThreadsRoundAlike) {
  const int64_t sizes[][3] = {{64, 128, 1000},
                              {300, 128, 1024},
                              {16, 1536, 500},
                              {17, 768, 512},
                              {33, 1024, 700},
                              {999, 40, 70},
                              {768, 600, 385},
                              {61, 1, 9000},
                              // A single row or column must not be left over.
                              {40, 33, 700},
                              {64, 513, 128},
                              {64, 529, 64},
                              {97, 17, 384},
                              {401, 30, 100},
                              {257, 136, 400}};
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
      all->push_back(randomValues(random, size));
  const std::vector<std::vector<float>> old = results;
  std::vector<std::vector<float>> former;
  for (uint32_t threads : {1u, 2u, 3u, 5u}) {
    Program program;
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

} // namespace
