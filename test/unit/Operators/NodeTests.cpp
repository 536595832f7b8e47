//===- NodeTests.cpp - ONNX's node tests through the operator table -------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every model of libonnx-testdata whose nodes are all in the table is lowered,
// run and compared with the values that ONNX gives; where its operators fold,
// it is folded and compared as well. A test counts what passed and what was
// refused, so that neither can shrink unseen.
//===----------------------------------------------------------------------===//

#include "Execute.h"

#include "penstock/Import/OperatorRegistry.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <filesystem>

using namespace penstock;
using namespace penstock::test;
namespace fs = std::filesystem;

namespace {

const char *const root = "/usr/share/libonnx-testdata/data/node";

/// Operands that say a shape, axes or indices: constant in any model that we
/// can compile, but data in the node tests.
bool saysShape(const std::string &type, size_t operand) {
  static const std::map<std::string, size_t> firstOf = {
      {"Reshape", 1},   {"Squeeze", 1}, {"Unsqueeze", 1},
      {"ReduceSum", 1}, {"Expand", 1},  {"Slice", 1},
      {"Split", 1},     {"Gather", 1},  {"ConstantOfShape", 0},
      {"Range", 0}};
  auto found = firstOf.find(type);
  return found != firstOf.end() && operand >= found->second;
}

struct Outcome {
  enum Kind { Passed, Refused, Unknown, Wrong } kind;
  std::string message;
  bool folded = false;
};

/// Compares what @main returns as constants; whether all results are.
bool compareFolded(mlir::ModuleOp module, const std::vector<HostTensor> &want,
                   std::string &difference) {
  auto function = *module.getOps<mlir::func::FuncOp>().begin();
  auto *terminator = function.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
    mlir::DenseElementsAttr constant = onnx::getConstant(value);
    if (!constant)
      return false;
    difference += compare(want[i], toHost(constant, want[i].dataType), 1e-6);
  }
  return true;
}

Outcome runModel(const fs::path &folder) {
  std::optional<Model> model = readModel(folder / "model.onnx");
  if (!model)
    return {Outcome::Unknown, "not of tensors"};
  std::vector<HostTensor> inputs, outputs;
  fs::path data = folder / "test_data_set_0";
  for (auto [names, prefix, tensors] :
       {std::tuple(&model->inputs, "input_", &inputs),
        std::tuple(&model->outputs, "output_", &outputs)})
    for (size_t i = 0; i < names->size(); ++i) {
      auto tensor = readTensor(data / (prefix + std::to_string(i) + ".pb"));
      if (!tensor)
        return {Outcome::Unknown, "not of numbers"};
      tensor->name = (*names)[i];
      tensors->push_back(*tensor);
    }

  // 1. As a computation of its data.
  std::set<std::string> shapes, all;
  for (const HostTensor &input : inputs)
    all.insert(input.name);
  for (const ModelNode &node : model->nodes)
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (saysShape(node.type, i))
        shapes.insert(node.inputs[i]);
  Build build = buildModule(*model, inputs, shapes);
  if (!build.unknown.empty())
    return {Outcome::Unknown, build.unknown};
  if (!build.error.empty())
    return {Outcome::Refused, build.error};
  std::string errors = runPasses(*build.module, lowerToGraph);
  if (!errors.empty())
    return {Outcome::Refused, errors};
  auto function = *build.module->getOps<mlir::func::FuncOp>().begin();
  bool hasEmpty = false;
  for (auto [type, output] :
       llvm::zip_equal(function.getResultTypes(), outputs)) {
    if (type != toAttribute(output).getType())
      return {Outcome::Wrong, "a result's type differs"};
    hasEmpty |= output.size() == 0;
  }
  std::vector<HostTensor> results = outputs;
  // Upstream's conversion to LLVM has no buffers without elements; nothing is
  // left to compare either.
  if (!hasEmpty)
    errors = execute(*build.module, build.arguments, results);
  if (!errors.empty())
    return {Outcome::Wrong, "does not run: " + errors};
  for (size_t i = 0; i < outputs.size(); ++i) {
    bool half = outputs[i].dataType == 10 || outputs[i].dataType == 16;
    std::string difference =
        compare(outputs[i], results[i], half ? 1e-2 : 3e-5);
    if (!difference.empty())
      return {Outcome::Wrong, difference};
  }

  // 2. With every input constant: what folds must give the same.
  Outcome outcome = {Outcome::Passed, ""};
  Build constant = buildModule(*model, inputs, all);
  errors = constant.error + runPasses(*constant.module, lowerToGraph);
  if (!errors.empty())
    return {Outcome::Wrong, "folding: " + errors};
  std::string difference;
  outcome.folded = compareFolded(*constant.module, outputs, difference);
  if (!difference.empty())
    return {Outcome::Wrong, "folding: " + difference};
  return outcome;
}

/// The models of one operator, by the beginning of their names.
struct Case {
  const char *name;
  std::vector<std::string> prefixes;
  int passed, refused, folded;
};

void PrintTo(const Case &value, std::ostream *stream) { *stream << value.name; }

/// "sce_mean" has prefix "sce"; "reduce_sum_square" is not "reduce_sum".
bool belongs(std::string name, const std::vector<std::string> &prefixes) {
  name = name.substr(std::string("test_").size());
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const auto &prefix) {
    return name.rfind(prefix, 0) == 0 &&
           (name.size() == prefix.size() || name[prefix.size()] == '_' ||
            prefix.back() == '_');
  });
}

class NodeTest : public testing::TestWithParam<Case> {};

TEST_P(NodeTest, ValuesOfOnnx) {
  if (!fs::exists(root))
    GTEST_SKIP() << "install libonnx-testdata for " << root;
  std::vector<fs::path> folders;
  for (const auto &entry : fs::directory_iterator(root))
    if (belongs(entry.path().filename(), GetParam().prefixes))
      folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  int counts[4] = {}, folded = 0;
  std::string log;
  for (const fs::path &folder : folders) {
    Outcome outcome = runModel(folder);
    ++counts[outcome.kind];
    folded += outcome.folded;
    static const char *const words[] = {"passed", "refused", "unknown",
                                        "WRONG"};
    log += folder.filename().string() + ": " + words[outcome.kind] + " " +
           outcome.message + "\n";
    EXPECT_NE(outcome.kind, Outcome::Wrong)
        << folder << ": " << outcome.message;
    // A refusal names the node.
    if (outcome.kind == Outcome::Refused)
      EXPECT_NE(outcome.message.find("node '"), std::string::npos)
          << folder << ": " << outcome.message;
  }
  EXPECT_EQ(counts[Outcome::Passed], GetParam().passed) << log;
  EXPECT_EQ(counts[Outcome::Refused], GetParam().refused) << log;
  EXPECT_EQ(folded, GetParam().folded) << log;
}

INSTANTIATE_TEST_SUITE_P(
    Operators, NodeTest,
    testing::Values(
        Case{"Add", {"add"}, 2, 1, 2}, Case{"Sub", {"sub"}, 3, 1, 3},
        Case{"Mul", {"mul"}, 3, 1, 3}, Case{"Div", {"div"}, 3, 1, 3},
        Case{"Neg", {"neg"}, 2, 0, 2}, Case{"Sqrt", {"sqrt"}, 2, 0, 0},
        Case{"Exp", {"exp"}, 2, 0, 0}, Case{"Log", {"log"}, 2, 0, 0},
        Case{"Relu", {"relu"}, 1, 0, 0},
        Case{"LeakyRelu", {"leakyrelu"}, 3, 0, 0},
        Case{"Tanh", {"tanh"}, 2, 0, 0}, Case{"Sigmoid", {"sigmoid"}, 2, 0, 0},
        Case{"Softmax", {"softmax"}, 14, 0, 0},
        Case{"LogSoftmax", {"logsoftmax"}, 14, 0, 0},
        Case{"Gemm", {"gemm"}, 11, 0, 0}, Case{"MatMul", {"matmul"}, 3, 0, 0},
        Case{"Flatten", {"flatten"}, 9, 0, 9},
        Case{"Reshape", {"reshape"}, 10, 0, 10},
        Case{"Transpose", {"transpose"}, 7, 0, 7},
        Case{"Squeeze", {"squeeze"}, 2, 0, 2},
        Case{"Unsqueeze", {"unsqueeze"}, 8, 0, 8},
        Case{"Identity", {"identity"}, 1, 0, 1},
        // The bfloat16 data of this version is uint16, and truncated.
        Case{"Cast",
             {"cast_DOUBLE", "cast_FLOAT16", "cast_FLOAT_to_DOUBLE",
              "cast_FLOAT_to_FLOAT16"},
             6,
             0,
             6},
        Case{"Constant", {"constant", "constantofshape"}, 4, 0, 4},
        Case{"ReduceMean", {"reduce_mean"}, 8, 0, 0},
        Case{"ReduceSum", {"reduce_sum"}, 18, 0, 3},
        Case{"SoftmaxCrossEntropyLoss", {"sce"}, 68, 0, 0},
        Case{"NegativeLogLikelihoodLoss", {"nllloss"}, 18, 0, 0},
        Case{"ReduceOthers",
             {"reduce_max", "reduce_min", "reduce_l1", "reduce_l2"},
             32,
             0,
             0},
        Case{"ShapeAndSize", {"shape", "size"}, 12, 0, 12},
        Case{"Gather", {"gather"}, 0, 4, 0}, Case{"Slice", {"slice"}, 7, 1, 7},
        Case{"Concat", {"concat"}, 12, 0, 12},
        Case{"Split", {"split"}, 7, 0, 0}, Case{"Expand", {"expand"}, 2, 0, 2},
        Case{"Range", {"range"}, 2, 0, 2}, Case{"Where", {"where"}, 2, 0, 2},
        Case{"Comparisons", {"equal", "less", "greater"}, 14, 0, 10},
        Case{"Logic",
             {"and2d", "and_", "or2d", "or_", "xor2d", "xor_", "not_"},
             21,
             0,
             0},
        Case{"MinMax", {"min", "max", "sum", "mean"}, 26, 8, 24},
        Case{"Pow", {"pow"}, 10, 4, 0}, Case{"Clip", {"clip"}, 11, 0, 2},
        Case{"OtherUnary",
             {"abs", "sign", "reciprocal", "erf", "sin", "cos", "floor", "ceil",
              "softplus"},
             15,
             0,
             0}),
    [](const auto &info) { return info.param.name; });

} // namespace
