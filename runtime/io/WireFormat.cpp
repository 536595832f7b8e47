//===- WireFormat.cpp - Where an ONNX file keeps its tensors --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The wire format is a sequence of (field number, wire type, payload). Only the
// fields that lead to tensors are entered; their numbers are those of
// onnx.proto, which never change.
//===----------------------------------------------------------------------===//

#include "runtime/io/WireFormat.h"

#include <charconv>

using namespace penstock::runtime;

namespace {

enum WireType { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

struct Field {
  uint64_t number;
  unsigned type;
  std::string_view payload; // Bytes only
};

/// Field numbers of onnx.proto, by message.
enum ModelField { ModelGraph = 7, ModelFunctions = 25 };
enum GraphField { GraphNode = 1, GraphInitializer = 5, GraphSparse = 15 };
enum FunctionField { FunctionNode = 7 };
enum NodeField { NodeAttribute = 5 };
enum AttributeField {
  AttributeTensor = 5,
  AttributeGraph = 6,
  AttributeTensors = 10,
  AttributeGraphs = 11,
  AttributeSparse = 22,
  AttributeSparses = 23
};
enum SparseField { SparseValues = 1, SparseIndices = 2 };
enum TensorField {
  TensorFloatData = 4,
  TensorName = 8,
  TensorRawData = 9,
  TensorDoubleData = 10,
  TensorExternalData = 13
};
enum EntryField { EntryKey = 1, EntryValue = 2 };

constexpr int kMaxDepth = 64;

class Walker {
public:
  Walker(std::string_view model, std::vector<TensorRange> &tensors)
      : begin(model.data()), tensors(tensors) {}

  bool walkModel(std::string_view text);

private:
  static bool next(std::string_view &text, Field &field);

  /// Calls visit(field) for each field; false when the text is malformed or a
  /// visit fails.
  template <typename Visit> bool each(std::string_view text, Visit visit) {
    if (++depth > kMaxDepth)
      return false;
    Field field;
    while (!text.empty())
      if (!next(text, field) ||
          (field.type == WireType::Bytes && !visit(field)))
        return false;
    --depth;
    return true;
  }

  bool walkGraph(std::string_view text);
  bool walkNode(std::string_view text);
  bool walkAttribute(std::string_view text);
  bool walkSparse(std::string_view text);
  bool walkTensor(std::string_view text, bool isInitializer);
  bool walkExternal(std::string_view text, TensorRange &tensor);

  const char *begin;
  std::vector<TensorRange> &tensors;
  int depth = 0;
};

bool readVarint(std::string_view &text, uint64_t &value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !text.empty(); shift += 7) {
    uint8_t byte = text.front();
    text.remove_prefix(1);
    value |= uint64_t(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      return true;
  }
  return false;
}

bool Walker::next(std::string_view &text, Field &field) {
  uint64_t tag, length;
  if (!readVarint(text, tag) || tag >> 3 == 0)
    return false;
  field = {tag >> 3, unsigned(tag & 7), {}};
  switch (field.type) {
  case WireType::Varint:
    return readVarint(text, length);
  case WireType::Fixed64:
    length = 8;
    break;
  case WireType::Fixed32:
    length = 4;
    break;
  case WireType::Bytes:
    if (!readVarint(text, length))
      return false;
    break;
  default:
    return false;
  }
  if (length > text.size())
    return false;
  field.payload = text.substr(0, length);
  text.remove_prefix(length);
  return true;
}

bool Walker::walkModel(std::string_view text) {
  return each(text, [&](const Field &field) {
    if (field.number == ModelGraph)
      return walkGraph(field.payload);
    if (field.number != ModelFunctions)
      return true;
    return each(field.payload, [&](const Field &inner) {
      return inner.number != FunctionNode || walkNode(inner.payload);
    });
  });
}

bool Walker::walkGraph(std::string_view text) {
  return each(text, [&](const Field &field) {
    if (field.number == GraphNode)
      return walkNode(field.payload);
    if (field.number == GraphInitializer)
      return walkTensor(field.payload, /*isInitializer=*/true);
    if (field.number == GraphSparse)
      return walkSparse(field.payload);
    return true;
  });
}

bool Walker::walkNode(std::string_view text) {
  return each(text, [&](const Field &field) {
    return field.number != NodeAttribute || walkAttribute(field.payload);
  });
}

bool Walker::walkAttribute(std::string_view text) {
  return each(text, [&](const Field &field) {
    switch (field.number) {
    case AttributeTensor:
    case AttributeTensors:
      return walkTensor(field.payload, /*isInitializer=*/false);
    case AttributeGraph:
    case AttributeGraphs:
      return walkGraph(field.payload);
    case AttributeSparse:
    case AttributeSparses:
      return walkSparse(field.payload);
    default:
      return true;
    }
  });
}

bool Walker::walkSparse(std::string_view text) {
  return each(text, [&](const Field &field) {
    if (field.number != SparseValues && field.number != SparseIndices)
      return true;
    return walkTensor(field.payload, /*isInitializer=*/false);
  });
}

bool Walker::walkTensor(std::string_view text, bool isInitializer) {
  TensorRange tensor;
  tensor.isInitializer = isInitializer;
  int dataFields = 0;
  bool isWellFormed = each(text, [&](const Field &field) {
    switch (field.number) {
    case TensorName:
      tensor.name = field.payload;
      return true;
    case TensorFloatData:
    case TensorDoubleData:
    case TensorRawData:
      ++dataFields;
      tensor.offset = field.payload.data() - begin;
      tensor.length = field.payload.size();
      return true;
    case TensorExternalData:
      return walkExternal(field.payload, tensor);
    default:
      return true;
    }
  });
  if (dataFields > 1)
    tensor.length = 0;
  tensors.push_back(std::move(tensor));
  return isWellFormed;
}

bool Walker::walkExternal(std::string_view text, TensorRange &tensor) {
  std::string_view key, value;
  if (!each(text, [&](const Field &field) {
        if (field.number == EntryKey)
          key = field.payload;
        if (field.number == EntryValue)
          value = field.payload;
        return true;
      }))
    return false;
  if (key == "location") {
    tensor.location = value;
    return true;
  }
  if (key != "offset" && key != "length")
    return true;
  uint64_t number = 0;
  auto [end, status] =
      std::from_chars(value.data(), value.data() + value.size(), number);
  if (status != std::errc() || end != value.data() + value.size())
    return false;
  (key == "offset" ? tensor.offset : tensor.length) = number;
  return true;
}

} // namespace

bool penstock::runtime::findTensors(std::string_view model,
                                    std::vector<TensorRange> &tensors) {
  return Walker(model, tensors).walkModel(model);
}
