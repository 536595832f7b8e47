//===- GradientOperatorTest.cpp - Derivatives of ONNX operators -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes through the lowering of the frontend, in f64: what the operators
// compute is differentiated, not what a test thinks they do.
//===----------------------------------------------------------------------===//

#include "GradientTexts.h"

#include "gtest/gtest.h"

using namespace penstock::test;

namespace {

/// A function of one node. Operands are shapes of f64 tensors, or the text of a
/// constant's value and type: "dense<[0, 2]> : tensor<2xi64>". The first result
/// has the shape `result`, a second one is ignored and has the type `second`.
std::string node(const std::string &type, int since,
                 const std::string &attributes,
                 const std::vector<std::string> &operands,
                 const std::string &result, const std::string &second = "") {
  std::string arguments, body, names, types;
  for (size_t i = 0; i < operands.size(); ++i) {
    std::string name = "%v" + std::to_string(i), comma = i ? ", " : "";
    size_t colon = operands[i].find(" : ");
    std::string operandType = colon == std::string::npos
                                  ? tensor(operands[i])
                                  : operands[i].substr(colon + 3);
    if (colon == std::string::npos)
      arguments += (arguments.empty() ? "" : ", ") + name + ": " + operandType;
    else
      body += "  " + name + " = arith.constant " + operands[i] + "\n";
    names += comma + name;
    types += comma + operandType;
  }
  std::string results = tensor(result), both = results;
  if (!second.empty())
    both = "(" + results + ", " + second + ")";
  return "func.func @f(" + arguments + ") -> " + results + " {\n" + body +
         (second.empty() ? "  %y" : "  %y, %z") + " = onnx.node \"" + type +
         "\"(" + names + ") since " + std::to_string(since) +
         (attributes.empty() ? "" : " {" + attributes + "}") + " : (" + types +
         ") -> " + both + "\n  return %y : " + results + "\n}\n";
}

std::string integers(const std::string &values, int count) {
  return "dense<" + values + "> : tensor<" + std::to_string(count) + "xi64>";
}

} // namespace

TEST(Gradient, ElementwiseOperators) {
  Cases cases;
  struct Unary {
    const char *type;
    int since;
    const char *attributes;
    double low = -2, high = 2;
  };
  const Unary unaries[] = {
      {"Elu", 22, "alpha = 0.7 : f32"},
      {"Celu", 12, "alpha = 0.6 : f32"},
      {"Selu", 22, ""},
      {"HardSigmoid", 22, "alpha = 0.4 : f32"},
      {"HardSwish", 22, "", -5, 5},
      {"Mish", 22, ""},
      {"Mish", 18, "", 15, 40},
      {"Softsign", 22, ""},
      {"Softplus", 22, ""},
      // Where the formula changes.
      {"Softplus", 22, "", 40, 40},
      {"ThresholdedRelu", 22, "alpha = 0.5 : f32"},
      {"Shrink", 9, "lambd = 0.5 : f32, bias = 0.25 : f32"},
      {"Gelu", 20, ""},
      {"Gelu", 20, "approximate = \"tanh\""},
      {"LeakyRelu", 16, ""},
      {"Sigmoid", 13, ""},
      {"Reciprocal", 13, "", 0.5, 2},
      {"Sign", 13, "", 0.1, 2},
      {"Tan", 22, "", -1, 1},
      {"Asinh", 22, ""},
      {"Acosh", 22, "", 1.2, 3},
      {"Atanh", 22, "", -0.8, 0.8},
      {"Atan", 22, ""},
      {"Sinh", 22, ""},
      {"Cosh", 22, ""},
  };
  for (const Unary &unary : unaries)
    cases.push_back(
        {unary.type,
         node(unary.type, unary.since, unary.attributes, {"3x5"}, "3x5"), "d",
         unary.low, unary.high});
  for (const char *shape : {"3x5", "5", "3x1", "1"})
    for (const char *type : {"PRelu", "Mul", "Div", "Pow"}) {
      bool isPrelu = type[1] == 'R';
      cases.push_back({std::string(type) + " by " + shape,
                       node(type,
                            isPrelu          ? 16
                            : type[0] == 'P' ? 15
                                             : 14,
                            "", {"3x5", shape}, "3x5"),
                       "dd", isPrelu ? -1.5 : 0.4, 1.5});
    }
  cases.push_back(
      {"Mod", node("Mod", 13, "fmod = 1", {"3x5", "5"}, "3x5"), "dd", 0.4, 3});
  for (const char *type : {"Sum", "Mean", "Max", "Min"})
    cases.push_back(
        {type, node(type, 13, "", {"3x5", "5", "3x1"}, "3x5"), "ddd"});
  cases.push_back({"Where",
                   node("Where", 16, "",
                        {"dense<[true, false, true, true, false]> : "
                         "tensor<5xi1>",
                         "3x5", "3x1"},
                        "3x5"),
                   "dd"});
  cases.push_back(
      {"Clip",
       node("Clip", 13, "",
            {"3x5", "dense<-0.7> : tensor<f64>", "dense<0.9> : tensor<f64>"},
            "3x5"),
       "d"});
  cases.push_back(
      {"Pow by integers",
       node("Pow", 15, "", {"3x5", integers("[0, 1, 2, 3, -2]", 5)}, "3x5"),
       "d", 0.4, 2});
  checkAll("elementwise operators", cases);
}

TEST(Gradient, ReducingOperators) {
  Cases cases;
  for (const char *type : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin",
                           "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
                           "ReduceLogSumExp", "ReduceSumSquare"}) {
    std::string name = type;
    int since = name == "ReduceSum"                          ? 13
                : name == "ReduceMax" || name == "ReduceMin" ? 20
                                                             : 18;
    double low = name == "ReduceLogSum" ? 0.2 : -1.5;
    const std::vector<std::tuple<std::string, std::string, std::string>> forms =
        {{integers("[1]", 1), "keepdims = 1", "3x1x2"},
         {integers("[-1, 0]", 2), "keepdims = 0", "5"},
         {integers("[0, 1, 2]", 3), "keepdims = 0", ""}};
    for (const auto &[axes, attributes, result] : forms)
      cases.push_back({name + " over " + axes,
                       node(name, since, attributes, {"3x5x2", axes}, result),
                       "d", low, 1.5});
    // Without axes, some leave everything as it is, and have no function.
    bool changes = name == "ReduceL1" || name == "ReduceL2" ||
                   name == "ReduceLogSum" || name == "ReduceSumSquare";
    if (changes)
      cases.push_back({name + " of nothing",
                       node(name, since, "noop_with_empty_axes = 1",
                            {"3x5x2", "dense<> : tensor<0xi64>"}, "3x5x2"),
                       "d", 0.2, 1.5});
  }
  // The norm of the zero vector.
  cases.push_back({"ReduceL2 of zeros",
                   node("ReduceL2", 18, "", {"3x5", integers("[1]", 1)}, "3x1"),
                   "d", -0.1, 0.1, 3, 1});
  cases.push_back({"TopK",
                   node("TopK", 11, "axis = 1", {"3x5x2", integers("[2]", 1)},
                        "3x2x2", "tensor<3x2x2xi64>"),
                   "d"});
  cases.push_back(
      {"TopK of the smallest",
       node("TopK", 11, "axis = 0, largest = 0", {"3x5x2", integers("[2]", 1)},
            "2x5x2", "tensor<2x5x2xi64>"),
       "d"});
  cases.push_back({"CumSum",
                   node("CumSum", 14, "exclusive = 1",
                        {"3x5", "dense<1> : tensor<i64>"}, "3x5"),
                   "d"});
  checkAll("reducing operators", cases);
}

TEST(Gradient, MovingOperators) {
  Cases cases;
  auto add = [&](const std::string &type, int since,
                 const std::string &attributes,
                 const std::vector<std::string> &operands,
                 const std::string &result, const char *roles = "d") {
    cases.push_back({type + " " + attributes,
                     node(type, since, attributes, operands, result), roles});
  };
  for (const char *mode : {"constant", "reflect", "edge", "wrap"}) {
    std::string attribute = std::string("mode = \"") + mode + "\"";
    add("Pad", 19, attribute, {"3x5", integers("[1, 2, 0, 3]", 4)}, "4x10");
    // Less at one end, more at the other.
    add("Pad", 19, attribute, {"3x5", integers("[-1, 2, 1, -1]", 4)}, "3x6");
  }
  add("Pad", 18, "", {"3x5", integers("[1, 1]", 2), "", integers("[-1]", 1)},
      "3x7", "dd");
  add("Tile", 13, "", {"3x5", integers("[2, 3]", 2)}, "6x15");
  add("Slice", 13, "",
      {"3x7", integers("[5, 0]", 2), integers("[0, 3]", 2),
       integers("[1, 0]", 2), integers("[-2, 2]", 2)},
      "2x3");
  add("Expand", 13, "", {"3x1", integers("[2, 3, 5]", 3)}, "2x3x5");
  add("Concat", 13, "axis = 1", {"3x5", "3x2"}, "3x7", "dd");
  add("Trilu", 14, "upper = 0", {"3x5", "dense<1> : tensor<i64>"}, "3x5");
  add("Trilu", 14, "", {"2x3x5", "dense<-1> : tensor<i64>"}, "2x3x5");
  add("DepthToSpace", 13, "blocksize = 2", {"1x12x2x3"}, "1x3x4x6");
  add("DepthToSpace", 13, "blocksize = 2, mode = \"CRD\"", {"1x12x2x3"},
      "1x3x4x6");
  add("SpaceToDepth", 13, "blocksize = 2", {"1x3x4x6"}, "1x12x2x3");
  add("Gather", 13, "axis = 1",
      {"3x5x4", "dense<[[0, -1], [2, 0], [4, 4]]> : tensor<3x2xi64>"},
      "3x3x2x4");
  add("Gather", 13, "axis = 0", {"3x5", integers("[2, 0, 2, -3]", 4)}, "4x5");
  add("GatherElements", 13, "axis = 1",
      {"3x5", "dense<[[0, -1], [2, 2]]> : tensor<2x2xi64>"}, "2x2");
  add("GatherND", 13, "batch_dims = 1",
      {"2x3x5", "dense<[[[1, -1], [1, 4]], [[0, 0], [2, 1]]]> : "
                "tensor<2x2x2xi64>"},
      "2x2");
  for (const char *reduction : {"none", "add", "mul", "max", "min"}) {
    std::string attribute = std::string("reduction = \"") + reduction + "\"";
    add("ScatterElements", 18, "axis = 1, " + attribute,
        {"3x5", "dense<[[0, -1], [2, 2]]> : tensor<2x2xi64>", "2x2"}, "3x5",
        "dd");
    add("ScatterND", 18, attribute,
        {"3x5", "dense<[[0], [-1], [0]]> : tensor<3x1xi64>", "3x5"}, "3x5",
        "dd");
  }
  add("OneHot", 11, "axis = 0",
      {integers("[2, -1, 0, 7]", 4), "dense<3> : tensor<i64>", "2"}, "3x4");
  checkAll("moving operators", cases);
}

TEST(Gradient, FourierTransforms) {
  Cases cases;
  auto add = [&](const char *attributes, const char *operand, int length,
                 const char *result) {
    std::string size = "dense<" + std::to_string(length) + "> : tensor<i64>";
    cases.push_back({std::string("DFT ") + attributes + " of " + operand,
                     node("DFT", 20, attributes,
                          {operand, size, "dense<1> : tensor<i64>"}, result),
                     "d"});
  };
  add("onesided = 1", "2x7x3x1", 6, "2x4x3x2");
  add("inverse = 1", "2x3x2", 5, "2x5x2");
  // Spectra of real numbers: of an even length, an odd one, with frequencies
  // that are missing, and with some that are too many.
  add("inverse = 1, onesided = 1", "2x4x3x2", 6, "2x6x3x1");
  add("inverse = 1, onesided = 1", "2x4x2", 7, "2x7x1");
  add("inverse = 1, onesided = 1", "2x3x2", 8, "2x8x1");
  add("inverse = 1, onesided = 1", "2x5x2", 4, "2x4x1");
  checkAll("Fourier transforms", cases);
}
