//===- CompilerCalls.cpp - Calls of LLVM's code generator -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GCC 12 has no type for a bf16. A float is returned in the same register.
//===----------------------------------------------------------------------===//

#include "runtime/support/CompilerCalls.h"

#include <bit>
#include <cstdint>

// Only the definition is weak: a caller has to find one.
__attribute__((weak)) float
__truncsfbf2(float value) { // NOLINT(bugprone-reserved-identifier)
  auto bits = std::bit_cast<uint32_t>(value);
  bool isNan = (bits & 0x7fffffffU) > 0x7f800000U;
  uint32_t rounded =
      isNan ? bits | 0x400000U : bits + 0x7fffU + ((bits >> 16) & 1U);
  return std::bit_cast<float>(rounded >> 16);
}
