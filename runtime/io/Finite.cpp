//===- Finite.cpp - Values that are no numbers ----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// IEEE formats have all bits of the exponent set in such values.
//===----------------------------------------------------------------------===//

#include "runtime/io/Finite.h"

#include "runtime/support/InstructionSets.h"

#include <cstring>

using namespace penstock::runtime;

namespace {

template <typename Bits>
PENSTOCK_INLINE bool hasExponent(const char *values, uint64_t bytes,
                                 Bits exponent) {
  constexpr uint64_t kVectorBytes = 64, kVectors = 4;
  typedef Bits Vector __attribute__((vector_size(kVectorBytes)));
  auto find = [&](const char *from, uint64_t count, auto &found)
                  __attribute__((always_inline)) {
                    Vector vector = {};
                    std::memcpy(&vector, from, count);
                    found |= (vector & exponent) == exponent;
                  };
  // Into the nearest cache only: what the next ones hold, such as the message
  // that another process copies from here meanwhile, is not pushed out.
  constexpr uint64_t kAhead = 2048;
  decltype(Vector{} == Vector{}) found[kVectors] = {};
  uint64_t at = 0;
  for (; at + kVectors * kVectorBytes <= bytes; at += kVectors * kVectorBytes)
    for (uint64_t i = 0; i < kVectors; ++i) {
      __builtin_prefetch(values + at + i * kVectorBytes + kAhead, /*rw=*/0,
                         /*locality=*/0);
      find(values + at + i * kVectorBytes, kVectorBytes, found[i]);
    }
  for (; at + kVectorBytes <= bytes; at += kVectorBytes)
    find(values + at, kVectorBytes, found[0]);
  find(values + at, bytes - at, found[0]);
  found[0] |= found[1] | found[2] | found[3];
  Bits any = 0;
  for (uint64_t i = 0; i < kVectorBytes / sizeof(Bits); ++i)
    any |= Bits(found[0][i]);
  return any != 0;
}

PENSTOCK_INLINE bool areFiniteBody(const penstock_tensor &type,
                                   const char *values) {
  switch (type.element) {
  case PENSTOCK_F32:
    return !hasExponent<uint32_t>(values, type.bytes, 0x7f800000u);
  case PENSTOCK_F64:
    return !hasExponent<uint64_t>(values, type.bytes, 0x7ff0000000000000u);
  case PENSTOCK_F16:
    return !hasExponent<uint16_t>(values, type.bytes, 0x7c00u);
  case PENSTOCK_BF16:
    return !hasExponent<uint16_t>(values, type.bytes, 0x7f80u);
  default:
    return true;
  }
}

} // namespace

PENSTOCK_FOR_INSTRUCTION_SETS(bool, areFinite,
                              (const penstock_tensor &type, const char *values),
                              (type, values),
                              return areFiniteBody(type, values);)
