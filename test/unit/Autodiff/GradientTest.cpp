//===- GradientTest.cpp - Every derivative rule ---------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One table of cases per kind of rule. Sizes are odd and distinct: a wrong
// transposition or broadcast does not fit.
//===----------------------------------------------------------------------===//

#include "GradientHarness.h"

#include "gtest/gtest.h"

#include <cstdio>

using namespace penstock::test;
using Cases = std::vector<GradientCase>;

/// Differences with a step of 1e-5 are good to about 1e-9.
static constexpr double tolerance = 1e-7;

static void checkAll(const char *rules, const Cases &cases) {
  double largest = 0, adjoint = 0;
  for (const GradientCase &testCase : cases) {
    GradientResult result = checkGradient(testCase);
    EXPECT_EQ(result.error, "") << testCase.name << "\n" << testCase.text;
    EXPECT_LT(result.largestError, tolerance) << testCase.name;
    EXPECT_LT(result.adjointError, tolerance) << testCase.name;
    largest = std::max(largest, result.largestError);
    adjoint = std::max(adjoint, result.adjointError);
  }
  std::printf("[ gradient ] %s: %zu cases, largest error %.1e by differences, "
              "%.1e by the adjoint identity\n",
              rules, cases.size(), largest, adjoint);
}

//===----------------------------------------------------------------------===//
// Text of functions
//===----------------------------------------------------------------------===//

/// An operand of a generic: its type's shape and its map's results.
struct Operand {
  std::string shape, map;
};

static std::string tensor(const std::string &shape) {
  return "tensor<" + (shape.empty() ? "" : shape + "x") + "f64>";
}

/// A function of one generic over (i, j) with the given body, which sees %a, %b
/// and %c, yields %r, and writes `out`; `start` is the value it starts from
/// where a dimension is reduced.
static std::string
generic(const std::vector<Operand> &inputs, const Operand &out,
        const std::string &body,
        const std::string &iterators = "\"parallel\", \"parallel\"",
        const std::string &start = "0.0") {
  std::string arguments, names, types, maps, scalars;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string name(1, "abc"[i]), comma = i ? ", " : "";
    arguments += comma + "%t" + name + ": " + tensor(inputs[i].shape);
    names += comma + "%t" + name;
    types += comma + tensor(inputs[i].shape);
    maps += "affine_map<(i, j) -> (" + inputs[i].map + ")>, ";
    scalars += "%" + name + ": f64, ";
  }
  std::string result = tensor(out.shape);
  return "func.func @f(" + arguments + ") -> " + result +
         " {\n"
         "  %start = arith.constant " +
         start +
         " : f64\n"
         "  %empty = tensor.empty() : " +
         result +
         "\n"
         "  %init = linalg.fill ins(%start : f64) outs(%empty : " +
         result + ") -> " + result +
         "\n"
         "  %y = linalg.generic {indexing_maps = [" +
         maps + "affine_map<(i, j) -> (" + out.map + ")>], iterator_types = [" +
         iterators + "]} ins(" + names + " : " + types +
         ") outs(%init : " + result + ") {\n  ^bb0(" + scalars + "%o: f64):\n" +
         body + "\n    linalg.yield %r : f64\n  } -> " + result +
         "\n  return %y : " + result + "\n}\n";
}

static std::string elementwise(const std::string &body) {
  return generic({{"3x5", "i, j"}}, {"3x5", "i, j"}, body);
}

//===----------------------------------------------------------------------===//
// Scalar rules
//===----------------------------------------------------------------------===//

/// As data, where the output may be reused, and as a parameter.
static void addUnary(Cases &cases, const std::string &name,
                     const std::string &body, double low, double high) {
  for (const char *role : {"d", "p"})
    cases.push_back(
        {name + " of " + role, elementwise(body), role, low, high, 3, 0, true});
}

TEST(Gradient, ScalarRulesOfOneOperand) {
  struct Rule {
    const char *name;
    double low, high;
  };
  const Rule rules[] = {
      {"arith.negf", -2, 2},  {"math.absf", -2, 2},    {"math.acos", -.9, .9},
      {"math.acosh", 1.1, 3}, {"math.asin", -.9, .9},  {"math.asinh", -2, 2},
      {"math.atan", -2, 2},   {"math.atanh", -.9, .9}, {"math.cos", -2, 2},
      {"math.cosh", -2, 2},   {"math.erf", -2, 2},     {"math.erfc", -2, 2},
      {"math.exp", -2, 2},    {"math.exp2", -2, 2},    {"math.expm1", -2, 2},
      {"math.log", .2, 3},    {"math.log10", .2, 3},   {"math.log1p", -.8, 3},
      {"math.log2", .2, 3},   {"math.rsqrt", .2, 3},   {"math.sin", -2, 2},
      {"math.sinh", -2, 2},   {"math.sqrt", .2, 3},    {"math.tan", -1.2, 1.2},
      {"math.tanh", -2, 2},
  };
  Cases cases;
  for (const Rule &rule : rules)
    addUnary(cases, rule.name,
             std::string("    %r = ") + rule.name + " %a : f64", rule.low,
             rule.high);
  checkAll("scalar rules of one operand", cases);
}

TEST(Gradient, ScalarRulesOfTwoOperands) {
  struct Rule {
    const char *name;
    double low, high;
  };
  const Rule rules[] = {
      {"arith.addf", -2, 2},    {"arith.subf", -2, 2},
      {"arith.mulf", -2, 2},    {"arith.divf", .3, 2},
      {"arith.remf", .3, 2},    {"arith.maximumf", -2, 2},
      {"arith.maxnumf", -2, 2}, {"arith.minimumf", -2, 2},
      {"arith.minnumf", -2, 2}, {"math.atan2", .3, 2},
      {"math.copysign", -2, 2}, {"math.powf", .3, 2},
  };
  // Full, broadcast over either dimension, by a dimension of size 1, a scalar,
  // transposed.
  const Operand others[] = {{"3x5", "i, j"}, {"5", "j"},      {"3", "i"},
                            {"1x5", "0, j"}, {"3x1", "i, 0"}, {"", ""},
                            {"5x3", "j, i"}};
  Cases cases;
  for (const Rule &rule : rules) {
    bool all = std::string(rule.name) == "arith.mulf" ||
               std::string(rule.name) == "arith.divf";
    // copysign has no derivative in its sign.
    std::string second = std::string(rule.name) == "math.copysign" ? "D" : "d";
    for (const Operand &other : others) {
      std::string body = std::string("    %r = ") + rule.name + " %a, %b : f64";
      std::string text =
          generic({{"3x5", "i, j"}, other}, {"3x5", "i, j"}, body);
      std::string name = std::string(rule.name) + " by (" + other.map + ")";
      cases.push_back({name, text, "d" + second, rule.low, rule.high});
      if (!all || second == "D")
        continue;
      cases.push_back(
          {name + ", parameter", text, "dp", rule.low, rule.high, 3, 0, true});
      cases.push_back({name + ", of a parameter", text, "pd", rule.low,
                       rule.high, 3, 0, true});
    }
  }
  checkAll("scalar rules of two operands", cases);
}

TEST(Gradient, BodiesOfSeveralOps) {
  Cases cases;
  addUnary(cases, "sigmoid",
           "    %one = arith.constant 1.0 : f64\n    %n = arith.negf %a : f64\n"
           "    %e = math.exp %n : f64\n    %s = arith.addf %one, %e : f64\n"
           "    %r = arith.divf %one, %s : f64",
           -3, 3);
  addUnary(cases, "relu",
           "    %z = arith.constant 0.0 : f64\n"
           "    %r = arith.maximumf %a, %z : f64",
           -2, 2);
  addUnary(cases, "relu with the constant first",
           "    %z = arith.constant 0.0 : f64\n"
           "    %r = arith.maximumf %z, %a : f64",
           -2, 2);
  addUnary(cases, "leaky relu",
           "    %z = arith.constant 0.0 : f64\n"
           "    %k = arith.constant 0.01 : f64\n"
           "    %p = arith.cmpf olt, %a, %z : f64\n"
           "    %m = arith.mulf %k, %a : f64\n"
           "    %r = arith.select %p, %m, %a : f64",
           -2, 2);
  addUnary(cases, "softplus",
           "    %z = arith.constant 0.0 : f64\n    %m = math.absf %a : f64\n"
           "    %n = arith.negf %m : f64\n    %e = math.exp %n : f64\n"
           "    %l = math.log1p %e : f64\n"
           "    %x = arith.maximumf %a, %z : f64\n"
           "    %r = arith.addf %x, %l : f64",
           -2, 2);
  addUnary(cases, "gelu",
           "    %h = arith.constant 0.5 : f64\n"
           "    %k = arith.constant 0.7071067811865476 : f64\n"
           "    %one = arith.constant 1.0 : f64\n"
           "    %i = arith.mulf %a, %k : f64\n    %e = math.erf %i : f64\n"
           "    %m = arith.mulf %h, %a : f64\n"
           "    %s = arith.addf %one, %e : f64\n"
           "    %r = arith.mulf %m, %s : f64",
           -2, 2);
  addUnary(cases, "clamp",
           "    %l = arith.constant -0.5 : f64\n"
           "    %h = arith.constant 0.7 : f64\n"
           "    %m = arith.maximumf %a, %l : f64\n"
           "    %r = arith.minimumf %m, %h : f64",
           -2, 2);
  addUnary(cases, "square", "    %r = arith.mulf %a, %a : f64", -2, 2);
  addUnary(cases, "a rounded factor",
           "    %k = math.floor %a : f64\n    %r = arith.mulf %a, %k : f64", -2,
           2);
  addUnary(cases, "a position",
           "    %i = linalg.index 1 : index\n"
           "    %n = arith.index_cast %i : index to i64\n"
           "    %s = arith.sitofp %n : i64 to f64\n"
           "    %r = arith.mulf %a, %s : f64",
           -2, 2);
  const std::vector<Operand> three = {{"3x5", "i, j"}, {"5", "j"}, {"3", "i"}};
  for (const char *roles : {"ddd", "dpd", "pdp"}) {
    cases.push_back(
        {std::string("fma of ") + roles,
         generic(three, {"3x5", "i, j"}, "    %r = math.fma %a, %b, %c : f64"),
         roles, -2, 2, 3, 0, true});
    cases.push_back({std::string("select of ") + roles,
                     generic(three, {"3x5", "i, j"},
                             "    %p = arith.cmpf ogt, %a, %b : f64\n"
                             "    %r = arith.select %p, %b, %c : f64"),
                     roles[1] == 'd' ? "Ddd" : "Dpd", -2, 2, 3, 0, true});
  }
  // Exact in f32 and in the differences.
  cases.push_back({"rounding to f32",
                   elementwise("    %n = arith.truncf %a : f64 to f32\n"
                               "    %s = arith.mulf %n, %n : f32\n"
                               "    %r = arith.extf %s : f32 to f64"),
                   "d", -2, 2, 3, 0.125});
  checkAll("bodies of several ops", cases);
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

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

static std::string contract(const std::string &dims, const std::string &a,
                            const std::string &aMap, const std::string &b,
                            const std::string &bMap, const std::string &c,
                            const std::string &cMap) {
  auto map = [&](const std::string &results) {
    return "affine_map<(" + dims + ") -> (" + results + ")>";
  };
  return "func.func @f(%a: " + tensor(a) + ", %b: " + tensor(b) +
         ", %c: " + tensor(c) + ") -> " + tensor(c) +
         " {\n  %y = linalg.contract indexing_maps = [" + map(aMap) + ", " +
         map(bMap) + ", " + map(cMap) + "] ins(%a, %b : " + tensor(a) + ", " +
         tensor(b) + ") outs(%c : " + tensor(c) + ") -> " + tensor(c) +
         "\n  return %y : " + tensor(c) + "\n}\n";
}

TEST(Gradient, Contractions) {
  struct Form {
    const char *name, *dims, *a, *aMap, *b, *bMap, *c, *cMap;
  };
  const Form forms[] = {
      {"NN", "m, n, k", "3x7", "m, k", "7x5", "k, n", "3x5", "m, n"},
      {"NT", "m, n, k", "3x7", "m, k", "5x7", "n, k", "3x5", "m, n"},
      {"TN", "m, n, k", "7x3", "k, m", "7x5", "k, n", "3x5", "m, n"},
      {"TT", "m, n, k", "7x3", "k, m", "5x7", "n, k", "3x5", "m, n"},
      {"transposed result", "m, n, k", "3x7", "m, k", "7x5", "k, n", "5x3",
       "n, m"},
      {"batch", "b, m, n, k", "2x3x7", "b, m, k", "2x7x5", "b, k, n", "2x3x5",
       "b, m, n"},
      {"weights without batch", "b, m, n, k", "2x3x7", "b, m, k", "7x5", "k, n",
       "2x3x5", "b, m, n"},
      {"heads", "b, h, q, k, d", "2x3x4x5", "b, q, h, d", "2x6x4x5",
       "b, k, h, d", "2x4x3x6", "b, h, q, k"},
      {"matrix by vector", "m, k", "3x7", "m, k", "7", "k", "3", "m"},
      {"vectors", "k", "7", "k", "7", "k", "", ""},
  };
  Cases cases;
  for (const Form &form : forms) {
    std::string text = contract(form.dims, form.a, form.aMap, form.b, form.bMap,
                                form.c, form.cMap);
    for (const char *roles : {"ddd", "dpd", "pdp", "dDD", "DpD"})
      cases.push_back({std::string(form.name) + " of " + roles, text, roles,
                       -1.5, 1.5, 3, 0, true});
  }
  cases.push_back({"by itself", R"(
    func.func @f(%x: tensor<3x5xf64>) -> tensor<3x3xf64> {
      %z = arith.constant 0.0 : f64
      %e = tensor.empty() : tensor<3x3xf64>
      %i = linalg.fill ins(%z : f64) outs(%e : tensor<3x3xf64>) -> tensor<3x3xf64>
      %y = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
        affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
        ins(%x, %x : tensor<3x5xf64>, tensor<3x5xf64>)
        outs(%i : tensor<3x3xf64>) -> tensor<3x3xf64>
      return %y : tensor<3x3xf64>
    })",
                   "p"});
  checkAll("contractions", cases);
}

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
  checkAll("ops that move elements", cases);
}

//===----------------------------------------------------------------------===//
// Composites and whole functions
//===----------------------------------------------------------------------===//

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
    for (const char *ignore : {"", " ignore(1)", " ignore(-100)"})
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

/// Over every choice of axes, through each result alone and through all.
TEST(Gradient, Normalizations) {
  Cases cases;
  const std::string full = "tensor<2x3x5xf64>";
  const std::pair<std::string, std::string> choices[] = {
      {"[2]", "2x3"}, {"[1]", "2x5"}, {"[0, 2]", "3"}, {"[0, 1, 2]", ""}};
  for (const auto &[dims, shape] : choices)
    for (const char *role : {"d", "p"}) {
      std::string row = tensor(shape);
      std::string norm = " = nn.normalize %x dims " + dims +
                         " epsilon(1.0e-2) : " + full + " -> " + row + "\n";
      std::string rms = " = nn.rms_normalize %x dims " + dims +
                        " epsilon(1.0e-2) : " + full + " -> " + row + "\n";
      auto add = [&](const std::string &name, const std::string &op,
                     const std::string &names, const std::string &returned,
                     const std::string &types) {
        cases.push_back({name + " over " + dims,
                         "func.func @f(%x: " + full + ") -> (" + types +
                             ") {\n  " + names + op + "  return " + returned +
                             " : " + types + "\n}\n",
                         role, -2, 2, 3, 0, true});
      };
      add("normalize", norm, "%y, %m, %v", "%y", full);
      add("mean", norm, "%y, %m, %v", "%m", row);
      add("variance", norm, "%y, %m, %v", "%v", row);
      add("all of normalize", norm, "%y, %m, %v", "%y, %m, %v",
          full + ", " + row + ", " + row);
      add("rms_normalize", rms, "%y, %s", "%y", full);
      add("all of rms_normalize", rms, "%y, %s", "%y, %s", full + ", " + row);
    }
  checkAll("normalisations", cases);
}

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
  expectMessage({"product",
                 generic({{"3x5", "i, j"}}, {"3", "i"},
                         "    %r = arith.mulf %o, %a : f64",
                         "\"parallel\", \"reduction\"", "1.0"),
                 "d"},
                "a reduction by arith.mulf has no derivative rule");
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
