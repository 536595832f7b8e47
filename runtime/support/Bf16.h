//===- Bf16.h - Numbers rounded to bf16 -------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The upper half of an f32, rounded to nearest and to even, as compiled code
// and GPUs round. Numbers below the smallest normal one are zero, as they are
// in all arithmetic.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_SUPPORT_BF16_H
#define PENSTOCK_RUNTIME_SUPPORT_BF16_H

#include <cstdint>
#include <cstring>

namespace penstock::runtime {

inline uint16_t roundToBf16(float value) {
  constexpr uint32_t kExponent = 0x7f800000, kSign = 0x80000000;
  constexpr uint16_t kNaN = 0x7fc0;
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  uint32_t magnitude = bits & ~kSign;
  if (magnitude > kExponent)
    return kNaN;
  if (!(magnitude & kExponent))
    return uint16_t((bits & kSign) >> 16);
  uint32_t isOdd = (bits >> 16) & 1;
  return uint16_t((bits + 0x7fff + isOdd) >> 16);
}

inline float fromBf16(uint16_t value) {
  uint32_t bits = uint32_t(value) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

/// Rounds `count` numbers, of which neither side need be aligned.
inline void roundToBf16(char *to, const char *from, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    float value;
    std::memcpy(&value, from + i * sizeof(value), sizeof(value));
    uint16_t rounded = roundToBf16(value);
    std::memcpy(to + i * sizeof(rounded), &rounded, sizeof(rounded));
  }
}

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_SUPPORT_BF16_H
