//===- ChecksumTest.cpp - XXH3 of 128 bits --------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every instruction set that this CPU has gives the sum of libxxhash, however
// the bytes come.
//===----------------------------------------------------------------------===//

#include "penstock/checksum.h"

#include "runtime/io/ChecksumUpdate.h"
#include "runtime/support/InstructionSets.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace penstock::runtime;

namespace {

/// Longer than the buffer of a state and than a block of stripes.
constexpr size_t kSizes[] = {0,   1,   3,   16,   17,   128,  129,   240,
                             241, 255, 256, 1023, 1024, 1025, 40037, 1 << 18};
constexpr size_t kPieces[] = {1, 7, 64, 255, 256, 1000, 1 << 18};

std::vector<char> makeBytes(size_t size) {
  std::vector<char> bytes(size);
  for (size_t i = 0; i < size; ++i)
    bytes[i] = char(i * 31 + i / 251);
  return bytes;
}

Checksum::Bytes toBytes(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  return std::to_array(canonical.digest);
}

template <typename Add>
void addInPieces(const std::vector<char> &bytes, size_t piece, Add add) {
  for (size_t at = 0; at < bytes.size(); at += piece)
    add(bytes.data() + at, std::min(piece, bytes.size() - at));
}

TEST(ChecksumTest, PrintsWhatXxhsumPrints) {
  EXPECT_EQ(getChecksumText("", 0), "99aa06d3014798d86001c324468d497f");
  for (size_t size : kSizes) {
    std::vector<char> bytes = makeBytes(size);
    Checksum checksum;
    addInPieces(bytes, 1000, [&](const char *data, size_t count) {
      checksum.add(data, count);
    });
    Checksum::Bytes expected = toBytes(XXH3_128bits(bytes.data(), size));
    EXPECT_EQ(checksum.getBytes(), expected) << size;
    EXPECT_EQ(getChecksum(bytes.data(), size), expected) << size;
    EXPECT_EQ(checksum.getText(), getChecksumText(bytes.data(), size)) << size;
  }
}

#if defined(__x86_64__)
using Update = void (*)(void *state, const void *data, size_t size);

void expectSums(Update update) {
  for (size_t size : kSizes)
    for (size_t piece : kPieces) {
      SCOPED_TRACE(testing::Message() << size << " in pieces of " << piece);
      std::vector<char> bytes = makeBytes(size);
      XXH3_state_t state;
      XXH3_128bits_reset(&state);
      addInPieces(bytes, piece, [&](const char *data, size_t count) {
        update(&state, data, count);
      });
      EXPECT_EQ(toBytes(XXH3_128bits_digest(&state)),
                toBytes(XXH3_128bits(bytes.data(), size)));
    }
}

TEST(ChecksumTest, IsThatOfEveryInstructionSet) {
  InstructionSet widest = getInstructionSet();
  if (widest == InstructionSet::Base)
    GTEST_SKIP() << "this CPU has no AVX2";
  expectSums(updateXxh3Avx2);
  if (widest == InstructionSet::Avx512)
    expectSums(updateXxh3Avx512);
}
#endif

} // namespace
