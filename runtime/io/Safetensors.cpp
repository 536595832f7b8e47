//===- Safetensors.cpp - Tensors in the format of model hubs --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// https://github.com/huggingface/safetensors, section "Format".
//===----------------------------------------------------------------------===//

#include "runtime/io/Safetensors.h"

#include "runtime/io/Json.h"
#include "runtime/io/Npy.h"

#include <algorithm>
#include <cstring>
#include <numeric>

using namespace penstock::runtime;

namespace {
struct TypeName {
  uint32_t element;
  const char *name;
};
} // namespace

static constexpr TypeName kTypes[] = {
    {PENSTOCK_F64, "F64"},   {PENSTOCK_F32, "F32"}, {PENSTOCK_F16, "F16"},
    {PENSTOCK_BF16, "BF16"}, {PENSTOCK_I64, "I64"}, {PENSTOCK_I32, "I32"},
    {PENSTOCK_I16, "I16"},   {PENSTOCK_I8, "I8"},   {PENSTOCK_U64, "U64"},
    {PENSTOCK_U32, "U32"},   {PENSTOCK_U16, "U16"}, {PENSTOCK_U8, "U8"},
    {PENSTOCK_BOOL, "BOOL"}};

const char *penstock::runtime::safetensorsType(uint32_t element) {
  for (const TypeName &type : kTypes)
    if (type.element == element)
      return type.name;
  return nullptr;
}

uint32_t penstock::runtime::elementOfType(std::string_view name) {
  for (const TypeName &type : kTypes)
    if (type.name == name)
      return type.element;
  return 0;
}

bool penstock::runtime::countBytes(uint32_t element,
                                   const std::vector<int64_t> &shape,
                                   uint64_t &bytes) {
  bytes = elementBytes(element);
  // An extent of zero makes no other one legal.
  uint64_t largest = 1;
  for (int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, uint64_t(extent), &bytes) ||
        __builtin_mul_overflow(largest, uint64_t(std::max<int64_t>(extent, 1)),
                               &largest))
      return false;
  }
  return largest <= uint64_t(INT64_MAX) / 8;
}

std::string
penstock::runtime::makeSafetensorsHeader(std::vector<SafeTensor> &tensors) {
  // 1. An order in which every element is aligned.
  std::vector<SafeTensor> ordered;
  for (uint64_t width : {8, 4, 2, 1})
    for (SafeTensor &tensor : tensors)
      if (elementBytes(tensor.element) == width)
        ordered.push_back(std::move(tensor));
  tensors = std::move(ordered);
  uint64_t end = 0;
  std::string text = "{";
  for (SafeTensor &tensor : tensors) {
    countBytes(tensor.element, tensor.shape, tensor.bytes);
    tensor.offset = end;
    end += tensor.bytes;
    text += text.size() > 1 ? "," : "";
    text += quoteJson(tensor.name) + ":{\"dtype\":\"" +
            safetensorsType(tensor.element) + "\",\"shape\":[";
    for (size_t i = 0; i < tensor.shape.size(); ++i)
      text += (i ? "," : "") + std::to_string(tensor.shape[i]);
    text += "],\"data_offsets\":[" + std::to_string(tensor.offset) + "," +
            std::to_string(end) + "]}";
  }
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');

  // 2. Its length, and where the file has the values.
  std::string header(8, '\0');
  for (int i = 0; i < 8; ++i)
    header[i] = char(uint64_t(text.size()) >> (8 * i) & 0xff);
  header += text;
  for (SafeTensor &tensor : tensors)
    tensor.offset += header.size();
  return header;
}

/// Reads a header's entry of one tensor. Returns its error, or "".
static std::string readTensor(const Json &entry, SafeTensor &tensor) {
  std::string type;
  std::vector<int64_t> offsets;
  if (!getMember(entry, "dtype", type) ||
      !getMember(entry, "shape", tensor.shape) ||
      !getMember(entry, "data_offsets", offsets) || offsets.size() != 2 ||
      entry.size() != 3)
    return "needs 'dtype', 'shape' and two 'data_offsets'";
  tensor.element = elementOfType(type);
  if (!tensor.element)
    return "has the unknown type '" + type + "'";
  if (!countBytes(tensor.element, tensor.shape, tensor.bytes))
    return "has a shape that is too large";
  tensor.offset = uint64_t(offsets[0]);
  if (offsets[1] < offsets[0] ||
      uint64_t(offsets[1]) - tensor.offset != tensor.bytes)
    return format("has offsets %lld to %lld, but its type and shape take %llu "
                  "bytes",
                  (long long)offsets[0], (long long)offsets[1],
                  (unsigned long long)tensor.bytes);
  return "";
}

std::string
penstock::runtime::readSafetensorsHeader(std::string_view text,
                                         uint64_t fileBytes,
                                         std::vector<SafeTensor> &tensors) {
  // 1. The text.
  tensors.clear();
  if (text.size() < 8)
    return "it is cut: it has no header";
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | uint8_t(text[i]);
  if (length > kMostHeaderBytes)
    return format("its header of %llu bytes is too long",
                  (unsigned long long)length);
  if (length > text.size() - 8)
    return "it is cut: its header goes beyond its end";
  std::string_view header = text.substr(8, length);
  if (header.empty() || header[0] != '{')
    return "its header does not begin with '{'";
  Json entries;
  if (std::string problem = parseJson(header, entries); !problem.empty())
    return "its header cannot be read: " + problem;

  // 2. Each tensor.
  for (const auto &[name, entry] : entries.items()) {
    if (name == "__metadata__")
      continue;
    SafeTensor &tensor = tensors.emplace_back();
    tensor.name = name;
    if (std::string problem = readTensor(entry, tensor); !problem.empty())
      return "tensor '" + name + "' " + problem;
  }

  // 3. They fill the file, without holes.
  std::sort(tensors.begin(), tensors.end(),
            [](const SafeTensor &a, const SafeTensor &b) {
              return std::pair(a.offset, a.bytes) <
                     std::pair(b.offset, b.bytes);
            });
  uint64_t end = 0;
  for (SafeTensor &tensor : tensors) {
    if (tensor.offset != end)
      return "tensor '" + tensor.name +
             "' does not begin where the one before "
             "it ends";
    if (__builtin_add_overflow(end, tensor.bytes, &end))
      return "tensor '" + tensor.name + "' ends outside of the file";
    tensor.offset += 8 + length;
  }
  if (end != fileBytes - 8 - length)
    return format("it holds %llu bytes of values, its header speaks of %llu",
                  (unsigned long long)(fileBytes - 8 - length),
                  (unsigned long long)end);
  return "";
}
