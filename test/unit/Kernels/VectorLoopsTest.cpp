//===- VectorLoopsTest.cpp - Loops of every size and form -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row sums, column sums, maxima, arg-free chains over sizes 1 to 70, so that
// every tail and number of accumulators occurs; transposes, strides and forms
// that have no vectors.
//===----------------------------------------------------------------------===//

#include "Kernels.h"

#include <cmath>
#include <gtest/gtest.h>

namespace {

std::string number(int64_t value) { return std::to_string(value); }

/// Functions over an r x c matrix, named with `suffix`.
std::string matrixFunctions(int64_t r, int64_t c, const std::string &suffix) {
  std::string m = "tensor<" + number(r) + "x" + number(c) + "xf32>",
              t = "tensor<" + number(c) + "x" + number(r) + "xf32>",
              row = "tensor<" + number(r) + "xf32>",
              col = "tensor<" + number(c) + "xf32>";
  auto reduction = [&](const std::string &name, const std::string &iterators,
                       const std::string &map, const std::string &type,
                       const std::string &op) {
    return "func.func private @" + name + suffix + "(%x: " + m +
           ", %a: " + type + " {pipeline.into = 0 : i64}) -> " + type +
           " { %r = linalg.generic {indexing_maps = [#id, " + map +
           "], iterator_types = [" + iterators + "]} ins(%x : " + m +
           ") outs(%a : " + type + ") { ^bb0(%i: f32, %o: f32): %s = " + op +
           " %i, %o : f32  linalg.yield %s : f32 } -> " + type +
           " return %r : " + type + " }\n";
  };
  std::string parallelReduction = "\"parallel\", \"reduction\"",
              reductionParallel = "\"reduction\", \"parallel\"";
  return reduction("rowsum", parallelReduction, "#row", row, "arith.addf") +
         reduction("rowmax", parallelReduction, "#row", row, "arith.maximumf") +
         reduction("colsum", reductionParallel, "#col", col, "arith.addf") +
         reduction("total", "\"reduction\", \"reduction\"", "#none",
                   "tensor<f32>", "arith.addf") +
         // Mean of squares around the row's value, with the square as a second
         // result: an elementwise output of a reduction.
         "func.func private @squares" + suffix + "(%x: " + m + ", %b: " + row +
         ") -> (" + m + ", " + row +
         ") { %z = arith.constant 0.0 : f32 %e = "
         "tensor.empty() : " +
         m + " %f = tensor.empty() : " + row +
         " %n = linalg.fill ins(%z : f32) outs(%f : " + row + ") -> " + row +
         " %q = linalg.generic {indexing_maps = [#id, #row, #id], "
         "iterator_types = [\"parallel\", \"parallel\"]} ins(%x, %b : " +
         m + ", " + row + ") outs(%e : " + m +
         ") { ^bb0(%i: f32, %c: f32, %o: f32): %d = arith.subf %i, %c : f32 "
         "%s = arith.mulf %d, %d : f32 linalg.yield %s : f32 } -> " +
         m +
         " %r = linalg.generic {indexing_maps = [#id, #row], iterator_types = "
         "[\"parallel\", \"reduction\"]} ins(%q : " +
         m + ") outs(%n : " + row +
         ") { ^bb0(%i: f32, %o: f32): %s = arith.addf %i, %o : f32 "
         "linalg.yield %s : f32 } -> " +
         row + " return %q, %r : " + m + ", " + row + " }\n" +
         "func.func private @transpose" + suffix + "(%x: " + m + ") -> " + t +
         " { %e = tensor.empty() : " + t +
         " %r = linalg.generic {indexing_maps = [#swap, #id], iterator_types = "
         "[\"parallel\", \"parallel\"]} ins(%x : " +
         m + ") outs(%e : " + t +
         ") { ^bb0(%i: f32, %o: f32): %s = arith.negf %i : f32 linalg.yield %s "
         ": f32 } -> " +
         t + " return %r : " + t + " }\n";
}

const char *const maps = R"mlir(
#id = affine_map<(i, j) -> (i, j)>
#swap = affine_map<(i, j) -> (j, i)>
#row = affine_map<(i, j) -> (i)>
#col = affine_map<(i, j) -> (j)>
#none = affine_map<(i, j) -> ()>
)mlir";

struct Results {
  std::vector<float> rowsum, rowmax, colsum, total, squares, squareSums,
      transpose;
  bool operator==(const Results &) const = default;
};

Results runAll(Kernels &kernels, int64_t r, int64_t c,
               const std::string &suffix, std::vector<float> x) {
  Results results;
  results.rowsum = randomVector(r, 21);
  results.rowmax = std::vector<float>(r, -0.5f);
  results.colsum = randomVector(c, 22);
  results.total = {0.125f};
  results.squares.resize(r * c, NAN);
  results.squareSums.resize(r, NAN);
  results.transpose.resize(r * c, NAN);
  std::vector<float> center = randomVector(r, 23);
  kernels.call("rowsum" + suffix, {x.data(), results.rowsum.data()});
  kernels.call("rowmax" + suffix, {x.data(), results.rowmax.data()});
  kernels.call("colsum" + suffix, {x.data(), results.colsum.data()});
  kernels.call("total" + suffix, {x.data(), results.total.data()});
  kernels.call("squares" + suffix,
               {x.data(), center.data(), results.squares.data(),
                results.squareSums.data()});
  kernels.call("transpose" + suffix, {x.data(), results.transpose.data()});
  return results;
}

void check(const Results &results, int64_t r, int64_t c,
           const std::vector<float> &x) {
  std::vector<float> rowStart = randomVector(r, 21),
                     colStart = randomVector(c, 22),
                     center = randomVector(r, 23);
  double total = 0.125;
  std::vector<double> columns(colStart.begin(), colStart.end());
  for (int64_t i = 0; i < r; ++i) {
    double sum = rowStart[i], squares = 0;
    float max = -0.5f;
    for (int64_t j = 0; j < c; ++j) {
      float value = x[i * c + j];
      sum += value;
      total += value;
      columns[j] += value;
      max = std::max(max, value);
      double square = (double(value) - center[i]) * (double(value) - center[i]);
      squares += square;
      ASSERT_NEAR(results.squares[i * c + j], square, 1e-6);
      ASSERT_EQ(results.transpose[j * r + i], -value);
    }
    ASSERT_NEAR(results.rowsum[i], sum, 1e-5);
    ASSERT_EQ(results.rowmax[i], max);
    ASSERT_NEAR(results.squareSums[i], squares, 1e-5 + 1e-6 * squares);
  }
  for (int64_t j = 0; j < c; ++j)
    ASSERT_NEAR(results.colsum[j], columns[j], 1e-5);
  ASSERT_NEAR(results.total[0], total, 2e-5);
}

TEST(VectorLoops, SizesOneToSeventy) {
  std::string source = maps;
  for (int64_t c = 1; c <= 70; ++c)
    source += matrixFunctions(3, c, "." + number(c));
  auto kernels = Kernels::compile(source);
  ASSERT_TRUE(kernels);
  for (int64_t c = 1; c <= 70; ++c) {
    SCOPED_TRACE(c);
    std::vector<float> x = randomVector(3 * c, 20 + c);
    check(runAll(*kernels, 3, c, "." + number(c), x), 3, c, x);
  }
}

// Neither threads nor fusion change a bit; the width may (and must not matter
// beyond rounding).
TEST(VectorLoops, SameBitsForThreadsAndFusion) {
  const std::pair<int64_t, int64_t> sizes[] = {{1, 7},   {6, 1},    {12, 37},
                                               {30, 64}, {16, 200}, {7, 129}};
  std::string source = maps;
  for (auto [r, c] : sizes)
    source += matrixFunctions(r, c, "." + number(r) + "x" + number(c));
  auto plain = Kernels::compile(source, {.fuse = false});
  auto fused = Kernels::compile(source, {});
  auto two = Kernels::compile(source, {.threads = 2});
  auto three = Kernels::compile(source, {.threads = 3});
  auto narrow = Kernels::compile(source, {.width = 8});
  ASSERT_TRUE(plain && fused && two && three && narrow);
  EXPECT_EQ(fused->parallelCalls, 0);
  for (auto [r, c] : sizes) {
    SCOPED_TRACE(testing::Message() << r << " x " << c);
    std::string suffix = "." + number(r) + "x" + number(c);
    std::vector<float> x = randomVector(r * c, 31);
    Results expected = runAll(*plain, r, c, suffix, x);
    check(expected, r, c, x);
    EXPECT_TRUE(runAll(*fused, r, c, suffix, x) == expected);
    EXPECT_TRUE(runAll(*two, r, c, suffix, x) == expected);
    EXPECT_TRUE(runAll(*three, r, c, suffix, x) == expected);
    check(runAll(*narrow, r, c, suffix, x), r, c, x);
  }
  EXPECT_GT(two->parallelCalls, 0);
}

// f64 products have no library; a slice with stride 2 has no unit stride;
// booleans are bytes in memory; integer division would trap in masked lanes.
TEST(VectorLoops, OtherForms) {
  auto kernels = Kernels::compile(R"mlir(
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#i = affine_map<(i) -> (i)>
func.func private @product(%a: tensor<5x19xf64>, %b: tensor<6x19xf64>) -> tensor<5x6xf64> {
  %z = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<5x6xf64>
  %f = linalg.fill ins(%z : f64) outs(%e : tensor<5x6xf64>) -> tensor<5x6xf64>
  %r = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%a, %b : tensor<5x19xf64>, tensor<6x19xf64>) outs(%f : tensor<5x6xf64>) -> tensor<5x6xf64>
  return %r : tensor<5x6xf64>
}
func.func private @odd(%x: tensor<40xf32>) -> tensor<20xf32> {
  %s = tensor.extract_slice %x[1] [20] [2] : tensor<40xf32> to tensor<20xf32>
  %e = tensor.empty() : tensor<20xf32>
  %r = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%s : tensor<20xf32>) outs(%e : tensor<20xf32>) {
    ^bb0(%a: f32, %o: f32): %v = arith.addf %a, %a : f32  linalg.yield %v : f32 } -> tensor<20xf32>
  return %r : tensor<20xf32>
}
func.func private @positive(%x: tensor<21xf32>) -> tensor<21xi1> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<21xi1>
  %r = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%x : tensor<21xf32>) outs(%e : tensor<21xi1>) {
    ^bb0(%a: f32, %o: i1): %v = arith.cmpf ogt, %a, %z : f32  linalg.yield %v : i1 } -> tensor<21xi1>
  return %r : tensor<21xi1>
}
func.func private @divide(%x: tensor<21xi64>, %y: tensor<21xi64>) -> tensor<21xi64> {
  %e = tensor.empty() : tensor<21xi64>
  %r = linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = ["parallel"]} ins(%x, %y : tensor<21xi64>, tensor<21xi64>) outs(%e : tensor<21xi64>) {
    ^bb0(%a: i64, %b: i64, %o: i64): %v = arith.divsi %a, %b : i64  linalg.yield %v : i64 } -> tensor<21xi64>
  return %r : tensor<21xi64>
})mlir");
  ASSERT_TRUE(kernels);
  EXPECT_TRUE(kernels->products.empty());

  std::vector<double> a(5 * 19), b(6 * 19), c(5 * 6, NAN);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<double>(i % 7) - 3;
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = static_cast<double>(i % 5) - 2;
  kernels->call("product", {a.data(), b.data(), c.data()});
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 6; ++j) {
      double sum = 0;
      for (int k = 0; k < 19; ++k)
        sum += a[i * 19 + k] * b[j * 19 + k];
      EXPECT_EQ(c[i * 6 + j], sum);
    }

  std::vector<float> x = randomVector(40, 41), y(20, NAN);
  kernels->call("odd", {x.data(), y.data()});
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(y[i], 2 * x[2 * i + 1]);

  std::vector<char> positive(23, 7);
  kernels->call("positive", {x.data(), positive.data()});
  for (int i = 0; i < 21; ++i)
    EXPECT_EQ(positive[i], x[i] > 0);
  EXPECT_EQ(positive[21], 7);

  std::vector<int64_t> p(21), q(21), r(21);
  for (int i = 0; i < 21; ++i) {
    p[i] = i * 100 - 999;
    q[i] = i - 30;
  }
  kernels->call("divide", {p.data(), q.data(), r.data()});
  for (int i = 0; i < 21; ++i)
    EXPECT_EQ(r[i], p[i] / q[i]);
}

/// NaN anywhere in a row, and in all of it, also in lanes behind the last whole
/// vector.
TEST(VectorLoops, MaximumLeavesOutNaN) {
  constexpr int rows = 5, columns = 75;
  auto kernels = Kernels::compile(R"mlir(
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func private @largest(%x: tensor<5x75xf32>) -> tensor<5xf32> {
  %start = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<5xf32>
  %f = linalg.fill ins(%start : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
  %r = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<5x75xf32>) outs(%f : tensor<5xf32>) {
    ^bb0(%a: f32, %o: f32): %v = arith.maxnumf %a, %o : f32  linalg.yield %v : f32 } -> tensor<5xf32>
  return %r : tensor<5xf32>
})mlir");
  ASSERT_TRUE(kernels);
  std::vector<float> x = randomVector(rows * columns, 42), y(rows, NAN);
  for (int j : {0, 17, 63, 64, 74})
    x[columns + j] = NAN;
  for (int j = 0; j < columns; ++j) {
    x[2 * columns + j] = NAN;
    x[3 * columns + j] = -INFINITY;
  }
  x[3 * columns + 70] = NAN;
  kernels->call("largest", {x.data(), y.data()});
  for (int i = 0; i < rows; ++i) {
    float expected = -INFINITY;
    for (int j = 0; j < columns; ++j)
      expected = std::fmax(expected, x[i * columns + j]);
    EXPECT_EQ(y[i], expected) << i;
  }
}

} // namespace
