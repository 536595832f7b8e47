//===- Case.cpp - One of ONNX's node tests --------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Case.h.
//===----------------------------------------------------------------------===//

#include "Case.h"

#include "penstock/Import/OperatorRegistry.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>

using namespace penstock::test;
using ::onnx::TensorProto;

//===--- Tensors ---===//

/// The elements of a repeated field, each cut to `bytes` bytes.
template <typename Field>
static void append(std::string &to, const Field &field, unsigned bytes) {
  for (auto value : field)
    to.append(reinterpret_cast<const char *>(&value), bytes);
}

static std::optional<HostTensor> convert(const TensorProto &proto) {
  HostTensor tensor;
  tensor.name = proto.name();
  tensor.dataType = proto.data_type();
  tensor.shape.assign(proto.dims().begin(), proto.dims().end());
  unsigned bytes = elementBytes(tensor.dataType);
  if (bytes == 0)
    return std::nullopt;
  if (proto.has_raw_data())
    tensor.bytes = proto.raw_data();
  else if (tensor.dataType == TensorProto::FLOAT)
    append(tensor.bytes, proto.float_data(), bytes);
  else if (tensor.dataType == TensorProto::DOUBLE)
    append(tensor.bytes, proto.double_data(), bytes);
  else if (tensor.dataType == TensorProto::INT64)
    append(tensor.bytes, proto.int64_data(), bytes);
  else if (tensor.dataType == TensorProto::UINT64 ||
           tensor.dataType == TensorProto::UINT32)
    append(tensor.bytes, proto.uint64_data(), bytes);
  else
    append(tensor.bytes, proto.int32_data(), bytes);
  if (tensor.bytes.size() != static_cast<size_t>(tensor.size()) * bytes)
    return std::nullopt;
  return tensor;
}

std::string penstock::test::compare(const HostTensor &expected,
                                    const HostTensor &actual) {
  if (expected.dataType != actual.dataType || expected.shape != actual.shape)
    return "its type or shape differs";
  unsigned bytes = elementBytes(expected.dataType);
  double relative = expected.dataType == BFLOAT16 ? 0x1p-7 : 1e-3;
  for (int64_t i = 0; i < expected.size(); ++i) {
    std::optional<double> a = floatAt(expected, i), b = floatAt(actual, i);
    if (!a) {
      if (std::memcmp(expected.bytes.data() + i * bytes,
                      actual.bytes.data() + i * bytes, bytes) != 0)
        return "its integers differ at element " + std::to_string(i);
      continue;
    }
    bool equal = (std::isnan(*a) && std::isnan(*b)) || *a == *b ||
                 std::fabs(*a - *b) <= 1e-7 + relative * std::fabs(*a);
    if (!equal)
      return "element " + std::to_string(i) + " is " + std::to_string(*b) +
             ", expected " + std::to_string(*a);
  }
  return "";
}

//===--- Models ---===//

template <typename Message>
static bool parse(const std::string &path, Message &message) {
  std::ifstream file(path, std::ios::binary);
  return file && message.ParseFromIstream(&file);
}

/// Returns true if operand `operand` says a property of the program.
static bool saysShape(const std::string &type, int operand) {
  static const std::map<std::string, std::set<int>> operands = {
      {"AffineGrid", {1}},
      {"BlackmanWindow", {0}},
      {"CenterCropPad", {1}},
      {"Col2Im", {1, 2}},
      {"Compress", {1}},
      {"ConstantOfShape", {0}},
      {"CumSum", {1}},
      {"DFT", {1, 2}},
      {"Dropout", {1}},
      {"Expand", {1}},
      {"HammingWindow", {0}},
      {"HannWindow", {0}},
      {"If", {0}},
      {"LSTM", {4}},
      {"MaxUnpool", {2}},
      {"MelWeightMatrix", {0, 1, 2, 3, 4}},
      {"NonZero", {0}},
      {"OneHot", {1}},
      {"Pad", {1, 3}},
      {"Range", {0, 1, 2}},
      {"Reshape", {1}},
      {"Resize", {1, 2, 3}},
      {"STFT", {1, 3}},
      {"Slice", {1, 2, 3, 4}},
      {"Split", {1}},
      {"Squeeze", {1}},
      {"Tile", {1}},
      {"TopK", {1}},
      {"Trilu", {1}},
      {"Unique", {0}},
      {"Unsqueeze", {1}},
      {"Upsample", {1}},
  };
  auto found = operands.find(type);
  if (found != operands.end())
    return found->second.count(operand);
  return type.rfind("Reduce", 0) == 0 && operand == 1;
}

static bool isFloat(const HostTensor &tensor) {
  return floatAt({"", tensor.dataType, {}, std::string(8, '\0')}, 0)
      .has_value();
}

/// The data of bfloat16 are written as uint16; the model says what they are.
static void correctType(TensorProto &tensor,
                        const ::onnx::ValueInfoProto &info) {
  if (info.type().tensor_type().elem_type() == TensorProto::BFLOAT16 &&
      tensor.data_type() == TensorProto::UINT16)
    tensor.set_data_type(TensorProto::BFLOAT16);
}

/// Models for opsets before 7, the oldest that is supported: where the versions
/// of their operators are those of opset 7 as well, that is what they become.
static void raiseOpset(::onnx::ModelProto &model) {
  for (auto &opset : *model.mutable_opset_import()) {
    bool same =
        std::all_of(model.graph().node().begin(), model.graph().node().end(),
                    [&](const ::onnx::NodeProto &node) {
                      const penstock::onnx::Operator *entry =
                          penstock::onnx::lookupOperator("", node.op_type(), 7);
                      return entry && entry->since <= opset.version();
                    });
    if (opset.domain().empty() && opset.version() < 7 && same)
      opset.set_version(7);
  }
}

std::string penstock::test::readCase(const std::string &folder, Binding binding,
                                     const std::string &path,
                                     NodeTestCase &result) {
  ::onnx::ModelProto model;
  if (!parse(folder + "/model.onnx", model))
    return "no model";
  raiseOpset(model);
  ::onnx::GraphProto &graph = *model.mutable_graph();
  std::string data = folder + "/test_data_set_0/";

  // 1. What the model computes with, and what it should give.
  std::map<std::string, TensorProto> tensors;
  result.hasAllOutputs = true;
  for (int i = 0; i < graph.input_size(); ++i) {
    if (!graph.input(i).type().has_tensor_type())
      continue;
    TensorProto proto;
    if (!parse(data + "input_" + std::to_string(i) + ".pb", proto))
      return "no input " + std::to_string(i);
    correctType(proto, graph.input(i));
    if (std::optional<HostTensor> tensor = convert(proto)) {
      result.isFloat |= ::isFloat(*tensor);
      result.inputs[graph.input(i).name()] = *tensor;
      tensors[graph.input(i).name()] = proto;
    }
  }
  for (int i = 0; i < graph.output_size(); ++i) {
    TensorProto proto;
    std::optional<HostTensor> tensor;
    if (graph.output(i).type().has_tensor_type() &&
        parse(data + "output_" + std::to_string(i) + ".pb", proto)) {
      correctType(proto, graph.output(i));
      tensor = convert(proto);
    }
    result.hasAllOutputs &= tensor.has_value();
    if (tensor) {
      result.isFloat |= ::isFloat(*tensor);
      result.outputs.push_back(*tensor);
    }
  }
  result.type =
      graph.node_size() == 1 ? graph.node(0).op_type() : "(of several nodes)";

  // 2. Constants.
  std::set<std::string> said, constants;
  for (const ::onnx::NodeProto &node : graph.node())
    for (int i = 0; i < node.input_size(); ++i)
      if (binding == Binding::All || saysShape(node.op_type(), i))
        said.insert(node.input(i));
  // And what they are computed from, other than by taking a shape.
  for (int i = graph.node_size() - 1; i >= 0; --i) {
    const ::onnx::NodeProto &node = graph.node(i);
    bool isSaid = std::any_of(
        node.output().begin(), node.output().end(),
        [&](const std::string &output) { return said.count(output); });
    if (isSaid && node.op_type() != "Shape" && node.op_type() != "Size")
      said.insert(node.input().begin(), node.input().end());
  }
  for (const std::string &name : said)
    if (tensors.count(name))
      constants.insert(name);
  if (!constants.empty()) {
    google::protobuf::RepeatedPtrField<::onnx::NodeProto> nodes;
    google::protobuf::RepeatedPtrField<::onnx::ValueInfoProto> inputs;
    for (const std::string &name : constants) {
      ::onnx::NodeProto *node = nodes.Add();
      node->set_op_type("Constant");
      node->add_output(name);
      ::onnx::AttributeProto *value = node->add_attribute();
      value->set_name("value");
      value->set_type(::onnx::AttributeProto::TENSOR);
      *value->mutable_t() = tensors[name];
      result.inputs.erase(name);
    }
    for (const ::onnx::ValueInfoProto &input : graph.input())
      if (!constants.count(input.name()))
        *inputs.Add() = input;
    for (const ::onnx::NodeProto &node : graph.node())
      *nodes.Add() = node;
    graph.mutable_node()->Swap(&nodes);
    graph.mutable_input()->Swap(&inputs);
  }
  std::ofstream file(path, std::ios::binary);
  return model.SerializeToOstream(&file) ? "" : "cannot write " + path;
}
