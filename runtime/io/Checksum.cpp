//===- Checksum.cpp - XXH3 of 128 bits ------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The header of libxxhash alone, compiled here: nothing is linked.
//===----------------------------------------------------------------------===//

#include "penstock/checksum.h"

#include "runtime/io/ChecksumUpdate.h"
#include "runtime/support/InstructionSets.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace penstock::runtime;

struct Checksum::State {
  XXH3_state_t value;
};

Checksum::Checksum() : state(std::make_unique<State>()) {
  XXH3_128bits_reset(&state->value);
}

Checksum::~Checksum() = default;

void Checksum::add(const void *data, uint64_t size) {
#if defined(__x86_64__)
  if (getInstructionSet() == InstructionSet::Avx512)
    return updateXxh3Avx512(&state->value, data, size);
  if (getInstructionSet() == InstructionSet::Avx2)
    return updateXxh3Avx2(&state->value, data, size);
#endif
  XXH3_128bits_update(&state->value, data, size);
}

static Checksum::Bytes toBytes(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  return std::to_array(canonical.digest);
}

static std::string toText(const Checksum::Bytes &bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Checksum::Bytes Checksum::getBytes() const {
  return toBytes(XXH3_128bits_digest(&state->value));
}

std::string Checksum::getText() const { return toText(getBytes()); }

Checksum::Bytes penstock::runtime::getChecksum(const void *data,
                                               uint64_t size) {
  Checksum checksum;
  checksum.add(data, size);
  return checksum.getBytes();
}

std::string penstock::runtime::getChecksumText(const void *data,
                                               uint64_t size) {
  return toText(getChecksum(data, size));
}
