//===- GradientFunctionTest.cpp - Derivatives of whole functions ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values with several consumers, what the backward keeps, and the diagnostic
// of what has no rule.
//===----------------------------------------------------------------------===//

#include "GradientTexts.h"

#include "gtest/gtest.h"

using namespace penstock::test;

/// A value with three consumers, a parameter with two, a bias, a parameter that
/// is transposed and scaled first.
static const char *const network = R"(
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @f(%x: tensor<3x5xf64>, %w: tensor<5x5xf64>, %b: tensor<5xf64>,
             %s: tensor<5xf64>) -> (tensor<3x5xf64>, tensor<f64>) {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<3x5xf64>
  %i = linalg.fill ins(%zero : f64) outs(%e : tensor<3x5xf64>) -> tensor<3x5xf64>
  %a = linalg.contract indexing_maps = [#mk, #kn, #mn]
    ins(%x, %w : tensor<3x5xf64>, tensor<5x5xf64>)
    outs(%i : tensor<3x5xf64>) -> tensor<3x5xf64>
  %h = linalg.generic {indexing_maps = [#id, #row, #id],
      iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<3x5xf64>, tensor<5xf64>) outs(%e : tensor<3x5xf64>) {
  ^bb0(%p: f64, %q: f64, %o: f64):
    %t = arith.addf %p, %q : f64
    %r = math.tanh %t : f64
    linalg.yield %r : f64
  } -> tensor<3x5xf64>
  %we = tensor.empty() : tensor<5x5xf64>
  %wt = linalg.transpose ins(%w : tensor<5x5xf64>) outs(%we : tensor<5x5xf64>)
    permutation = [1, 0]
  %ws = linalg.generic {indexing_maps = [#id, #row, #id],
      iterator_types = ["parallel", "parallel"]}
      ins(%wt, %s : tensor<5x5xf64>, tensor<5xf64>) outs(%we : tensor<5x5xf64>) {
  ^bb0(%p: f64, %q: f64, %o: f64):
    %r = arith.divf %p, %q : f64
    linalg.yield %r : f64
  } -> tensor<5x5xf64>
  %c = linalg.contract indexing_maps = [#mk, #kn, #mn]
    ins(%h, %ws : tensor<3x5xf64>, tensor<5x5xf64>)
    outs(%h : tensor<3x5xf64>) -> tensor<3x5xf64>
  %n = tensor.empty() : tensor<f64>
  %m = linalg.fill ins(%zero : f64) outs(%n : tensor<f64>) -> tensor<f64>
  %d = linalg.generic {indexing_maps = [#id, #id, affine_map<(i, j) -> ()>],
      iterator_types = ["reduction", "reduction"]}
      ins(%h, %c : tensor<3x5xf64>, tensor<3x5xf64>) outs(%m : tensor<f64>) {
  ^bb0(%p: f64, %q: f64, %o: f64):
    %t = arith.mulf %p, %q : f64
    %r = arith.addf %o, %t : f64
    linalg.yield %r : f64
  } -> tensor<f64>
  return %c, %d : tensor<3x5xf64>, tensor<f64>
})";

TEST(Gradient, Functions) {
  Cases cases;
  for (const char *roles : {"dppp", "dddd", "Dppp", "dPPP", "DpPp"})
    cases.push_back(
        {std::string("network with ") + roles, network, roles, .5, 1.5});
  cases.push_back({"cotangents passed on and shared", R"(
    func.func @f(%x: tensor<3xf64>, %y: tensor<3xf64>, %z: tensor<3xf64>)
        -> (tensor<3xf64>, tensor<3xf64>) {
      %e = tensor.empty() : tensor<3xf64>
      %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>,
          affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}
          ins(%x, %y : tensor<3xf64>, tensor<3xf64>) outs(%e : tensor<3xf64>) {
      ^bb0(%a: f64, %b: f64, %o: f64):
        %r = arith.addf %a, %b : f64
        linalg.yield %r : f64
      } -> tensor<3xf64>
      return %s, %z : tensor<3xf64>, tensor<3xf64>
    })",
                   "ddd"});
  checkAll("whole functions", cases);
}

// Expressions of parameters are evaluated again, views are not stored twice, a
// tanh of data needs its output only; a tanh of data and parameters needs its
// operands, as its output holds the forward's parameters.
TEST(Residuals, AreWhatTheBackwardNeeds) {
  EXPECT_EQ(describeBackward({"network", network, "dppp"}),
            "cotangents 0 1; residuals argument 0 linalg.contract "
            "linalg.generic linalg.contract; parameters 1 2 3; accumulators 1 "
            "2 3");
  std::string tanh = elementwise("    %r = math.tanh %a : f64");
  EXPECT_EQ(describeBackward({"tanh", tanh, "d"}),
            "cotangents 0; residuals linalg.generic; parameters; accumulators");
  EXPECT_EQ(describeBackward({"tanh of a parameter", tanh, "p"}),
            "cotangents 0; residuals; parameters 0; accumulators 0");
  EXPECT_EQ(describeBackward({"view", R"(
    func.func @f(%x: tensor<6xf64>, %w: tensor<2x3xf64>) -> tensor<2x3xf64> {
      %v = tensor.expand_shape %x [[0, 1]] output_shape [2, 3]
        : tensor<6xf64> into tensor<2x3xf64>
      %e = tensor.empty() : tensor<2x3xf64>
      %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
          affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]}
          ins(%v, %w : tensor<2x3xf64>, tensor<2x3xf64>) outs(%e : tensor<2x3xf64>) {
      ^bb0(%a: f64, %b: f64, %o: f64):
        %r = arith.mulf %a, %b : f64
        linalg.yield %r : f64
      } -> tensor<2x3xf64>
      return %y : tensor<2x3xf64>
    })",
                              "Dp"}),
            "cotangents 0; residuals argument 0; parameters; accumulators 1");
}

//===----------------------------------------------------------------------===//
// What has no rule
//===----------------------------------------------------------------------===//

static void expectMessage(const GradientCase &testCase,
                          const std::string &part) {
  std::string message = getDiagnostic(testCase);
  EXPECT_NE(message.find(part), std::string::npos)
      << testCase.name << ": " << message;
}

TEST(Errors, NameTheOpThatHasNoRule) {
  expectMessage({"scalar", elementwise("    %r = math.cbrt %a : f64"), "d"},
                "'math.cbrt' in a 'linalg.generic' has no derivative rule");
  expectMessage({"quotient",
                 generic({{"3x5", "i, j"}}, {"3", "i"},
                         "    %r = arith.divf %o, %a : f64",
                         "\"parallel\", \"reduction\"", "1.0"),
                 "d"},
                "a reduction by arith.divf has no derivative rule");
  expectMessage({"maximum of a mixture",
                 generic({{"3x5", "i, j"}, {"5", "j"}}, {"3", "i"},
                         "    %m = arith.mulf %a, %b : f64\n"
                         "    %r = arith.maximumf %o, %m : f64",
                         "\"parallel\", \"reduction\"", "0xFFF0000000000000"),
                 "dp"},
                "a maximum over an expression of both data and parameters");
  expectMessage({"window", R"(
    func.func @f(%x: tensor<7xf64>) -> tensor<5xf64> {
      %z = arith.constant 0.0 : f64
      %w = tensor.empty() : tensor<3xf64>
      %e = tensor.empty() : tensor<5xf64>
      %i = linalg.fill ins(%z : f64) outs(%e : tensor<5xf64>) -> tensor<5xf64>
      %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + j)>,
          affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
          iterator_types = ["parallel", "reduction"]}
          ins(%x, %w : tensor<7xf64>, tensor<3xf64>) outs(%i : tensor<5xf64>) {
      ^bb0(%a: f64, %b: f64, %o: f64):
        %r = arith.addf %o, %a : f64
        linalg.yield %r : f64
      } -> tensor<5xf64>
      return %y : tensor<5xf64>
    })",
                 "d"},
                "whose derivative would have to scatter");
  expectMessage({"no interface", R"(
    func.func @f(%x: tensor<3x5xf64>) -> tensor<3x5xf64> {
      %y = tensor.generate {
      ^bb0(%i: index, %j: index):
        %v = tensor.extract %x[%i, %j] : tensor<3x5xf64>
        tensor.yield %v : f64
      } : tensor<3x5xf64>
      return %y : tensor<3x5xf64>
    })",
                 "d"},
                "'tensor.generate' has no derivative rule");
  expectMessage({"probabilities", R"(
    func.func @f(%z: tensor<5x3xf64>, %y: tensor<5xi64>) -> tensor<5x3xf64> {
      %l, %p = nn.cross_entropy %z, %y
        : (tensor<5x3xf64>, tensor<5xi64>) -> (tensor<f64>, tensor<5x3xf64>)
      return %p : tensor<5x3xf64>
    })",
                 "dd"},
                "a gradient flows into the probabilities");
}
