//===- OutputsTest.cpp - Outputs of inference, from slots to files --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The slot of an output is used again as soon as it has been sent, so its bytes
// must be on the host by then, and not before its kernel has run.
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "Session.h"
#include "TestFiles.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace penstock::test;

namespace {

constexpr int kBatch = 3, kColumns = 5, kSamples = 22;
constexpr int64_t kShape[] = {kBatch, kColumns};
constexpr uint64_t kBytes = kBatch * kColumns * 4;
constexpr uint64_t kX = 0, kY = 256, kArena = 384; // two slots of x

void compute(const float *x, float *y) {
  for (int i = 0; i < kBatch * kColumns; ++i)
    y[i] = 2 * x[i] + 1;
}
using Math = Kernels<compute>;

void infer(penstock_device *device, int64_t first, int64_t count, int64_t) {
  char *arena = static_cast<char *>(penstock_arena(device));
  auto at = [&](uint64_t offset) {
    return reinterpret_cast<float *>(arena + offset);
  };
  for (int64_t k = first; k < first + count; ++k) {
    float *x = at(kX + k % 2 * 128), *y = at(kY);
    penstock_recv(device, 0, k, x);
    penstock_await(device, 0, k);
    penstock_mark(device, 0, k);
    Math::run<compute>(device, x, y);
    penstock_send(device, 1, k, y);
  }
}

TEST(Outputs, HoldEveryMicrobatch) {
  penstock_tensor matrix = {PENSTOCK_F32, 2, kShape, kBytes};
  penstock_channel channels[] = {
      {"x", PENSTOCK_CHANNEL_INPUT, "x", matrix, -1, 0, 2, 0, 1, 0, 0, -1},
      {"y", PENSTOCK_CHANNEL_OUTPUT, "y", matrix, 0, -1, 0, 1, 1, 0, 0, -1}};
  penstock_device_descriptor device = {kArena,          64,    1,
                                       placement.alone, "any", ""};
  penstock_task task = {"s.F", 'F', 0, 0};
  penstock_device_function functions[] = {infer};
  penstock_schedule schedule = {PENSTOCK_SCHEDULE_INFER, 1, 0, functions};
  penstock_program program = makeProgram(device, schedule);
  program.microbatch_size = kBatch;
  set(program.channel_count, program.channels, channels);
  set(program.task_count, program.tasks, task);
  Math::addTo(program);

  ScratchFolder folder;
  std::vector<float> x(kSamples * kColumns), expected;
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = float(i) / 4;
    expected.push_back(2 * x[i] + 1);
  }
  writeNpy(folder / "x.npy", "<f4", {kSamples, kColumns}, x);
  std::string data = "x=" + (folder / "x.npy"), outputs = folder / "out";
  penstock_option options[] = {
      {"data", data.c_str()}, {"outputs", outputs.c_str()}, {nullptr, nullptr}};
  penstock_run *run = nullptr;
  ASSERT_EQ(penstock_open(&program, options, &run), 0) << penstock_error(run);
  ASSERT_EQ(penstock_infer(run), 0) << penstock_error(run);
  penstock_close(run);
  std::string written = readText(outputs + "/y.npy");
  size_t bytes = expected.size() * sizeof(float);
  ASSERT_GT(written.size(), bytes);
  EXPECT_EQ(std::memcmp(written.data() + written.size() - bytes,
                        expected.data(), bytes),
            0);
}

} // namespace
