//===- WireFormatTest.cpp - Byte ranges in models, and the digest ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The walker on models written field by field, whole and damaged, and SHA-256
// on the vectors of the standard.
//===----------------------------------------------------------------------===//

#include "runtime/io/WireFormat.h"
#include "TestFiles.h"
#include "penstock/sha256.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace penstock::runtime;
using namespace penstock::test;

extern "C" void penstock_sha256_portable(const void *data, uint64_t size,
                                         uint8_t digest[32]);

namespace {

std::string model(const std::string &graph) {
  return varintField(1, 10) + bytesField(7, graph) + bytesField(2, "made");
}

TEST(WireFormat, FindsInitializers) {
  std::string raw = bytesField(8, "raw") + bytesField(9, "abcdefgh");
  std::string packed = bytesField(4, "12345678") + bytesField(8, "packed");
  std::string external =
      bytesField(8, "external") +
      bytesField(13, bytesField(1, "location") + bytesField(2, "w/a.data")) +
      bytesField(13, bytesField(1, "offset") + bytesField(2, "4096")) +
      bytesField(13, bytesField(1, "length") + bytesField(2, "12")) +
      bytesField(13, bytesField(1, "checksum") + bytesField(2, "x"));
  std::string text = model(bytesField(5, raw) + bytesField(5, packed) +
                           bytesField(5, external));
  std::vector<TensorRange> tensors;
  ASSERT_TRUE(findTensors(text, tensors));
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[0].name, "raw");
  EXPECT_TRUE(tensors[0].isInitializer);
  EXPECT_EQ(text.substr(tensors[0].offset, tensors[0].length), "abcdefgh");
  EXPECT_EQ(text.substr(tensors[1].offset, tensors[1].length), "12345678");
  EXPECT_EQ(tensors[2].location, "w/a.data");
  EXPECT_EQ(tensors[2].offset, 4096u);
  EXPECT_EQ(tensors[2].length, 12u);
}

// Tensors also stand in attributes, subgraphs, functions and sparse tensors.
TEST(WireFormat, FindsTensorsEverywhere) {
  auto tensor = [](const char *name) {
    return bytesField(8, name) + bytesField(9, name);
  };
  std::string node = bytesField(5, bytesField(5, tensor("attribute")));
  std::string branch = bytesField(
      5, bytesField(6, bytesField(5, tensor("branch")) + bytesField(1, node)));
  std::string sparse = bytesField(15, bytesField(1, tensor("values")) +
                                          bytesField(2, tensor("indices")));
  std::string text = model(bytesField(1, branch) + sparse) +
                     bytesField(25, bytesField(7, node));
  std::vector<TensorRange> tensors;
  ASSERT_TRUE(findTensors(text, tensors));
  std::vector<std::string> names;
  for (const TensorRange &each : tensors)
    names.emplace_back(each.name);
  EXPECT_EQ(names, (std::vector<std::string>{"branch", "attribute", "values",
                                             "indices", "attribute"}));
}

TEST(WireFormat, ValuesInPiecesHaveNoRange) {
  std::string text = model(bytesField(
      5, bytesField(4, "1234") + bytesField(4, "5678") + bytesField(8, "w")));
  std::vector<TensorRange> tensors;
  ASSERT_TRUE(findTensors(text, tensors));
  EXPECT_EQ(tensors[0].length, 0u);
}

TEST(WireFormat, RefusesDamagedText) {
  std::string good = model(bytesField(5, bytesField(9, "abcdefgh")));
  std::vector<TensorRange> tensors;
  for (size_t cut = 1; cut + 7 < good.size(); ++cut) {
    std::string bad = good.substr(0, cut);
    // Cuts between two top-level fields leave a shorter model.
    if (cut == varintField(1, 10).size())
      continue;
    EXPECT_FALSE(findTensors(bad, tensors)) << cut;
  }
  EXPECT_FALSE(findTensors("\x07", tensors));
  EXPECT_FALSE(findTensors("{\"json\": 1}", tensors));
  std::string deep;
  for (int i = 0; i < 200; ++i)
    deep = bytesField(1, bytesField(5, bytesField(6, deep)));
  EXPECT_FALSE(findTensors(model(deep), tensors));
}

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
  int count = 0;
  penstock_sha256(text.data(), text.size(), whole);
  penstock_sha256_in_parts(
      text.data(), text.size(), parts,
      [](void *context) { ++*static_cast<int *>(context); }, &count);
  EXPECT_EQ(std::memcmp(whole, parts, sizeof(whole)), 0);
  EXPECT_EQ(count, 2);
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
