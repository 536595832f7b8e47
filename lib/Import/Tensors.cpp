//===- Tensors.cpp - Types and values of ONNX tensors ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ONNX keeps the values of a tensor as raw bytes, or in one of five typed
// lists.
//===----------------------------------------------------------------------===//

#include "ModelFile.h"

#include "penstock/Import/OperatorRegistry.h"
#include "penstock/Support/ByteSize.h"

#include "llvm/Support/CheckedArithmetic.h"

#include <cstring>

using namespace llvm;
using namespace mlir;
using namespace penstock::onnx;
using ::onnx::TensorProto;

Expected<RankedTensorType> penstock::onnx::getTensorType(MLIRContext *context,
                                                         ArrayRef<int64_t> dims,
                                                         int64_t dataType) {
  Type element = getElementType(context, dataType);
  if (!element)
    return createStringError(
        "ONNX element type " + Twine(dataType) +
        (TensorProto::DataType_IsValid(static_cast<int>(dataType))
             ? " (" +
                   TensorProto::DataType_Name(
                       static_cast<TensorProto::DataType>(dataType)) +
                   ")"
             : std::string()) +
        " is not supported; floats, integers and truth values are");
  // 2^48 elements are more than any machine holds, and far from an overflow of
  // byte counts.
  constexpr int64_t kLimit = int64_t(1) << 48;
  int64_t count = 1;
  for (int64_t dim : dims) {
    if (dim < 0)
      return createStringError("negative dimension " + Twine(dim));
    std::optional<int64_t> product =
        checkedMul(count, std::max(dim, int64_t(1)));
    if (!product || *product > kLimit)
      return createStringError("its dimensions are too large");
    count = *product;
  }
  return RankedTensorType::get(dims, element);
}

DenseElementsAttr penstock::onnx::getElements(RankedTensorType type,
                                              StringRef bytes) {
  if (!type.getNumElements())
    return DenseElementsAttr::get(type, ArrayRef<Attribute>());
  if (type.getElementType().isInteger(1)) {
    SmallVector<bool> values(map_range(bytes, [](char c) { return c != 0; }));
    return DenseElementsAttr::get(type, ArrayRef(values));
  }
  // Equal elements are stored once.
  size_t size = bytes.size() / type.getNumElements();
  StringRef first = bytes.take_front(size);
  bool splat = true;
  for (size_t at = size; splat && at < bytes.size(); at += size)
    splat = bytes.substr(at, size) == first;
  StringRef stored = splat ? first : bytes;
  return DenseElementsAttr::getFromRawBuffer(
      type, ArrayRef(stored.data(), stored.size()));
}

template <typename Value, typename List>
static std::string getImage(const List &list) {
  std::string bytes(list.size() * sizeof(Value), '\0');
  char *out = bytes.data();
  for (auto element : list) {
    Value value = Value(element);
    std::memcpy(out, &value, sizeof(Value));
    out += sizeof(Value);
  }
  return bytes;
}

static std::string getImage(const TensorProto &tensor) {
  if (tensor.has_raw_data())
    return tensor.raw_data();
  switch (tensor.data_type()) {
  case TensorProto::FLOAT:
    return getImage<float>(tensor.float_data());
  case TensorProto::DOUBLE:
    return getImage<double>(tensor.double_data());
  case TensorProto::INT64:
    return getImage<int64_t>(tensor.int64_data());
  case TensorProto::UINT64:
    return getImage<uint64_t>(tensor.uint64_data());
  case TensorProto::UINT32:
    return getImage<uint32_t>(tensor.uint64_data());
  case TensorProto::INT32:
    return getImage<int32_t>(tensor.int32_data());
  case TensorProto::FLOAT16:
  case TensorProto::BFLOAT16:
  case TensorProto::INT16:
  case TensorProto::UINT16:
    return getImage<uint16_t>(tensor.int32_data());
  default:
    return getImage<uint8_t>(tensor.int32_data());
  }
}

Expected<DenseElementsAttr>
penstock::onnx::getElements(MLIRContext *context, const TensorProto &tensor) {
  if (tensor.data_location() == TensorProto::EXTERNAL)
    return createStringError("external data outside of an initializer");
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  Expected<RankedTensorType> type =
      getTensorType(context, dims, tensor.data_type());
  if (!type)
    return type.takeError();
  int fields = int(tensor.has_raw_data()) + (tensor.float_data_size() > 0) +
               (tensor.double_data_size() > 0) +
               (tensor.int32_data_size() > 0) + (tensor.int64_data_size() > 0) +
               (tensor.uint64_data_size() > 0) +
               (tensor.string_data_size() > 0);
  if (fields > 1)
    return createStringError("it has values in more than one field; write the "
                             "file anew");
  std::string bytes = getImage(tensor);
  if (static_cast<int64_t>(bytes.size()) != getByteSize(*type))
    return createStringError("its type needs " + Twine(getByteSize(*type)) +
                             " bytes, but it has " + Twine(bytes.size()));
  return getElements(*type, bytes);
}

template <typename Word>
static bool noneHasAllBits(StringRef bytes, Word exponent) {
  bool finite = true;
  for (size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + at, sizeof(Word));
    finite &= (word & exponent) != exponent;
  }
  return finite;
}

bool penstock::onnx::allFinite(FloatType type, StringRef bytes) {
  // A float is infinite or NaN when all bits of its exponent are set.
  if (type.isF32())
    return noneHasAllBits<uint32_t>(bytes, 0x7f800000u);
  if (type.isF64())
    return noneHasAllBits<uint64_t>(bytes, 0x7ff0000000000000u);
  if (type.isF16())
    return noneHasAllBits<uint16_t>(bytes, 0x7c00);
  return noneHasAllBits<uint16_t>(bytes, 0x7f80);
}
