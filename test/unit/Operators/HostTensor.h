//===- HostTensor.h - Tensors of tests --------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of operators compute with, without protobuf.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_OPERATORS_HOSTTENSOR_H
#define PENSTOCK_TEST_UNIT_OPERATORS_HOSTTENSOR_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penstock::test {

/// TensorProto.DataType.
enum DataType : int64_t {
  FLOAT = 1,
  UINT8 = 2,
  INT8 = 3,
  UINT16 = 4,
  INT16 = 5,
  INT32 = 6,
  INT64 = 7,
  BOOL = 9,
  FLOAT16 = 10,
  DOUBLE = 11,
  UINT32 = 12,
  UINT64 = 13,
  BFLOAT16 = 16
};

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

/// The bytes of an element of TensorProto.DataType; 0 when unknown.
unsigned elementBytes(int64_t dataType);

/// Element `i` when it is a float.
std::optional<double> floatAt(const HostTensor &tensor, int64_t i);

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_OPERATORS_HOSTTENSOR_H
