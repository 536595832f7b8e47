//===- GradientConvolutionTest.cpp - Derivatives of windows ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Convolutions in one to three dimensions, with strides, dilation, groups and
// padding that differs before and after; and pooling. The loops are those for
// what no library takes, as f64 is.
//===----------------------------------------------------------------------===//

#include "GradientTexts.h"

#include "gtest/gtest.h"

using namespace penstock::test;

namespace {
struct Conv {
  std::string name, x, w, y, strides, dilations, pads;
  int groups = 1;
};
} // namespace

static std::string attributes(const Conv &conv) {
  return " strides [" + conv.strides + "] dilations [" + conv.dilations +
         "] pads [" + conv.pads + "] groups(" + std::to_string(conv.groups) +
         ")";
}

/// nn.conv of data by a parameter, or of a parameter by data.
static std::string forward(const Conv &conv) {
  std::string x = tensor(conv.x), w = tensor(conv.w), y = tensor(conv.y);
  return "func.func @f(%x: " + x + ", %w: " + w + ") -> " + y +
         " {\n  %e = tensor.empty() : " + y +
         "\n  %y = nn.conv %x, %w outs(%e)" + attributes(conv) + " : " + x +
         ", " + w + ", " + y + " -> " + y + "\n  return %y : " + y + "\n}";
}

/// The same backwards: a transposed convolution.
static std::string transposed(const Conv &conv) {
  std::string x = tensor(conv.x), w = tensor(conv.w), y = tensor(conv.y);
  return "func.func @f(%y: " + y + ", %w: " + w + ") -> " + x +
         " {\n  %e = tensor.empty() : " + x +
         "\n  %x = nn.conv_input_grad %y, %w outs(%e)" + attributes(conv) +
         " : " + y + ", " + w + ", " + x + " -> " + x + "\n  return %x : " + x +
         "\n}";
}

TEST(GradientTest, Convolutions) {
  const Conv convs[] = {
      {"line", "2x3x7", "5x3x3", "2x5x4", "2", "1", "1, 1"},
      {"plane", "2x3x5x4", "4x3x3x2", "2x4x5x3", "1, 2", "1, 1", "1, 2, 1, 0"},
      {"dilated", "1x2x7x6", "3x2x2x3", "1x3x3x4", "2, 1", "2, 2",
       "0, 1, 0, 1"},
      {"groups", "2x4x4x3", "6x2x2x2", "2x6x3x2", "1, 1", "1, 1", "0, 0, 0, 0",
       2},
      {"depthwise", "2x3x4x5", "3x1x3x3", "2x3x2x3", "2, 2", "1, 1",
       "1, 1, 1, 1", 3},
      {"space", "1x2x3x4x2", "3x2x2x2x1", "1x3x2x2x2", "1, 2, 1", "1, 1, 1",
       "0, 0, 0, 0, 1, 0"},
      {"leaves the last", "1x1x6", "1x1x2", "1x1x2", "3", "1", "0, 0"}};
  Cases cases;
  for (const Conv &conv : convs) {
    cases.push_back({"conv " + conv.name, forward(conv), "dp"});
    cases.back().oneOp = true;
    cases.push_back({"conv of a parameter " + conv.name, forward(conv), "pd"});
    cases.push_back({"transposed " + conv.name, transposed(conv), "dp"});
    cases.back().oneOp = true;
  }
  checkAll("convolutions", cases);
}

/// The same weights twice, as tied layers have them.
TEST(GradientTest, SharedWeightsOfConvolutions) {
  std::string x = tensor("2x3x5"), w = tensor("3x3x3");
  checkAll("convolutions that share weights",
           {{"twice",
             "func.func @f(%x: " + x + ", %w: " + w + ") -> " + x +
                 " {\n  %e = tensor.empty() : " + x +
                 "\n  %y = nn.conv %x, %w outs(%e) strides [1] dilations [1] "
                 "pads [1, 1] groups(1) : " +
                 x + ", " + w + ", " + x + " -> " + x +
                 "\n  %z = nn.conv %y, %w outs(%e) strides [1] dilations [1] "
                 "pads [1, 1] groups(1) : " +
                 x + ", " + w + ", " + x + " -> " + x + "\n  return %z : " + x +
                 "\n}",
             "dp"}});
}

static GradientCase pool(const std::string &op, const std::string &name,
                         const std::string &x, const std::string &y,
                         const std::string &window) {
  bool isMax = op == "max_pool";
  std::string shape = y + "xi32";
  return {name,
          "func.func @f(%x: " + tensor(x) + ") -> " + tensor(y) + " {\n  %y" +
              (isMax ? ", %i" : "") + " = nn." + op + " %x " + window + " : " +
              tensor(x) + " -> " + tensor(y) +
              (isMax ? ", tensor<" + shape + ">" : "") +
              "\n  return %y : " + tensor(y) + "\n}",
          "d"};
}

TEST(GradientTest, Pooling) {
  Cases cases;
  for (const char *op : {"max_pool", "sum_pool"}) {
    cases.push_back(pool(op, "line", "2x3x7", "2x3x3",
                         "window [3] strides [2] dilations [1] pads [0]"));
    cases.push_back(
        pool(op, "overlapping", "2x3x5x6", "2x3x3x4",
             "window [3, 2] strides [2, 2] dilations [1, 1] pads [1, 1]"));
    cases.push_back(
        pool(op, "dilated", "1x2x7x5", "1x2x3x4",
             "window [2, 3] strides [2, 1] dilations [2, 2] pads [0, 2]"));
    cases.push_back(
        pool(op, "space", "1x2x3x4x5", "1x2x2x2x3",
             "window [2, 2, 3] strides [1, 2, 2] dilations [1, 1, 1] "
             "pads [0, 0, 1]"));
  }
  checkAll("pooling", cases);
}
