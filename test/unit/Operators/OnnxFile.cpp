//===- OnnxFile.cpp - ONNX's node tests as plain data ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See OnnxFile.h.
//===----------------------------------------------------------------------===//

#include "OnnxFile.h"

#include <onnx/onnx_pb.h>

#include <cstring>
#include <fstream>

using namespace penstock::test;

unsigned penstock::test::elementBytes(int64_t dataType) {
  switch (dataType) {
  case onnx::TensorProto::UINT8:
  case onnx::TensorProto::INT8:
  case onnx::TensorProto::BOOL:
    return 1;
  case onnx::TensorProto::UINT16:
  case onnx::TensorProto::INT16:
  case onnx::TensorProto::FLOAT16:
  case onnx::TensorProto::BFLOAT16:
    return 2;
  case onnx::TensorProto::FLOAT:
  case onnx::TensorProto::INT32:
  case onnx::TensorProto::UINT32:
    return 4;
  case onnx::TensorProto::DOUBLE:
  case onnx::TensorProto::INT64:
  case onnx::TensorProto::UINT64:
    return 8;
  default:
    return 0;
  }
}

/// The elements of a repeated field, each cut to `bytes` bytes.
template <typename Field>
static void append(std::string &to, const Field &field, unsigned bytes) {
  for (auto value : field)
    to.append(reinterpret_cast<const char *>(&value), bytes);
}

static std::optional<HostTensor> convert(const onnx::TensorProto &proto) {
  HostTensor tensor;
  tensor.name = proto.name();
  tensor.dataType = proto.data_type();
  tensor.shape.assign(proto.dims().begin(), proto.dims().end());
  unsigned bytes = elementBytes(tensor.dataType);
  if (bytes == 0)
    return std::nullopt;
  if (proto.has_raw_data())
    tensor.bytes = proto.raw_data();
  else if (tensor.dataType == onnx::TensorProto::FLOAT)
    append(tensor.bytes, proto.float_data(), bytes);
  else if (tensor.dataType == onnx::TensorProto::DOUBLE)
    append(tensor.bytes, proto.double_data(), bytes);
  else if (tensor.dataType == onnx::TensorProto::INT64)
    append(tensor.bytes, proto.int64_data(), bytes);
  else if (tensor.dataType == onnx::TensorProto::UINT64 ||
           tensor.dataType == onnx::TensorProto::UINT32)
    append(tensor.bytes, proto.uint64_data(), bytes);
  else
    append(tensor.bytes, proto.int32_data(), bytes);
  if (tensor.bytes.size() != static_cast<size_t>(tensor.size()) * bytes)
    return std::nullopt;
  return tensor;
}

static std::optional<NodeAttribute>
convert(const onnx::AttributeProto &attribute) {
  switch (attribute.type()) {
  case onnx::AttributeProto::INT:
    return NodeAttribute(int64_t(attribute.i()));
  case onnx::AttributeProto::FLOAT:
    return NodeAttribute(attribute.f());
  case onnx::AttributeProto::STRING:
    return NodeAttribute(attribute.s());
  case onnx::AttributeProto::INTS:
    return NodeAttribute(
        std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end()));
  case onnx::AttributeProto::FLOATS:
    return NodeAttribute(std::vector<float>(attribute.floats().begin(),
                                            attribute.floats().end()));
  case onnx::AttributeProto::TENSOR:
    if (auto tensor = convert(attribute.t()))
      return NodeAttribute(*tensor);
    return std::nullopt;
  default:
    return std::nullopt;
  }
}

std::optional<Model> penstock::test::readModel(const std::string &path) {
  onnx::ModelProto proto;
  std::ifstream file(path, std::ios::binary);
  if (!file || !proto.ParseFromIstream(&file))
    return std::nullopt;
  Model model;
  for (const auto &opset : proto.opset_import())
    if (opset.domain().empty() || opset.domain() == "ai.onnx")
      model.opset = opset.version();
  for (const auto &node : proto.graph().node()) {
    ModelNode to{node.name(), node.domain(), node.op_type(), {}, {}, {}};
    to.inputs.assign(node.input().begin(), node.input().end());
    to.outputs.assign(node.output().begin(), node.output().end());
    for (const auto &attribute : node.attribute()) {
      std::optional<NodeAttribute> value = convert(attribute);
      if (!value)
        return std::nullopt;
      to.attributes[attribute.name()] = *value;
    }
    model.nodes.push_back(std::move(to));
  }
  for (const auto &initializer : proto.graph().initializer()) {
    std::optional<HostTensor> tensor = convert(initializer);
    if (!tensor)
      return std::nullopt;
    model.initializers.push_back(*tensor);
  }
  for (const auto &input : proto.graph().input()) {
    if (!input.type().has_tensor_type())
      return std::nullopt;
    model.inputs.push_back(input.name());
  }
  for (const auto &output : proto.graph().output())
    model.outputs.push_back(output.name());
  return model;
}

std::optional<HostTensor> penstock::test::readTensor(const std::string &path) {
  onnx::TensorProto proto;
  std::ifstream file(path, std::ios::binary);
  if (!file || !proto.ParseFromIstream(&file))
    return std::nullopt;
  return convert(proto);
}
