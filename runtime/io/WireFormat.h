//===- WireFormat.h - Where an ONNX file keeps its tensors ------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Walks the protobuf wire format of a model and lists its tensors with the byte
// ranges of their values, so that saving is copy and patch, without protobuf.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_IO_WIREFORMAT_H
#define PENSTOCK_RUNTIME_IO_WIREFORMAT_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::runtime {

/// One tensor of a model. `location` is empty for values in the model file
/// itself, where offset and length then say the range; length 0: the values are
/// not one contiguous range.
struct TensorRange {
  std::string_view name;
  bool isInitializer = false;
  std::string location;
  uint64_t offset = 0, length = 0;
};

/// False when the bytes are not a model in wire format.
bool findTensors(std::string_view model, std::vector<TensorRange> &tensors);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_IO_WIREFORMAT_H
