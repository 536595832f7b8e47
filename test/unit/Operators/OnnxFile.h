//===- OnnxFile.h - ONNX's node tests as plain data -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads the models and tensors of libonnx-testdata without the importer, so
// that the operator table is tested alone. Protobuf stays in OnnxFile.cpp.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_OPERATORS_ONNXFILE_H
#define PENSTOCK_TEST_UNIT_OPERATORS_ONNXFILE_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace penstock::test {

/// A tensor as it lies in memory; a bool is a byte.
struct HostTensor {
  std::string name;
  int64_t dataType = 0;
  std::vector<int64_t> shape;
  std::string bytes;

  int64_t size() const {
    int64_t elements = 1;
    for (int64_t extent : shape)
      elements *= extent;
    return elements;
  }
};

using NodeAttribute =
    std::variant<int64_t, float, std::string, std::vector<int64_t>,
                 std::vector<float>, HostTensor>;

struct ModelNode {
  std::string name, domain, type;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, NodeAttribute> attributes;
};

struct Model {
  int64_t opset = 0;
  std::vector<ModelNode> nodes;
  std::vector<HostTensor> initializers;
  std::vector<std::string> inputs, outputs;
};

/// Nothing if there is something that these structures do not hold (strings,
/// sequences, graphs).
std::optional<Model> readModel(const std::string &path);
std::optional<HostTensor> readTensor(const std::string &path);

/// The bytes of an element of TensorProto.DataType; 0 when unknown.
unsigned elementBytes(int64_t dataType);

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_OPERATORS_ONNXFILE_H
