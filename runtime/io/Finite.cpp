//===- Finite.cpp - Values that are no numbers ----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// IEEE formats have all bits of the exponent set in such values.
//===----------------------------------------------------------------------===//

#include "runtime/io/Finite.h"

#include <cstring>

using namespace penstock::runtime;

template <typename Bits>
static bool areFinite(const char *values, uint64_t bytes, Bits exponent) {
  bool result = true;
  for (uint64_t at = 0; at + sizeof(Bits) <= bytes; at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, values + at, sizeof(Bits));
    result &= (bits & exponent) != exponent;
  }
  return result;
}

bool penstock::runtime::areFinite(const penstock_tensor &type,
                                  const char *values) {
  switch (type.element) {
  case PENSTOCK_F32:
    return ::areFinite<uint32_t>(values, type.bytes, 0x7f800000u);
  case PENSTOCK_F64:
    return ::areFinite<uint64_t>(values, type.bytes, 0x7ff0000000000000u);
  case PENSTOCK_F16:
    return ::areFinite<uint16_t>(values, type.bytes, 0x7c00u);
  case PENSTOCK_BF16:
    return ::areFinite<uint16_t>(values, type.bytes, 0x7f80u);
  default:
    return true;
  }
}
