//===- GradientIndexTest.cpp - Derivatives by position --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gathers and scatters with repeated indices, with and without rows; sums up to
// a position; products and extrema with zeros and ties.
//===----------------------------------------------------------------------===//

#include "GradientTexts.h"

#include "gtest/gtest.h"

using namespace penstock::test;

namespace {

/// Where indices come from, and how: of rows, of single elements, of pairs.
struct Access {
  const char *name, *space, *data, *indices, *names, *at, *maps;
};
const Access accesses[] = {
    {"rows", "7x5", "3x5", "7", "%i", "(i, j)[s] -> (s, j)", "(i, j) -> (i)"},
    {"narrow rows", "7x2", "3x2", "7", "%i", "(i, j)[s] -> (s, j)",
     "(i, j) -> (i)"},
    {"columns", "5x7", "5x3", "7", "%i", "(i, j)[s] -> (i, s)",
     "(i, j) -> (j)"},
    {"elements", "2x7", "5x3", "2x7", "%i", "(i, j)[s] -> (i, s)",
     "(i, j) -> (i, j)"},
    {"pairs", "7x4", "3x3x4", "7x2", "%i, %i", "(i, j)[s, t] -> (s, t, j)",
     "(i, j) -> (i, 0)>, affine_map<(i, j) -> (i, 1)"}};

std::string access(const Access &a) {
  return std::string("[") + a.names + "] at affine_map<" + a.at +
         "> index_maps [affine_map<" + a.maps + ">]";
}

std::string integerTensor(const char *shape) {
  return std::string("tensor<") + shape + "xi64>";
}

std::string indexTypes(const Access &a) {
  std::string type = integerTensor(a.indices);
  return std::string(a.names).find(',') == std::string::npos
             ? type
             : type + ", " + type;
}

} // namespace

TEST(Gradient, Gathers) {
  Cases cases;
  for (const Access &a : accesses)
    for (const char *role : {"dD", "pD"})
      cases.push_back({a.name,
                       "func.func @f(%x: " + tensor(a.data) +
                           ", %i: " + integerTensor(a.indices) + ") -> " +
                           tensor(a.space) + " {\n  %y = nn.gather %x" +
                           access(a) + " : " + tensor(a.data) + ", " +
                           indexTypes(a) + " -> " + tensor(a.space) +
                           "\n  return %y : " + tensor(a.space) + "\n}\n",
                       role, -1.5, 1.5, 3, 0, true});
  checkAll("gathers", cases);
}

TEST(Gradient, Scatters) {
  Cases cases;
  for (const Access &a : accesses)
    for (const char *kind : {"none", "add", "mul", "max", "min"})
      for (const char *roles : {"ddD", "pdD", "dpD"}) {
        bool isExtremum = kind[1] == 'a' || kind[1] == 'i';
        if (isExtremum && roles[0] != roles[1])
          continue;
        std::string text =
            "func.func @f(%u: " + tensor(a.space) + ", %x: " + tensor(a.data) +
            ", %i: " + integerTensor(a.indices) + ") -> " + tensor(a.data) +
            " {\n  %y = nn.scatter " + kind + " %u into %x" + access(a) +
            " : " + tensor(a.space) + ", " + tensor(a.data) + ", " +
            indexTypes(a) + "\n  return %y : " + tensor(a.data) + "\n}\n";
        GradientCase testCase{std::string(kind) + " of " + a.name,
                              text,
                              roles,
                              -1.5,
                              1.5,
                              3,
                              0,
                              true};
        cases.push_back(testCase);
        // With zeros among the factors.
        if (std::string(kind) == "mul") {
          testCase.quantum = 0.5;
          testCase.low = -0.7;
          testCase.high = 0.7;
          cases.push_back(testCase);
        }
      }
  checkAll("scatters", cases);
}

TEST(Gradient, SumsAndExponentialsAlongAnAxis) {
  Cases cases;
  const std::string type = "tensor<3x5x2xf64>";
  for (int dim : {0, 1, 2})
    for (const char *form :
         {"", " exclusive", " reverse", " exclusive reverse"})
      cases.push_back({"cumulative sum" + std::string(form),
                       "func.func @f(%x: " + type + ") -> " + type +
                           " {\n  %y = nn.cumulative_sum %x dim(" +
                           std::to_string(dim) + ")" + form + " : " + type +
                           "\n  return %y : " + type + "\n}\n",
                       "d"});
  const std::pair<std::string, std::string> choices[] = {
      {"[2]", "3x5"}, {"[0]", "5x2"}, {"[0, 2]", "5"}, {"[0, 1, 2]", ""}};
  for (const auto &[dims, shape] : choices)
    for (const char *role : {"d", "p"})
      cases.push_back({"log-sum-exp over " + dims,
                       "func.func @f(%x: " + type + ") -> " + tensor(shape) +
                           " {\n  %y = nn.log_sum_exp %x dims " + dims + " : " +
                           type + " -> " + tensor(shape) +
                           "\n  return %y : " + tensor(shape) + "\n}\n",
                       role, -3, 3, 3, 0, true});
  checkAll("along an axis", cases);
}

/// Central differences of a product are exact for any step; at a tie of two,
/// those of an extremum are the half that each of them gets.
TEST(Gradient, ZerosAndTies) {
  Cases cases;
  const std::string rows = "\"parallel\", \"reduction\"";
  const std::string product = "    %r = arith.mulf %o, %a : f64";
  Operand full = {"3x5", "i, j"}, pairs = {"3x2", "i, j"};
  for (const char *role : {"d", "p"}) {
    cases.push_back(
        {"product", generic({full}, {"3", "i"}, product, rows, "1.0"), role});
    cases.push_back({"product with zeros",
                     generic({full}, {"3", "i"}, product, rows, "1.0"), role,
                     -0.8, 0.8, 3, 0.5});
    cases.push_back({"product of zeros",
                     generic({pairs}, {"3", "i"}, product, rows, "1.0"), role,
                     -0.1, 0.1, 3, 1});
  }
  cases.push_back({"product of sums",
                   generic({full, {"5", "j"}}, {"3", "i"},
                           "    %m = arith.addf %a, %b : f64\n"
                           "    %r = arith.mulf %m, %o : f64",
                           rows, "1.0"),
                   "dp"});
  for (const char *op : {"maximumf", "minimumf"}) {
    std::string start =
        op[1] == 'a' ? "0xFFF0000000000000" : "0x7FF0000000000000";
    cases.push_back(
        {std::string(op) + " of ties",
         generic({pairs}, {"3", "i"},
                 std::string("    %r = arith.") + op + " %o, %a : f64", rows,
                 start),
         "d", -0.1, 0.1, 3, 1});
    cases.push_back(
        {std::string(op) + " of two that tie",
         generic({full, full}, full,
                 std::string("    %r = arith.") + op + " %a, %b : f64"),
         "dd", -0.1, 0.1, 3, 1});
  }
  checkAll("zeros and ties", cases);
}
