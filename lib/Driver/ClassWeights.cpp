//===- ClassWeights.cpp - Weights of classes from a file ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See ClassWeights.h.
//===----------------------------------------------------------------------===//

#include "ClassWeights.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Regex.h"

#include <cmath>

using namespace llvm;

/// The header is what NumPy writes for an array of one axis: a dictionary in
/// text behind its length.
static std::string readVector(StringRef bytes, std::vector<double> &values) {
  constexpr StringLiteral kMagic("\x93NUMPY");
  constexpr size_t kVersionAt = 6, kLengthAt = 8;
  if (!bytes.starts_with(kMagic) || bytes.size() < kLengthAt + 4)
    return "it is not a .npy file";
  bool isFirst = bytes[kVersionAt] == 1;
  size_t length = isFirst ? support::endian::read16le(bytes.data() + kLengthAt)
                          : support::endian::read32le(bytes.data() + kLengthAt);
  size_t begin = kLengthAt + (isFirst ? 2 : 4);
  if (length > bytes.size() - begin)
    return "its header is cut off";
  SmallVector<StringRef> found;
  StringRef header = bytes.substr(begin, length);
  if (!Regex("'descr': *'<f([48])'").match(header, &found))
    return "its elements are not float32 or float64";
  size_t size = found[1] == "4" ? sizeof(float) : sizeof(double);
  uint64_t count;
  if (!Regex("'shape': *\\(([0-9]+),\\)").match(header, &found) ||
      found[1].getAsInteger(10, count))
    return "it has not one axis";
  StringRef data = bytes.substr(begin + length);
  if (data.size() / size != count || data.size() % size != 0)
    return "its data is not of the size that its header says";
  for (uint64_t i = 0; i < count; ++i) {
    const char *at = data.data() + i * size;
    double value = size == sizeof(float)
                       ? static_cast<double>(
                             bit_cast<float>(support::endian::read32le(at)))
                       : bit_cast<double>(support::endian::read64le(at));
    if (!std::isfinite(value) || value < 0)
      return "class " + std::to_string(i) +
             " has a weight that is negative or not finite";
    values.push_back(value);
  }
  if (none_of(values, [](double value) { return value > 0; }))
    return "no class has a weight above 0";
  return "";
}

std::string penstock::readClassWeights(StringRef path,
                                       std::vector<double> &values) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
  if (!buffer)
    return buffer.getError().message();
  return readVector((*buffer)->getBuffer(), values);
}
