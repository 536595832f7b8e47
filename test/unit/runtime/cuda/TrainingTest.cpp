//===- TrainingTest.cpp - Training on emulated GPUs -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bits of a serial loop, whatever the order in which the driver runs what
// is put on streams, on one GPU and on two.
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "LinearProgram.h"

#include "runtime/device/cuda/Libraries.h"
#include "runtime/device/emulated/Driver.h"

#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <sstream>

using namespace penstock;
using namespace penstock::runtime;
using namespace penstock::test;

namespace {

//===----------------------------------------------------------------------===//
// Waits that are left out
//===----------------------------------------------------------------------===//

/// The waits of streams that devices put there.
enum class Wait {
  None,
  /// Computing waits for messages and samples that come, and those that leave.
  Await,
  /// The transfer of a message waits until its slot is free, and it is there.
  FreeSlot,
  Message,
  /// The copy of samples waits until their slot is free.
  FreeInput
};

/// The emulated driver, but for one kind of waits.
class Driver {
public:
  static void install() {
    static cuda::Driver functions = emulated::driver;
    static cuda::Libraries libraries = *cuda::emulatedLibraries;
    functions.cuStreamCreateWithPriority = createStream;
    functions.cuStreamWaitEvent = wait;
    libraries.driver = &functions;
    cuda::emulatedLibraries = &libraries;
  }

  static inline Wait leftOut = Wait::None;

private:
  static int createStream(cuda::Stream *stream, unsigned flags, int priority) {
    int status =
        emulated::driver.cuStreamCreateWithPriority(stream, flags, priority);
    // Each device has a thread, which makes its streams in this order.
    constexpr int kStreams = 4;
    static thread_local int made = 0;
    std::lock_guard<std::mutex> lock(mutex);
    streams[*stream] = {made++ % kStreams, 0};
    return status;
  }
  static int wait(cuda::Stream stream, cuda::Event event, unsigned flags) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      auto &[kind, count] = streams[stream];
      Wait waits[][2] = {{Wait::Await, Wait::Await},
                         {Wait::FreeSlot, Wait::Message},
                         {Wait::FreeInput, Wait::FreeInput},
                         {Wait::None, Wait::None}};
      Wait own = waits[kind][count++ % 2];
      if (own != Wait::None && own == leftOut)
        return cuda::CUDA_SUCCESS;
    }
    return emulated::driver.cuStreamWaitEvent(stream, event, flags);
  }

  static inline std::mutex mutex;
  static inline std::map<cuda::Stream, std::pair<int, int>> streams;
};

class TrainingTest : public testing::Test {
protected:
  // Before a program loads the driver, once.
  static void SetUpTestSuite() { Driver::install(); }
  void TearDown() override { Driver::leftOut = Wait::None; }

  /// Trains, evaluates and verifies; the weights and the accuracy must be those
  /// of a loop.
  void train(const emulated::Settings &settings) {
    emulated::configure(settings);
    std::string data = "x=" + linear.dataPath;
    penstock_option options[] = {
        {"data", data.c_str()},      {"labels", linear.labelsPath.c_str()},
        {"eval-data", data.c_str()}, {"eval-labels", linear.labelsPath.c_str()},
        {"verify", nullptr},         {nullptr, nullptr}};
    penstock_run *run = nullptr;
    ASSERT_EQ(penstock_open(&linear, options, &run), 0) << penstock_error(run);
    ASSERT_EQ(penstock_train(run, 5), 0) << penstock_error(run);
    penstock_results before = {}, after = {};
    ASSERT_EQ(penstock_evaluate(run, &before), 0) << penstock_error(run);
    ASSERT_EQ(penstock_train(run, 1), 0) << penstock_error(run);
    ASSERT_EQ(penstock_evaluate(run, &after), 0) << penstock_error(run);
    EXPECT_LT(after.loss, before.loss);
    EXPECT_EQ(after.samples, 26);
    std::string path = folder / "trained.onnx";
    ASSERT_EQ(penstock_save(run, path.c_str()), 0) << penstock_error(run);
    EXPECT_EQ(penstock_replay(run, 6), 0) << penstock_error(run);
    penstock_close(run);

    EXPECT_EQ(readText(path), getTrained(6));
  }

  /// The model after so many updates of a loop.
  std::string getTrained(int64_t updates) const {
    std::vector<float> w1 = linear.w1, w2 = linear.w2;
    linear.trainSerially(updates, 0.05f, w1, w2);
    std::string model = linear.modelText;
    std::memcpy(&model[linear.w1Offset], w1.data(), 4 * w1.size());
    std::memcpy(&model[linear.w2Offset], w2.data(), 4 * w2.size());
    return model;
  }

  /// Returns whether training without some of the waits gives the bits of a
  /// loop.
  bool isRightWithout(Wait wait, uint64_t order) {
    emulated::Settings settings;
    settings.order = order;
    emulated::configure(settings);
    Driver::leftOut = wait;
    std::string data = "x=" + linear.dataPath;
    penstock_option options[] = {{"data", data.c_str()},
                                 {"labels", linear.labelsPath.c_str()},
                                 {nullptr, nullptr}};
    penstock_run *run = nullptr;
    std::string path = folder / "trained.onnx";
    constexpr int64_t kUpdates = 12;
    // Numbers that are not finite end a training.
    bool isDone = !penstock_open(&linear, options, &run) &&
                  !penstock_train(run, kUpdates) &&
                  !penstock_save(run, path.c_str());
    penstock_close(run);
    return isDone && readText(path) == getTrained(kUpdates);
  }

  ScratchFolder folder;
  LinearProgram linear{folder.path};
};

TEST_F(TrainingTest, GivesTheBitsOfALoopInAnyOrder) {
  for (uint64_t order = 0; order < 24; ++order) {
    SCOPED_TRACE(order);
    emulated::Settings settings;
    settings.order = order;
    train(settings);
  }
}

// Each kind of waits is needed: without it, one of the first orders, in which
// each stream is last once and first once, gives other numbers.
TEST_F(TrainingTest, ShowsAWaitThatIsLeftOut) {
  constexpr uint64_t kOrders = 24;
  EXPECT_TRUE(isRightWithout(Wait::None, 0));
  for (Wait wait :
       {Wait::Await, Wait::FreeSlot, Wait::Message, Wait::FreeInput}) {
    uint64_t order = 0;
    while (order < kOrders && isRightWithout(wait, order))
      ++order;
    EXPECT_LT(order, kOrders) << "wait " << int(wait);
  }
}

TEST_F(TrainingTest, GivesTheBitsOfALoopOnTwoGpus) {
  for (uint64_t order = 0; order < 12; ++order) {
    SCOPED_TRACE(order);
    emulated::Settings settings;
    settings.order = order;
    settings.gpus = 2;
    train(settings);
  }
}

TEST_F(TrainingTest, GivesTheBitsOfALoopOnGpuAndCpu) {
  Placement before = placement;
  for (auto [first, second] : {std::pair("cpu", "cuda"), {"cuda", "cpu"}}) {
    placement = {first, second, second};
    LinearProgram mixed(folder.path);
    linear.devices = mixed.devices;
    linear.program.devices = linear.devices.data();
    linear.replayDevices = mixed.replayDevices;
    linear.replay.devices = linear.replayDevices.data();
    for (uint64_t order = 0; order < 6; ++order) {
      SCOPED_TRACE(std::string(first) + " " + std::to_string(order));
      emulated::Settings settings;
      settings.order = order;
      train(settings);
    }
  }
  placement = before;
}

/// More losses than a device keeps for the host, which takes them while it
/// looks on and when there is no room.
TEST_F(TrainingTest, LogsEveryLoss) {
  constexpr int kUpdates = 150;
  std::vector<float> w1 = linear.w1, w2 = linear.w2;
  std::vector<float> expected = linear.trainSerially(kUpdates, 0.05f, w1, w2);
  for (uint64_t order = 0; order < 6; ++order) {
    SCOPED_TRACE(order);
    emulated::Settings settings;
    settings.order = order;
    emulated::configure(settings);
    std::string data = "x=" + linear.dataPath, log = folder / "log.jsonl";
    penstock_option options[] = {{"data", data.c_str()},
                                 {"labels", linear.labelsPath.c_str()},
                                 {"log", log.c_str()},
                                 {nullptr, nullptr}};
    penstock_run *run = nullptr;
    ASSERT_EQ(penstock_open(&linear, options, &run), 0) << penstock_error(run);
    ASSERT_EQ(penstock_train(run, kUpdates), 0) << penstock_error(run);
    penstock_close(run);
    std::istringstream lines(readText(log));
    std::string line;
    for (int t = 0; t < kUpdates; ++t) {
      double sum = 0;
      for (int j = 0; j < kM; ++j)
        sum += expected[t * kM + j];
      char start[60];
      std::snprintf(start, sizeof(start), "{\"step\": %d, \"loss\": %.9g,",
                    t + 1, sum / kM);
      ASSERT_TRUE(std::getline(lines, line));
      ASSERT_EQ(line.substr(0, std::strlen(start)), start);
    }
  }
}

TEST_F(TrainingTest, SaysWhatDoesNotFit) {
  emulated::Settings settings;
  settings.memoryBytes = 1000; // an arena has 640, and three numbers
  emulated::configure(settings);
  penstock_run *run = nullptr;
  std::string data = "x=" + linear.dataPath;
  penstock_option options[] = {{"data", data.c_str()},
                               {"labels", linear.labelsPath.c_str()},
                               {nullptr, nullptr}};
  EXPECT_EQ(penstock_open(&linear, options, &run), PENSTOCK_DOES_NOT_FIT);
  std::string error = penstock_error(run);
  constexpr char kText[] =
      " needs 664 bytes; of the 1000 of GPU 0, 336 are free";
  // Whichever comes second.
  EXPECT_TRUE(error == std::string("device 0") + kText ||
              error == std::string("device 1") + kText)
      << error;
  penstock_close(run);
  emulated::configure({});
}

} // namespace
