//===- DriverTest.cpp - The driver of the emulated GPU --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// It must find what is wrong: a wait that is left out gives wrong numbers
// within a few orders, and calls that a driver may reject are rejected.
//===----------------------------------------------------------------------===//

#include "runtime/device/emulated/Driver.h"
#include "runtime/device/emulated/Enqueue.h"

#include "EmulatedCode.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;
using namespace penstock::test;
using emulated::driver;

namespace {

/// An initialized driver with the context of GPU 0.
class DriverTest : public testing::Test {
protected:
  void open(const emulated::Settings &settings = {}) {
    emulated::configure(settings);
    ASSERT_EQ(driver.cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(driver.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(driver.cuCtxSetCurrent(context), CUDA_SUCCESS);
  }
  void close() {
    EXPECT_EQ(driver.cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  }

  static Stream createStream() {
    Stream stream = nullptr;
    EXPECT_EQ(
        driver.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0),
        CUDA_SUCCESS);
    return stream;
  }
  static Event createEvent() {
    Event event = nullptr;
    EXPECT_EQ(driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING),
              CUDA_SUCCESS);
    return event;
  }
  static uint64_t allocateMemory(size_t bytes) {
    uint64_t address = 0;
    EXPECT_EQ(driver.cuMemAlloc(&address, bytes), CUDA_SUCCESS);
    return address;
  }
  template <typename T> static T *allocatePinned(size_t count) {
    void *memory = nullptr;
    EXPECT_EQ(driver.cuMemHostAlloc(&memory, count * sizeof(T), 0),
              CUDA_SUCCESS);
    return static_cast<T *>(memory);
  }

  DriverContext context = nullptr;
};

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

/// A step that a hand-over leaves out.
enum class Without { Nothing, SendersAwait, Send, Receive, ReceiversAwait };

/// Hands five messages over from one stage of a GPU to the next, in two slots:
/// through a stream of copies, as devices do. Returns true if they arrive.
bool handOver(Without without, Stream sender, Stream receiver, Stream copies,
              const std::vector<Event> &events) {
  int out[2] = {}, in[2] = {}, sum = 0, expected = 0;
  const Event *sent = &events[0], *free = &events[2], *done = &events[4];
  for (int n = 0; n < 5; ++n) {
    int slot = n % 2;
    if (n >= 2 && without != Without::SendersAwait)
      driver.cuStreamWaitEvent(sender, done[slot], 0);
    emulated::enqueue(sender, [&, n, slot] { out[slot] = n * n + 1; });
    driver.cuEventRecord(sent[slot], sender);
    driver.cuEventRecord(free[slot], receiver);
    if (without != Without::Send)
      driver.cuStreamWaitEvent(copies, sent[slot], 0);
    if (without != Without::Receive)
      driver.cuStreamWaitEvent(copies, free[slot], 0);
    emulated::enqueue(copies, [&, slot] { in[slot] = out[slot]; });
    driver.cuEventRecord(done[slot], copies);
    if (without != Without::ReceiversAwait)
      driver.cuStreamWaitEvent(receiver, done[slot], 0);
    emulated::enqueue(receiver, [&, slot] { sum = sum * 3 + in[slot]; });
    expected = expected * 3 + n * n + 1;
  }
  EXPECT_EQ(sum, 0) << "nothing runs before somebody waits";
  driver.cuStreamSynchronize(receiver);
  bool isRight = sum == expected;
  driver.cuStreamSynchronize(sender);
  driver.cuStreamSynchronize(copies);
  return isRight;
}

class HandOverTest : public DriverTest {
protected:
  bool isRight(Without without, uint64_t order) {
    emulated::Settings settings;
    settings.order = order;
    open(settings);
    Stream streams[3];
    for (Stream &stream : streams)
      stream = createStream();
    std::vector<Event> events(6);
    for (Event &event : events)
      event = createEvent();
    bool isRight =
        handOver(without, streams[0], streams[1], streams[2], events);
    for (Event event : events)
      driver.cuEventDestroy(event);
    close();
    return isRight;
  }

  /// Returns true if one of the first orders, in which each stream is last once
  /// and first once, shows a mistake.
  bool isFoundEarly(Without without) {
    for (uint64_t order = 0; order < 8; ++order)
      if (!isRight(without, order))
        return true;
    return false;
  }
};

TEST_F(HandOverTest, ArrivesInAnyOrder) {
  for (uint64_t order = 0; order < 100; ++order)
    EXPECT_TRUE(isRight(Without::Nothing, order)) << order;
}

TEST_F(HandOverTest, GoesWrongWithoutAnyOfItsWaits) {
  EXPECT_TRUE(isFoundEarly(Without::SendersAwait));
  EXPECT_TRUE(isFoundEarly(Without::Send));
  EXPECT_TRUE(isFoundEarly(Without::Receive));
  EXPECT_TRUE(isFoundEarly(Without::ReceiversAwait));
}

TEST_F(DriverTest, WaitsForTheLatestRecord) {
  emulated::Settings settings;
  settings.order = 1;
  open(settings);
  Stream early = createStream(), late = createStream(), third = createStream();
  Event event = createEvent();
  int order = 0, seen[3] = {};
  emulated::enqueue(early, [&] { seen[0] = ++order; });
  driver.cuEventRecord(event, early);
  driver.cuStreamWaitEvent(third, event, 0);
  emulated::enqueue(third, [&] { seen[2] = ++order; });
  emulated::enqueue(late, [&] { seen[1] = ++order; });
  // The next record, which is reached first, is not what the wait is for.
  driver.cuEventRecord(event, late);
  EXPECT_EQ(driver.cuEventSynchronize(event), CUDA_SUCCESS);
  EXPECT_EQ(seen[1], 1);
  EXPECT_EQ(seen[2], 0);
  driver.cuStreamSynchronize(third);
  EXPECT_EQ(seen[0], 2);
  EXPECT_EQ(seen[2], 3);
  // An event that was never recorded holds nobody up.
  Event other = createEvent();
  EXPECT_EQ(driver.cuEventQuery(other), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuStreamWaitEvent(third, other, 0), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuStreamSynchronize(third), CUDA_SUCCESS);
  driver.cuEventDestroy(event);
  driver.cuEventDestroy(other);
  close();
}

TEST_F(DriverTest, GetsOnWhenAsked) {
  open();
  Stream stream = createStream();
  Event event = createEvent();
  int done = 0;
  for (int i = 0; i < 3; ++i)
    emulated::enqueue(stream, [&] { ++done; });
  driver.cuEventRecord(event, stream);
  EXPECT_EQ(driver.cuEventQuery(event), CUDA_ERROR_NOT_READY);
  int asked = 1;
  while (driver.cuEventQuery(event) == CUDA_ERROR_NOT_READY)
    ++asked;
  EXPECT_EQ(done, 3);
  EXPECT_EQ(asked, 3);
  driver.cuEventDestroy(event);
  close();
}

TEST_F(DriverTest, TakesCallsOfSeveralThreads) {
  open();
  constexpr int kMessages = 50;
  int counter = 0;
  auto work = [&](Stream stream) {
    driver.cuCtxSetCurrent(context);
    Event event = createEvent();
    for (int i = 0; i < kMessages; ++i) {
      emulated::enqueue(stream, [&] { ++counter; });
      driver.cuEventRecord(event, stream);
      EXPECT_EQ(driver.cuEventSynchronize(event), CUDA_SUCCESS);
    }
    driver.cuEventDestroy(event);
  };
  std::thread other(work, createStream());
  work(createStream());
  other.join();
  EXPECT_EQ(counter, 2 * kMessages);
  close();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TEST_F(DriverTest, AllocatesNaNsUpToItsLimit) {
  emulated::Settings settings;
  settings.memoryBytes = 5000;
  open(settings);
  size_t free = 0, total = 0;
  EXPECT_EQ(driver.cuMemGetInfo(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(free, 5000u);
  uint64_t first = allocateMemory(3000), second = 0;
  EXPECT_EQ(driver.cuMemAlloc(&second, 2001), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(driver.cuMemGetInfo(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(free, 2000u);
  EXPECT_EQ(total, 5000u);
  Stream stream = createStream();
  float value = 0;
  EXPECT_EQ(driver.cuMemcpyDtoHAsync(&value, first + 2996, 4, stream),
            CUDA_SUCCESS);
  EXPECT_TRUE(std::isnan(value));
  EXPECT_EQ(driver.cuMemFree(first), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuMemFree(first), CUDA_ERROR_INVALID_VALUE);
  second = allocateMemory(5000);
  EXPECT_EQ(second % 256, 0u);
  close();
}

TEST_F(DriverTest, HasAddressesThatLeadNowhere) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  open();
  uint64_t address = allocateMemory(64);
  EXPECT_DEATH((void)*reinterpret_cast<volatile char *>(address), "");
  close();
}

TEST_F(DriverTest, ReadsPinnedMemoryLate) {
  open();
  Stream stream = createStream();
  uint64_t device = allocateMemory(3 * 4);
  int *pinned = allocatePinned<int>(3), pageable[3] = {1, 2, 3};
  // 1. Ordinary memory is read at once, and written when the call returns.
  EXPECT_EQ(driver.cuMemcpyHtoDAsync(device, pageable, 12, stream),
            CUDA_SUCCESS);
  pageable[1] = 20;
  int back[3] = {};
  EXPECT_EQ(driver.cuMemcpyDtoHAsync(back, device, 12, stream), CUDA_SUCCESS);
  EXPECT_EQ(back[1], 2);
  // 2. Pinned memory is read and written when the stream gets there.
  pinned[1] = 5;
  EXPECT_EQ(driver.cuMemcpyHtoDAsync(device, pinned, 12, stream), CUDA_SUCCESS);
  pinned[1] = 50;
  int *result = allocatePinned<int>(3);
  result[1] = -1;
  EXPECT_EQ(driver.cuMemcpyDtoHAsync(result, device, 12, stream), CUDA_SUCCESS);
  EXPECT_EQ(result[1], -1);
  EXPECT_EQ(driver.cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(result[1], 50);
  EXPECT_EQ(driver.cuMemFreeHost(pinned), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuMemFreeHost(result), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuMemFreeHost(result), CUDA_ERROR_INVALID_VALUE);
  close();
}

TEST_F(DriverTest, CopiesBetweenGpusAsPeers) {
  emulated::Settings settings;
  settings.gpus = 2;
  open(settings);
  DriverContext other = nullptr;
  ASSERT_EQ(driver.cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
  uint64_t here = allocateMemory(10);
  ASSERT_EQ(driver.cuCtxSetCurrent(other), CUDA_SUCCESS);
  uint64_t there = allocateMemory(10);
  Stream stream = createStream();
  EXPECT_EQ(driver.cuMemsetD8Async(here, 7, 10, stream),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver.cuMemcpyDtoDAsync(there, here, 10, stream),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver.cuMemcpyPeerAsync(there, context, here, context, 10, stream),
            CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(driver.cuCtxSetCurrent(context), CUDA_SUCCESS);
  Stream first = createStream();
  EXPECT_EQ(driver.cuMemsetD8Async(here, 7, 9, first), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuStreamSynchronize(first), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_EQ(driver.cuCtxSetCurrent(other), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuMemcpyPeerAsync(there, other, here, context, 10, stream),
            CUDA_SUCCESS);
  unsigned char bytes[10];
  EXPECT_EQ(driver.cuMemcpyDtoHAsync(bytes, there, 10, stream), CUDA_SUCCESS);
  EXPECT_EQ(bytes[8], 7);
  EXPECT_EQ(bytes[9], 0xff);
  EXPECT_EQ(driver.cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
  close();
}

TEST_F(DriverTest, ChecksRanges) {
  open();
  Stream stream = createStream();
  uint64_t device = allocateMemory(100);
  char host[101] = {};
  EXPECT_EQ(driver.cuMemcpyHtoDAsync(device + 1, host, 100, stream),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver.cuMemcpyDtoHAsync(host, device - 1, 1, stream),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver.cuMemcpyDtoDAsync(device, device + 50, 51, stream),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver.cuMemsetD8Async(device, 0, 101, stream),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver.cuMemsetD8Async(device, 0, 100, stream), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuMemsetD8Async(device, 0, 100, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
  close();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// out[i] = a * in[i] for i < n.
void scale(void **parameters) {
  auto *out = getPointer<float>(parameters, 0);
  auto *in = getPointer<const float>(parameters, 1);
  auto a = getNumber<float>(parameters, 2);
  auto n = getNumber<uint32_t>(parameters, 3);
  uint32_t i =
      ps_emulated_read_ptx_sreg_ctaid_x() * ps_emulated_read_ptx_sreg_ntid_x() +
      getThread();
  if (i < n)
    out[i] = a * in[i];
}

void waitInABranch(void **) {
  if (getThread() == 0)
    ps_emulated_barrier_cta_sync_aligned_all(0);
}

const penstock_emulated_kernel kernels[] = {{"scale", scale, 0, 0},
                                            {"branch", waitInABranch, 1, 64}};
const penstock_image image = {
    PENSTOCK_IMAGE_EMULATED, 0, 0, 0, &kernels[0], &kernels[2]};

class KernelTest : public DriverTest {
protected:
  void SetUp() override {
    open();
    stream = createStream();
    ASSERT_EQ(driver.cuModuleLoadDataEx(&module, &image, 0, nullptr, nullptr),
              CUDA_SUCCESS);
  }
  Function find(const char *name) {
    Function function = nullptr;
    EXPECT_EQ(driver.cuModuleGetFunction(&function, module, name),
              CUDA_SUCCESS);
    return function;
  }
  int launch(const char *name, uint32_t grid, uint32_t block,
             std::vector<uint64_t> words = {}, uint32_t sharedBytes = 0) {
    std::vector<void *> parameters;
    for (uint64_t &word : words)
      parameters.push_back(&word);
    parameters.push_back(nullptr);
    return driver.cuLaunchKernel(find(name), grid, 1, 1, block, 1, 1,
                                 sharedBytes, stream, parameters.data(),
                                 nullptr);
  }

  Stream stream = nullptr;
  Module module = nullptr;
};

TEST_F(KernelTest, ComputesOnDeviceMemory) {
  constexpr uint32_t kN = 77;
  uint64_t in = allocateMemory(kN * 4), out = allocateMemory(kN * 4 + 4);
  std::vector<float> values(kN), results(kN + 1);
  for (uint32_t i = 0; i < kN; ++i)
    values[i] = float(i) + 0.5f;
  driver.cuMemcpyHtoDAsync(in, values.data(), kN * 4, stream);
  EXPECT_EQ(
      launch("scale", 3, 32, {out, in, std::bit_cast<uint32_t>(-2.0f), kN}),
      CUDA_SUCCESS);
  EXPECT_EQ(driver.cuMemcpyDtoHAsync(results.data(), out, kN * 4 + 4, stream),
            CUDA_SUCCESS);
  for (uint32_t i = 0; i < kN; ++i)
    EXPECT_EQ(results[i], -2 * values[i]) << i;
  EXPECT_TRUE(std::isnan(results[kN]));
  EXPECT_EQ(driver.cuModuleUnload(module), CUDA_SUCCESS);
  close();
}

TEST_F(KernelTest, HasOnlyWhatIsInTheImage) {
  Function function = nullptr;
  EXPECT_EQ(driver.cuModuleGetFunction(&function, module, "scales"),
            CUDA_ERROR_NOT_FOUND);
  penstock_image ptx = image;
  ptx.kind = PENSTOCK_IMAGE_PTX;
  Module other = nullptr;
  EXPECT_EQ(driver.cuModuleLoadDataEx(&other, &ptx, 0, nullptr, nullptr),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(driver.cuModuleUnload(module), CUDA_SUCCESS);
  close();
}

TEST_F(KernelTest, HasTheLimitsOfAGpu) {
  std::vector<uint64_t> words = {0, 0, 0, 0};
  EXPECT_EQ(launch("scale", 0, 32, words), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch("scale", 1, 1025, words), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch("scale", 1, 1024, words), CUDA_SUCCESS);
  EXPECT_EQ(launch("branch", 1, 1, {}, (48 << 10) - 63),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch("branch", 1, 1, {}, (48 << 10) - 64), CUDA_SUCCESS);
  Function function = find("scale");
  void *parameters[] = {nullptr};
  EXPECT_EQ(driver.cuLaunchKernel(function, 1, 65536, 1, 1, 1, 1, 0, stream,
                                  parameters, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 65, 0, stream,
                                  parameters, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver.cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuModuleUnload(module), CUDA_SUCCESS);
  close();
}

// One index more than there is memory for, before and behind. The context is
// lost, as that of a GPU.
// A kernel may have the memory of another GPU once that is asked for.
TEST_F(DriverTest, ReachesPeersWhenAsked) {
  emulated::Settings settings;
  settings.gpus = 2;
  for (bool arePeers : {false, true}) {
    settings.arePeers = arePeers;
    open(settings);
    DriverContext other = nullptr;
    ASSERT_EQ(driver.cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
    uint64_t here = allocateMemory(8);
    int can = -1;
    EXPECT_EQ(driver.cuDeviceCanAccessPeer(&can, 1, 0), CUDA_SUCCESS);
    EXPECT_EQ(can, int(arePeers));
    ASSERT_EQ(driver.cuCtxSetCurrent(other), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuCtxEnablePeerAccess(other, 0),
              CUDA_ERROR_INVALID_DEVICE);
    if (arePeers) {
      EXPECT_EQ(driver.cuCtxEnablePeerAccess(context, 0), CUDA_SUCCESS);
      EXPECT_EQ(driver.cuCtxEnablePeerAccess(context, 0),
                CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    }
    Stream stream = createStream();
    Module module = nullptr;
    Function scale = nullptr;
    ASSERT_EQ(driver.cuModuleLoadDataEx(&module, &image, 0, nullptr, nullptr),
              CUDA_SUCCESS);
    ASSERT_EQ(driver.cuModuleGetFunction(&scale, module, "scale"),
              CUDA_SUCCESS);
    uint64_t out = allocateMemory(8), factor = 0, count = 2;
    void *parameters[] = {&out, &here, &factor, &count, nullptr};
    EXPECT_EQ(driver.cuLaunchKernel(scale, 1, 1, 1, 2, 1, 1, 0, stream,
                                    parameters, nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamSynchronize(stream),
              arePeers ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED);
    ASSERT_EQ(driver.cuCtxSetCurrent(context), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
    close();
  }
}

TEST_F(KernelTest, FindsIndicesOutOfRange) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "sanitizers end the process";
#endif
#endif
  constexpr uint32_t kN = 64;
  for (bool isBehind : {true, false}) {
    uint64_t in = allocateMemory(1024 * 4), out = allocateMemory(kN * 4);
    uint64_t first = isBehind ? out : out - 4096;
    EXPECT_EQ(launch("scale", 3, 32, {first, in, 0, kN}), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamSynchronize(stream),
              isBehind ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED);
    if (isBehind) {
      EXPECT_EQ(launch("scale", 3, 32, {first, in, 0, kN + 1}), CUDA_SUCCESS);
      EXPECT_EQ(driver.cuStreamSynchronize(stream), CUDA_ERROR_LAUNCH_FAILED);
    }
    uint64_t where = isBehind ? out + kN * 4 : first;
    EXPECT_EQ(describeStatus(driver, CUDA_ERROR_LAUNCH_FAILED),
              format("CUDA_ERROR_LAUNCH_FAILED, kernel scale, block (%d,0,0), "
                     "thread 0: the GPU has no memory at 0x%llx",
                     isBehind ? 2 : 0, (unsigned long long)where));
    close();
    SetUp();
  }
  EXPECT_EQ(driver.cuModuleUnload(module), CUDA_SUCCESS);
  close();
}

TEST_F(KernelTest, FailsInTheNextCall) {
  bool hasRun = false;
  EXPECT_EQ(launch("branch", 2, 3), CUDA_SUCCESS);
  emulated::enqueue(stream, [&] { hasRun = true; });
  EXPECT_EQ(driver.cuStreamSynchronize(stream), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_FALSE(hasRun);
  uint64_t address = 0;
  EXPECT_EQ(driver.cuMemAlloc(&address, 4), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(describeStatus(driver, CUDA_ERROR_LAUNCH_FAILED),
            "CUDA_ERROR_LAUNCH_FAILED, kernel branch, block (0,0,0): of 3 "
            "threads, 1 wait at a barrier, 0 in a shuffle whose other lanes do "
            "not come, 2 have ended");
  close();
  // The next context knows nothing of it, and has no module.
  open();
  allocateMemory(4);
  close();
}

//===----------------------------------------------------------------------===//
// Order of calls
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

class GraphTest : public DriverTest {
protected:
  void begin(Stream stream) {
    ASSERT_EQ(driver.cuStreamBeginCapture(stream,
                                          CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
              CUDA_SUCCESS);
  }
  /// Ends a capture that a call has spoilt. The stream goes on as before.
  void expectInvalid(Stream stream) {
    Graph graph = nullptr;
    EXPECT_EQ(driver.cuMemsetD8Async(0, 0, 1, stream),
              CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(driver.cuStreamEndCapture(stream, &graph),
              CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(driver.cuStreamSynchronize(stream), CUDA_SUCCESS);
  }
};

TEST_F(GraphTest, RepeatsWhatWasRecorded) {
  open();
  Stream stream = createStream();
  int runs = 0, *values = allocatePinned<int>(2);
  uint64_t address = allocateMemory(4);
  begin(stream);
  emulated::enqueue(stream, [&] { ++runs; });
  EXPECT_EQ(driver.cuMemcpyHtoDAsync(address, &values[0], 4, stream),
            CUDA_SUCCESS);
  EXPECT_EQ(driver.cuMemcpyDtoHAsync(&values[1], address, 4, stream),
            CUDA_SUCCESS);
  Graph graph = nullptr;
  ASSERT_EQ(driver.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(runs, 0) << "what is captured does not run";
  GraphExec exec = nullptr;
  ASSERT_EQ(driver.cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuGraphDestroy(graph), CUDA_SUCCESS);
  for (int i = 1; i <= 3; ++i) {
    values[0] = 10 * i;
    EXPECT_EQ(driver.cuGraphLaunch(exec, stream), CUDA_SUCCESS);
    EXPECT_EQ(runs, i - 1) << "nothing runs before somebody waits";
    EXPECT_EQ(driver.cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(runs, i);
    EXPECT_EQ(values[1], 10 * i);
  }
  // One that is on its way is not lost.
  EXPECT_EQ(driver.cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(runs, 4);
  close();
}

TEST_F(GraphTest, RejectsWhatAGraphCannotRepeat) {
  open();
  Stream stream = createStream(), other = createStream();
  Event event = createEvent(), before = createEvent();
  uint64_t address = allocateMemory(8), more = 0;
  int value = 0;
  void *pinned = nullptr;
  EXPECT_EQ(driver.cuEventRecord(before, other), CUDA_SUCCESS);
  auto expect = [&](auto call, int status) {
    begin(stream);
    EXPECT_EQ(call(), status);
    expectInvalid(stream);
  };
  // Waits of the host.
  expect([&] { return driver.cuStreamSynchronize(stream); },
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect([&] { return driver.cuStreamSynchronize(other); },
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect([&] { return driver.cuEventQuery(before); },
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  // Memory of the host that may go, and of the GPU that comes and goes.
  expect([&] { return driver.cuMemcpyHtoDAsync(address, &value, 4, stream); },
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect([&] { return driver.cuMemcpyDtoHAsync(&value, address, 4, stream); },
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect([&] { return driver.cuMemAlloc(&more, 4); },
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect([&] { return driver.cuMemFree(address); },
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect([&] { return driver.cuMemHostAlloc(&pinned, 4, 0); },
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  // Work that is not on the graph.
  expect([&] { return driver.cuStreamWaitEvent(stream, before, 0); },
         CUDA_ERROR_STREAM_CAPTURE_ISOLATION);

  // Another stream waits for what is captured, and never comes back.
  Graph graph = nullptr;
  begin(stream);
  EXPECT_EQ(driver.cuEventRecord(event, stream), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuStreamWaitEvent(other, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuStreamEndCapture(stream, &graph),
            CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  // Nobody can wait for a point in a graph.
  EXPECT_EQ(driver.cuEventSynchronize(event), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_EQ(driver.cuEventRecord(event, stream), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuEventSynchronize(event), CUDA_SUCCESS);

  // Captures begin and end once, on one thread.
  EXPECT_EQ(driver.cuStreamEndCapture(stream, &graph),
            CUDA_ERROR_ILLEGAL_STATE);
  begin(stream);
  EXPECT_EQ(
      driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
      CUDA_ERROR_ILLEGAL_STATE);
  std::thread([&] {
    EXPECT_EQ(driver.cuCtxSetCurrent(context), CUDA_SUCCESS);
    // What others do is none of its business.
    EXPECT_EQ(driver.cuEventQuery(before), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamSynchronize(other), CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamEndCapture(stream, &graph),
              CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  }).join();
  EXPECT_EQ(driver.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuGraphDestroy(graph), CUDA_SUCCESS);
  driver.cuEventDestroy(event);
  driver.cuEventDestroy(before);
  close();
}

TEST_F(DriverTest, MeasuresTimeBetweenEvents) {
  open();
  Stream stream = createStream();
  Event events[3] = {};
  for (Event &event : events)
    EXPECT_EQ(driver.cuEventCreate(&event, 0), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuEventRecord(events[0], stream), CUDA_SUCCESS);
  emulated::enqueue(stream, [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  EXPECT_EQ(driver.cuEventRecord(events[1], stream), CUDA_SUCCESS);
  float milliseconds = 0;
  EXPECT_EQ(driver.cuEventElapsedTime(&milliseconds, events[0], events[1]),
            CUDA_ERROR_NOT_READY);
  EXPECT_EQ(driver.cuEventElapsedTime(&milliseconds, events[0], events[2]),
            CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(driver.cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuEventElapsedTime(&milliseconds, events[0], events[1]),
            CUDA_SUCCESS);
  EXPECT_GE(milliseconds, 20.0f);
  EXPECT_LT(milliseconds, 20000.0f);
  Event untimed = createEvent();
  EXPECT_EQ(driver.cuEventRecord(untimed, stream), CUDA_SUCCESS);
  EXPECT_EQ(driver.cuEventElapsedTime(&milliseconds, events[0], untimed),
            CUDA_ERROR_INVALID_HANDLE);
  for (Event event : {events[0], events[1], events[2], untimed})
    EXPECT_EQ(driver.cuEventDestroy(event), CUDA_SUCCESS);
  close();
}

TEST_F(DriverTest, NeedsAContext) {
  open();
  close();
  Stream stream = nullptr;
  EXPECT_EQ(
      driver.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0),
      CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(driver.cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(driver.cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
  int gpu = 0;
  EXPECT_EQ(driver.cuDeviceGet(&gpu, 1), CUDA_ERROR_INVALID_DEVICE);
}

} // namespace
