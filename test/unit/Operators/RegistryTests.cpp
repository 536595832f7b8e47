//===- RegistryTests.cpp - The since-versions of the operator table -------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Up to opset 17 the table is checked against libonnx's schemas: a node must
// get exactly the version that ONNX gives it. Later versions, which libonnx
// 1.12 does not know, are listed here as ONNX's changelog has them.
//===----------------------------------------------------------------------===//

#include "penstock/Import/OperatorRegistry.h"

#include <onnx/defs/schema.h>

#include "gtest/gtest.h"

#include <set>

using namespace penstock::onnx;

namespace {

constexpr int64_t newestOfLibonnx = 17;

std::set<std::string> typesOfTable() {
  std::set<std::string> types;
  for (const Operator &entry : getOperators())
    if (entry.domain.empty())
      types.insert(entry.type.str());
  return types;
}

TEST(OperatorTable, AgreesWithLibonnx) {
  int compared = 0;
  for (const std::string &type : typesOfTable())
    for (int64_t opset = kOldestOpset; opset <= newestOfLibonnx; ++opset) {
      const ::onnx::OpSchema *schema =
          ::onnx::OpSchemaRegistry::Schema(type, opset, "");
      const Operator *entry = lookupOperator("", type, opset);
      // Deprecated ones (Scatter) go on as they were.
      if (schema && schema->Deprecated())
        continue;
      bool exists = schema != nullptr;
      ASSERT_EQ(entry != nullptr, exists) << type << " at opset " << opset;
      if (!entry)
        continue;
      EXPECT_EQ(entry->since, schema->SinceVersion())
          << type << " at opset " << opset;
      ++compared;
    }
  EXPECT_GT(compared, 500);
}

TEST(OperatorTable, KnowsWhatCameAfterLibonnx) {
  // The versions from 18 to 23 of every type whose last one up to 17 is not
  // the last one up to 23.
  const std::map<std::string, std::vector<int64_t>> later = {
      {"Acos", {22}},
      {"Acosh", {22}},
      {"AffineGrid", {20}},
      {"Asin", {22}},
      {"Asinh", {22}},
      {"Atan", {22}},
      {"Atanh", {22}},
      {"Attention", {23}},
      {"AveragePool", {19, 22}},
      {"BitwiseAnd", {18}},
      {"BitwiseNot", {18}},
      {"BitwiseOr", {18}},
      {"BitwiseXor", {18}},
      {"Cast", {19, 21, 23}},
      {"CastLike", {19, 21, 23}},
      {"CenterCropPad", {18}},
      {"Col2Im", {18}},
      {"Constant", {19, 21, 23}},
      {"ConstantOfShape", {20, 21, 23}},
      {"Conv", {22}},
      {"ConvTranspose", {22}},
      {"Cos", {22}},
      {"Cosh", {22}},
      {"DFT", {20}},
      {"DequantizeLinear", {19, 21, 23}},
      {"Dropout", {22}},
      {"Elu", {22}},
      {"Equal", {19}},
      {"EyeLike", {22}},
      {"Flatten", {21, 23}},
      {"GRU", {22}},
      {"Gelu", {20}},
      {"GlobalAveragePool", {22}},
      {"GlobalLpPool", {22}},
      {"GlobalMaxPool", {22}},
      {"GridSample", {20, 22}},
      {"GroupNormalization", {18, 21}},
      {"HardSigmoid", {22}},
      {"HardSwish", {22}},
      {"Identity", {19, 21, 23}},
      {"InstanceNormalization", {22}},
      {"IsInf", {20}},
      {"IsNaN", {20}},
      {"LSTM", {22}},
      {"LpNormalization", {22}},
      {"LpPool", {18, 22}},
      {"MaxPool", {22}},
      {"MaxUnpool", {22}},
      {"Mish", {18, 22}},
      {"NegativeLogLikelihoodLoss", {22}},
      {"Pad", {18, 19, 21, 23}},
      {"QuantizeLinear", {19, 21, 23}},
      {"RMSNormalization", {23}},
      {"RNN", {22}},
      {"ReduceL1", {18}},
      {"ReduceL2", {18}},
      {"ReduceLogSum", {18}},
      {"ReduceLogSumExp", {18}},
      {"ReduceMax", {18, 20}},
      {"ReduceMean", {18}},
      {"ReduceMin", {18, 20}},
      {"ReduceProd", {18}},
      {"ReduceSumSquare", {18}},
      {"Reshape", {19, 21, 23}},
      {"Resize", {18, 19}},
      {"RoiAlign", {22}},
      {"RotaryEmbedding", {23}},
      {"Round", {22}},
      {"ScatterElements", {18}},
      {"ScatterND", {18}},
      {"Selu", {22}},
      {"Shape", {19, 21, 23}},
      {"Sin", {22}},
      {"Sinh", {22}},
      {"Size", {19, 21, 23}},
      {"Softplus", {22}},
      {"Softsign", {22}},
      {"Split", {18}},
      {"Squeeze", {21, 23}},
      {"Tan", {22}},
      {"ThresholdedRelu", {22}},
      {"Transpose", {21, 23}},
      {"Unsqueeze", {21, 23}},
  };
  for (const std::string &type : typesOfTable()) {
    const Operator *last = lookupOperator("", type, newestOfLibonnx);
    int64_t expected = last ? last->since : 0;
    auto found = later.find(type);
    for (int64_t opset = newestOfLibonnx + 1; opset <= kNewestOpset; ++opset) {
      if (found != later.end() &&
          std::count(found->second.begin(), found->second.end(), opset))
        expected = opset;
      const Operator *entry = lookupOperator("", type, opset);
      EXPECT_EQ(entry ? entry->since : 0, expected)
          << type << " at opset " << opset;
    }
  }
}

TEST(OperatorTable, LooksUpByDomainAndVersion) {
  EXPECT_EQ(lookupOperator("ai.onnx", "Gemm", 10),
            lookupOperator("", "Gemm", 9));
  EXPECT_EQ(lookupOperator("", "Gelu", 19), nullptr);
  EXPECT_EQ(lookupOperator("", "NoSuchOperator", 13), nullptr);
  EXPECT_EQ(lookupOperator("com.example", "Gemm", 13), nullptr);
}

} // namespace
