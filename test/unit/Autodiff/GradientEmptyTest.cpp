//===- GradientEmptyTest.cpp - Derivatives where there is nothing ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Axes of no elements: what is reduced from nothing is what the reduction
// starts from, and no gradient comes of it.
//===----------------------------------------------------------------------===//

#include "GradientTexts.h"

#include "gtest/gtest.h"

using namespace penstock::test;

namespace {

/// A function of x, 3x5, in which %e are its first 0 columns and %r its first 0
/// rows; `body` makes %y, 3x5.
GradientCase emptyCase(const std::string &name, const std::string &body) {
  return {name,
          "func.func @f(%x: tensor<3x5xf64>) -> tensor<3x5xf64> {\n"
          "  %i0 = arith.constant dense<0> : tensor<1xi64>\n"
          "  %i1 = arith.constant dense<1> : tensor<1xi64>\n"
          "  %e = onnx.node \"Slice\"(%x, %i0, %i0, %i1) since 13 : "
          "(tensor<3x5xf64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> "
          "tensor<3x0xf64>\n"
          "  %r = onnx.node \"Slice\"(%x, %i0, %i0, %i0) since 13 : "
          "(tensor<3x5xf64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> "
          "tensor<0x5xf64>\n" +
              body + "  return %y : tensor<3x5xf64>\n}\n",
          "d"};
}

/// An elementwise node of x and the reduction of nothing.
std::string reduced(const std::string &type, int since,
                    const std::string &join) {
  return "  %s = onnx.node \"" + type + "\"(%e, %i1) since " +
         std::to_string(since) +
         " : (tensor<3x0xf64>, tensor<1xi64>) -> tensor<3x1xf64>\n"
         "  %y = onnx.node \"" +
         join +
         "\"(%x, %s) since 13 : (tensor<3x5xf64>, tensor<3x1xf64>) -> "
         "tensor<3x5xf64>\n";
}

} // namespace

TEST(Gradient, AxesOfNoElements) {
  Cases cases;
  for (const char *type : {"ReduceL1", "ReduceL2", "ReduceSumSquare"})
    cases.push_back(
        emptyCase(std::string(type) + " of nothing", reduced(type, 18, "Add")));
  cases.push_back(
      emptyCase("ReduceSum of nothing", reduced("ReduceSum", 13, "Add")));
  cases.push_back(
      emptyCase("ReduceProd of nothing", reduced("ReduceProd", 18, "Mul")));
  // -inf and inf.
  cases.push_back(
      emptyCase("ReduceMax of nothing", reduced("ReduceMax", 20, "Max")));
  cases.push_back(
      emptyCase("ReduceMin of nothing", reduced("ReduceMin", 20, "Min")));
  for (const char *type : {"ReduceLogSum", "ReduceLogSumExp"})
    cases.push_back(
        emptyCase(std::string(type) + " of nothing", reduced(type, 18, "Max")));
  cases.push_back(emptyCase(
      "MatMul over nothing",
      "  %m = onnx.node \"MatMul\"(%e, %r) since 13 : (tensor<3x0xf64>, "
      "tensor<0x5xf64>) -> tensor<3x5xf64>\n"
      "  %y = onnx.node \"Add\"(%x, %m) since 14 : (tensor<3x5xf64>, "
      "tensor<3x5xf64>) -> tensor<3x5xf64>\n"));
  cases.push_back(
      emptyCase("Softmax and Exp of nothing",
                "  %m = onnx.node \"Softmax\"(%e) since 13 {axis = 1} : "
                "(tensor<3x0xf64>) -> tensor<3x0xf64>\n"
                "  %n = onnx.node \"Exp\"(%m) since 13 : (tensor<3x0xf64>) -> "
                "tensor<3x0xf64>\n"
                "  %y = onnx.node \"Concat\"(%n, %x) since 13 {axis = 1} : "
                "(tensor<3x0xf64>, tensor<3x5xf64>) -> tensor<3x5xf64>\n"));
  cases.push_back(
      emptyCase("LayerNormalization of no rows",
                "  %one = arith.constant dense<1.5> : tensor<5xf64>\n"
                "  %m = onnx.node \"LayerNormalization\"(%r, %one) since 17 : "
                "(tensor<0x5xf64>, tensor<5xf64>) -> tensor<0x5xf64>\n"
                "  %y = onnx.node \"Concat\"(%m, %x) since 13 {axis = 0} : "
                "(tensor<0x5xf64>, tensor<3x5xf64>) -> tensor<3x5xf64>\n"));
  cases.push_back(
      emptyCase("Gather of no rows",
                "  %none = arith.constant dense<> : tensor<0xi64>\n"
                "  %m = onnx.node \"Gather\"(%x, %none) since 13 {axis = 0} : "
                "(tensor<3x5xf64>, tensor<0xi64>) -> tensor<0x5xf64>\n"
                "  %y = onnx.node \"Concat\"(%x, %m) since 13 {axis = 0} : "
                "(tensor<3x5xf64>, tensor<0x5xf64>) -> tensor<3x5xf64>\n"));
  checkAll("axes of no elements", cases);
}
