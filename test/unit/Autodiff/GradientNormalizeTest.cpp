//===- GradientNormalizeTest.cpp - The derivative of nn.normalize ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Over leading, trailing and scattered dimensions.
//===----------------------------------------------------------------------===//

#include "GradientTexts.h"

#include "gtest/gtest.h"

using namespace penstock::test;

static GradientCase normalize(const std::string &name, const std::string &dims,
                              const std::string &statistic,
                              const std::string &roles = "d") {
  std::string x = "tensor<3x5x4xf64>";
  return {name,
          "func.func @f(%x: " + x + ") -> " + x +
              " {\n  %y, %m, %v = nn.normalize %x dims [" + dims +
              "] epsilon(1.0e-3) : " + x + " -> tensor<" + statistic +
              "f64>\n  return %y : " + x + "\n}",
          roles};
}

TEST(GradientTest, Normalize) {
  checkAll("nn.normalize",
           {normalize("batch", "0, 2", "5x"), normalize("layer", "2", "3x5x"),
            normalize("rows", "1, 2", "3x", "p"),
            normalize("columns", "0", "5x4x"),
            normalize("all", "0, 1, 2", "")});
}

TEST(GradientTest, NormalizeStatisticsHaveNone) {
  GradientCase testCase{
      "mean",
      "func.func @f(%x: tensor<3x5xf64>) -> tensor<3xf64> {\n"
      "  %y, %m, %v = nn.normalize %x dims [1] epsilon(1.0e-3) :"
      " tensor<3x5xf64> -> tensor<3xf64>\n  return %m : tensor<3xf64>\n}",
      "d"};
  EXPECT_EQ(getDiagnostic(testCase),
            "a gradient flows into the mean or the variance of "
            "'nn.normalize': only its normalised values have a derivative\n");
}
