//===- GradientTexts.cpp - Cases as text ----------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The texts, and the check of a table of cases.
//===----------------------------------------------------------------------===//

#include "GradientTexts.h"

#include "gtest/gtest.h"

#include <cstdio>

using namespace penstock::test;

/// Differences with a step of 1e-5 are good to about 1e-9.
static constexpr double tolerance = 1e-7;

void penstock::test::checkAll(const char *rules, const Cases &cases) {
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

std::string penstock::test::tensor(const std::string &shape) {
  return "tensor<" + (shape.empty() ? "" : shape + "x") + "f64>";
}

std::string penstock::test::generic(const std::vector<Operand> &inputs,
                                    const Operand &out, const std::string &body,
                                    const std::string &iterators,
                                    const std::string &start) {
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

std::string penstock::test::elementwise(const std::string &body) {
  return generic({{"3x5", "i, j"}}, {"3x5", "i, j"}, body);
}

void penstock::test::addUnary(Cases &cases, const std::string &name,
                              const std::string &body, double low,
                              double high) {
  for (const char *role : {"d", "p"})
    cases.push_back(
        {name + " of " + role, elementwise(body), role, low, high, 3, 0, true});
}
