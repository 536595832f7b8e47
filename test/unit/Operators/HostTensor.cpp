//===- HostTensor.cpp - Tensors of tests ----------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See HostTensor.h.
//===----------------------------------------------------------------------===//

#include "HostTensor.h"

#include "llvm/ADT/APFloat.h"

#include <cstring>

using namespace penstock::test;

unsigned penstock::test::elementBytes(int64_t dataType) {
  switch (dataType) {
  case UINT8:
  case INT8:
  case BOOL:
    return 1;
  case UINT16:
  case INT16:
  case FLOAT16:
  case BFLOAT16:
    return 2;
  case FLOAT:
  case INT32:
  case UINT32:
    return 4;
  case DOUBLE:
  case INT64:
  case UINT64:
    return 8;
  default:
    return 0;
  }
}

static double halfToDouble(uint16_t bits, bool brain) {
  llvm::APFloat value(brain ? llvm::APFloat::BFloat()
                            : llvm::APFloat::IEEEhalf(),
                      llvm::APInt(16, bits));
  bool losesInfo;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}

std::optional<double> penstock::test::floatAt(const HostTensor &tensor,
                                              int64_t i) {
  const char *data = tensor.bytes.data() + i * elementBytes(tensor.dataType);
  auto as = [&](auto value) {
    std::memcpy(&value, data, sizeof(value));
    return value;
  };
  switch (tensor.dataType) {
  case FLOAT:
    return as(float());
  case DOUBLE:
    return as(double());
  case FLOAT16:
    return halfToDouble(as(uint16_t()), false);
  case BFLOAT16:
    return halfToDouble(as(uint16_t()), true);
  default:
    return std::nullopt;
  }
}
