//===- Sha256Test.cpp - The digest of files -------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SHA-256 on the vectors of the standard, by both implementations.
//===----------------------------------------------------------------------===//

#include "penstock/sha256.h"

#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

extern "C" void penstock_sha256_portable(const void *data, uint64_t size,
                                         uint8_t digest[32]);

namespace {

std::string digestOf(const std::string &text) {
  uint8_t digest[32];
  uint8_t portable[32];
  penstock_sha256(text.data(), text.size(), digest);
  penstock_sha256_portable(text.data(), text.size(), portable);
  EXPECT_EQ(std::memcmp(digest, portable, sizeof(digest)), 0);
  std::string hex;
  for (uint8_t byte : digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

TEST(Sha256, SaysWhenAPartIsDone) {
  std::string text(33 << 20, 'p');
  uint8_t whole[32], parts[32];
  std::vector<uint64_t> ends;
  penstock_sha256(text.data(), text.size(), whole);
  penstock_sha256_in_parts(
      text.data(), text.size(), parts,
      [](void *context, uint64_t end) {
        static_cast<std::vector<uint64_t> *>(context)->push_back(end);
      },
      &ends);
  EXPECT_EQ(std::memcmp(whole, parts, sizeof(whole)), 0);
  EXPECT_EQ(ends, (std::vector<uint64_t>{16 << 20, 32 << 20}));
}

TEST(Sha256, StandardVectors) {
  EXPECT_EQ(digestOf(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495"
                          "991b7852b855");
  EXPECT_EQ(digestOf("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb"
                             "410ff61f20015ad");
  EXPECT_EQ(
      digestOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digestOf(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

} // namespace
