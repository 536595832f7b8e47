//===- GradientContractionTest.cpp - Derivatives of contractions ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All forms of linalg.contract: transposes, batches, broadcast batches, a
// product of a value with itself.
//===----------------------------------------------------------------------===//

#include "GradientTexts.h"

#include "gtest/gtest.h"

using namespace penstock::test;

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
