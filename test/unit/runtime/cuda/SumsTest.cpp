//===- SumsTest.cpp - Sums over emulated GPUs -----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The values of a sum come from kernels that have been launched and not run,
// and the next kernels use what the sum leaves in their place.
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "Session.h"
#include "TestFiles.h"

#include "runtime/device/cuda/Libraries.h"
#include "runtime/device/emulated/Driver.h"

#include <atomic>
#include <gtest/gtest.h>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

using namespace penstock;
using namespace penstock::runtime;
using namespace penstock::test;

namespace {

constexpr uint32_t kDevices = 3;
constexpr int kN = 37, kUpdates = 20;
constexpr int64_t kShape[] = {kN};
constexpr uint64_t kBytes = kN * 4;
// Of an arena: a value to add, what becomes of the sums, and the loss.
constexpr uint64_t kValue = 0, kState = 256, kLoss = 512, kArena = 576;

/// The emulated driver, of which some calls are watched.
class Driver {
public:
  static void install() {
    static cuda::Driver functions = emulated::driver;
    static cuda::Libraries libraries = *cuda::emulatedLibraries;
    functions.cuMemcpyHtoDAsync = upload;
    functions.cuStreamCreateWithPriority = createStream;
    functions.cuStreamWaitEvent = wait;
    libraries.driver = &functions;
    cuda::emulatedLibraries = &libraries;
  }

  /// Copies from the host.
  static inline std::atomic<int> uploads = 0;
  /// Waits that are left out: of the streams that add up, or of all others.
  enum class Wait { None, Adding, Others };
  static inline Wait leftOut = Wait::None;

private:
  static int upload(uint64_t to, const void *from, size_t bytes,
                    cuda::Stream stream) {
    ++uploads;
    return emulated::driver.cuMemcpyHtoDAsync(to, from, bytes, stream);
  }
  /// Those that add up are made by who opens all devices.
  static int createStream(cuda::Stream *stream, unsigned flags, int priority) {
    int status =
        emulated::driver.cuStreamCreateWithPriority(stream, flags, priority);
    std::lock_guard<std::mutex> lock(mutex);
    if (std::this_thread::get_id() == opener)
      adding.insert(*stream);
    else
      adding.erase(*stream);
    return status;
  }
  static int wait(cuda::Stream stream, cuda::Event event, unsigned flags) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      Wait own = adding.count(stream) ? Wait::Adding : Wait::Others;
      if (own == leftOut)
        return cuda::CUDA_SUCCESS;
    }
    return emulated::driver.cuStreamWaitEvent(stream, event, flags);
  }

  static inline const std::thread::id opener = std::this_thread::get_id();
  static inline std::mutex mutex;
  static inline std::set<cuda::Stream> adding;
};

void makeValue(float *value, const float *state, int64_t t, uint32_t device) {
  // Sums of such depend on their order.
  for (int i = 0; i < kN; ++i)
    value[i] = (device % 2 ? -1.0f : 1.0f) * 1e7f / float(device + 1) +
               float(i * 7 + t) / 3 + state[i];
}
void useSum(const float *value, float *state, float *loss) {
  *loss = 0;
  for (int i = 0; i < kN; ++i) {
    state[i] = 0.5f * state[i] + 1e-6f * value[i];
    *loss += state[i];
  }
}

using Math = Kernels<makeValue, useSum>;

void train(penstock_device *device, int64_t first, int64_t updates, int64_t) {
  char *arena = static_cast<char *>(penstock_arena(device));
  auto *value = reinterpret_cast<float *>(arena + kValue);
  auto *state = reinterpret_cast<float *>(arena + kState);
  auto *loss = reinterpret_cast<float *>(arena + kLoss);
  for (int64_t t = first; t < first + updates; ++t) {
    penstock_mark(device, device->index, t);
    Math::run<makeValue>(device, value, state, t, device->index);
    void *cells[] = {value};
    penstock_all_reduce(device, 0, t, cells);
    penstock_await(device, 1 + 0, t);
    Math::run<useSum>(device, value, state, loss);
    if (device->index == 0)
      penstock_send(device, 0, t, loss);
  }
}

/// The same in one loop.
std::vector<float> computeLosses() {
  std::vector<float> losses(kUpdates), state(kN);
  for (int t = 0; t < kUpdates; ++t) {
    float values[kDevices][kN];
    for (uint32_t device = 0; device < kDevices; ++device)
      makeValue(values[device], state.data(), t, device);
    for (int i = 0; i < kN; ++i)
      values[0][i] = values[0][i] + values[1][i] + values[2][i];
    useSum(values[0], state.data(), &losses[t]);
  }
  return losses;
}

/// Returns whether devices add up as a loop does.
bool areRight(const char *const (&kinds)[kDevices], int gpus, uint64_t order,
              bool arePeers = true) {
  emulated::Settings settings;
  settings.order = order;
  settings.gpus = gpus;
  settings.arePeers = arePeers;
  emulated::configure(settings);
  penstock_tensor value = {PENSTOCK_F32, 1, kShape, kBytes};
  penstock_tensor scalar = {PENSTOCK_F32, 0, nullptr, 4};
  penstock_channel loss = {
      "loss", PENSTOCK_CHANNEL_LOSS, nullptr, scalar, 0, -1, 0, 1, 1, 0, 0, -1};
  const uint32_t order0[] = {0, 1, 2}, adds[] = {0, 0, 0};
  penstock_group group = {"g", 1, &value, kDevices, order0, adds};
  penstock_device_descriptor devices[kDevices];
  penstock_task tasks[kDevices];
  for (uint32_t i = 0; i < kDevices; ++i) {
    devices[i] = {kArena, 64, 1, kinds[i], "any", ""};
    tasks[i] = {"s.U", 'U', i, i};
  }
  penstock_device_function functions[] = {train, train, train};
  penstock_schedule schedule = {PENSTOCK_SCHEDULE_TRAIN, 1, 0, functions};
  penstock_program program = makeProgram(devices, schedule);
  set(program.channel_count, program.channels, loss);
  set(program.task_count, program.tasks, tasks);
  set(program.group_count, program.groups, group);
  Math::addTo(program);

  ScratchFolder folder;
  std::string log = folder / "log.jsonl";
  penstock_option options[] = {{"log", log.c_str()}, {nullptr, nullptr}};
  penstock_run *run = nullptr;
  Driver::uploads = 0;
  bool isDone =
      !penstock_open(&program, options, &run) && !penstock_train(run, kUpdates);
  if (Driver::leftOut == Driver::Wait::None)
    EXPECT_TRUE(isDone) << penstock_error(run);
  penstock_close(run);
  std::istringstream lines(readText(log));
  std::string line;
  for (float expected : computeLosses()) {
    char text[40];
    std::snprintf(text, sizeof(text), "\"loss\": %.9g,", double(expected));
    if (!isDone || !std::getline(lines, line) ||
        line.find(text) == std::string::npos)
      return false;
  }
  return true;
}

class Sums : public testing::Test {
protected:
  // Before a program loads the driver, once.
  static void SetUpTestSuite() { Driver::install(); }
  void TearDown() override { Driver::leftOut = Driver::Wait::None; }
};

TEST_F(Sums, OverGpusHaveTheOrderOfTheSummands) {
  for (uint64_t order = 0; order < 14; ++order) {
    SCOPED_TRACE(order);
    EXPECT_TRUE(areRight({"cuda", "cuda", "cuda"}, 1, order));
    EXPECT_EQ(Driver::uploads, 0);
    EXPECT_TRUE(areRight({"cuda", "cuda", "cuda"}, 2, order));
    EXPECT_EQ(Driver::uploads, 0);
    EXPECT_TRUE(areRight({"cuda", "cuda", "cuda"}, 3, order));
    EXPECT_EQ(Driver::uploads, 0);
  }
}

TEST_F(Sums, GoThroughTheHostWhereGpusDoNotReachEachOther) {
  for (uint64_t order = 0; order < 6; ++order) {
    SCOPED_TRACE(order);
    EXPECT_TRUE(areRight({"cuda", "cuda", "cuda"}, 2, order, false));
    EXPECT_GT(Driver::uploads, 0);
    EXPECT_TRUE(areRight({"cuda", "cuda", "cuda"}, 1, order, false));
    EXPECT_EQ(Driver::uploads, 0);
  }
}

TEST_F(Sums, OverGpusAndACpuHaveTheOrderOfTheSummands) {
  for (uint64_t order = 0; order < 6; ++order) {
    SCOPED_TRACE(order);
    EXPECT_TRUE(areRight({"cuda", "cpu", "cuda"}, 2, order));
    EXPECT_TRUE(areRight({"cpu", "cuda", "cuda"}, 1, order));
  }
}

// Values and sums are waited for.
TEST_F(Sums, ShowAWaitThatIsLeftOut) {
  constexpr uint64_t kOrders = 34; // each stream last, and first
  for (Driver::Wait wait : {Driver::Wait::Adding, Driver::Wait::Others})
    for (int gpus : {1, 2}) {
      Driver::leftOut = wait;
      uint64_t order = 0;
      while (order < kOrders && areRight({"cuda", "cuda", "cuda"}, gpus, order))
        ++order;
      EXPECT_LT(order, kOrders)
          << "wait " << int(wait) << ", " << gpus << " GPUs";
    }
}

} // namespace
