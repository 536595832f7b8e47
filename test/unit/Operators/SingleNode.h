//===- SingleNode.h - Runs one node on given tensors ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of values share: tensors of small integers, one node at a
// chosen opset, and comparisons.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_OPERATORS_SINGLENODE_H
#define PENSTOCK_TEST_UNIT_OPERATORS_SINGLENODE_H

#include "Execute.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace penstock::test {

using Shape = std::vector<int64_t>;

template <typename T> constexpr int64_t dataTypeOf() {
  if constexpr (std::is_same_v<T, float>)
    return 1;
  else if constexpr (std::is_same_v<T, double>)
    return 11;
  else if constexpr (std::is_same_v<T, int32_t>)
    return 6;
  else if constexpr (std::is_same_v<T, int64_t>)
    return 7;
  else if constexpr (std::is_same_v<T, bool>)
    return 9;
  else
    return 16; // uint16_t: bfloat16
}

template <typename T>
HostTensor tensor(const Shape &shape, const std::vector<T> &values) {
  HostTensor result{"", dataTypeOf<T>(), shape, ""};
  for (T value : values)
    result.bytes.append(reinterpret_cast<const char *>(&value), sizeof(T));
  EXPECT_EQ(static_cast<size_t>(result.size()), values.size());
  return result;
}

template <typename T> std::vector<T> values(const HostTensor &tensor) {
  std::vector<T> result(tensor.size());
  for (size_t i = 0; i < result.size(); ++i) {
    T value;
    std::memcpy(&value, tensor.bytes.data() + i * sizeof(T), sizeof(T));
    result[i] = value;
  }
  return result;
}

/// Integers from -4 to 4, different at each seed.
template <typename T> HostTensor integers(const Shape &shape, int seed) {
  int64_t size = 1;
  for (int64_t extent : shape)
    size *= extent;
  std::vector<T> values;
  for (int64_t i = 0; i < size; ++i)
    values.push_back(static_cast<T>((i * 7 + seed * 5 + i * i) % 9 - 4));
  return tensor<T>(shape, values);
}

struct Result {
  std::vector<HostTensor> outputs;
  std::string error;
};

/// Runs one node. Operands from `firstConstant` on are constants.
inline Result run(const std::string &type, int64_t opset,
                  std::map<std::string, NodeAttribute> attributes,
                  std::vector<HostTensor> operands,
                  const std::vector<std::pair<int64_t, Shape>> &results,
                  size_t firstConstant = 99, const std::string &domain = "") {
  Model model;
  model.opset = opset;
  ModelNode node{"", domain, type, {}, {}, std::move(attributes)};
  std::set<std::string> constants;
  std::vector<HostTensor> given;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].dataType == 0) { // Left out.
      node.inputs.push_back("");
      continue;
    }
    operands[i].name = "operand" + std::to_string(i);
    node.inputs.push_back(operands[i].name);
    if (i >= firstConstant)
      constants.insert(operands[i].name);
    given.push_back(operands[i]);
  }
  Result result;
  for (const auto &[dataType, shape] : results) {
    node.outputs.push_back("result" + std::to_string(node.outputs.size()));
    result.outputs.push_back({node.outputs.back(), dataType, shape, ""});
  }
  model.outputs = node.outputs;
  model.nodes.push_back(node);
  Build build = buildModule(model, given, constants);
  result.error = build.error + build.unknown;
  if (!result.error.empty())
    return result;
  auto function = *build.module->getOps<mlir::func::FuncOp>().begin();
  for (auto [type, output] :
       llvm::zip_equal(function.getResultTypes(), result.outputs)) {
    mlir::ArrayRef<int64_t> shape =
        llvm::cast<mlir::RankedTensorType>(type).getShape();
    EXPECT_EQ(Shape(shape.begin(), shape.end()), output.shape);
  }
  result.error = runPasses(*build.module, lowerToGraph);
  if (result.error.empty())
    result.error = execute(*build.module, build.arguments, result.outputs);
  return result;
}

template <typename T>
void expectExact(const Result &result, const std::vector<T> &expected) {
  ASSERT_EQ(result.error, "");
  EXPECT_EQ(values<T>(result.outputs[0]), expected);
}

inline void expectNear(const Result &result,
                       const std::vector<float> &expected) {
  ASSERT_EQ(result.error, "");
  std::vector<float> actual = values<float>(result.outputs[0]);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (actual[i] == expected[i])
      continue; // Also infinities.
    EXPECT_NEAR(actual[i], expected[i], 1e-6 * (1 + std::fabs(expected[i])))
        << "at " << i;
  }
}

/// The strides of `shape` when it is broadcast to `rank` axes: 0 where it is
/// repeated.
inline Shape stridesFor(const Shape &shape, size_t rank) {
  Shape strides(rank, 0);
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d])
    strides[rank - shape.size() + d] = shape[d] == 1 ? 0 : stride;
  return strides;
}

inline int64_t sizeOf(const Shape &shape) {
  int64_t size = 1;
  for (int64_t extent : shape)
    size *= extent;
  return size;
}

/// The position in a broadcast operand of element `i` of `result`.
inline int64_t positionOf(int64_t i, const Shape &result,
                          const Shape &strides) {
  int64_t position = 0;
  for (size_t d = result.size(); d-- > 0; i /= result[d])
    position += i % result[d] * strides[d];
  return position;
}

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_OPERATORS_SINGLENODE_H
