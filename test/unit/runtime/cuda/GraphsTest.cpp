//===- GraphsTest.cpp - Actions that a GPU repeats ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many launches graphs save, and that nothing depends on them. That they
// leave the bits as they are, in all orders, is what TrainingTest.cpp shows.
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "LinearProgram.h"

#include "runtime/device/emulated/Driver.h"
#include "runtime/run/Run.h"

#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>

using namespace penstock;
using namespace penstock::runtime;
using namespace penstock::test;

namespace {

class GraphsTest : public testing::Test {
protected:
  ~GraphsTest() override {
    unsetenv("PENSTOCK_GRAPHS");
    emulated::configure({});
  }

  /// Trains for 6 updates. Returns what was written to stderr.
  std::string train(const penstock_program *program) {
    testing::internal::CaptureStderr();
    run(program);
    return testing::internal::GetCapturedStderr();
  }

  void run(const penstock_program *program) {
    std::string data = "x=" + linear.dataPath;
    penstock_option options[] = {{"data", data.c_str()},
                                 {"labels", linear.labelsPath.c_str()},
                                 {nullptr, nullptr}};
    penstock_run *run = nullptr;
    ASSERT_EQ(penstock_open(program, options, &run), 0) << penstock_error(run);
    ASSERT_EQ(penstock_train(run, kUpdates), 0) << penstock_error(run);
    statistics.clear();
    for (const penstock_device *device : run->getInstance().devices())
      statistics.push_back(device->statistics());
    std::string path = folder / "trained.onnx";
    ASSERT_EQ(penstock_save(run, path.c_str()), 0) << penstock_error(run);
    penstock_close(run);

    std::vector<float> w1 = linear.w1, w2 = linear.w2;
    linear.trainSerially(kUpdates, 0.05f, w1, w2);
    std::string model = linear.modelText;
    std::memcpy(&model[linear.w1Offset], w1.data(), 4 * w1.size());
    std::memcpy(&model[linear.w2Offset], w2.data(), 4 * w2.size());
    EXPECT_EQ(readText(path), model);
  }

  static constexpr int kUpdates = 6;
  ScratchFolder folder;
  LinearProgram linear{folder.path};
  std::vector<Statistics> statistics; // by device
};

TEST_F(GraphsTest, StandForAllTheirCalls) {
  // Forward and backward are two kernels each, and one that is on no graph is
  // between them. An update stores its rate, then there are two kernels.
  constexpr int kEager = kM * (2 + 1 + 2) + 1 + 2, kCaptured = kM * 3 + 1 + 1;
  EXPECT_EQ(train(linear.oneDevice()), "");
  EXPECT_EQ(statistics[0].graphs, 3);
  // Each action runs call by call once.
  EXPECT_EQ(statistics[0].launches, kUpdates * kCaptured + 3);

  setenv("PENSTOCK_GRAPHS", "0", 1);
  EXPECT_EQ(train(linear.oneDevice()), "");
  EXPECT_EQ(statistics[0].graphs, 0);
  EXPECT_EQ(statistics[0].launches, kUpdates * kEager);
}

TEST_F(GraphsTest, AreOneForEachWayOfTheRings) {
  EXPECT_EQ(train(&linear), "");
  EXPECT_EQ(statistics[0].graphs, 6 + 3 + 1);
  EXPECT_EQ(statistics[1].graphs, 2 + 2 + 1);
}

TEST_F(GraphsTest, AreLeftWhereACallCannotBeCaptured) {
  emulated::Settings settings;
  settings.capturesLaunches = false;
  for (uint64_t order = 0; order < 6; ++order) {
    SCOPED_TRACE(order);
    settings.order = order;
    emulated::configure(settings);
    // One warning for each action, with the call that is to blame.
    std::string warnings;
    for (auto [action, kernel] :
         {std::pair("F", "k0"), {"B", "k3"}, {"replay.U", "k4"}})
      warnings += std::string("warning: device 0: action '") + action +
                  "' runs call by call and not as a graph: launching " +
                  kernel +
                  " failed: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, on the "
                  "emulated GPU\n";
    EXPECT_EQ(train(linear.oneDevice()), warnings);
    EXPECT_EQ(statistics[0].graphs, 0);
  }
}

} // namespace
