//===- ShrunkFilesTest.cpp - Mapped files that become shorter -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is behind the new end is an error of the user's, with the file's name.
//===----------------------------------------------------------------------===//

#include "runtime/io/File.h"

#include <csignal>
#include <cstdio>
#include <gtest/gtest.h>
#include <unistd.h>
#include <vector>

using namespace penstock::runtime;

namespace {

class ShrunkFilesTest : public testing::Test {
protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    std::FILE *file = std::fopen(path.c_str(), "wb");
    ASSERT_NE(file, nullptr);
    std::vector<char> bytes(3 * page, 'x');
    ASSERT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
    std::fclose(file);
  }
  void TearDown() override { std::remove(path.c_str()); }

  const size_t page = size_t(sysconf(_SC_PAGESIZE));
  const std::string path =
      testing::TempDir() + "/shrunk-" + std::to_string(getpid());
};

void read(const char *at) { (void)*static_cast<const volatile char *>(at); }

TEST_F(ShrunkFilesTest, EndTheProcessWithALine) {
  MappedFile first, file;
  // An entry that is used again.
  ASSERT_FALSE(first.open(path, "--data x"));
  first = MappedFile();
  ASSERT_FALSE(file.open(path, "--data x"));
  EXPECT_EXIT(
      {
        if (truncate(path.c_str(), off_t(page)))
          std::abort();
        read(file.data() + 1); // still there
        read(file.data() + 2 * page);
      },
      testing::ExitedWithCode(1),
      "error: '.*/shrunk-[0-9]+' became shorter, or could not be read, while "
      "it was in use\n");
}

// The kernel reads them for a write, and raises no signal.
TEST_F(ShrunkFilesTest, AreNotBlamedOnTheOutput) {
  MappedFile file;
  ASSERT_FALSE(file.open(path, "--model"));
  EXPECT_EXIT(
      {
        OutputFile output;
        if (output.create(path + ".copy") || truncate(path.c_str(), 0))
          std::abort();
        (void)output.overwrite(0, file.data(), file.size());
      },
      testing::ExitedWithCode(1),
      "error: '.*/shrunk-[0-9]+' became shorter, or could not be read, while "
      "it was in use\n");
}

TEST_F(ShrunkFilesTest, LeaveOtherFaultsAlone) {
  MappedFile file;
  ASSERT_FALSE(file.open(path, "--data x"));
  EXPECT_EXIT(std::raise(SIGBUS), testing::KilledBySignal(SIGBUS), "");
}

} // namespace
