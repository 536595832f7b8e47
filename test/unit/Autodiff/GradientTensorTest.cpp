//===- GradientTensorTest.cpp - Derivatives of moves ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops of the tensor dialect that move elements without computing.
//===----------------------------------------------------------------------===//

#include "GradientTexts.h"

#include "gtest/gtest.h"

using namespace penstock::test;

TEST(Gradient, TensorOps) {
  auto move = [](const std::string &from, const std::string &to,
                 const std::string &op) {
    return "func.func @f(%x: " + tensor(from) + ") -> " + tensor(to) +
           " {\n  %z = arith.constant 0.5 : f64\n  %y = " + op +
           "\n  return %y : " + tensor(to) + "\n}\n";
  };
  Cases cases;
  for (const char *role : {"d", "p"}) {
    cases.push_back({"expand_shape",
                     move("6x5", "2x3x5",
                          "tensor.expand_shape %x [[0, 1], [2]] output_shape "
                          "[2, 3, 5] : tensor<6x5xf64> into tensor<2x3x5xf64>"),
                     role});
    cases.push_back({"collapse_shape",
                     move("3x5x2", "3x10",
                          "tensor.collapse_shape %x [[0], [1, 2]] : "
                          "tensor<3x5x2xf64> into tensor<3x10xf64>"),
                     role});
    cases.push_back({"cast",
                     move("3x5", "3x5",
                          "tensor.cast %x : tensor<3x5xf64> to "
                          "tensor<3x5xf64>"),
                     role});
    cases.push_back({"extract_slice with strides",
                     move("5x7", "2x3",
                          "tensor.extract_slice %x[1, 0] [2, 3] [2, 3] : "
                          "tensor<5x7xf64> to tensor<2x3xf64>"),
                     role});
    cases.push_back({"extract_slice of fewer dimensions",
                     move("5x7", "7",
                          "tensor.extract_slice %x[3, 0] [1, 7] [1, 1] : "
                          "tensor<5x7xf64> to tensor<7xf64>"),
                     role});
    cases.push_back({"pad",
                     move("3x5", "6x9",
                          "tensor.pad %x low[1, 4] high[2, 0] {\n"
                          "  ^bb0(%i: index, %j: index):\n"
                          "    tensor.yield %z : f64\n"
                          "  } : tensor<3x5xf64> to tensor<6x9xf64>"),
                     role});
  }
  for (const char *roles : {"dd", "dp", "pd"}) {
    cases.push_back({"insert_slice", R"(
    func.func @f(%x: tensor<2x3xf64>, %d: tensor<5x7xf64>) -> tensor<5x7xf64> {
      %y = tensor.insert_slice %x into %d[1, 0] [2, 3] [2, 3]
        : tensor<2x3xf64> into tensor<5x7xf64>
      return %y : tensor<5x7xf64>
    })",
                     roles});
    cases.push_back({"concat", R"(
    func.func @f(%a: tensor<3x2xf64>, %b: tensor<3x5xf64>) -> tensor<3x9xf64> {
      %y = tensor.concat dim(1) %a, %b, %a
        : (tensor<3x2xf64>, tensor<3x5xf64>, tensor<3x2xf64>) -> tensor<3x9xf64>
      return %y : tensor<3x9xf64>
    })",
                     roles});
  }
  // Parts of a split, apart and overlapping; slices that replace each other.
  const std::string x = "tensor<7xf64>", three = "tensor<3xf64>";
  auto extract = [&](const std::string &name, const std::string &offset,
                     const std::string &stride = "1") {
    return "  %" + name + " = tensor.extract_slice %x[" + offset + "] [3] [" +
           stride + "] : " + x + " to " + three + "\n";
  };
  for (const auto &[name, second] :
       {std::pair("apart", "4"), {"touching", "3"}, {"overlapping", "2"}})
    for (const char *role : {"d", "p"})
      cases.push_back({std::string("extracts ") + name,
                       "func.func @f(%x: " + x + ") -> (" + three + ", " +
                           three + ") {\n" + extract("a", "0") +
                           extract("b", second) + "  return %a, %b : " + three +
                           ", " + three + "\n}\n",
                       role});
  cases.push_back({"extracts interleaved",
                   "func.func @f(%x: " + x + ") -> (" + three + ", " + three +
                       ") {\n" + extract("a", "0", "2") +
                       extract("b", "1", "2") + "  return %a, %b : " + three +
                       ", " + three + "\n}\n",
                   "d"});
  for (const auto &[name, second] :
       {std::pair("apart", "4"), {"overlapping", "2"}, {"replacing", "0"}})
    for (bool fresh : {true, false})
      cases.push_back(
          {std::string("inserts ") + name,
           "func.func @f(%x: " + x + ", %a: " + three + ", %b: " + three +
               ") -> (" + x + ", " + x + ") {\n" +
               "  %zero = arith.constant 0.0 : f64\n"
               "  %empty = tensor.empty() : " +
               x + "\n  %fresh = linalg.fill ins(%zero : f64) outs(%empty : " +
               x + ") -> " + x + "\n  %p = tensor.insert_slice %a into %" +
               (fresh ? "fresh" : "x") + "[0] [3] [1] : " + three + " into " +
               x + "\n  %q = tensor.insert_slice %b into %p[" + second +
               "] [3] [1] : " + three + " into " + x +
               "\n  return %p, %q : " + x + ", " + x + "\n}\n",
           "ddd"});
  checkAll("ops that move elements", cases);
}
