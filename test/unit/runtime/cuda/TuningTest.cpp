//===- TuningTest.cpp - Algorithms chosen by measurement ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// By the clock of the emulated driver, on candidates that take as long as the
// test says. What was kept is taken without being measured, and a file that is
// not for this GPU or this library is left as it is.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Tuning.h"

#include "TestFiles.h"

#include "runtime/device/cuda/TuneFile.h"
#include "runtime/device/emulated/Driver.h"
#include "runtime/device/emulated/Enqueue.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace penstock::runtime;
using namespace penstock::test;
using emulated::driver;

namespace {

constexpr char kGpu[] = "emulated GPU", kLibrary[] = "library";
constexpr int64_t kVersion = 42;
constexpr uint64_t kBytes = 3000;

class TuningTest : public testing::Test {
protected:
  void SetUp() override {
    emulated::configure({});
    ASSERT_EQ(driver.cuInit(0), cuda::CUDA_SUCCESS);
    ASSERT_EQ(driver.cuDevicePrimaryCtxRetain(&context, 0), cuda::CUDA_SUCCESS);
    ASSERT_EQ(driver.cuCtxSetCurrent(context), cuda::CUDA_SUCCESS);
    ASSERT_EQ(driver.cuStreamCreateWithPriority(
                  &stream, cuda::CU_STREAM_NON_BLOCKING, 0),
              cuda::CUDA_SUCCESS);
  }
  void TearDown() override {
    (void)driver.cuCtxSetCurrent(nullptr);
    (void)driver.cuDevicePrimaryCtxRelease(0);
  }

  /// A candidate that takes so long; of a negative time, that fails.
  cuda::Candidate make(const std::string &choice, int milliseconds) {
    return {choice, [=, this](cuda::Stream on) {
              ++calls;
              emulated::enqueue(on, [=] {
                usleep(1000 * unsigned(std::max(milliseconds, 0)));
              });
              return milliseconds >= 0;
            }};
  }

  /// Returns the choice of one device among candidates, and sets what it says.
  std::string choose(const std::vector<cuda::Candidate> &candidates,
                     bool measures = true, const char *gpu = kGpu,
                     int64_t version = kVersion) {
    calls = 0;
    testing::internal::CaptureStderr();
    cuda::Tuning tuning;
    error = tuning.open(path, measures, gpu, driver, stream, memory);
    std::string choice;
    if (!error)
      choice = tuning.choose(kLibrary, version, "a thing", kBytes,
                             [&](Address address) {
                               EXPECT_EQ(address % 256, 0u);
                               return candidates;
                             });
    if (!error)
      error = tuning.close(3);
    said = testing::internal::GetCapturedStderr();
    return choice;
  }

  ScratchFolder folder;
  std::string path = folder / "gpu.tune";
  cuda::DriverContext context = nullptr;
  cuda::Stream stream = nullptr;
  std::mutex memory;
  int calls = 0;
  std::string said;
  Error error;
};

TEST_F(TuningTest, TakesTheFastestAndKeepsIt) {
  EXPECT_EQ(choose({make("slow", 8), make("broken", -1), make("fast", 0),
                    make("slower", 12)}),
            "fast");
  EXPECT_GT(calls, 4);
  EXPECT_EQ(said, "note: device 3: measured 1 products and convolutions for " +
                      path + "\n");
  // Of what was kept, nothing is measured again.
  EXPECT_EQ(choose({make("slow", 0)}), "fast");
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(said, "");
  EXPECT_EQ(choose({make("slow", 0)}, /*measures=*/false), "fast");
  // No memory of the GPU is left in use.
  size_t free = 0, total = 0;
  ASSERT_EQ(driver.cuMemGetInfo(&free, &total), cuda::CUDA_SUCCESS);
  EXPECT_EQ(free, total);
}

TEST_F(TuningTest, KeepsNothingWhereNothingRuns) {
  EXPECT_EQ(choose({make("broken", -1), make("too", -1)}), "");
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST_F(TuningTest, MeasuresInOneProcessOnly) {
  EXPECT_EQ(choose({make("fast", 0)}, /*measures=*/false), "");
  EXPECT_EQ(calls, 0);
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST_F(TuningTest, LeavesWhatIsForAnotherGpuOrLibrary) {
  EXPECT_EQ(choose({make("fast", 0)}), "fast");
  std::string text = readText(path);
  EXPECT_EQ(choose({make("other", 0)}, true, "NVIDIA H200"), "");
  EXPECT_EQ(said, "note: --tune: '" + path +
                      "' is for emulated GPU, this is NVIDIA H200; it is "
                      "ignored, remove it to measure again\n");
  EXPECT_EQ(choose({make("other", 0)}, true, kGpu, kVersion + 1), "");
  EXPECT_EQ(said, "note: --tune: '" + path +
                      "' is for library 42, this is library 43; it is "
                      "ignored, remove it to measure again\n");
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(readText(path), text);
}

TEST_F(TuningTest, RefusesFilesThatAreNot) {
  EXPECT_EQ(choose({make("fast", 0)}), "fast");
  std::string text = readText(path);
  for (size_t cut : {text.size() - 1, text.size() / 2, size_t(20)}) {
    writeText(path, text.substr(0, cut));
    choose({make("other", 0)});
    EXPECT_EQ(error.code, PENSTOCK_USER_ERROR);
    EXPECT_EQ(error.text, "--tune: '" + path +
                              "' was cut or changed; remove it, and its "
                              "choices are measured again");
  }
  std::string changed = text;
  changed[changed.find("fast")] = 'l';
  writeText(path, changed);
  choose({make("other", 0)});
  EXPECT_EQ(error.code, PENSTOCK_USER_ERROR);
  writeText(path, "weights");
  choose({make("other", 0)});
  EXPECT_EQ(error.text,
            "--tune: '" + path + "' is another file; choose another name");
  EXPECT_EQ(readText(path), "weights");
}

TEST_F(TuningTest, GoesOnWithoutMemory) {
  (void)driver.cuCtxSetCurrent(nullptr);
  (void)driver.cuDevicePrimaryCtxRelease(0);
  emulated::Settings settings;
  settings.memoryBytes = kBytes - 1;
  emulated::configure(settings);
  ASSERT_EQ(driver.cuDevicePrimaryCtxRetain(&context, 0), cuda::CUDA_SUCCESS);
  ASSERT_EQ(driver.cuCtxSetCurrent(context), cuda::CUDA_SUCCESS);
  EXPECT_EQ(choose({make("fast", 0)}), "");
  EXPECT_EQ(said, "warning: --tune: no memory of the GPU is left to measure "
                  "in; library chooses\n");
}

} // namespace
