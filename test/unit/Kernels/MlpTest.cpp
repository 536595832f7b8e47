//===- MlpTest.cpp - A stage of an MLP, compiled and executed -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forward, backward and update of two layers against a reference in double, and
// with every choice of threads and fusion against itself, bit for bit.
//===----------------------------------------------------------------------===//

#include "Kernels.h"

#include <gtest/gtest.h>

namespace {

const char *const source = R"mlir(
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
#col = affine_map<(i, j) -> (j)>
!x = tensor<5x7xf32>
!h1 = tensor<5x11xf32>
!h2 = tensor<5x43xf32>
!w1 = tensor<7x11xf32>
!w2 = tensor<11x43xf32>
!b2 = tensor<43xf32>
func.func private @forward(%x: !x, %w1: !w1, %w2: !w2, %b2: !b2) -> (!h2, !h1) {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : !h1
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : !h1) -> !h1
  %a1 = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%x, %w1 : !x, !w1) outs(%z1 : !h1) -> !h1
  %h1 = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%a1 : !h1) {
    ^bb0(%a: f32): %r = arith.maximumf %a, %zero : f32  linalg.yield %r : f32 } -> !h1
  %e2 = tensor.empty() : !h2
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : !h2) -> !h2
  %a2 = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%h1, %w2 : !h1, !w2) outs(%z2 : !h2) -> !h2
  %s2 = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%a2, %b2 : !h2, !b2) outs(%e2 : !h2) {
    ^bb0(%a: f32, %b: f32, %o: f32): %r = arith.addf %a, %b : f32  linalg.yield %r : f32 } -> !h2
  %h2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s2 : !h2) outs(%e2 : !h2) {
    ^bb0(%a: f32, %o: f32): %r = arith.maximumf %a, %zero : f32  linalg.yield %r : f32 } -> !h2
  return %h2, %h1 : !h2, !h1
}
func.func private @backward(%dh2: !h2, %x: !x, %h1: !h1, %h2: !h2, %w2: !w2,
    %dw1: !w1 {pipeline.into = 0 : i64}, %dw2: !w2 {pipeline.into = 1 : i64},
    %db2: !b2 {pipeline.into = 2 : i64}) -> (!w1, !w2, !b2) {
  %zero = arith.constant 0.0 : f32
  %e2 = tensor.empty() : !h2
  %g2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%h2, %dh2 : !h2, !h2) outs(%e2 : !h2) {
    ^bb0(%h: f32, %d: f32, %o: f32): %p = arith.cmpf ogt, %h, %zero : f32  %r = arith.select %p, %d, %zero : f32  linalg.yield %r : f32 } -> !h2
  %n2 = linalg.contract indexing_maps = [#mk, #mn, #kn] ins(%h1, %g2 : !h1, !h2) outs(%dw2 : !w2) -> !w2
  %nb2 = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]} ins(%g2 : !h2) outs(%db2 : !b2) {
    ^bb0(%a: f32, %o: f32): %r = arith.addf %a, %o : f32  linalg.yield %r : f32 } -> !b2
  %e1 = tensor.empty() : !h1
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : !h1) -> !h1
  %dh1 = linalg.contract indexing_maps = [#mn, #kn, #mk] ins(%g2, %w2 : !h2, !w2) outs(%z1 : !h1) -> !h1
  %g1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%h1, %dh1 : !h1, !h1) outs(%e1 : !h1) {
    ^bb0(%h: f32, %d: f32, %o: f32): %p = arith.cmpf ogt, %h, %zero : f32  %r = arith.select %p, %d, %zero : f32  linalg.yield %r : f32 } -> !h1
  %n1 = linalg.contract indexing_maps = [#mk, #mn, #kn] ins(%x, %g1 : !x, !h1) outs(%dw1 : !w1) -> !w1
  return %n1, %n2, %nb2 : !w1, !w2, !b2
}
func.func private @sgd(%w: !w1, %g: !w1 {pipeline.into = 1 : i64}, %lr: f32) -> (!w1, !w1) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !w1
  %n:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : !w1) outs(%e, %g : !w1, !w1) {
    ^bb0(%a: f32, %o: f32, %b: f32): %s = arith.mulf %lr, %b : f32  %r = arith.subf %a, %s : f32  linalg.yield %r, %zero : f32, f32 } -> (!w1, !w1)
  return %n#0, %n#1 : !w1, !w1
}
)mlir";

constexpr int rows = 5, in = 7, hidden = 11, out = 43;

struct Mlp {
  std::vector<float> x = randomVector(rows * in, 1),
                     w1 = randomVector(in * hidden, 2),
                     w2 = randomVector(hidden * out, 3),
                     b2 = randomVector(out, 4),
                     dh2 = randomVector(rows * out, 5),
                     h1 = std::vector<float>(rows * hidden, NAN),
                     h2 = std::vector<float>(rows * out, NAN),
                     // Accumulators are not zero: they are added to.
      dw1 = randomVector(in * hidden, 6), dw2 = randomVector(hidden * out, 7),
                     db2 = randomVector(out, 8),
                     w1New = std::vector<float>(in * hidden, NAN);

  void run(Kernels &kernels) {
    kernels.call("forward", {x.data(), w1.data(), w2.data(), b2.data(),
                             h2.data(), h1.data()});
    kernels.call("backward", {dh2.data(), x.data(), h1.data(), h2.data(),
                              w2.data(), dw1.data(), dw2.data(), db2.data()});
  }
};

TEST(Mlp, MatchesReference) {
  auto kernels = Kernels::compile(source);
  ASSERT_TRUE(kernels);
  Mlp mlp, start;
  mlp.run(*kernels);

  std::vector<double> h1(rows * hidden), h2(rows * out), g2(rows * out),
      g1(rows * hidden);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < hidden; ++j) {
      double sum = 0;
      for (int k = 0; k < in; ++k)
        sum += double(start.x[i * in + k]) * start.w1[k * hidden + j];
      h1[i * hidden + j] = std::max(sum, 0.0);
      EXPECT_NEAR(mlp.h1[i * hidden + j], h1[i * hidden + j], 1e-5);
    }
    for (int j = 0; j < out; ++j) {
      double sum = start.b2[j];
      for (int k = 0; k < hidden; ++k)
        sum += h1[i * hidden + k] * start.w2[k * out + j];
      h2[i * out + j] = std::max(sum, 0.0);
      EXPECT_NEAR(mlp.h2[i * out + j], h2[i * out + j], 1e-5);
      g2[i * out + j] = h2[i * out + j] > 0 ? start.dh2[i * out + j] : 0;
    }
    for (int j = 0; j < hidden; ++j) {
      double sum = 0;
      for (int k = 0; k < out; ++k)
        sum += g2[i * out + k] * start.w2[j * out + k];
      g1[i * hidden + j] = h1[i * hidden + j] > 0 ? sum : 0;
    }
  }
  for (int j = 0; j < out; ++j) {
    double sum = start.db2[j];
    for (int i = 0; i < rows; ++i)
      sum += g2[i * out + j];
    EXPECT_NEAR(mlp.db2[j], sum, 1e-5);
    for (int k = 0; k < hidden; ++k) {
      double product = start.dw2[k * out + j];
      for (int i = 0; i < rows; ++i)
        product += h1[i * hidden + k] * g2[i * out + j];
      EXPECT_NEAR(mlp.dw2[k * out + j], product, 1e-5);
    }
  }
  for (int k = 0; k < in; ++k)
    for (int j = 0; j < hidden; ++j) {
      double product = start.dw1[k * hidden + j];
      for (int i = 0; i < rows; ++i)
        product += double(start.x[i * in + k]) * g1[i * hidden + j];
      EXPECT_NEAR(mlp.dw1[k * hidden + j], product, 1e-5);
    }

  // All five products went to the library; the hidden ones do not accumulate.
  ASSERT_EQ(kernels->products.size(), 5u);
  EXPECT_FALSE(kernels->products[0].accumulate);
  EXPECT_FALSE(kernels->products[1].accumulate);
  EXPECT_TRUE(kernels->products[2].accumulate);
  EXPECT_FALSE(kernels->products[3].accumulate);
  EXPECT_TRUE(kernels->products[4].accumulate);
}

TEST(Mlp, SameBitsHoweverCompiled) {
  auto plain = Kernels::compile(source, {.fuse = false});
  ASSERT_TRUE(plain);
  Mlp expected;
  expected.run(*plain);
  for (int64_t threads : {1, 2, 3, 5}) {
    auto kernels = Kernels::compile(source, {.threads = threads});
    ASSERT_TRUE(kernels);
    Mlp mlp;
    mlp.run(*kernels);
    EXPECT_EQ(mlp.h1, expected.h1);
    EXPECT_EQ(mlp.h2, expected.h2);
    EXPECT_EQ(mlp.dw1, expected.dw1);
    EXPECT_EQ(mlp.dw2, expected.dw2);
    EXPECT_EQ(mlp.db2, expected.db2);
    EXPECT_EQ(kernels->parallelCalls > 0, threads > 1);
  }
}

// Out of place, and in place as when one version of the weight is kept.
TEST(Mlp, Update) {
  auto kernels = Kernels::compile(source);
  ASSERT_TRUE(kernels);
  Mlp mlp, start;
  kernels->call("sgd", {mlp.w1.data(), mlp.dw1.data(), mlp.w1New.data()},
                {0.5f});
  for (int i = 0; i < in * hidden; ++i) {
    EXPECT_EQ(mlp.w1New[i], start.w1[i] - 0.5f * start.dw1[i]);
    EXPECT_EQ(mlp.dw1[i], 0.0f);
  }
  mlp.dw1 = start.dw1;
  kernels->call("sgd", {mlp.w1.data(), mlp.dw1.data(), mlp.w1.data()}, {0.5f});
  EXPECT_EQ(mlp.w1, mlp.w1New);
}

} // namespace
