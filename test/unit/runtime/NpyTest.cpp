//===- NpyTest.cpp - Arrays that are read, and those that are not ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One case per message of the .npy reader.
//===----------------------------------------------------------------------===//

#include "runtime/io/Npy.h"
#include "TestFiles.h"
#include "runtime/io/SampleArray.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace penstock::runtime;
using namespace penstock::test;

namespace {

const float kValues[6] = {1, 2, 3, 4, 5, 6};

class NpyTest : public testing::Test {
protected:
  std::string errorOf(std::string_view text) {
    writeText(path, text);
    NpyArray array;
    Error error = readNpy(path, "--labels", array);
    EXPECT_EQ(error.code, 1);
    std::string prefix = "--labels: ", quoted = "'" + path + "'";
    EXPECT_EQ(error.text.rfind(prefix, 0), 0u) << error.text;
    size_t at = error.text.find(quoted);
    if (at != std::string::npos)
      error.text.replace(at, quoted.size(), "F");
    return error.text.substr(prefix.size());
  }

  ScratchFolder folder;
  std::string path = folder / "a.npy";
};

TEST_F(NpyTest, ReadsAllVersions) {
  std::string one = npyText("<f4", {2, 3}, kValues, 24);
  // Versions 2 and 3 have a length of four bytes.
  std::string two = one;
  two[6] = 2;
  two.insert(10, 2, '\0');
  std::string three = two;
  three[6] = 3;
  for (const std::string &text : {one, two, three}) {
    writeText(path, text);
    NpyArray array;
    Error error = readNpy(path, "--labels", array);
    ASSERT_FALSE(error) << error.text;
    EXPECT_EQ(array.element, uint32_t(PENSTOCK_F32));
    EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(std::string_view(array.data, 24),
              std::string_view(reinterpret_cast<const char *>(kValues), 24));
  }
}

// What is asked for of a large file is in memory some time later.
TEST_F(NpyTest, FetchesSamplesOfLargeFiles) {
  constexpr uint64_t kSample = 4096, kSamples = 65537, kSet = 65000;
  writeText(path, "");
  std::filesystem::resize_file(path, kSample * kSamples); // with a hole
  std::string row(kSample, 'x');
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(kSample * kSet);
    file.write(row.data(), kSample);
  }
  SampleArray array;
  Error error = array.open(path + ":u8[N,4096]", "--data x");
  ASSERT_FALSE(error) << error.text;
  ASSERT_TRUE(array.isLarge());
  array.setRandom();
  for (uint64_t sample : {uint64_t(0), kSet, kSamples - 1}) {
    constexpr int kMostTries = 5000;
    int tries = 0;
    while (!array.prefetch(int64_t(sample)) && ++tries < kMostTries)
      usleep(1000);
    EXPECT_LT(tries, kMostTries) << sample;
    array.fetch(int64_t(sample));
  }
  int64_t run = 0;
  EXPECT_EQ(std::string_view(array.find(kSet, run), kSample), row);

  writeText(path, row);
  SampleArray small;
  ASSERT_FALSE(small.open(path + ":u8[N,64]", "--data x"));
  EXPECT_FALSE(small.isLarge());
  EXPECT_TRUE(small.prefetch(3));
}

TEST_F(NpyTest, ReadsEveryElementType) {
  const std::pair<const char *, uint32_t> types[] = {
      {"<f4", PENSTOCK_F32}, {"<f8", PENSTOCK_F64}, {"<f2", PENSTOCK_F16},
      {"|u1", PENSTOCK_U8},  {"|i1", PENSTOCK_I8},  {"<u2", PENSTOCK_U16},
      {"<i2", PENSTOCK_I16}, {"<u4", PENSTOCK_U32}, {"<i4", PENSTOCK_I32},
      {"<u8", PENSTOCK_U64}, {"<i8", PENSTOCK_I64}, {"|b1", PENSTOCK_BOOL}};
  for (auto [descr, element] : types) {
    writeText(path, npyText(descr, {1}, kValues, elementBytes(element)));
    NpyArray array;
    Error error = readNpy(path, "--labels", array);
    ASSERT_FALSE(error) << error.text;
    EXPECT_EQ(array.element, element) << descr;
  }
}

TEST_F(NpyTest, ReadsFortranOrderOnlyWhereItIsCOrder) {
  writeText(path, npyText("<f4", {1, 6, 1}, kValues, 24, "True"));
  NpyArray array;
  EXPECT_FALSE(readNpy(path, "--labels", array));
  EXPECT_EQ(errorOf(npyText("<f4", {2, 3}, kValues, 24, "True")),
            "F is in Fortran order; save it in C order "
            "(numpy.ascontiguousarray)");
}

TEST_F(NpyTest, NamesWhatIsWrongWithTheFile) {
  NpyArray array;
  EXPECT_EQ(readNpy(folder / "none.npy", "--data x", array).text,
            "--data x: cannot open '" + (folder / "none.npy") +
                "': No such file or directory");
  EXPECT_EQ(readNpy(folder.path, "--data x", array).text,
            "--data x: '" + folder.path + "' is not a regular file");
  EXPECT_EQ(errorOf(""), "F is empty");
  EXPECT_EQ(errorOf("PK\3\4 this is a zip file"), "F is not an .npy file");
}

TEST_F(NpyTest, NamesWhatIsWrongWithTheHeader) {
  std::string good = npyText("<f4", {2, 3}, kValues, 24);
  std::string bad = good;
  bad[6] = 4;
  EXPECT_EQ(errorOf(bad), "F has .npy format version 4, known are 1 to 3");
  EXPECT_EQ(errorOf(good.substr(0, 40)), "F is truncated in its header");
  std::string notPlain = "the header of F is not that of a plain array";
  bad = good;
  bad[bad.find("'shape'") + 1] = 'S';
  EXPECT_EQ(errorOf(bad), notPlain);
  EXPECT_EQ(errorOf(npyText("<f4', 'x': '", {2, 3}, kValues, 24)), notPlain);
  EXPECT_EQ(errorOf(npyText("<f4", {-2, 3}, kValues, 24)), notPlain);
  EXPECT_EQ(errorOf(npyText("<f4", {2, 3}, kValues, 24, "0")), notPlain);
  EXPECT_EQ(errorOf(npyText("|O", {2, 3}, kValues, 24)),
            "F holds elements of type '|O', which is not a number type of "
            "Penstock");
  EXPECT_EQ(errorOf(npyText(">f4", {2, 3}, kValues, 24)),
            "F is big-endian ('>f4'); save it little-endian");
  EXPECT_EQ(errorOf(npyText("!f4", {2, 3}, kValues, 24)),
            "F has the unknown element type '!f4'");
}

TEST_F(NpyTest, NamesWhatIsWrongWithTheLength) {
  EXPECT_EQ(errorOf(npyText("<f4", {2, 3}, kValues, 20)),
            "F is truncated: 20 bytes of data, its shape (2, 3) needs 24");
  EXPECT_EQ(errorOf(npyText("<f4", {5}, kValues, 24)),
            "F has 4 bytes after its data");
  EXPECT_EQ(errorOf(npyText("<f4", {int64_t(1) << 40, int64_t(1) << 40},
                            kValues, 24)),
            "the shape in F is too large");
}

} // namespace
