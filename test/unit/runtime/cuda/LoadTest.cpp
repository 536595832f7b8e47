//===- LoadTest.cpp - Where there is no driver ----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each in a process of its own: a library is loaded once.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Driver.h"
#include "runtime/transport/nccl/Nccl.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <gtest/gtest.h>

using namespace penstock::runtime;

namespace {

class LoadTest : public testing::Test {
protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  /// Loads the driver with this PENSTOCK_CUDA_PATH and ends with the error.
  [[noreturn]] static void load(const char *path) {
    setenv("PENSTOCK_CUDA_PATH", path, 1);
    const cuda::Driver *driver = nullptr;
    Error error = cuda::loadDriver(driver);
    std::fprintf(stderr, "<%s>", error.text.c_str());
    std::exit(error.code);
  }
  /// Loads NCCL likewise.
  [[noreturn]] static void loadNccl(const char *path) {
    setenv("PENSTOCK_CUDA_PATH", path, 1);
    const cuda::Nccl *nccl = nullptr;
    std::string name;
    Error error = cuda::loadNccl(nccl, name);
    std::fprintf(stderr, "<%s%s>", error.text.c_str(), name.c_str());
    std::exit(error.code);
  }
};

TEST_F(LoadTest, SaysThatThereIsNoDriver) {
  if (dlopen("libcuda.so.1", RTLD_LAZY))
    GTEST_SKIP() << "this machine has a driver";
  EXPECT_EXIT(load("/nowhere"), testing::ExitedWithCode(PENSTOCK_USER_ERROR),
              "<this program needs an NVIDIA driver: libcuda.so.1 was not "
              "found>");
}

TEST_F(LoadTest, NamesWhatADriverLacks) {
  EXPECT_EXIT(load("/nowhere:" PENSTOCK_BROKEN_DRIVER),
              testing::ExitedWithCode(PENSTOCK_USER_ERROR),
              "<libcuda.so.1 has no cuDriverGetVersion; this program needs "
              "driver 525 or later>");
}

TEST_F(LoadTest, SaysThatThereIsNoNccl) {
  if (dlopen("libnccl.so.2", RTLD_LAZY))
    GTEST_SKIP() << "this machine has NCCL";
  EXPECT_EXIT(loadNccl("/nowhere"),
              testing::ExitedWithCode(PENSTOCK_USER_ERROR),
              "<--transport=nccl: libnccl.so.2 was not found; set "
              "PENSTOCK_CUDA_PATH, install NCCL, or use --transport=mpi>");
}

TEST_F(LoadTest, NamesWhatANcclLacks) {
  EXPECT_EXIT(loadNccl(PENSTOCK_BROKEN_DRIVER "/nccl"),
              testing::ExitedWithCode(PENSTOCK_USER_ERROR),
              "<--transport=nccl: libnccl.so.2 has no ncclGetUniqueId; install "
              "NCCL 2.19 or later>");
}

// The real library starts without a GPU, and says which one it is.
TEST_F(LoadTest, FindsTheNcclOfAToolkit) {
  if (!dlopen("/usr/local/cuda/lib/libnccl.so.2", RTLD_LAZY))
    GTEST_SKIP() << "this machine has no toolkit with NCCL";
  EXPECT_EXIT(loadNccl("/usr/local/cuda"), testing::ExitedWithCode(0),
              "<NCCL 2\\.[0-9]+\\.[0-9]+>");
}

} // namespace
