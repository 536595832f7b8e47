//===- KernelsTest.cpp - Composites and chains, compiled and executed -----===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Softmax and cross-entropy at extreme logits and labels, chains of elementwise
// functions, optimizers: against references in double.
//===----------------------------------------------------------------------===//

#include "Kernels.h"

#include <cmath>
#include <gtest/gtest.h>

namespace {

std::string replaceAll(std::string text, const std::string &from,
                       const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

struct CrossEntropy {
  double loss = 0;
  std::vector<double> probabilities, gradient;
};

CrossEntropy reference(const std::vector<float> &logits,
                       const std::vector<int64_t> &labels, int64_t classes,
                       int64_t ignore, double seed) {
  CrossEntropy result;
  size_t rows = labels.size();
  int64_t count = 0;
  for (int64_t label : labels)
    count += label != ignore;
  for (size_t i = 0; i < rows; ++i) {
    const float *row = logits.data() + i * classes;
    double max = *std::max_element(row, row + classes), sum = 0;
    for (int64_t j = 0; j < classes; ++j)
      sum += std::exp(row[j] - max);
    for (int64_t j = 0; j < classes; ++j) {
      double p = std::exp(row[j] - max) / sum;
      result.probabilities.push_back(p);
      result.gradient.push_back(
          labels[i] == ignore ? 0 : (p - (j == labels[i])) * seed / count);
    }
    if (labels[i] != ignore)
      result.loss += (std::log(sum) - (row[labels[i]] - max)) / count;
  }
  return result;
}

const char *const crossEntropy = R"mlir(
func.func private @loss(%z: tensor<RxCxf32>, %y: tensor<Rxi64>) -> (tensor<f32>, tensor<RxCxf32>) {
  %l, %p = nn.cross_entropy %z, %y IGNORE : (tensor<RxCxf32>, tensor<Rxi64>) -> (tensor<f32>, tensor<RxCxf32>)
  return %l, %p : tensor<f32>, tensor<RxCxf32>
}
func.func private @gradient(%p: tensor<RxCxf32>, %y: tensor<Rxi64>, %s: tensor<f32>) -> tensor<RxCxf32> {
  %d = nn.cross_entropy_grad %p, %y, %s IGNORE : (tensor<RxCxf32>, tensor<Rxi64>, tensor<f32>) -> tensor<RxCxf32>
  return %d : tensor<RxCxf32>
}
)mlir";

void checkCrossEntropy(int64_t rows, int64_t classes, float scale,
                       KernelOptions options = {}) {
  SCOPED_TRACE(testing::Message()
               << rows << " x " << classes << ", logits up to " << scale);
  std::string source = replaceAll(crossEntropy, "IGNORE", "ignore(-100)");
  source = replaceAll(source, "R", std::to_string(rows));
  source = replaceAll(source, "Cx", std::to_string(classes) + "x");
  auto kernels = Kernels::compile(source, options);
  ASSERT_TRUE(kernels);
  std::vector<float> logits = randomVector(rows * classes, 11, scale),
                     p(rows * classes, NAN), d(rows * classes, NAN);
  std::vector<int64_t> labels(rows);
  for (int64_t i = 0; i < rows; ++i)
    labels[i] = i % 5 == 3 ? -100 : (i * 7) % classes;
  float loss = NAN, seed = 0.25f;
  kernels->call("loss", {logits.data(), labels.data(), &loss, p.data()});
  kernels->call("gradient", {p.data(), labels.data(), &seed, d.data()});
  CrossEntropy expected = reference(logits, labels, classes, -100, seed);
  EXPECT_NEAR(loss, expected.loss, 2e-6 * std::max(1.0, expected.loss));
  for (size_t i = 0; i < p.size(); ++i) {
    ASSERT_NEAR(p[i], expected.probabilities[i], 1e-6) << i;
    ASSERT_NEAR(d[i], expected.gradient[i], 1e-6) << i;
  }
}

TEST(CrossEntropy, Sizes) {
  for (int64_t classes : {1, 2, 3, 10, 15, 16, 17, 33, 64, 70, 130})
    checkCrossEntropy(6, classes, 3.0f);
}

TEST(CrossEntropy, ExtremeLogits) {
  checkCrossEntropy(7, 19, 1e4f);
  // Differences and their sum over the rows still fit into f32.
  checkCrossEntropy(7, 19, 2e37f);
}

TEST(CrossEntropy, Threads) {
  checkCrossEntropy(12, 37, 5.0f, {.threads = 2});
  checkCrossEntropy(12, 37, 5.0f, {.threads = 3, .width = 8});
}

// Large enough that the passes over a row are fused.
TEST(CrossEntropy, FusedRows) {
  checkCrossEntropy(70, 130, 4.0f);
  checkCrossEntropy(70, 130, 4.0f, {.threads = 3});
}

// A label that names no class reads nothing and shows as NaN, in the loss and
// in its row of the gradient alone.
TEST(CrossEntropy, LabelOutOfRange) {
  std::string source = replaceAll(crossEntropy, "IGNORE", "");
  source = replaceAll(source, "R", "4");
  source = replaceAll(source, "Cx", "5x");
  auto kernels = Kernels::compile(source);
  ASSERT_TRUE(kernels);
  for (int64_t bad : {int64_t(5), int64_t(-1), INT64_MAX, INT64_MIN}) {
    std::vector<float> logits = randomVector(20, 12), p(20), d(20);
    std::vector<int64_t> labels{0, 4, bad, 2};
    float loss = 0, seed = 1;
    kernels->call("loss", {logits.data(), labels.data(), &loss, p.data()});
    kernels->call("gradient", {p.data(), labels.data(), &seed, d.data()});
    EXPECT_TRUE(std::isnan(loss));
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(std::isnan(d[i]), i / 5 == 2) << i;
  }
}

TEST(Softmax, AnyAxis) {
  auto kernels = Kernels::compile(R"mlir(
func.func private @softmax(%x: tensor<3x5x4xf32>) -> tensor<3x5x4xf32> {
  %e = tensor.empty() : tensor<3x5x4xf32>
  %r = linalg.softmax dimension(1) ins(%x : tensor<3x5x4xf32>) outs(%e : tensor<3x5x4xf32>) -> tensor<3x5x4xf32>
  return %r : tensor<3x5x4xf32>
})mlir");
  ASSERT_TRUE(kernels);
  std::vector<float> x = randomVector(60, 13, 4.0f), y(60, NAN);
  kernels->call("softmax", {x.data(), y.data()});
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 4; ++k) {
      double sum = 0;
      for (int j = 0; j < 5; ++j)
        sum += std::exp(double(x[i * 20 + j * 4 + k]));
      for (int j = 0; j < 5; ++j)
        EXPECT_NEAR(y[i * 20 + j * 4 + k],
                    std::exp(double(x[i * 20 + j * 4 + k])) / sum, 1e-6);
    }
}

/// One f32 function of one argument through an elementwise kernel.
std::vector<float> runUnary(const std::string &op,
                            const std::vector<float> &x) {
  std::string size = std::to_string(x.size());
  std::string source = replaceAll(R"mlir(
#id = affine_map<(i) -> (i)>
func.func private @f(%x: tensor<NUMxf32>) -> tensor<NUMxf32> {
  %e = tensor.empty() : tensor<NUMxf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<NUMxf32>) outs(%e : tensor<NUMxf32>) {
    ^bb0(%a: f32, %o: f32): %v = OP %a : f32  linalg.yield %v : f32 } -> tensor<NUMxf32>
  return %r : tensor<NUMxf32>
})mlir",
                                  "NUM", size);
  auto kernels = Kernels::compile(replaceAll(source, "OP", op));
  std::vector<float> y(x.size(), 12345.0f);
  EXPECT_TRUE(kernels) << op;
  std::vector<float> in = x;
  if (kernels)
    kernels->call("f", {in.data(), y.data()});
  return y;
}

TEST(Math, Functions) {
  struct Case {
    const char *op;
    double (*reference)(double);
    float scale, offset;
  };
  const Case cases[] = {
      {"math.exp", std::exp, 10, 0},
      {"math.log", std::log, 5, 5.001f},
      {"math.tanh", std::tanh, 4, 0},
      {"math.erf", std::erf, 3, 0},
      {"math.sqrt", std::sqrt, 5, 5},
      {"math.sin", std::sin, 1e6f, 0},
      {"math.cos", std::cos, 1e6f, 0},
      {"math.atan", std::atan, 9, 0},
      {"math.exp2", std::exp2, 9, 0},
      {"math.log1p", std::log1p, 0.9f, 0},
      {"math.expm1", std::expm1, 1, 0},
      {"math.sinh", std::sinh, 3, 0},
      {"math.asinh", std::asinh, 3, 0},
      {"math.cbrt", std::cbrt, 30, 0},
      {"math.floor", std::floor, 30, 0},
      {"math.roundeven", std::nearbyint, 9, 0},
      {"math.rsqrt", [](double x) { return 1 / std::sqrt(x); }, 5, 5.001f}};
  for (const Case &test : cases) {
    std::vector<float> x = randomVector(37, 14, test.scale);
    for (float &value : x)
      value += test.offset;
    std::vector<float> y = runUnary(test.op, x);
    for (size_t i = 0; i < x.size(); ++i) {
      double expected = test.reference(x[i]);
      ASSERT_NEAR(y[i], expected, 4e-6 * std::max(std::abs(expected), 0.05))
          << test.op << " of " << x[i];
    }
  }
}

TEST(Math, SpecialValues) {
  std::vector<float> x{INFINITY, -INFINITY, NAN, 0.0f, -0.0f, 1e30f, -1e30f};
  std::vector<float> y = runUnary("math.exp", x);
  EXPECT_EQ(y[0], INFINITY);
  EXPECT_EQ(y[1], 0.0f);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], 1.0f);
  EXPECT_EQ(y[5], INFINITY);
  EXPECT_EQ(y[6], 0.0f);
  y = runUnary("math.log", x);
  EXPECT_EQ(y[0], INFINITY);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(y[3], -INFINITY);
}

/// Between the least and the largest numbers, and around 0.
TEST(Math, Exponential) {
  std::vector<float> x;
  for (float value = -86.9f; value < 88.7f; value += 1.0f / 512)
    x.push_back(value);
  for (float value = 1e-9f; value < 1; value *= 1.01f) {
    x.push_back(value);
    x.push_back(-value);
  }
  x.push_back(88.7228f); // just below the largest number
  std::vector<float> y = runUnary("math.exp", x);
  for (size_t i = 0; i < x.size(); ++i) {
    double expected = std::exp(double(x[i]));
    auto nearest = static_cast<float>(expected);
    double ulp = nearest - std::nextafter(nearest, 0.0f);
    ASSERT_NEAR(y[i], expected, ulp) << x[i];
  }
  y = runUnary("math.exp", {0.0f, -0.0f, 88.73f, 89.0f, -87.0f, -88.0f});
  EXPECT_EQ(y[0], 1.0f);
  EXPECT_EQ(y[1], 1.0f);
  EXPECT_EQ(y[2], INFINITY);
  EXPECT_EQ(y[3], INFINITY);
  EXPECT_EQ(y[4], 0.0f);
  EXPECT_EQ(y[5], 0.0f);
}

/// Everywhere, and small arguments relative to what they are.
TEST(Math, ErrorFunction) {
  std::vector<float> x;
  for (float value = 1e-30f; value < 0.5f; value *= 1.01f)
    x.push_back(value);
  for (float value = -5; value < 5; value += 1.0f / 1024)
    x.push_back(value);
  std::vector<float> y = runUnary("math.erf", x);
  for (size_t i = 0; i < x.size(); ++i) {
    double expected = std::erf(double(x[i]));
    ASSERT_NEAR(y[i], expected, 5e-7 * std::abs(expected)) << x[i];
    ASSERT_LE(std::abs(y[i]), 1.0f) << x[i];
  }
  y = runUnary("math.erf", {INFINITY, -INFINITY, NAN, 0.0f, 10.0f, -10.0f});
  EXPECT_EQ(y[0], 1.0f);
  EXPECT_EQ(y[1], -1.0f);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], 0.0f);
  EXPECT_EQ(y[4], 1.0f);
  EXPECT_EQ(y[5], -1.0f);
}

// AdamW as the optimizer writes it, in several ops: one pass over the weights.
const char *const adam = R"mlir(
#id = affine_map<(i) -> (i)>
!t = tensor<333xf32>
func.func private @adam(%w: !t, %g: !t {pipeline.into = 3 : i64}, %m: !t {pipeline.into = 1 : i64}, %v: !t {pipeline.into = 2 : i64}, %lr: f32) -> (!t, !t, !t, !t) {
  %b1 = arith.constant 0.9 : f32
  %b2 = arith.constant 0.999 : f32
  %c1 = arith.constant 0.1 : f32
  %c2 = arith.constant 0.001 : f32
  %eps = arith.constant 1.0e-8 : f32
  %zero = arith.constant 0.0 : f32
  %m1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%g : !t) outs(%m : !t) {
    ^bb0(%a: f32, %o: f32): %0 = arith.mulf %o, %b1 : f32  %1 = arith.mulf %a, %c1 : f32  %2 = arith.addf %0, %1 : f32  linalg.yield %2 : f32 } -> !t
  %v1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%g : !t) outs(%v : !t) {
    ^bb0(%a: f32, %o: f32): %0 = arith.mulf %o, %b2 : f32  %s = arith.mulf %a, %a : f32  %1 = arith.mulf %s, %c2 : f32  %2 = arith.addf %0, %1 : f32  linalg.yield %2 : f32 } -> !t
  %e = tensor.empty() : !t
  %d = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%m1, %v1 : !t, !t) outs(%e : !t) {
    ^bb0(%a: f32, %b: f32, %o: f32): %0 = math.sqrt %b : f32  %1 = arith.addf %0, %eps : f32  %2 = arith.divf %a, %1 : f32  linalg.yield %2 : f32 } -> !t
  %e2 = tensor.empty() : !t
  %w1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%w, %d : !t, !t) outs(%e2 : !t) {
    ^bb0(%a: f32, %b: f32, %o: f32): %0 = arith.mulf %lr, %b : f32  %1 = arith.subf %a, %0 : f32  linalg.yield %1 : f32 } -> !t
  %g1 = linalg.fill ins(%zero : f32) outs(%g : !t) -> !t
  return %w1, %m1, %v1, %g1 : !t, !t, !t, !t
})mlir";

TEST(Optimizer, AdamInOnePass) {
  std::vector<float> results[2];
  for (bool fuse : {false, true}) {
    auto kernels = Kernels::compile(adam, {.fuse = fuse});
    ASSERT_TRUE(kernels);
    std::vector<float> w = randomVector(333, 15), g = randomVector(333, 16),
                       m = randomVector(333, 17), v = randomVector(333, 18),
                       w1(333, NAN), g0 = g, m0 = m;
    for (float &value : v)
      value = std::abs(value);
    std::vector<float> v0 = v;
    kernels->call("adam", {w.data(), g.data(), m.data(), v.data(), w1.data()},
                  {0.01f});
    for (int i = 0; i < 333; ++i) {
      double mNew = 0.9 * m0[i] + 0.1 * g0[i],
             vNew = 0.999 * v0[i] + 0.001 * g0[i] * g0[i];
      EXPECT_NEAR(m[i], mNew, 1e-6);
      EXPECT_NEAR(v[i], vNew, 1e-6);
      EXPECT_NEAR(w1[i], w[i] - 0.01 * mNew / (std::sqrt(vNew) + 1e-8), 1e-5);
      EXPECT_EQ(g[i], 0.0f);
    }
    results[fuse] = w1;
    if (fuse)
      EXPECT_EQ(kernels->scratchOf("adam"), 0);
  }
  EXPECT_EQ(results[0], results[1]);
}

} // namespace
