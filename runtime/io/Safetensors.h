//===- Safetensors.h - Tensors in the format of model hubs ------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Eight bytes with the length of a header, the header as JSON, and the values
// of the tensors one behind the other, little-endian and row-major. A file that
// is read is hostile until its header has been checked.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_IO_SAFETENSORS_H
#define PENSTOCK_RUNTIME_IO_SAFETENSORS_H

#include "runtime/support/Error.h"

#include <string_view>
#include <vector>

namespace penstock::runtime {

/// A header's entry of a tensor.
struct SafeTensor {
  std::string name;
  uint32_t element = 0; // as in abi.h
  std::vector<int64_t> shape;
  /// The range of its values in the file, in bytes.
  uint64_t offset = 0, bytes = 0;
};

/// "F32" and so on; null for a type that the format has not.
const char *safetensorsType(uint32_t element);
/// Returns the element type of a name; 0 for one that we do not have.
uint32_t elementOfType(std::string_view type);

/// Bytes of a value, or false where they are too many to count.
bool countBytes(uint32_t element, const std::vector<int64_t> &shape,
                uint64_t &bytes);

/// Gives the tensors, which have names, types and shapes, their offsets and
/// bytes, and returns what stands before their values, a multiple of 8 bytes.
/// Those with wider elements come first in the file, so that all are aligned.
std::string makeSafetensorsHeader(std::vector<SafeTensor> &tensors);

/// The beginning of the longest header that is read.
inline constexpr uint64_t kMostHeaderBytes = 100'000'000;

/// Returns what is wrong with a file of that size that begins with `text`, at
/// least as far as its header goes, or "". The tensors come out in the order of
/// their offsets and fill the file.
std::string readSafetensorsHeader(std::string_view text, uint64_t fileBytes,
                                  std::vector<SafeTensor> &tensors);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_IO_SAFETENSORS_H
