//===- EngineTest.cpp - Messages and sums over processes ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The engine of MPI over a loop-back: the bits of one process, whatever the
// order in which things arrive. Also under the thread sanitizer.
//===----------------------------------------------------------------------===//

#include "runtime/transport/mpi/Engine.h"
#include "HostMemory.h"
#include "LinearTraining.h"
#include "LoopBackMpi.h"
#include "penstock/sum_share.h"

#include <optional>
#include <sched.h>

using namespace penstock::runtime;
using namespace penstock::test;

namespace {

Job makeJob(int rank, int size, uint32_t devices) {
  Job job;
  job.rank = rank;
  job.size = size;
  job.place(devices);
  return job;
}

class EngineTest : public LinearTraining {};

TEST_F(EngineTest, ComputesTheBitsOfOneProcess) {
  Results expected = runTogether();
  Job jobs[] = {makeJob(0, 2, 2), makeJob(1, 2, 2)};
  for (uint32_t seed : {1, 2, 3, 4, 5}) {
    resetLoopBackMpi(seed);
    Results results = runApart(createMpi(getLoopBackMpi(0), 32767, jobs[0]),
                               createMpi(getLoopBackMpi(1), 32767, jobs[1]));
    EXPECT_TRUE(results == expected) << seed;
    EXPECT_EQ(countUnmatched(), 0u);
  }
}

TEST_F(EngineTest, RefusesMoreChannelsThanTags) {
  Job job = makeJob(0, 2, 2);
  Instance instance(linear.program, createMpi(getLoopBackMpi(0), 2, job),
                    {true, false});
  Error error = instance.open(files, /*isTraced=*/false);
  EXPECT_EQ(error.code, PENSTOCK_USER_ERROR);
  EXPECT_NE(error.text.find("only 2 tags; use fewer stages"), std::string::npos)
      << error.text;
}

// Device 1 waits for a message that the cut wire will not bring.
TEST_F(EngineTest, EndsWithTheTextOfMpi) {
  EXPECT_EXIT(
      {
        resetLoopBackMpi(1);
        Job job = makeJob(1, 2, 2);
        Instance instance(linear.program,
                          createMpi(getLoopBackMpi(1), 32767, job),
                          {false, true});
        std::vector<float> losses;
        breakLoopBackMpi(1);
        open(instance);
        run(instance, losses);
      },
      testing::ExitedWithCode(PENSTOCK_PEER_FAILED),
      "loop-back: the wire is cut");
}

//===----------------------------------------------------------------------===//
// The thread.
//===----------------------------------------------------------------------===//

/// As long as it lives, this process has one core.
class OneCore {
public:
  OneCore() {
    EXPECT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
    int core = 0;
    while (!CPU_ISSET(core, &before))
      ++core;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  }
  ~OneCore() { sched_setaffinity(0, sizeof(before), &before); }

private:
  cpu_set_t before;
};

/// A device expects a message, and computes.
TEST(MpiThread, LooksForNoMessageThatArrivesAlone) {
  constexpr int64_t kShape[] = {4096};
  const penstock_channel description = {
      "c",     PENSTOCK_CHANNEL_TRANSFER,
      nullptr, {PENSTOCK_I64, 1, kShape, 8 * 4096},
      0,       1,
      1,       1,
      1,       0,
      0,       -1};
  for (auto [arrives, isOversubscribed] :
       {std::pair(true, false), {false, false}, {true, true}}) {
    SCOPED_TRACE(arrives);
    SCOPED_TRACE(isOversubscribed);
    std::optional<OneCore> core;
    if (!isOversubscribed)
      core.emplace();
    resetLoopBackMpi(1);
    setArrivesAlone(arrives);
    HostMemory memory;
    Endpoints endpoints(1);
    endpoints[0].isFar = true;
    endpoints[0].channel = std::make_unique<Channel>(description, 0);
    Channel &channel = *endpoints[0].channel;
    channel.to = &memory;
    penstock_program program = {};
    Positions positions{program, {}};
    auto engine = createMpi(getLoopBackMpi(1), 32767, makeJob(1, 2, 2));
    ASSERT_FALSE(engine->open(endpoints, {}, positions, isOversubscribed));
    engine->begin();
    std::vector<int64_t> sent(4096, 7), received(4096);
    ASSERT_EQ(
        channel.postReceive(0, reinterpret_cast<Address>(received.data())),
        PostResult::Queued);
    engine->posted(channel);
    uint64_t before = countLooks(1);
    if (arrives)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    else
      while (countLooks(1) == before)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(countLooks(1) == before, arrives);

    const penstock_mpi &sender = getLoopBackMpi(0);
    penstock_mpi_request request;
    int isDone = 0;
    ASSERT_EQ(sender.send(sent.data(), 8 * 4096, 1, 0, &request), 0);
    while (!isDone)
      ASSERT_EQ(sender.test(&request, &isDone), 0);
    waitFar(*engine, channel, 0, WaitPolicy{0});
    EXPECT_EQ(received, sent);
    EXPECT_EQ(countUnmatched(), 0u);
    EXPECT_FALSE(engine->end());
    engine->leave();
  }
}

//===----------------------------------------------------------------------===//
// Sums.
//===----------------------------------------------------------------------===//

/// Longer than two pieces for each of four owners, odd, and shorter than one
/// element for each.
constexpr int64_t kLong[] = {600011}, kOdd[] = {1001}, kShort[] = {3};
constexpr uint64_t kCounts[] = {600011, 1001, 3};
constexpr int kTypes = 3;

/// Element i of summand k, value j, update t. Sums depend on their order.
template <typename T> T valueOf(int k, int j, uint64_t i, int t) {
  return T(k % 2 ? -1 : 1) * (T(1e7) / T(k + 1)) + T(i * 7 + 13 * j + t) / 3;
}

template <typename T> struct SumCase {
  std::vector<uint32_t> devices, resets;
  uint32_t deviceCount;
  int ranks, updates;

  void run(uint32_t seed) {
    resetLoopBackMpi(seed);
    uint32_t element = sizeof(T) == 8 ? PENSTOCK_F64 : PENSTOCK_F32;
    const penstock_tensor types[] = {
        {element, 1, kLong, sizeof(T) * kCounts[0]},
        {element, 1, kOdd, sizeof(T) * kCounts[1]},
        {element, 1, kShort, sizeof(T) * kCounts[2]}};
    penstock_group group = {
        "g",          kTypes, types, uint32_t(devices.size()), devices.data(),
        resets.data()};
    penstock_program program = {};
    program.device_count = deviceCount;
    program.group_count = 1;
    program.groups = &group;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] { runRank(rank, group, program); });
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_EQ(countUnmatched(), 0u);
  }

  void runRank(int rank, const penstock_group &group,
               const penstock_program &program) {
    Job job = makeJob(rank, ranks, deviceCount);
    std::vector<bool> isLocal;
    for (uint32_t device = 0; device < deviceCount; ++device)
      isLocal.push_back(job.has(device));
    AllReduce sum(group, isLocal);
    ASSERT_TRUE(sum.isFar());
    HostMemory memory;
    std::vector<DeviceMemory *> memories;
    for (bool isHere : isLocal)
      memories.push_back(isHere ? &memory : nullptr);
    Endpoints none;
    Positions positions{program, {}};
    auto engine = createMpi(getLoopBackMpi(rank), 32767, job);
    ASSERT_FALSE(engine->open(none, {&sum}, positions, false));
    EXPECT_EQ(engine->getBytes(), predictBytes(rank, job, group));
    sum.open(memories);
    // Two segments: numbers of updates go on, all else begins anew.
    for (int first : {0, updates}) {
      sum.reset();
      engine->begin();
      std::vector<std::thread> threads;
      for (uint32_t device = 0; device < deviceCount; ++device)
        if (isLocal[device] && sum.find(device))
          threads.emplace_back(
              [&, device] { runDevice(device, sum, *engine, first); });
      for (std::thread &thread : threads)
        thread.join();
      Error error = engine->end();
      EXPECT_FALSE(error) << error.text;
    }
    engine->leave();
  }

  /// As the compiler does.
  uint64_t predictBytes(int rank, const Job &job, const penstock_group &group) {
    std::vector<penstock::SumValues> types;
    for (uint32_t j = 0; j < group.type_count; ++j)
      types.push_back({group.types[j].bytes, sizeof(T)});
    std::vector<penstock::SumSummand> summands;
    for (size_t k = 0; k < devices.size(); ++k)
      summands.push_back({job.rankOfDevice[devices[k]],
                          k == 0 || resets[k] != PENSTOCK_SUM_RECEIVES,
                          resets[k] != PENSTOCK_SUM_RESETS});
    return penstock::countSumBytes(types, summands, rank);
  }

  void runDevice(uint32_t device, AllReduce &sum, Transport &engine,
                 int first) {
    AllReduce::Side &side = *sum.find(device);
    for (int t = first; t < first + updates; ++t) {
      std::vector<std::vector<T>> values;
      std::vector<int> summands;
      std::vector<Address> cells;
      for (size_t k = 0; k < devices.size(); ++k)
        if (devices[k] == device)
          summands.push_back(int(k));
      for (int k : summands)
        for (int j = 0; j < kTypes; ++j) {
          std::vector<T> &value = values.emplace_back(kCounts[j]);
          for (uint64_t i = 0; i < kCounts[j]; ++i)
            value[i] = valueOf<T>(k, j, i, t);
        }
      for (std::vector<T> &value : values)
        cells.push_back(addressOf(value.data()));
      if ((t + device) % 3 == 0)
        std::this_thread::yield();
      ASSERT_TRUE(sum.post(side, t, cells.data()));
      engine.posted(sum);
      waitFar(engine, sum, side, WaitPolicy{t % 2 ? 20000 : 0});
      for (size_t s = 0; s < summands.size(); ++s)
        for (int j = 0; j < kTypes; ++j)
          for (uint64_t i = 0; i < kCounts[j]; ++i) {
            T expected = valueOf<T>(0, j, i, t);
            for (size_t k = 1; k < devices.size(); ++k)
              if (resets[k] != PENSTOCK_SUM_RECEIVES)
                expected += valueOf<T>(int(k), j, i, t);
            bool isZero = resets[summands[s]] == PENSTOCK_SUM_RESETS;
            ASSERT_EQ(values[s * kTypes + j][i], isZero ? T(0) : expected)
                << "summand " << summands[s] << " value " << j << " element "
                << i << " update " << t;
          }
    }
  }
};

TEST(MpiSum, AddsInTheOrderOfSummands) {
  // Two processes of one device each.
  for (uint32_t seed : {1, 2})
    SumCase<float>{{1, 0, 1}, {0, 0, 0}, 2, 2, 3}.run(seed);
  // Four, with further parts that become zero, and one that only receives.
  SumCase<float>{{3, 0, 2, 1, 2}, {0, 0, 1, 0, 2}, 4, 4, 3}.run(3);
  // Several devices in each of two.
  SumCase<float>{{1, 0, 2, 3, 0}, {0, 0, 0, 0, 1}, 4, 2, 3}.run(4);
}

// A process whose summands all become zero, and one that has no part in the
// sum but receives it.
TEST(MpiSum, KnowsWhoGetsTheSum) {
  SumCase<float>{{0, 1, 2}, {0, 1, 2}, 3, 3, 2}.run(5);
  SumCase<float>{{1, 0, 1}, {1, 0, 1}, 2, 2, 2}.run(6);
}

TEST(MpiSum, AddsDoubles) { SumCase<double>{{0, 1}, {0, 0}, 2, 2, 2}.run(7); }

} // namespace
