//===- GradientElementwiseTest.cpp - Derivatives of scalar bodies ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of scalar rules, each alone, under every form of broadcast, and in
// bodies of several ops.
//===----------------------------------------------------------------------===//

#include "GradientTexts.h"

#include "gtest/gtest.h"

using namespace penstock::test;

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
