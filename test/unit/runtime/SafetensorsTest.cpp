//===- SafetensorsTest.cpp - Tensors in the format of model hubs ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is written is read back; what nobody wrote is refused by name.
//===----------------------------------------------------------------------===//

#include "runtime/io/Safetensors.h"

#include <gtest/gtest.h>

using namespace penstock::runtime;

namespace {

/// A file with that header and as many bytes of values as asked for.
std::string fileOf(std::string_view header, size_t values) {
  std::string file(8, '\0');
  for (int i = 0; i < 8; ++i)
    file[i] = char(uint64_t(header.size()) >> (8 * i) & 0xff);
  return file + std::string(header) + std::string(values, 'x');
}

std::string problemOf(std::string_view file) {
  std::vector<SafeTensor> tensors;
  return readSafetensorsHeader(file, file.size(), tensors);
}

std::string problemOf(std::string_view header, size_t values) {
  return problemOf(fileOf(header, values));
}

TEST(Safetensors, ReadsWhatItWrites) {
  std::vector<SafeTensor> tensors = {{"bytes", PENSTOCK_U8, {3}},
                                     {"flags", PENSTOCK_BOOL, {2, 0, 5}},
                                     {"w \"1\"\n/ü", PENSTOCK_F32, {3, 5}},
                                     {"half", PENSTOCK_BF16, {7}},
                                     {"scalar", PENSTOCK_F64, {}},
                                     {"counts", PENSTOCK_I64, {2}}};
  std::string header = makeSafetensorsHeader(tensors);
  EXPECT_EQ(header.size() % 8, 0u);
  // The widest elements come first, so that all are aligned.
  std::vector<std::string> names;
  uint64_t end = header.size();
  for (const SafeTensor &tensor : tensors) {
    names.push_back(tensor.name);
    EXPECT_EQ(tensor.offset, end);
    end += tensor.bytes;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"scalar", "counts", "w \"1\"\n/ü",
                                             "half", "bytes", "flags"}));
  EXPECT_EQ(end - header.size(), 8u + 16 + 60 + 14 + 3 + 0);

  std::vector<SafeTensor> again;
  ASSERT_EQ(readSafetensorsHeader(header + std::string(101, 'x'), end, again),
            "");
  ASSERT_EQ(again.size(), tensors.size());
  for (size_t i = 0; i < again.size(); ++i) {
    EXPECT_EQ(again[i].name, tensors[i].name);
    EXPECT_EQ(again[i].element, tensors[i].element);
    EXPECT_EQ(again[i].shape, tensors[i].shape);
    EXPECT_EQ(again[i].offset, tensors[i].offset);
    EXPECT_EQ(again[i].bytes, tensors[i].bytes);
  }
}

TEST(Safetensors, ReadsWhatOthersWrite) {
  EXPECT_EQ(problemOf(R"({})", 0), "");
  EXPECT_EQ(
      problemOf(R"({"__metadata__":{"format":"pt"},)"
                R"("a":{"dtype":"F16","shape":[2],"data_offsets":[4,8]},)"
                R"("b":{"shape":[],"data_offsets":[0,4],"dtype":"I32"}} )",
                8),
      "");
}

TEST(Safetensors, RefusesTheRest) {
  auto one = [](const char *entry, size_t values) {
    return problemOf("{\"a\":" + std::string(entry) + "}", values);
  };
  EXPECT_EQ(problemOf("1234567"), "it is cut: it has no header");
  EXPECT_EQ(problemOf(fileOf("{}   ", 0).substr(0, 10)),
            "it is cut: its header goes beyond its end");
  EXPECT_EQ(problemOf(std::string(7, '\0') + "\x01{}"),
            "its header of 72057594037927936 bytes is too long");
  EXPECT_EQ(problemOf(" {}", 0), "its header does not begin with '{'");
  EXPECT_EQ(problemOf("{]", 0), "its header cannot be read: it is not JSON");
  EXPECT_EQ(
      problemOf("{\"a\":" + std::string(99, '[') + std::string(99, ']') + "}",
                0),
      "its header cannot be read: it is nested too deeply");
  EXPECT_EQ(problemOf(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
                      4),
            "its header cannot be read: it has 'a' twice");
  std::string needs =
      "tensor 'a' needs 'dtype', 'shape' and two 'data_offsets'";
  EXPECT_EQ(one("3", 0), needs);
  EXPECT_EQ(one(R"({"dtype":"F32","shape":[]})", 0), needs);
  EXPECT_EQ(one(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})", 4),
            needs);
  EXPECT_EQ(one(R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,4]})", 4),
            needs);
  EXPECT_EQ(one(R"({"dtype":"F32","shape":[1],"data_offsets":[4]})", 4), needs);
  EXPECT_EQ(one(R"({"dtype":"F8","shape":[1],"data_offsets":[0,4]})", 4),
            "tensor 'a' has the unknown type 'F8'");
  EXPECT_EQ(one(R"({"dtype":"F32","shape":[4294967296,4294967296],)"
                R"("data_offsets":[0,0]})",
                0),
            "tensor 'a' has a shape that is too large");
  EXPECT_EQ(one(R"({"dtype":"F32","shape":[4611686018427387904,4,0],)"
                R"("data_offsets":[0,0]})",
                0),
            "tensor 'a' has a shape that is too large");
  EXPECT_EQ(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})", 4),
            "tensor 'a' has offsets 0 to 4, but its type and shape take 8 "
            "bytes");
  EXPECT_EQ(one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})", 8),
            "tensor 'a' does not begin where the one before it ends");
  EXPECT_EQ(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})", 5),
            "it holds 5 bytes of values, its header speaks of 4");
}

} // namespace
