//===- TraceTest.cpp - When a GPU did what --------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host issues the work of all updates before any of it runs, in no time.
// The trace says how long the GPU took.
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "Session.h"
#include "TestFiles.h"

#include "runtime/device/emulated/Driver.h"

#include <chrono>
#include <gtest/gtest.h>
#include <sstream>
#include <thread>

using namespace penstock;
using namespace penstock::runtime;
using namespace penstock::test;

namespace {

constexpr int64_t kUpdates = 6;
constexpr uint64_t kValue = 0, kArena = 64;
constexpr int kMilliseconds = 4;

void work(float *value, int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  *value += 1;
}
using Math = Kernels<work>;

enum { ChValue, ChLoss };

/// The second device takes what the first one has computed.
void trainFirst(penstock_device *device, int64_t first, int64_t updates,
                int64_t) {
  char *arena = static_cast<char *>(penstock_arena(device));
  auto *value = reinterpret_cast<float *>(arena + kValue);
  for (int64_t t = first; t < first + updates; ++t) {
    penstock_await(device, ChValue, t - 1);
    penstock_mark(device, 0, t);
    Math::run<work>(device, value, kMilliseconds);
    penstock_send(device, ChValue, t, value);
  }
}
void trainSecond(penstock_device *device, int64_t first, int64_t updates,
                 int64_t) {
  char *arena = static_cast<char *>(penstock_arena(device));
  auto *value = reinterpret_cast<float *>(arena + kValue);
  for (int64_t t = first; t < first + updates; ++t) {
    penstock_recv(device, ChValue, t, value);
    penstock_await(device, ChValue, t);
    penstock_mark(device, 1, t);
    Math::run<work>(device, value, 2 * kMilliseconds);
    penstock_send(device, ChLoss, t, value);
  }
}

struct Slice {
  std::string name, kind;
  int row;
  double begin, duration; // in microseconds
};

/// The complete events of a trace.
std::vector<Slice> readTrace(const std::string &path) {
  std::vector<Slice> slices;
  std::istringstream lines(readText(path));
  std::string line;
  while (std::getline(lines, line)) {
    char name[40], kind[20];
    Slice slice;
    if (std::sscanf(line.c_str(),
                    "{\"name\":\"%39[^\"]\",\"cat\":\"%19[^\"]\",\"ph\":\"X\","
                    "\"pid\":1,\"tid\":%d,\"ts\":%lf,\"dur\":%lf}",
                    name, kind, &slice.row, &slice.begin, &slice.duration) != 5)
      continue;
    slice.name = name;
    slice.kind = kind;
    slices.push_back(slice);
  }
  return slices;
}

TEST(Trace, HasTheTimesOfTheGpu) {
  penstock_tensor scalar = {PENSTOCK_F32, 0, nullptr, 4};
  penstock_channel channels[] = {{"value", PENSTOCK_CHANNEL_TRANSFER, nullptr,
                                  scalar, 0, 1, 1, 1, 1, 0, 0, -1},
                                 {"loss", PENSTOCK_CHANNEL_LOSS, nullptr,
                                  scalar, 1, -1, 0, 1, 1, 0, 0, -1}};
  penstock_device_descriptor devices[] = {{kArena, 64, 1, "cuda", "any", ""},
                                          {kArena, 64, 1, "cuda", "any", ""}};
  penstock_task tasks[] = {{"s0.F", 'F', 0, 0}, {"s1.B", 'B', 1, 1}};
  penstock_device_function functions[] = {trainFirst, trainSecond};
  penstock_schedule schedule = {PENSTOCK_SCHEDULE_TRAIN, 1, 0, functions};
  penstock_program program = makeProgram(devices, schedule);
  set(program.channel_count, program.channels, channels);
  set(program.task_count, program.tasks, tasks);
  Math::addTo(program);

  ScratchFolder folder;
  std::string path = folder / "trace.json";
  for (uint64_t order = 0; order < 8; ++order) {
    SCOPED_TRACE(order);
    emulated::Settings settings;
    settings.order = order;
    emulated::configure(settings);
    penstock_option options[] = {{"trace", path.c_str()}, {nullptr, nullptr}};
    penstock_run *run = nullptr;
    ASSERT_EQ(penstock_open(&program, options, &run), 0) << penstock_error(run);
    // Two segments, each of which starts its clock.
    ASSERT_EQ(penstock_train(run, 2), 0) << penstock_error(run);
    ASSERT_EQ(penstock_train(run, kUpdates - 2), 0) << penstock_error(run);
    penstock_close(run);

    int actions[2] = {};
    double end[2] = {};
    for (const Slice &slice : readTrace(path)) {
      int device = slice.row % 2;
      EXPECT_GE(slice.begin, end[device]) << slice.name;
      end[device] = slice.begin + slice.duration - 0.002;
      if (slice.kind != "action")
        continue;
      EXPECT_EQ(slice.name,
                (device ? "B" : "F") + std::to_string(actions[device]++));
      EXPECT_GE(slice.duration, (1 + device) * kMilliseconds * 1e3 - 1);
    }
    EXPECT_EQ(actions[0], kUpdates);
    EXPECT_EQ(actions[1], kUpdates);
  }
  emulated::configure({});
}

} // namespace
