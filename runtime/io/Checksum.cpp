//===- Checksum.cpp - XXH3 of 128 bits ------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The header of libxxhash alone, compiled here: nothing is linked.
//===----------------------------------------------------------------------===//

#include "runtime/io/Checksum.h"

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
  XXH3_128bits_update(&state->value, data, size);
}

static std::string toText(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned char byte : canonical.digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string Checksum::getText() const {
  return toText(XXH3_128bits_digest(&state->value));
}

std::string penstock::runtime::checksumOf(const void *data, uint64_t size) {
  return toText(XXH3_128bits(data, size));
}
