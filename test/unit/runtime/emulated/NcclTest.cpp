//===- NcclTest.cpp - The NCCL of the emulated GPU ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Processes of their own, each with a GPU. Each says how it ended by its exit
// code, so that a process that would wait for ever is seen to.
//===----------------------------------------------------------------------===//

#include "runtime/device/emulated/Nccl.h"
#include "runtime/device/emulated/Driver.h"
#include "runtime/support/Wait.h"

#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

namespace {

const Driver &driver = emulated::driver;
const Nccl &nccl = emulated::nccl;

/// Exit codes of processes.
enum Outcome { Good = 0, Bad = 1, Stuck = 2, Refused = 3 };

#define REQUIRE(condition)                                                     \
  do {                                                                         \
    if (!(condition)) {                                                        \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);     \
      _exit(Bad);                                                              \
    }                                                                          \
  } while (false)

/// A process with its GPU, a stream and some memory.
class Process {
public:
  static constexpr uint64_t kBytes = 1 << 16;

  Process(const UniqueId &id, int rank, int size, int gpu, uint64_t order = 0)
      : rank(rank), size(size) {
    emulated::Settings settings;
    settings.gpus = size;
    settings.order = order;
    emulated::configure(settings);
    REQUIRE(!driver.cuInit(0));
    DriverContext context = nullptr;
    REQUIRE(!driver.cuDevicePrimaryCtxRetain(&context, gpu));
    REQUIRE(!driver.cuCtxSetCurrent(context));
    for (Stream *one : {&stream, &compute})
      REQUIRE(
          !driver.cuStreamCreateWithPriority(one, CU_STREAM_NON_BLOCKING, 0));
    REQUIRE(!driver.cuMemAlloc(&memory, kBytes));
    NcclConfig config;
    config.blocking = 0;
    REQUIRE(nccl.ncclCommInitRankConfig(&communicator, size, id, rank,
                                        &config) == ncclInProgress);
  }

  /// Waits for a call, at most so many seconds.
  int settle(int status = ncclInProgress, double seconds = 20) {
    int64_t end = nanoseconds() + int64_t(seconds * 1e9);
    while (status == ncclInProgress && nanoseconds() < end) {
      usleep(200);
      REQUIRE(!nccl.ncclCommGetAsyncError(communicator, &status));
    }
    return status;
  }
  /// Returns true if the stream comes to its end in time.
  bool isDone(double seconds = 20) {
    Event event = nullptr;
    REQUIRE(!driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    REQUIRE(!driver.cuEventRecord(event, stream));
    int64_t end = nanoseconds() + int64_t(seconds * 1e9);
    int status = CUDA_ERROR_NOT_READY;
    while (status == CUDA_ERROR_NOT_READY && nanoseconds() < end) {
      status = driver.cuEventQuery(event);
      usleep(100);
    }
    return status == CUDA_SUCCESS;
  }

  int send(uint64_t at, uint64_t bytes, int peer) {
    return nccl.ncclSend(reinterpret_cast<void *>(memory + at), bytes,
                         ncclUint8, peer, communicator, stream);
  }
  int receive(uint64_t at, uint64_t bytes, int peer) {
    return nccl.ncclRecv(reinterpret_cast<void *>(memory + at), bytes,
                         ncclUint8, peer, communicator, stream);
  }
  /// Connects this process and all others.
  void warmUp() {
    REQUIRE(!nccl.ncclGroupStart());
    for (int peer = 0; peer < size; ++peer)
      if (peer != rank) {
        REQUIRE(!send(0, 4, peer));
        REQUIRE(!receive(4 + 4 * peer, 4, peer));
      }
    REQUIRE(settle(nccl.ncclGroupEnd()) == ncclSuccess);
    REQUIRE(isDone());
  }
  void fill(uint64_t at, int value, uint64_t bytes) {
    REQUIRE(!driver.cuMemsetD8Async(memory + at, (unsigned char)value, bytes,
                                    stream));
  }
  std::vector<unsigned char> read(uint64_t at, uint64_t bytes) {
    std::vector<unsigned char> values(bytes);
    REQUIRE(
        !driver.cuMemcpyDtoHAsync(values.data(), memory + at, bytes, stream));
    return values;
  }

  const int rank, size;
  NcclComm communicator = nullptr;
  Stream stream = nullptr, compute = nullptr;
  uint64_t memory = 0;
};

/// Runs a process for each rank and returns their exit codes.
template <typename Body> std::vector<int> run(int size, Body body) {
  UniqueId id;
  EXPECT_EQ(nccl.ncclGetUniqueId(&id), ncclSuccess);
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    children.push_back(fork());
    if (children.back() == 0) {
      alarm(60);
      _exit(body(id, rank));
    }
  }
  std::vector<int> codes;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status)
                                      : 128 + WTERMSIG(status));
  }
  return codes;
}

/// A process that runs with its own GPU, connected to all others.
template <typename Body> std::vector<int> runConnected(int size, Body body) {
  return run(size, [&](const UniqueId &id, int rank) -> int {
    Process process(id, rank, size, rank);
    REQUIRE(process.settle() == ncclSuccess);
    process.warmUp();
    return body(process);
  });
}

std::vector<int> all(int size, int code) {
  return std::vector<int>(size_t(size), code);
}

TEST(EmulatedNccl, MovesMessagesInTheOrderOfCalls) {
  EXPECT_EQ(runConnected(2,
                         [](Process &p) {
                           // Longer than a socket holds.
                           constexpr int kCount = 20;
                           for (int i = 0; i < kCount; ++i) {
                             uint64_t at = 1024 * uint64_t(i);
                             if (p.rank == 0) {
                               p.fill(at, i + 1, 1000);
                               REQUIRE(!p.send(at, 1000, 1));
                             } else {
                               REQUIRE(!p.receive(at, 1000, 0));
                             }
                           }
                           if (!p.isDone())
                             return Stuck;
                           for (int i = 0; i < kCount; ++i)
                             for (unsigned char byte :
                                  p.read(1024 * uint64_t(i), 1000))
                               REQUIRE(byte == i + 1);
                           return Good;
                         }),
            all(2, Good));
}

TEST(EmulatedNccl, PartsOfAGroupGoOnByThemselves) {
  // A ring: without a group, each would wait for the next one's receive.
  EXPECT_EQ(runConnected(4,
                         [](Process &p) {
                           p.fill(1024, p.rank, 512);
                           REQUIRE(!nccl.ncclGroupStart());
                           REQUIRE(!p.send(1024, 512, (p.rank + 1) % 4));
                           REQUIRE(!p.receive(2048, 512, (p.rank + 3) % 4));
                           REQUIRE(!nccl.ncclGroupEnd());
                           if (!p.isDone())
                             return Stuck;
                           for (unsigned char byte : p.read(2048, 512))
                             REQUIRE(byte == (p.rank + 3) % 4);
                           return Good;
                         }),
            all(4, Good));
}

TEST(EmulatedNccl, HangsWhereOrdersDisagree) {
  // Each sends before it receives: there is no room in between.
  EXPECT_EQ(runConnected(2,
                         [](Process &p) {
                           REQUIRE(!p.send(0, 64, 1 - p.rank));
                           REQUIRE(!p.receive(64, 64, 1 - p.rank));
                           return p.isDone(0.5) ? Good : Stuck;
                         }),
            all(2, Stuck));
  // The first one receives from the second, which waits for the third, which
  // waits for the first.
  EXPECT_EQ(runConnected(3,
                         [](Process &p) {
                           REQUIRE(!p.receive(64, 64, (p.rank + 1) % 3));
                           REQUIRE(!p.send(0, 64, (p.rank + 2) % 3));
                           return p.isDone(0.5) ? Good : Stuck;
                         }),
            all(3, Stuck));
}

TEST(EmulatedNccl, TakesNothingBeforeWhatStandsAhead) {
  // Two streams of one communicator: the second call waits for the first.
  EXPECT_EQ(runConnected(2,
                         [](Process &p) {
                           if (p.rank == 1) {
                             REQUIRE(!p.receive(64, 64, 0));
                             return p.isDone(0.5) ? Good : Stuck;
                           }
                           Event event = nullptr;
                           uint64_t at = p.memory;
                           REQUIRE(!driver.cuEventCreate(&event, 2));
                           // Nobody sends this one.
                           REQUIRE(!nccl.ncclRecv(reinterpret_cast<void *>(at),
                                                  64, ncclUint8, 1,
                                                  p.communicator, p.compute));
                           REQUIRE(!p.send(64, 64, 1));
                           return p.isDone(0.5) ? Good : Stuck;
                         }),
            all(2, Stuck));
}

TEST(EmulatedNccl, NamesSizesThatDiffer) {
  EXPECT_EQ(runConnected(
                2,
                [](Process &p) {
                  REQUIRE(!(p.rank ? p.receive(0, 32, 0) : p.send(0, 64, 1)));
                  REQUIRE(!p.isDone(0.5));
                  REQUIRE(p.settle() == ncclInvalidUsage);
                  std::string text = nccl.ncclGetLastError(p.communicator);
                  REQUIRE(text.find("64") != text.npos &&
                          text.find("32") != text.npos);
                  return Refused;
                }),
            all(2, Refused));
}

TEST(EmulatedNccl, TheFirstTransferOfTwoBlocksUntilBothHaveCome) {
  EXPECT_EQ(run(2,
                [](const UniqueId &id, int rank) -> int {
                  Process p(id, rank, 2, rank);
                  REQUIRE(p.settle() == ncclSuccess);
                  if (rank == 1) {
                    usleep(700000);
                    REQUIRE(p.settle(p.receive(0, 64, 0)) == ncclSuccess);
                    return p.isDone() ? Good : Stuck;
                  }
                  REQUIRE(p.send(0, 64, 1) == ncclInProgress);
                  // It keeps all that follows from being called.
                  REQUIRE(p.settle(ncclInProgress, 0.3) == ncclInProgress);
                  REQUIRE(p.send(0, 64, 1) == ncclInvalidArgument);
                  REQUIRE(p.settle() == ncclSuccess);
                  return p.isDone() ? Good : Stuck;
                }),
            all(2, Good));
}

TEST(EmulatedNccl, RefusesTwoProcessesOnOneGpu) {
  EXPECT_EQ(run(2,
                [](const UniqueId &id, int rank) -> int {
                  Process p(id, rank, 2, 0);
                  REQUIRE(p.settle() == ncclInvalidUsage);
                  std::string text = nccl.ncclGetLastError(p.communicator);
                  REQUIRE(text.find("Duplicate GPU detected : rank 0 and rank "
                                    "1") != text.npos);
                  return Refused;
                }),
            all(2, Refused));
}

TEST(EmulatedNccl, KnowsNothingOfAProcessThatIsGone) {
  EXPECT_EQ(runConnected(2,
                         [](Process &p) {
                           if (p.rank == 1)
                             return Good;
                           REQUIRE(!p.receive(0, 64, 1));
                           REQUIRE(!p.isDone(0.5));
                           REQUIRE(p.settle() == ncclSuccess);
                           // An abort is what ends it.
                           REQUIRE(!nccl.ncclCommAbort(p.communicator));
                           return p.isDone() ? Refused : Stuck;
                         }),
            (std::vector<int>{Refused, Good}));
}

TEST(EmulatedNccl, EndsTogether) {
  EXPECT_EQ(
      runConnected(3,
                   [](Process &p) {
                     // The last one is late.
                     if (p.rank == 2)
                       usleep(300000);
                     int64_t begin = nanoseconds();
                     REQUIRE(p.settle(nccl.ncclCommFinalize(p.communicator)) ==
                             ncclSuccess);
                     REQUIRE(p.rank == 2 || nanoseconds() - begin > 100000000);
                     REQUIRE(!nccl.ncclCommDestroy(p.communicator));
                     return Good;
                   }),
      all(3, Good));
}

/// Sends a message between two processes with memory of NCCL, in both
/// directions. Some have registered it.
std::vector<int> exchangeRegistered(std::vector<bool> haveRegistered) {
  return runConnected(2, [&](Process &p) -> int {
    void *memory = nullptr, *handle = nullptr;
    REQUIRE(!driver.cuMemFree(p.memory));
    REQUIRE(!nccl.ncclMemAlloc(&memory, Process::kBytes));
    p.memory = reinterpret_cast<uint64_t>(memory);
    if (haveRegistered[p.rank])
      REQUIRE(!nccl.ncclCommRegister(p.communicator, memory, Process::kBytes,
                                     &handle));
    p.fill(1000, p.rank + 1, 500);
    REQUIRE(!nccl.ncclGroupStart());
    REQUIRE(!p.send(1000, 500, 1 - p.rank));
    REQUIRE(!p.receive(2000, 500, 1 - p.rank));
    REQUIRE(!nccl.ncclGroupEnd());
    if (!p.isDone())
      return Stuck;
    for (unsigned char byte : p.read(2000, 500))
      REQUIRE(byte == 2 - p.rank);
    int status = p.settle();
    std::string text = nccl.ncclGetLastError(p.communicator);
    REQUIRE((status == ncclSuccess) == text.empty());
    return status;
  });
}

TEST(EmulatedNccl, TakesMemoryThatBothSidesHaveRegisteredOrNeither) {
  EXPECT_EQ(exchangeRegistered({true, true}), all(2, ncclSuccess));
  EXPECT_EQ(exchangeRegistered({false, false}), all(2, ncclSuccess));
  EXPECT_EQ(exchangeRegistered({true, false}), all(2, ncclInvalidUsage));
}

TEST(EmulatedNccl, RegistersWhatItHasAllocated) {
  EXPECT_EQ(
      run(1,
          [](const UniqueId &id, int) -> int {
            Process p(id, 0, 1, 0);
            REQUIRE(p.settle() == ncclSuccess);
            void *memory = nullptr, *handle = nullptr;
            REQUIRE(!nccl.ncclMemAlloc(&memory, 1000));
            auto add = [&](void *from, size_t bytes) {
              return nccl.ncclCommRegister(p.communicator, from, bytes,
                                           &handle);
            };
            // Memory of the driver, and more than there is.
            REQUIRE(add(reinterpret_cast<void *>(p.memory), 64) ==
                    ncclInvalidArgument);
            REQUIRE(add(memory, 1001) == ncclInvalidArgument);
            REQUIRE(add(static_cast<char *>(memory) + 8, 992) == ncclSuccess);
            // Whoever frees is who has allocated.
            REQUIRE(driver.cuMemFree(reinterpret_cast<uint64_t>(memory)) ==
                    CUDA_ERROR_INVALID_VALUE);
            REQUIRE(nccl.ncclMemFree(reinterpret_cast<void *>(p.memory)) ==
                    ncclUnhandledCudaError);
            // What is registered is in use.
            REQUIRE(nccl.ncclMemFree(memory) == ncclInvalidUsage);
            REQUIRE(p.settle(nccl.ncclCommFinalize(p.communicator)) ==
                    ncclSuccess);
            REQUIRE(nccl.ncclCommDestroy(p.communicator) == ncclInvalidUsage);
            // Once.
            REQUIRE(!nccl.ncclCommDeregister(p.communicator, handle));
            REQUIRE(nccl.ncclCommDeregister(p.communicator, handle) ==
                    ncclInvalidUsage);
            REQUIRE(!nccl.ncclMemFree(memory));
            REQUIRE(!nccl.ncclCommDestroy(p.communicator));
            return Good;
          }),
      all(1, Good));
}

TEST(EmulatedNccl, HasTheMemoryThatTheEnvironmentSays) {
  EXPECT_EQ(
      run(1,
          [](const UniqueId &id, int) -> int {
            Process p(id, 0, 1, 0);
            REQUIRE(p.settle() == ncclSuccess);
            void *memory = nullptr, *handle = nullptr;
            auto set = [](const char *value) {
              REQUIRE(!setenv("PENSTOCK_EMULATED_NCCL_MEMORY", value, 1));
            };
            set("none");
            REQUIRE(nccl.ncclMemAlloc(&memory, 1000) == ncclUnhandledCudaError);
            set("unregistered");
            REQUIRE(!nccl.ncclMemAlloc(&memory, 1000));
            REQUIRE(nccl.ncclCommRegister(p.communicator, memory, 1000,
                                          &handle) == ncclInvalidArgument);
            return Good;
          }),
      all(1, Good));
  EXPECT_EQ(runConnected(2,
                         [](Process &p) {
                           REQUIRE(!setenv("PENSTOCK_EMULATED_NCCL_MEMORY",
                                           "registered", 1));
                           REQUIRE(p.send(0, 64, 1 - p.rank) ==
                                   ncclInvalidUsage);
                           return Good;
                         }),
            all(2, Good));
}

TEST(EmulatedNccl, RefusesWhatTheDocumentationForbids) {
  EXPECT_EQ(
      runConnected(
          2,
          [](Process &p) {
            int peer = 1 - p.rank;
            char host[8] = {};
            // Memory of the host, elements of other types, itself, nobody.
            REQUIRE(nccl.ncclSend(host, 8, ncclUint8, peer, p.communicator,
                                  p.stream) == ncclInvalidArgument);
            REQUIRE(p.send(0, Process::kBytes + 4096, peer) ==
                    ncclInvalidArgument);
            REQUIRE(p.send(0, 8, p.rank) == ncclInvalidArgument);
            REQUIRE(p.send(0, 8, 2) == ncclInvalidArgument);
            // A stream that is captured: ours are never.
            REQUIRE(!driver.cuStreamBeginCapture(
                p.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
            REQUIRE(p.send(0, 8, peer) == ncclInvalidArgument);
            Graph graph = nullptr;
            REQUIRE(!driver.cuStreamEndCapture(p.stream, &graph));
            // One that is not final.
            REQUIRE(nccl.ncclCommDestroy(p.communicator) == ncclInvalidUsage);
            return Good;
          }),
      all(2, Good));
}

TEST(EmulatedNccl, AddsUpInTheOrderOfRows) {
  EXPECT_EQ(
      run(1,
          [](const UniqueId &id, int) -> int {
            Process p(id, 0, 1, 0, /*order=*/7);
            constexpr int kCount = 300, kTerms = 3;
            std::vector<float> values(kCount * kTerms), sums(kCount);
            for (int i = 0; i < kCount * kTerms; ++i)
              values[i] = (i % 2 ? -1e7f : 1e7f) / float(i + 1);
            Module module = nullptr;
            Function function = nullptr;
            REQUIRE(!driver.cuModuleLoadDataEx(&module, &emulated::sums, 0,
                                               nullptr, nullptr));
            REQUIRE(!driver.cuModuleGetFunction(&function, module,
                                                "penstock_sum_f32"));
            uint64_t from = p.memory, stride = kCount * 4, terms = kTerms,
                     to = p.memory + 32768, count = kCount;
            REQUIRE(!driver.cuMemcpyHtoDAsync(from, values.data(),
                                              values.size() * 4, p.stream));
            void *parameters[] = {&from, &stride, &terms, &to, &count, nullptr};
            REQUIRE(!driver.cuLaunchKernel(function, 2, 1, 1, 256, 1, 1, 0,
                                           p.stream, parameters, nullptr));
            REQUIRE(!driver.cuMemcpyDtoHAsync(sums.data(), to, kCount * 4,
                                              p.stream));
            for (int i = 0; i < kCount; ++i)
              REQUIRE(sums[i] ==
                      values[i] + values[kCount + i] + values[2 * kCount + i]);
            return Good;
          }),
      all(1, Good));
}

} // namespace
