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
  // Blocks of a fixed size become vectors.
  constexpr uint64_t kBlock = 256;
  Bits block[kBlock / sizeof(Bits)];
  auto hasOther = [&](uint64_t count) {
    Bits found = 0;
    for (uint64_t i = 0; i < count; ++i)
      found |= (block[i] & exponent) == exponent;
    return found != 0;
  };
  uint64_t at = 0;
  for (; at + kBlock <= bytes; at += kBlock) {
    std::memcpy(block, values + at, kBlock);
    if (hasOther(kBlock / sizeof(Bits)))
      return false;
  }
  std::memcpy(block, values + at, bytes - at);
  return !hasOther((bytes - at) / sizeof(Bits));
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
