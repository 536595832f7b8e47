//===- GradientReductionTest.cpp - Derivatives of linalg.generic ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions, and what a generic can do with maps, repeated operands and its
// destination.
//===----------------------------------------------------------------------===//

#include "GradientTexts.h"

#include "gtest/gtest.h"

using namespace penstock::test;

TEST(Gradient, Reductions) {
  const std::string rows = "\"parallel\", \"reduction\"";
  const std::string columns = "\"reduction\", \"parallel\"";
  const std::string all = "\"reduction\", \"reduction\"";
  const std::string sum = "    %r = arith.addf %o, %a : f64";
  const std::string dot = "    %m = arith.mulf %a, %b : f64\n"
                          "    %r = arith.addf %m, %o : f64";
  Operand full = {"3x5", "i, j"};
  Cases cases;
  for (const char *role : {"d", "p"}) {
    cases.push_back(
        {"sum of rows", generic({full}, {"3", "i"}, sum, rows), role});
    cases.push_back(
        {"sum of columns", generic({full}, {"5", "j"}, sum, columns), role});
    cases.push_back({"sum of all", generic({full}, {"", ""}, sum, all), role});
    cases.push_back({"sum with a dimension of size 1",
                     generic({full}, {"3x1", "i, 0"}, sum, rows), role});
    cases.push_back({"sum from another value",
                     generic({full}, {"3", "i"}, sum, rows, "2.5"), role});
    cases.push_back({"sum of squares",
                     generic({full}, {"3", "i"},
                             "    %s = arith.mulf %a, %a : f64\n"
                             "    %r = arith.addf %o, %s : f64",
                             rows),
                     role});
  }
  for (const char *roles : {"dd", "dp", "pd"}) {
    cases.push_back({"dot of rows",
                     generic({full, {"5", "j"}}, {"3", "i"}, dot, rows), roles,
                     -1.5, 1.5, 3, 0, true});
    cases.push_back({"dot of all",
                     generic({full, {"5x3", "j, i"}}, {"", ""}, dot, all),
                     roles, -1.5, 1.5, 3, 0, true});
  }
  for (const char *op : {"maximumf", "minimumf", "maxnumf", "minnumf"}) {
    std::string start =
        op[1] == 'a' ? "0xFFF0000000000000" : "0x7FF0000000000000";
    std::string body = std::string("    %r = arith.") + op + " %o, %a : f64";
    cases.push_back({std::string(op) + " of rows",
                     generic({full}, {"3", "i"}, body, rows, start), "d"});
    cases.push_back({std::string(op) + " of columns",
                     generic({full}, {"5", "j"}, body, columns, start), "d"});
    cases.push_back({std::string(op) + " of all",
                     generic({full}, {"", ""}, body, all, start), "p"});
    cases.push_back({std::string(op) + " of products",
                     generic({full, {"5", "j"}}, {"3", "i"},
                             std::string("    %m = arith.mulf %a, %b : f64\n"
                                         "    %r = arith.") +
                                 op + " %m, %o : f64",
                             rows, start),
                     "dd"});
  }
  cases.push_back({"linalg.reduce", R"(
    func.func @f(%x: tensor<3x5x7xf64>, %s: tensor<3x7xf64>) -> tensor<3x7xf64> {
      %y = linalg.reduce { arith.addf } ins(%x : tensor<3x5x7xf64>)
        outs(%s : tensor<3x7xf64>) dimensions = [1]
      return %y : tensor<3x7xf64>
    })",
                   "dd"});
  cases.push_back({"what is broadcast and summed at once", R"(
    func.func @f(%x: tensor<3xf64>, %s: tensor<f64>) -> tensor<f64> {
      %e = tensor.empty() : tensor<5xf64>
      %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>,
          affine_map<(i, j) -> (j)>, affine_map<(i, j) -> ()>],
          iterator_types = ["reduction", "reduction"]}
          ins(%x, %e : tensor<3xf64>, tensor<5xf64>) outs(%s : tensor<f64>) {
      ^bb0(%a: f64, %b: f64, %o: f64):
        %r = arith.addf %a, %o : f64
        linalg.yield %r : f64
      } -> tensor<f64>
      return %y : tensor<f64>
    })",
                   "dd"});
  checkAll("reductions", cases);
}

TEST(Gradient, StructureOfGenerics) {
  Cases cases;
  // The output's old value is an operand like any other.
  for (const char *roles : {"dd", "pd", "dp"})
    cases.push_back({"reads its destination", R"(
    func.func @f(%x: tensor<3x5xf64>, %d: tensor<3x5xf64>) -> tensor<3x5xf64> {
      %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
          affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<3x5xf64>) outs(%d : tensor<3x5xf64>) {
      ^bb0(%a: f64, %o: f64):
        %m = arith.mulf %a, %o : f64
        %r = math.tanh %m : f64
        linalg.yield %r : f64
      } -> tensor<3x5xf64>
      return %y : tensor<3x5xf64>
    })",
                     roles, -1.5, 1.5, 3, 0, true});
  for (const char *role : {"d", "p"}) {
    // One value through two maps, and through the same map twice.
    cases.push_back({"outer product with itself", R"(
    func.func @f(%x: tensor<5xf64>) -> tensor<5x5xf64> {
      %e = tensor.empty() : tensor<5x5xf64>
      %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>,
          affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (j)>,
          affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]}
          ins(%x, %x, %x : tensor<5xf64>, tensor<5xf64>, tensor<5xf64>)
          outs(%e : tensor<5x5xf64>) {
      ^bb0(%a: f64, %b: f64, %c: f64, %o: f64):
        %s = math.sin %b : f64
        %m = arith.mulf %a, %s : f64
        %r = arith.mulf %m, %c : f64
        linalg.yield %r : f64
      } -> tensor<5x5xf64>
      return %y : tensor<5x5xf64>
    })",
                     role});
    // Two results, one of them summed; the body shares a value.
    cases.push_back({"two results", R"(
    func.func @f(%x: tensor<3x5xf64>) -> (tensor<3x5xf64>, tensor<3xf64>) {
      %z = arith.constant 0.0 : f64
      %e = tensor.empty() : tensor<3x5xf64>
      %n = tensor.empty() : tensor<3xf64>
      %s = linalg.fill ins(%z : f64) outs(%n : tensor<3xf64>) -> tensor<3xf64>
      %y:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
          affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
          iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<3x5xf64>) outs(%e, %s : tensor<3x5xf64>, tensor<3xf64>) {
      ^bb0(%a: f64, %o: f64, %p: f64):
        %m = math.exp %a : f64
        %q = arith.mulf %m, %a : f64
        %r = arith.addf %p, %q : f64
        linalg.yield %m, %r : f64, f64
      } -> (tensor<3x5xf64>, tensor<3xf64>)
      return %y#0, %y#1 : tensor<3x5xf64>, tensor<3xf64>
    })",
                     role, -1.5, 1.5, 3, 0, true});
    cases.push_back({"linalg.transpose", R"(
    func.func @f(%x: tensor<3x5x7xf64>) -> tensor<7x3x5xf64> {
      %e = tensor.empty() : tensor<7x3x5xf64>
      %y = linalg.transpose ins(%x : tensor<3x5x7xf64>)
        outs(%e : tensor<7x3x5xf64>) permutation = [2, 0, 1]
      return %y : tensor<7x3x5xf64>
    })",
                     role});
    cases.push_back({"linalg.broadcast", R"(
    func.func @f(%x: tensor<3x7xf64>) -> tensor<3x5x7xf64> {
      %e = tensor.empty() : tensor<3x5x7xf64>
      %y = linalg.broadcast ins(%x : tensor<3x7xf64>)
        outs(%e : tensor<3x5x7xf64>) dimensions = [1]
      return %y : tensor<3x5x7xf64>
    })",
                     role});
  }
  checkAll("structure of generics", cases);
}
