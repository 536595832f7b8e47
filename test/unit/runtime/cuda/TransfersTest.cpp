//===- TransfersTest.cpp - Memory that NCCL has allocated -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A job of one process, in which the test says what the other processes have.
// The emulated NCCL is asked through functions that note what is called.
//===----------------------------------------------------------------------===//

#include "runtime/transport/nccl/Transfers.h"

#include "runtime/device/cuda/Libraries.h"
#include "runtime/device/emulated/Driver.h"
#include "runtime/device/emulated/Nccl.h"
#include "runtime/run/Instance.h"
#include "test/unit/runtime/Session.h"

#include <gtest/gtest.h>
#include <optional>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

namespace {

using Calls = std::vector<std::string>;
Calls calls;

/// Notes a call, and whether it fails.
int note(const char *name, int status) {
  calls.push_back(status ? std::string(name) + " fails" : name);
  return status;
}

void trainDevice(penstock_device *, int64_t, int64_t, int64_t) {}

class TransfersTest : public testing::Test {
protected:
  static constexpr uint64_t kArena = 4096;

  static void SetUpTestSuite() {
    static Nccl functions = emulated::nccl;
    static Libraries libraries = *emulatedLibraries;
    functions.ncclMemAlloc = [](void **memory, size_t bytes) {
      return note("allocate", emulated::nccl.ncclMemAlloc(memory, bytes));
    };
    functions.ncclMemFree = [](void *memory) {
      return note("free", emulated::nccl.ncclMemFree(memory));
    };
    functions.ncclCommRegister = [](NcclComm communicator, void *memory,
                                    size_t bytes, void **handle) {
      return note("register", emulated::nccl.ncclCommRegister(
                                  communicator, memory, bytes, handle));
    };
    functions.ncclCommDeregister = [](NcclComm communicator, void *handle) {
      return note("deregister",
                  emulated::nccl.ncclCommDeregister(communicator, handle));
    };
    functions.ncclCommDestroy = [](NcclComm communicator) {
      return note("destroy", emulated::nccl.ncclCommDestroy(communicator));
    };
    libraries.nccl = &functions;
    emulatedLibraries = &libraries;
  }

  void SetUp() override { begin({}); }
  /// Nothing of the memory is lost.
  void TearDown() override {
    size_t free = 0, total = 0;
    ASSERT_EQ(emulated::driver.cuCtxSetCurrent(context), 0);
    ASSERT_EQ(emulated::driver.cuMemGetInfo(&free, &total), 0);
    EXPECT_EQ(free, total);
    end();
    unsetenv("PENSTOCK_EMULATED_NCCL_MEMORY");
  }

  void begin(const emulated::Settings &settings) {
    emulated::configure(settings);
    ASSERT_EQ(emulated::driver.cuInit(0), 0);
    ASSERT_EQ(emulated::driver.cuDevicePrimaryCtxRetain(&context, 0), 0);
    calls.clear();
  }
  void end() {
    (void)emulated::driver.cuCtxSetCurrent(nullptr);
    ASSERT_EQ(emulated::driver.cuDevicePrimaryCtxRelease(0), 0);
  }

  std::unique_ptr<Instance> open() {
    Job job;
    job.place(1);
    auto instance = std::make_unique<Instance>(
        program, peerTransport.create(job, 20), std::vector<bool>{true});
    Error error = instance->open({}, /*isTraced=*/false);
    EXPECT_FALSE(error) << error.text;
    return instance;
  }
  /// Connects it to others, all of which have what it has, or not.
  Error connect(Instance &instance, bool haveOthers = true) {
    std::string invitation;
    Error error = instance.invite(invitation);
    EXPECT_FALSE(error) << error.text;
    return instance.connect(invitation, [&](bool own) {
      said = own;
      return own && haveOthers;
    });
  }

  const penstock_device_descriptor device = {kArena, 64, 1, "cuda", "any", ""};
  const penstock_device_function functions[1] = {trainDevice};
  const penstock_schedule schedule = {PENSTOCK_SCHEDULE_TRAIN, 1, 0, functions};
  const penstock_program program =
      penstock::test::makeProgram(device, schedule);
  DriverContext context = nullptr;
  std::optional<bool> said;
};

TEST_F(TransfersTest, RegistersTheArenaAndWhatItHasBesides) {
  auto instance = open();
  EXPECT_EQ(calls, Calls({"allocate"}));
  EXPECT_FALSE(connect(*instance));
  EXPECT_EQ(said, true);
  EXPECT_EQ(calls, Calls({"allocate", "allocate", "register", "register"}));
  calls.clear();
  instance.reset();
  EXPECT_EQ(calls,
            Calls({"deregister", "deregister", "destroy", "free", "free"}));
}

TEST_F(TransfersTest, RegistersNothingWhereAnotherProcessCannot) {
  auto instance = open();
  EXPECT_FALSE(connect(*instance, /*haveOthers=*/false));
  EXPECT_EQ(said, true);
  EXPECT_EQ(calls, Calls({"allocate", "allocate", "register", "register",
                          "deregister", "deregister"}));
  calls.clear();
  instance.reset();
  EXPECT_EQ(calls, Calls({"destroy", "free", "free"}));
}

TEST_F(TransfersTest, TakesMemoryOfTheDriverWhereNcclHasNone) {
  setenv("PENSTOCK_EMULATED_NCCL_MEMORY", "none", 1);
  auto instance = open();
  EXPECT_FALSE(connect(*instance));
  EXPECT_EQ(said, false);
  instance.reset();
  EXPECT_EQ(calls, Calls({"allocate fails", "allocate fails", "destroy"}));
}

TEST_F(TransfersTest, RegistersAllOrNothing) {
  // The arena is NCCL's, and what it has besides is not.
  auto instance = open();
  setenv("PENSTOCK_EMULATED_NCCL_MEMORY", "none", 1);
  EXPECT_FALSE(connect(*instance));
  EXPECT_EQ(said, false);
  instance.reset();
  EXPECT_EQ(calls, Calls({"allocate", "allocate fails", "destroy", "free"}));
}

TEST_F(TransfersTest, DoesWithoutWhereNcclRegistersNone) {
  setenv("PENSTOCK_EMULATED_NCCL_MEMORY", "unregistered", 1);
  auto instance = open();
  EXPECT_FALSE(connect(*instance));
  EXPECT_EQ(said, false);
  instance.reset();
  EXPECT_EQ(calls, Calls({"allocate", "allocate", "register fails", "destroy",
                          "free", "free"}));
}

TEST_F(TransfersTest, DeregistersNothingInAnAbort) {
  auto instance = open();
  EXPECT_FALSE(connect(*instance));
  calls.clear();
  instance->abort();
  instance.reset();
  EXPECT_EQ(calls, Calls({"free", "free"}));
}

TEST_F(TransfersTest, SaysWhatDoesNotFitBesidesTheArena) {
  end();
  emulated::Settings settings;
  settings.memoryBytes = kArena;
  begin(settings);
  auto instance = open();
  Error error = connect(*instance);
  EXPECT_EQ(error.code, PENSTOCK_DOES_NOT_FIT);
  EXPECT_EQ(error.text, "messages and sums over processes need 8 bytes besides "
                        "the arena");
  EXPECT_EQ(said, std::nullopt);
}

} // namespace
