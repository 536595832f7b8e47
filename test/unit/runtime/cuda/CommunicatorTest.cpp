//===- CommunicatorTest.cpp - Calls of NCCL that do not end ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What becomes of an NCCL that waits for ever, reports errors, or hangs: tables
// of functions that do one of these.
//===----------------------------------------------------------------------===//

#include "runtime/transport/nccl/Communicator.h"
#include "runtime/device/emulated/Driver.h"
#include "runtime/device/emulated/Nccl.h"
#include "runtime/support/Wait.h"

#include <atomic>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

namespace {

const Driver &driver = emulated::driver;

/// Results of the functions below.
std::atomic<int> asyncStatus = ncclSuccess;
std::atomic<int> polls = 0;

class CommunicatorTest : public testing::Test {
protected:
  void SetUp() override {
    asyncStatus = ncclSuccess;
    polls = 0;
    emulated::configure({});
    ASSERT_EQ(driver.cuInit(0), 0);
    ASSERT_EQ(driver.cuDevicePrimaryCtxRetain(&context, 0), 0);
    ASSERT_EQ(driver.cuCtxSetCurrent(context), 0);
    ASSERT_EQ(
        driver.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0),
        0);
    ASSERT_EQ(driver.cuMemAlloc(&memory, 4096), 0);
    // A communicator that is what the test says.
    nccl.ncclCommInitRankConfig = [](NcclComm *result, int, UniqueId, int,
                                     NcclConfig *) -> int {
      static int something;
      *result = reinterpret_cast<NcclComm>(&something);
      return ncclInProgress;
    };
    nccl.ncclCommGetAsyncError = [](NcclComm, int *status) -> int {
      ++polls;
      *status = asyncStatus;
      return ncclSuccess;
    };
    nccl.ncclGetLastError = [](NcclComm) { return "the last words"; };
    nccl.ncclSend = [](const void *, size_t, int, int, NcclComm,
                       Stream) -> int { return ncclInProgress; };
  }
  void TearDown() override {
    (void)driver.cuDevicePrimaryCtxRelease(0);
    (void)driver.cuCtxSetCurrent(nullptr);
  }

  Nccl nccl = emulated::nccl;
  DriverContext context = nullptr;
  Stream stream = nullptr;
  uint64_t memory = 0;
};

TEST_F(CommunicatorTest, GivesUpOnProcessesThatDoNotCome) {
  // The emulated NCCL waits for the second process, which never comes.
  Communicator communicator(emulated::nccl);
  UniqueId id;
  ASSERT_FALSE(communicator.invite(id));
  int64_t begin = nanoseconds();
  Error error = communicator.open(id, 0, 2, 0.3);
  EXPECT_EQ(error.code, PENSTOCK_PEER_FAILED);
  EXPECT_EQ(error.text,
            "ncclCommInitRankConfig did not end in time (--start-timeout)");
  EXPECT_LT(nanoseconds() - begin, 5000000000);
  communicator.abort();
}

TEST_F(CommunicatorTest, WaitsForACallThatIsInProgress) {
  asyncStatus = ncclInProgress;
  std::thread other([] {
    usleep(100000);
    asyncStatus = ncclSuccess;
  });
  Communicator communicator(nccl);
  EXPECT_FALSE(communicator.open({}, 0, 2, 20));
  other.join();
  int before = polls;
  EXPECT_GT(before, 1);
  EXPECT_FALSE(communicator.send(memory, 64, 1, stream));
  EXPECT_GT(polls, before);
}

TEST_F(CommunicatorTest, TellsPeersThatFailFromDefects) {
  Communicator communicator(nccl);
  ASSERT_FALSE(communicator.open({}, 0, 2, 20));
  EXPECT_FALSE(communicator.check());
  for (auto [status, code, text] :
       {std::tuple(ncclRemoteError, int(PENSTOCK_PEER_FAILED),
                   "remote process exited or there was a network error"),
        {ncclSystemError, PENSTOCK_PEER_FAILED, "unhandled system error"},
        {ncclInternalError, PENSTOCK_DEFECT, "internal error"},
        {ncclInvalidUsage, PENSTOCK_DEFECT, "invalid usage"}}) {
    asyncStatus = status;
    Error error = communicator.check();
    EXPECT_EQ(error.code, code);
    EXPECT_EQ(error.text,
              std::string("a transfer failed: ") + text + ": the last words");
    EXPECT_EQ(communicator.send(memory, 64, 1, stream).code, code);
  }
}

/// Aborts while another thread is in a call, which stays there until the
/// process ends: with 0 where all is as it should be.
[[noreturn]] void abortWhatNeverEnds(Nccl &nccl) {
  static std::atomic<int> aborts;
  nccl.ncclCommAbort = [](NcclComm) -> int {
    ++aborts;
    return ncclSuccess;
  };
  Communicator communicator(nccl);
  bool isGood = !communicator.open({}, 0, 2, 20);
  asyncStatus = ncclInProgress;
  std::thread([&] { (void)communicator.send(4096, 64, 1, nullptr); }).detach();
  while (polls < 100)
    usleep(1000);
  int64_t begin = nanoseconds();
  communicator.abort();
  communicator.abort();
  isGood &= nanoseconds() - begin < 2000000000 && aborts == 1;
  // It looks no more.
  usleep(10000);
  int after = polls;
  usleep(100000);
  isGood &= polls == after;
  _exit(isGood ? 0 : 1);
}

TEST_F(CommunicatorTest, AbortsWhatNeverEnds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(abortWhatNeverEnds(nccl), testing::ExitedWithCode(0), "");
}

} // namespace
