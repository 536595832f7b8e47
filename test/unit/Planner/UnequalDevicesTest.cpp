//===- UnequalDevicesTest.cpp - Devices of different speed ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lines against every order of the devices with every cut; policies; and the
// bounds of HetPipe: a worker is at most D + 1 waves ahead of another.
//===----------------------------------------------------------------------===//

#include "penstock/Planner/UnequalDevices.h"

#include "Chains.h"

#include "gtest/gtest.h"

#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <numeric>

using namespace penstock;

namespace {

std::vector<DeviceKind> devicesOf(llvm::StringRef text) {
  std::string error;
  auto devices = parseDeviceKinds(text, error);
  EXPECT_TRUE(devices) << error;
  return *devices;
}

/// The slowest stage or transfer of the best line, by trying all.
double tryAll(const std::vector<PlanState> &states,
              std::vector<DeviceKind> devices, const UnequalOptions &options) {
  auto key = [](const DeviceKind &kind) {
    return std::pair(kind.host, kind.speed);
  };
  auto less = [&](const DeviceKind &a, const DeviceKind &b) {
    return key(a) < key(b);
  };
  std::sort(devices.begin(), devices.end(), less);
  size_t n = states.size(), p = devices.size();
  double best = std::numeric_limits<double>::infinity();
  do {
    // Which of the n - 1 places are cuts.
    std::vector<int> cuts(n - 1);
    std::fill(cuts.begin(), cuts.begin() + p - 1, 1);
    do {
      double slowest = 0, before = 0;
      size_t stage = 0;
      for (size_t state = 0; state < n; ++state) {
        if (state + 1 < n && !cuts[state])
          continue;
        slowest = std::max(slowest, (states[state].seconds - before) /
                                        devices[stage].speed);
        before = states[state].seconds;
        if (state + 1 == n)
          break;
        bool isInside = devices[stage].host == devices[stage + 1].host;
        slowest = std::max(slowest, 2 * states[state].cutBytes /
                                        (isInside ? options.bandwidthInside
                                                  : options.bandwidthBetween));
        ++stage;
      }
      best = std::min(best, slowest);
    } while (std::prev_permutation(cuts.begin(), cuts.end()));
  } while (std::next_permutation(devices.begin(), devices.end(), less));
  return best;
}

TEST(UnequalDevices, LinesAreTheFastest) {
  std::mt19937 random(7);
  const char *kinds[] = {"1,1,1",    "1,0.5",       "2,1;1,1",
                         "1;0.25;4", "1,1;0.5,0.5", "3,2,1,0.5"};
  for (const char *text : kinds)
    for (unsigned size = 4; size < 8; ++size) {
      LayerGraph graph = makeChain(random, size);
      std::vector<PlanState> states = buildStates(graph).states;
      std::vector<DeviceKind> devices = devicesOf(text);
      UnequalOptions options;
      options.bandwidthInside = 4;
      options.bandwidthBetween = 1.5;
      std::optional<WorkerPlan> plan = planWorker(states, devices, options);
      ASSERT_TRUE(plan);
      EXPECT_DOUBLE_EQ(plan->slowestSeconds, tryAll(states, devices, options))
          << text << ", " << size << " layers";
      // Every layer once, every device once.
      ASSERT_EQ(plan->stages.size(), devices.size());
      int64_t next = 0;
      double speed = 0;
      for (const UnequalStage &stage : plan->stages) {
        EXPECT_EQ(stage.first, next);
        EXPECT_GE(stage.last, stage.first);
        next = stage.last + 1;
        speed += stage.device.speed;
      }
      EXPECT_EQ(next, static_cast<int64_t>(size));
      EXPECT_DOUBLE_EQ(speed, std::accumulate(devices.begin(), devices.end(),
                                              0.0, [](double sum, auto &kind) {
                                                return sum + kind.speed;
                                              }));
    }
}

/// Four layers of a second each, ten bytes of weights, activations and cuts.
std::vector<PlanState> evenStates(int64_t count) {
  LayerGraph graph;
  for (int64_t index = 0; index < count; ++index) {
    Layer layer;
    layer.name = "layer" + std::to_string(index);
    layer.forwardSeconds = 1;
    layer.outputBytes = layer.weightBytes = 10;
    graph.layers.push_back(layer);
    if (index > 0)
      graph.addEdge(index - 1, index);
  }
  return buildStates(graph).states;
}

TEST(UnequalDevices, FastDevicesGetMore) {
  std::vector<PlanState> states = evenStates(6);
  std::optional<WorkerPlan> plan =
      planWorker(states, devicesOf("1,2"), UnequalOptions());
  ASSERT_TRUE(plan);
  EXPECT_DOUBLE_EQ(plan->slowestSeconds, 2);
  for (const UnequalStage &stage : plan->stages)
    EXPECT_EQ(stage.last - stage.first + 1, stage.device.speed == 2 ? 4 : 2);
}

TEST(UnequalDevices, MemoryBoundsTheWave) {
  std::vector<PlanState> states = evenStates(4);
  std::vector<DeviceKind> devices = devicesOf("1,1,1,1");
  UnequalOptions options;
  std::optional<WorkerPlan> plan = planWorker(states, devices, options);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->wave, 4);
  double most = 0;
  for (const UnequalStage &stage : plan->stages)
    most = std::max(most, stage.memoryBytes);
  // The first stage has as many in flight as there are in a wave.
  options.memory.limit = most - 1;
  plan = planWorker(states, devices, options);
  ASSERT_TRUE(plan);
  EXPECT_LT(plan->wave, 4);
  for (const UnequalStage &stage : plan->stages)
    EXPECT_LE(stage.memoryBytes, options.memory.limit);
  options.memory.limit = 1;
  EXPECT_FALSE(planWorker(states, devices, options));
}

std::string assign(llvm::StringRef text, int64_t workers, WorkerPolicy policy) {
  std::string error;
  auto assigned = assignDevices(devicesOf(text), workers, policy, error);
  if (!assigned)
    return error;
  std::string result;
  llvm::raw_string_ostream stream(result);
  for (llvm::ArrayRef<DeviceKind> own : *assigned) {
    for (const DeviceKind &kind : own)
      stream << kind.host << ":" << kind.speed << " ";
    stream << "| ";
  }
  return result;
}

TEST(UnequalDevices, Policies) {
  llvm::StringRef two = "1,1;0.5,0.5";
  auto plain = [](std::string text) {
    size_t at;
    while ((at = text.find(".000000e-01")) != std::string::npos)
      text.replace(at, 11, "");
    while ((at = text.find(".000000e+00")) != std::string::npos)
      text.replace(at, 11, "");
    return text;
  };
  EXPECT_EQ(plain(assign(two, 2, WorkerPolicy::Node)), "0:1 0:1 | 1:5 1:5 | ");
  EXPECT_EQ(plain(assign(two, 2, WorkerPolicy::Equal)), "0:1 1:5 | 0:1 1:5 | ");
  EXPECT_EQ(plain(assign(two, 2, WorkerPolicy::Hybrid)),
            "0:1 1:5 | 0:1 1:5 | ");
  // Where speeds are equal, workers stay on one host.
  EXPECT_EQ(plain(assign("1,1;1,1", 2, WorkerPolicy::Hybrid)),
            "0:1 0:1 | 1:1 1:1 | ");
  // 4 + 1 and 3 + 2.
  EXPECT_EQ(plain(assign("4,3,2,1", 2, WorkerPolicy::Hybrid)),
            "0:4 0:1 | 0:3 0:2 | ");
  EXPECT_EQ(assign(two, 3, WorkerPolicy::Equal),
            "4 devices cannot be shared out evenly among 3 workers; use a "
            "number of workers that divides 4");
  EXPECT_EQ(assign("1,1,1,1", 2, WorkerPolicy::Node),
            "a worker per host needs as many hosts as workers, 2, of 2 devices "
            "each; separate hosts by ';' in --device-speeds, or use "
            "--policy=hybrid");
  EXPECT_EQ(assign("1,1,1;0.5", 2, WorkerPolicy::Equal),
            "3 devices of speed 1.00 cannot be shared out evenly among 2 "
            "workers; use --policy=hybrid");
}

TEST(UnequalDevices, ClocksKeepTheirDistance) {
  for (double ratio : {1.0, 1.5, 2.0, 5.0})
    for (int64_t wave : {1, 2, 3, 4})
      for (int64_t distance : {0, 1, 2, 5}) {
        WorkerPlan fast, slow;
        fast.wave = slow.wave = wave;
        fast.slowestSeconds = 1;
        slow.slowestSeconds = ratio;
        fast.latencySeconds = static_cast<double>(wave);
        slow.latencySeconds = ratio * static_cast<double>(wave);
        ClockSimulation clocks = simulateClocks({fast, slow, slow}, distance);
        EXPECT_LE(clocks.largestDistance, distance + 1);
        // In the long run all go as fast as the slowest one.
        EXPECT_NEAR(clocks.microbatchesPerSecond, 3 / ratio, 0.01);
        EXPECT_NEAR(clocks.waitingShare[1], 0, 1e-9);
        if (ratio > 1) {
          EXPECT_EQ(clocks.largestDistance, distance + 1);
          EXPECT_GT(clocks.waitingShare[0], 0);
        } else {
          EXPECT_NEAR(clocks.waitingShare[0], 0, 1e-9);
        }
      }
}

TEST(UnequalDevices, WrongSpeeds) {
  std::string error;
  EXPECT_FALSE(parseDeviceKinds("1,x", error));
  EXPECT_EQ(error, "'x' is no speed: a number from 1e-6 to 1e6, 1 for the "
                   "device that layers were measured on");
  EXPECT_FALSE(parseDeviceKinds("1,0", error));
  EXPECT_FALSE(parseDeviceKinds("1,,1", error));
}

} // namespace
