//===- SinkTest.cpp - Scalars on their way to log and results -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that only reports: more losses than the ring holds, the rate of a
// schedule, and an evaluation whose microbatches have unequal label counts.
//===----------------------------------------------------------------------===//

#include "Session.h"
#include "TestFiles.h"
#include "penstock/abi.h"

#include <cmath>
#include <gtest/gtest.h>
#include <sstream>

using namespace penstock::test;

namespace {

constexpr int64_t kM = 2;

void train(penstock_device *device, int64_t first, int64_t updates, int64_t) {
  for (int64_t t = first; t < first + updates; ++t) {
    for (int64_t k = t * kM; k < (t + 1) * kM; ++k) {
      float loss = float(k);
      penstock_send(device, 0, k, &loss);
    }
  }
}

float rateOf(penstock_device *, float base, int64_t done) {
  return base + float(done) / 4;
}

// Counts 0, 1, 2, ...; the microbatch without labels has no finite loss.
void evaluate(penstock_device *device, int64_t first, int64_t count, int64_t) {
  for (int64_t k = first; k < first + count; ++k) {
    float loss = k == 0 ? std::nanf("") : float(10 * k);
    int64_t labels = k, correct = k / 2;
    penstock_send(device, 0, k, &loss);
    penstock_send(device, 1, k, &correct);
    penstock_send(device, 2, k, &labels);
  }
}

struct Program {
  penstock_tensor scalar = {PENSTOCK_F32, 0, nullptr, 4};
  penstock_tensor integer = {PENSTOCK_I64, 0, nullptr, 8};
  int64_t shape[1] = {1};
  penstock_channel channels[4] = {{"loss", PENSTOCK_CHANNEL_LOSS, nullptr,
                                   scalar, 0, -1, 0, 1, 1, 0, 0, -1},
                                  {"correct", PENSTOCK_CHANNEL_CORRECT, nullptr,
                                   integer, 0, -1, 0, 1, 1, 0, 0, -1},
                                  {"count", PENSTOCK_CHANNEL_COUNT, nullptr,
                                   integer, 0, -1, 0, 1, 1, 0, 0, -1},
                                  {"x",
                                   PENSTOCK_CHANNEL_INPUT,
                                   "x",
                                   {PENSTOCK_F32, 1, shape, 4},
                                   -1,
                                   0,
                                   1,
                                   0,
                                   1,
                                   0,
                                   0,
                                   -1}};
  penstock_device_descriptor device = {64, 64, 1, "cpu", "any", ""};
  penstock_device_function trains[1] = {train}, evaluates[1] = {evaluate};
  penstock_schedule schedules[2] = {
      {PENSTOCK_SCHEDULE_TRAIN, kM, 0, trains},
      {PENSTOCK_SCHEDULE_EVALUATE, 1, 0, evaluates}};
  penstock_hyperparameter_descriptor knob = {"lr", 3};
  penstock_program program = makeProgram(device, schedules);

  Program() {
    set(program.channel_count, program.channels, channels);
    set(program.hyperparameter_count, program.hyperparameters, knob);
    program.rate = rateOf;
  }
};

class SinkTest : public testing::Test {
protected:
  void SetUp() override {
    writeNpy(folder / "x.npy", "<f4", {4}, std::vector<float>(4));
    std::string data = "x=" + (folder / "x.npy"), log = folder / "log.jsonl";
    penstock_option options[] = {{"data", data.c_str()},
                                 {"eval-data", data.c_str()},
                                 {"log", log.c_str()},
                                 {nullptr, nullptr}};
    ASSERT_EQ(penstock_open(&program.program, options, &run), 0)
        << penstock_error(run);
  }
  void TearDown() override { penstock_close(run); }

  ScratchFolder folder;
  Program program;
  penstock_run *run = nullptr;
};

TEST_F(SinkTest, LogsEveryUpdateWithItsRate) {
  constexpr int kUpdates = 20000;
  ASSERT_EQ(penstock_train(run, kUpdates), 0);
  std::istringstream text(readText(folder / "log.jsonl"));
  std::string line;
  for (int t = 0; t < kUpdates; ++t) {
    ASSERT_TRUE(std::getline(text, line));
    char expected[100];
    std::snprintf(expected, sizeof(expected),
                  "{\"step\": %d, \"loss\": %.9g, \"lr\": %.9g, ", t + 1,
                  2 * t + 0.5, 3 + t / 4.0);
    ASSERT_EQ(line.rfind(expected, 0), 0u) << line;
  }
  EXPECT_FALSE(std::getline(text, line));
}

TEST_F(SinkTest, WeighsMicrobatchesByTheirLabels) {
  penstock_results results;
  ASSERT_EQ(penstock_evaluate(run, &results), 0) << penstock_error(run);
  // Losses 10, 20, 30 with 1, 2, 3 labels; right are 0, 1, 1 of them.
  EXPECT_DOUBLE_EQ(results.loss, (10.0 + 40 + 90) / 6);
  EXPECT_DOUBLE_EQ(results.accuracy, 2.0 / 6);
  EXPECT_EQ(results.samples, 4);
  EXPECT_EQ(results.samples_left_out, 0);
}

} // namespace
