//===- GradientCompositeTest.cpp - Derivatives of nn ops ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that are differentiated as a whole: softmax, log-softmax, cross-entropy.
//===----------------------------------------------------------------------===//

#include "GradientTexts.h"

#include "gtest/gtest.h"

using namespace penstock::test;

TEST(Gradient, Composites) {
  Cases cases;
  for (int dim : {0, 1, 2})
    for (const char *role : {"d", "p"}) {
      std::string d = std::to_string(dim);
      cases.push_back({"softmax along " + d,
                       "func.func @f(%x: tensor<2x3x5xf64>) -> "
                       "tensor<2x3x5xf64> {\n"
                       "  %e = tensor.empty() : tensor<2x3x5xf64>\n"
                       "  %y = linalg.softmax dimension(" +
                           d +
                           ") ins(%x : tensor<2x3x5xf64>) outs(%e : "
                           "tensor<2x3x5xf64>) -> tensor<2x3x5xf64>\n"
                           "  return %y : tensor<2x3x5xf64>\n}\n",
                       role, -3, 3, 3, 0, true});
      cases.push_back({"log_softmax along " + d,
                       "func.func @f(%x: tensor<2x3x5xf64>) -> "
                       "tensor<2x3x5xf64> {\n"
                       "  %y = nn.log_softmax %x dim(" +
                           d +
                           ") : tensor<2x3x5xf64>\n"
                           "  return %y : tensor<2x3x5xf64>\n}\n",
                       role, -3, 3, 3, 0, true});
    }
  for (const char *labels : {"i64", "i32"})
    for (const char *ignore :
         {"", " ignore(1)", " ignore(-100)", " smoothing(0.1)",
          " class_weights [0.5, 2.0, 1.25]",
          " ignore(2) smoothing(0.3) class_weights [0.5, 2.0, 0.0]"})
      for (const char *shape : {"5", "2x7"})
        for (const char *roles : {"dd", "pd"}) {
          std::string logits = std::string("tensor<") + shape + "x3xf64>";
          std::string label =
              std::string("tensor<") + shape + "x" + labels + ">";
          cases.push_back({std::string("cross_entropy") + ignore + " of " +
                               shape + " " + labels,
                           "func.func @f(%z: " + logits + ", %y: " + label +
                               ") -> tensor<f64> {\n  %l, %p = "
                               "nn.cross_entropy %z, %y" +
                               ignore + " : (" + logits + ", " + label +
                               ") -> (tensor<f64>, " + logits +
                               ")\n  return %l : tensor<f64>\n}\n",
                           roles, -3, 3, 3, 0, true});
        }
  checkAll("composites", cases);
}
