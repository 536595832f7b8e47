//===- WireFormat.cpp - Where the weights are in a model file -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads just enough of the encoding: tags, lengths, and the fields of a
// TensorProto. Everything else is copied into the skeleton unread.
//===----------------------------------------------------------------------===//

#include "WireFormat.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

using namespace llvm;
using namespace penstock::onnx;

namespace {

enum WireType { Varint = 0, Fixed64 = 1, Delimited = 2, Fixed32 = 5 };

// Field numbers of onnx.proto.
constexpr uint64_t kModelGraph = 7;
constexpr uint64_t kGraphNode = 1;
constexpr uint64_t kGraphInitializer = 5;
constexpr uint64_t kGraphInput = 11;
constexpr uint64_t kGraphValueInfo = 13;
constexpr uint64_t kGraphSparseInitializer = 15;
constexpr uint64_t kGraphMetadata = 16;
constexpr uint64_t kNodeName = 3;
constexpr uint64_t kNodeOperator = 4;
constexpr uint64_t kNodeMetadata = 9;
constexpr uint64_t kValueName = 1;
constexpr uint64_t kValueMetadata = 4;
constexpr uint64_t kTensorDims = 1;
constexpr uint64_t kTensorDataType = 2;
constexpr uint64_t kTensorSegment = 3;
constexpr uint64_t kTensorFloatData = 4;
constexpr uint64_t kTensorInt32Data = 5;
constexpr uint64_t kTensorStringData = 6;
constexpr uint64_t kTensorInt64Data = 7;
constexpr uint64_t kTensorName = 8;
constexpr uint64_t kTensorRawData = 9;
constexpr uint64_t kTensorDoubleData = 10;
constexpr uint64_t kTensorUint64Data = 11;
constexpr uint64_t kTensorExternalData = 13;
constexpr uint64_t kTensorDataLocation = 14;

struct Field {
  uint64_t number = 0;
  unsigned type = 0;
  /// Where its tag begins.
  uint64_t begin = 0;
  /// The value of a varint; the position of the payload of the others.
  uint64_t value = 0;
  uint64_t length = 0;
};

/// Reads the fields of one message, which is the range [position, end).
class FieldReader {
public:
  FieldReader(StringRef bytes, uint64_t begin, uint64_t end)
      : bytes(bytes), position(begin), end(end) {}
  FieldReader(StringRef bytes, const Field &message)
      : FieldReader(bytes, message.value, message.value + message.length) {}

  bool done() const { return position == end; }
  uint64_t getPosition() const { return position; }

  Error read(Field &field) {
    field = Field();
    field.begin = position;
    uint64_t tag;
    if (Error error = readVarint(tag))
      return error;
    field.number = tag >> 3;
    field.type = tag & 7;
    if (field.number == 0)
      return fail(field.begin, "field number 0");
    switch (field.type) {
    case Varint:
      return readVarint(field.value);
    case Fixed64:
      field.length = 8;
      break;
    case Fixed32:
      field.length = 4;
      break;
    case Delimited:
      if (Error error = readVarint(field.length))
        return error;
      break;
    default:
      return fail(field.begin, "unknown wire type");
    }
    field.value = position;
    if (field.length > end - position)
      return fail(field.begin, "a field runs beyond the end: the file is "
                               "truncated or corrupt");
    position += field.length;
    return Error::success();
  }

  Error readVarint(uint64_t &value) {
    value = 0;
    uint64_t begin = position;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (position == end)
        return fail(begin, "it ends within a number: the file is truncated or "
                           "corrupt");
      uint8_t byte = bytes[position++];
      value |= uint64_t(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return Error::success();
    }
    return fail(begin, "a number of more than 64 bits");
  }

  static Error fail(uint64_t at, const Twine &what) {
    return createStringError("not an ONNX model: byte " + Twine(at) + ": " +
                             what);
  }

private:
  StringRef bytes;
  uint64_t position;
  uint64_t end;
};

} // namespace

static StringRef payload(StringRef bytes, const Field &field) {
  return bytes.substr(field.value, field.length);
}

static Error expectDelimited(const Field &field, StringRef what) {
  if (field.type == Delimited)
    return Error::success();
  return FieldReader::fail(field.begin, "unexpected encoding of " + what);
}

static Error readDims(StringRef bytes, const Field &field,
                      SmallVectorImpl<int64_t> &dims) {
  if (field.type == Varint) {
    dims.push_back(field.value);
    return Error::success();
  }
  if (Error error = expectDelimited(field, "dims"))
    return error;
  FieldReader packed(bytes, field);
  while (!packed.done()) {
    uint64_t dim;
    if (Error error = packed.readVarint(dim))
      return error;
    dims.push_back(dim);
  }
  return Error::success();
}

/// The strings of a message, by field number, and the pairs of strings that one
/// of its fields repeats.
struct Texts {
  std::map<uint64_t, StringRef> strings;
  SmallVector<std::pair<StringRef, StringRef>> pairs;
};

static Error readTexts(StringRef bytes, const Field &message, Texts &texts,
                       uint64_t pairField = 0) {
  FieldReader reader(bytes, message);
  while (!reader.done()) {
    Field field;
    if (Error error = reader.read(field))
      return error;
    if (field.type != Delimited)
      continue;
    texts.strings[field.number] = payload(bytes, field);
    if (field.number != pairField)
      continue;
    Texts pair;
    if (Error error = readTexts(bytes, field, pair))
      return error;
    texts.pairs.push_back({pair.strings[1], pair.strings[2]});
  }
  return Error::success();
}

/// Returns true for a field with values of a tensor.
static bool isTensorData(const Field &field) {
  switch (field.number) {
  case kTensorRawData:
  case kTensorFloatData:
  case kTensorDoubleData:
  case kTensorInt32Data:
  case kTensorStringData:
  case kTensorInt64Data:
  case kTensorUint64Data:
    return field.type != Delimited || field.length;
  default:
    return false;
  }
}

static Error readTensor(StringRef bytes, const Field &message,
                        TensorRecord &tensor) {
  tensor.messageOffset = message.value;
  tensor.messageLength = message.length;
  // Raw bytes win; a typed list is a byte image when it is one packed run of
  // little-endian floats.
  bool raw = false;
  unsigned runs = 0;
  bool decoded = false;
  // Readers differ in which of two lists of values they take.
  std::optional<uint64_t> values;
  bool isAmbiguous = false;
  FieldReader reader(bytes, message);
  while (!reader.done()) {
    Field field;
    if (Error error = reader.read(field))
      return error;
    if (isTensorData(field)) {
      isAmbiguous |= values && *values != field.number;
      values = field.number;
    }
    switch (field.number) {
    case kTensorDims:
      if (Error error = readDims(bytes, field, tensor.dims))
        return error;
      break;
    case kTensorDataType:
      tensor.dataType = field.type == Varint ? int64_t(field.value) : 0;
      break;
    case kTensorName:
      if (Error error = expectDelimited(field, "a name"))
        return error;
      tensor.name = payload(bytes, field).str();
      break;
    case kTensorRawData:
      if (Error error = expectDelimited(field, "raw_data"))
        return error;
      raw = true;
      tensor.offset = field.value;
      tensor.length = field.length;
      break;
    case kTensorFloatData:
    case kTensorDoubleData:
      if (field.type != Delimited) {
        decoded = true;
        break;
      }
      if (!field.length)
        break;
      ++runs;
      if (!raw) {
        tensor.offset = field.value;
        tensor.length = field.length;
      }
      break;
    case kTensorInt32Data:
    case kTensorStringData:
    case kTensorInt64Data:
    case kTensorUint64Data:
    case kTensorSegment:
      decoded |= field.type != Delimited || field.length;
      break;
    case kTensorExternalData: {
      Texts entry;
      if (Error error = expectDelimited(field, "external_data"))
        return error;
      if (Error error = readTexts(bytes, field, entry))
        return error;
      tensor.externalData.push_back(
          {entry.strings[1].str(), entry.strings[2].str()});
      break;
    }
    case kTensorDataLocation:
      tensor.external = field.type == Varint && field.value == 1;
      break;
    }
  }
  if (isAmbiguous)
    return createStringError("initializer '" + tensor.name +
                             "' has values in more than one field; write the "
                             "file anew");
  tensor.hasBytes = !tensor.external && (raw || (runs <= 1 && !decoded));
  // float_data of anything but float32 is an encoding, not an image; so it is
  // with double_data.
  constexpr int64_t kFloat = 1, kDouble = 11;
  if (!raw && runs && tensor.dataType != kFloat && tensor.dataType != kDouble)
    tensor.hasBytes = false;
  return Error::success();
}

/// Reads what `torch.export` took a value for, and what it was folded from.
/// Libonnx 1.12 knows no metadata of values yet.
static Error readValueInfo(StringRef bytes, const Field &message,
                           ModelRecord &model) {
  Texts texts;
  if (Error error = readTexts(bytes, message, texts, kValueMetadata))
    return error;
  std::string name = texts.strings[kValueName].str();
  StringRef kind;
  for (auto [key, value] : texts.pairs) {
    if (key == "pkg.torch.export.graph_signature.InputSpec.kind")
      kind = value;
    if (key == "pkg.onnxscript.optimizer.folded_from")
      model.folded.push_back({name, value.str()});
  }
  if (kind == "BUFFER" || kind == "CONSTANT_TENSOR")
    model.buffers.push_back(std::move(name));
  else if (kind == "PARAMETER")
    model.parameters.push_back(std::move(name));
  return Error::success();
}

/// Reads which rule of the exporter's optimizer made the node. Libonnx 1.12
/// knows no metadata of nodes either.
static Error readNode(StringRef bytes, const Field &message,
                      ModelRecord &model) {
  Texts texts;
  if (Error error = readTexts(bytes, message, texts, kNodeMetadata))
    return error;
  bool holdsNorm = any_of(texts.pairs, [](auto pair) {
    return pair.first == "pkg.onnxscript.rewriter.rule_name" &&
           pair.second.contains("FuseBatchNorm");
  });
  StringRef name = texts.strings[kNodeName];
  if (holdsNorm)
    model.foldedNorms.push_back(
        (name.empty() ? texts.strings[kNodeOperator] : name).str());
  return Error::success();
}

static void appendVarint(std::string &out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out.push_back(char(value | 0x80));
  out.push_back(char(value));
}

static Error readGraph(StringRef bytes, const Field &message,
                       ModelRecord &model, std::string &skeleton) {
  FieldReader reader(bytes, message);
  while (!reader.done()) {
    Field field;
    if (Error error = reader.read(field))
      return error;
    if (field.number == kGraphInitializer) {
      if (Error error = expectDelimited(field, "an initializer"))
        return error;
      TensorRecord tensor;
      if (Error error = readTensor(bytes, field, tensor))
        return error;
      model.initializers.push_back(std::move(tensor));
      continue;
    }
    if ((field.number == kGraphInput || field.number == kGraphValueInfo) &&
        field.type == Delimited)
      if (Error error = readValueInfo(bytes, field, model))
        return error;
    if (field.number == kGraphNode && field.type == Delimited)
      if (Error error = readNode(bytes, field, model))
        return error;
    if (field.number == kGraphMetadata && field.type == Delimited) {
      Texts entry;
      if (Error error = readTexts(bytes, field, entry))
        return error;
      if (entry.strings[1] ==
          "pkg.torch.export.ExportedProgram.graph_signature")
        model.signature = entry.strings[2].str();
    }
    model.hasSparseInitializers |= field.number == kGraphSparseInitializer;
    skeleton +=
        bytes.substr(field.begin, reader.getPosition() - field.begin).str();
  }
  return Error::success();
}

Expected<ModelRecord> penstock::onnx::walkModel(StringRef bytes) {
  ModelRecord model;
  bool hasGraph = false;
  FieldReader reader(bytes, 0, bytes.size());
  while (!reader.done()) {
    Field field;
    if (Error error = reader.read(field))
      return std::move(error);
    if (field.number != kModelGraph) {
      model.skeleton +=
          bytes.substr(field.begin, reader.getPosition() - field.begin).str();
      continue;
    }
    if (Error error = expectDelimited(field, "the graph"))
      return std::move(error);
    if (hasGraph)
      return FieldReader::fail(field.begin, "a second graph");
    hasGraph = true;
    std::string graph;
    if (Error error = readGraph(bytes, field, model, graph))
      return std::move(error);
    appendVarint(model.skeleton, (kModelGraph << 3) | Delimited);
    appendVarint(model.skeleton, graph.size());
    model.skeleton += graph;
  }
  if (!hasGraph)
    return createStringError("not an ONNX model: it has no graph");
  return std::move(model);
}
