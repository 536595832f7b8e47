//===- TemporaryFileTest.cpp - What becomes another file ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a folder shows while a file is written, once it is whole, and when it is
// given up.
//===----------------------------------------------------------------------===//

#include "runtime/io/TemporaryFile.h"
#include "TestFiles.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace penstock::runtime;
using namespace penstock::test;
using Names = std::vector<std::string>;

/// Not all file systems have files without names.
static bool hasNameless(const std::string &folder) {
  int descriptor = open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  if (descriptor >= 0)
    close(descriptor);
  return descriptor >= 0;
}

TEST(TemporaryFile, ReplacesAtOnce) {
  ScratchFolder folder;
  std::string target = folder / "model.onnx";
  writeText(target, "old");
  chmod(target.c_str(), 0640);
  // What was left by a process of this number.
  writeText(target + ".tmp" + std::to_string(getpid()), "older");
  TemporaryFile file;
  ASSERT_TRUE(file.create(target, O_WRONLY));
  ASSERT_EQ(write(file.get(), "new", 3), 3);
  EXPECT_EQ(readText(target), "old");
  ASSERT_TRUE(file.close());
  EXPECT_EQ(readText(target), "old");
  ASSERT_TRUE(file.rename(target));
  EXPECT_EQ(readText(target), "new");
  EXPECT_EQ(listFiles(folder), Names{"model.onnx"});
  struct stat info;
  ASSERT_EQ(stat(target.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, mode_t(0640));
}

TEST(TemporaryFile, LeavesNothing) {
  ScratchFolder folder;
  {
    TemporaryFile written, closed;
    ASSERT_TRUE(written.create(folder / "a", O_RDWR));
    if (hasNameless(folder.path)) {
      EXPECT_EQ(listFiles(folder), Names());
    }
    ASSERT_TRUE(closed.create(folder / "b", O_WRONLY));
    ASSERT_TRUE(closed.close());
  }
  EXPECT_EQ(listFiles(folder), Names());
}

TEST(TemporaryFile, SaysWhyNot) {
  ScratchFolder folder;
  TemporaryFile file;
  EXPECT_FALSE(file.create(folder / "missing/a", O_WRONLY));
  EXPECT_EQ(errno, ENOENT);
}

TEST(ScratchFolder, OfAProcessThatEndedGoes) {
  pid_t child = fork();
  if (child == 0)
    _exit(0);
  ASSERT_GT(child, 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  ScratchFolder own;
  auto makeBeside = [&](const std::string &name) {
    std::filesystem::path left = own.path;
    left.replace_filename(std::string(ScratchFolder::kPrefix) + name);
    std::filesystem::create_directories(left / "deeper");
    return left;
  };
  // A number that no process has any more; no number.
  auto stale = makeBeside(std::to_string(child) + "-a");
  auto strange = makeBeside(std::to_string(getpid()) + "x-a");
  ScratchFolder::removeStale();
  EXPECT_FALSE(std::filesystem::exists(stale));
  EXPECT_TRUE(std::filesystem::exists(own.path));
  EXPECT_TRUE(std::filesystem::exists(strange));
  std::filesystem::remove_all(strange);
}
