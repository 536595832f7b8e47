//===- SourceTest.cpp - Large inputs come from the source thread ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two devices read inputs large enough for the thread that gathers ahead, and
// report sums, which tell which samples came and whether they came whole.
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "Session.h"
#include "TestFiles.h"
#include "penstock/abi.h"

#include <gtest/gtest.h>
#include <sstream>

using namespace penstock::test;

namespace {

constexpr int64_t kB = 2, kWidth = 8192, kSamples = 10;
constexpr int64_t kShape[] = {kB, kWidth};
constexpr uint64_t kBytes = kB * kWidth * 4;
constexpr int64_t kSlots = 3;

void addUp(const float *x, float *sum) {
  *sum = 0;
  for (int64_t i = 0; i < kB * kWidth; ++i)
    *sum += x[i];
}
void addOther(float *sum, const float *other) { *sum += 1000 * *other; }

using Math = Kernels<addUp, addOther>;

/// Channel 0 feeds device 0, channel 1 device 1; device 1 sends its sum over
/// channel 2; device 0 reports both in channel 3.
template <uint32_t Index>
void train(penstock_device *device, int64_t first, int64_t updates, int64_t) {
  char *arena = static_cast<char *>(penstock_arena(device));
  float *sum = reinterpret_cast<float *>(arena + kSlots * kBytes);
  for (int64_t k = first; k < first + updates + kSlots - 1; ++k) {
    if (k < first + updates)
      penstock_recv(device, Index, k, arena + k % kSlots * kBytes);
    int64_t due = k - (kSlots - 1);
    if (due < first)
      continue;
    penstock_await(device, Index, due);
    const float *x =
        reinterpret_cast<const float *>(arena + due % kSlots * kBytes);
    if (Index == 1)
      penstock_await(device, 2, due - 1);
    Math::run<addUp>(device, x, sum);
    if (Index == 1) {
      penstock_send(device, 2, due, sum);
      continue;
    }
    penstock_recv(device, 2, due, sum + 1);
    penstock_await(device, 2, due);
    Math::run<addOther>(device, sum, sum + 1);
    penstock_send(device, 3, due, sum);
  }
}

TEST(Source, LargeMessagesArriveWholeAndInOrder) {
  ScratchFolder folder;
  std::vector<float> x(kSamples * kWidth);
  for (int64_t i = 0; i < int64_t(x.size()); ++i)
    x[i] = float(i / kWidth) / kWidth; // sample s sums to s
  writeNpy(folder / "x.npy", "<f4", {kSamples, kWidth}, x);

  penstock_tensor input = {PENSTOCK_F32, 2, kShape, kBytes};
  penstock_tensor scalar = {PENSTOCK_F32, 0, nullptr, 4};
  penstock_channel channels[] = {
      {"a", PENSTOCK_CHANNEL_INPUT, "x", input, -1, 0, kSlots, 0, 1, 0, 0, -1},
      {"b", PENSTOCK_CHANNEL_INPUT, "x", input, -1, 1, kSlots, 0, 1, 0, 0, -1},
      {"sum", PENSTOCK_CHANNEL_TRANSFER, nullptr, scalar, 1, 0, 1, 1, 1, 0, 0,
       -1},
      {"loss", PENSTOCK_CHANNEL_LOSS, nullptr, scalar, 0, -1, 0, 1, 1, 0, 0,
       -1}};
  penstock_device_descriptor devices[2] = {
      {kSlots * kBytes + 64, 64, 1, placement.first, "any", ""},
      {kSlots * kBytes + 64, 64, 1, placement.second, "any", ""}};
  penstock_device_function functions[] = {train<0>, train<1>};
  penstock_schedule schedule = {PENSTOCK_SCHEDULE_TRAIN, 1, 0, functions};
  penstock_program program = makeProgram(devices, schedule);
  program.microbatch_size = kB;
  set(program.channel_count, program.channels, channels);
  Math::addTo(program);

  std::string data = "x=" + (folder / "x.npy"), log = folder / "log.jsonl";
  penstock_option options[] = {
      {"data", data.c_str()}, {"log", log.c_str()}, {nullptr, nullptr}};
  penstock_run *run = nullptr;
  ASSERT_EQ(penstock_open(&program, options, &run), 0) << penstock_error(run);
  ASSERT_EQ(penstock_train(run, 300), 0);
  ASSERT_EQ(penstock_train(run, 7), 0);
  penstock_close(run);
  std::istringstream text(readText(log));
  std::string line;
  for (int64_t k = 0; k < 307; ++k) {
    ASSERT_TRUE(std::getline(text, line));
    int64_t sample = k * kB % kSamples;
    char expected[40];
    std::snprintf(expected, sizeof(expected), "\"loss\": %lld,",
                  (long long)(1001 * (2 * sample + 1)));
    ASSERT_NE(line.find(expected), std::string::npos) << line;
  }
}

} // namespace
