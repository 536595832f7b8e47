//===- Bf16.cpp - Rounding of f32 to bf16 ---------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiled code calls it on processors without the instruction, which is there
// from AVX512-BF16 on. The libgcc of GCC 12 and older does not have it.
//===----------------------------------------------------------------------===//

#include <bit>
#include <cstdint>

// A bf16 is returned in the lowest bits of a vector register, as a float is:
// GCC 12 has no type for it.
extern "C" __attribute__((weak, visibility("default"))) float
__truncsfbf2(float value); // NOLINT(bugprone-reserved-identifier)

/// Rounds to nearest, ties to even. A NaN stays one, and becomes quiet.
extern "C" float
__truncsfbf2(float value) { // NOLINT(bugprone-reserved-identifier)
  auto bits = std::bit_cast<uint32_t>(value);
  bool isNan = (bits & 0x7fffffffU) > 0x7f800000U;
  uint32_t rounded =
      isNan ? bits | 0x400000U : bits + 0x7fffU + ((bits >> 16) & 1U);
  return std::bit_cast<float>(rounded >> 16);
}
