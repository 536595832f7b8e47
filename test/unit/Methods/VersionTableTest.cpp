//===- VersionTableTest.cpp - Which weights a microbatch reads ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Published numbers: the versions of four stages, and the gradient of PipeDream
// at w_1^(t-n+1), ..., w_n^(t).
//===----------------------------------------------------------------------===//

#include "penstock/Methods/VersionTable.h"

#include "llvm/ADT/STLExtras.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <vector>

using namespace penstock;

namespace {

/// On stage i of stages with these replicas.
WeightAges agesOf(llvm::StringRef method, int64_t i,
                  std::vector<int64_t> replicas, int64_t M = 1) {
  std::string error;
  return *getWeightAges(*parseMethodSpec(method, error), {i, replicas, M});
}

const std::vector<int64_t> kFour = {1, 1, 1, 1};

/// Versions that microbatches 0 to 11 read.
std::vector<int64_t> versions(int64_t age, int64_t M) {
  std::vector<int64_t> list;
  for (int64_t k = 0; k < 12; ++k)
    list.push_back(std::max<int64_t>(0, k - age) / M);
  return list;
}

using Versions = std::vector<int64_t>;
const Versions kOfStage[4] = {{0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8},
                              {0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
                              {0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
                              {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}};

TEST(VersionTable, KnowsAllMethods) {
  for (const std::string &name : getMethodNames())
    EXPECT_TRUE(getWeightAges(getMethodNamed(name), {0, kFour, 1})) << name;
}

TEST(VersionTable, FourStages) {
  for (int64_t i = 0; i < 4; ++i) {
    for (llvm::StringRef method :
         {"naive", "pipemare", "spectrain", "xpipe", "pipeoptim"}) {
      WeightAges ages = agesOf(method, i, kFour);
      EXPECT_EQ(versions(ages.forward, 1), kOfStage[i]) << method.str();
      EXPECT_EQ(versions(ages.backward, 1), kOfStage[3]) << method.str();
    }
    WeightAges ages = agesOf("pipedream", i, kFour);
    EXPECT_EQ(versions(ages.forward, 1), kOfStage[i]);
    EXPECT_EQ(versions(ages.backward, 1), kOfStage[i]);
    ages = agesOf("pipedream:vertical-sync", i, kFour);
    EXPECT_EQ(versions(ages.forward, 1), kOfStage[0]);
    EXPECT_EQ(versions(ages.backward, 1), kOfStage[0]);
  }
}

TEST(VersionTable, TwoBuffers) {
  // max(floor(k / m) - 1, 0), on every stage.
  for (int64_t i = 0; i < 4; ++i) {
    WeightAges ages = agesOf("2bw", i, kFour, 4);
    Versions expected = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1};
    EXPECT_EQ(versions(ages.forward, 4), expected);
    EXPECT_EQ(versions(ages.backward, 4), expected);
  }
}

TEST(VersionTable, Bellwether) {
  // All microbatches of an update read one version: that which is there when
  // the first comes to a stage that has three in flight.
  WeightAges ages = agesOf("xpipe", 0, kFour, 2);
  EXPECT_EQ(versions(ages.forward, 2),
            (Versions{0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3}));
}

/// The versions that the first eight minibatches read, by stage.
struct ManyForwards {
  size_t depth;
  int64_t ahead;
  /// Versions by stage; under `timeprest` all have those of the first stage.
  std::vector<Versions> forward;
};

TEST(VersionTable, ManyForwards) {
  const Versions newest = {0, 1, 2, 3, 4, 5, 6, 7},
                 one = {0, 0, 1, 2, 3, 4, 5, 6}, two = {0, 0, 0, 1, 2, 3, 4, 5},
                 three = {0, 0, 0, 0, 1, 2, 3, 4};
  const ManyForwards cases[] = {{2, 1, {one, newest}},
                                {3, 2, {two, one, newest}},
                                {3, 1, {one, one, newest}},
                                {4, 3, {three, two, one, newest}},
                                {4, 1, {one, one, one, newest}}};
  for (const auto &[depth, ahead, forward] : cases)
    for (int64_t M : {1, 3, 6})
      for (size_t i = 0; i < depth; ++i) {
        std::string key = ":ahead=" + std::to_string(ahead);
        auto read = [&](int64_t age) {
          Versions versions;
          // All microbatches of a minibatch read one.
          for (int64_t k = 0; k < 8 * M; ++k) {
            int64_t version = std::max<int64_t>(0, k - age) / M;
            if (k % M == 0)
              versions.push_back(version);
            EXPECT_EQ(version, versions.back());
          }
          return versions;
        };
        std::vector<int64_t> replicas(depth, 1);
        for (std::string name : {"timeprest", "v-timeprest", "i-timeprest"}) {
          WeightAges ages = agesOf(name + key, i, replicas, M);
          EXPECT_EQ(read(ages.forward), forward[name[0] == 't' ? 0 : i]);
          EXPECT_EQ(read(ages.backward), newest);
          EXPECT_EQ(ages.blended, name[0] == 'i'
                                      ? std::min<int64_t>(ahead, depth - 1 - i)
                                      : 0);
          // As far as it goes, unless it is said.
          if (ahead + 1 == static_cast<int64_t>(depth))
            EXPECT_EQ(agesOf(name, i, replicas, M).forward, ages.forward);
        }
        // Without decay, both read the same.
        WeightAges ages =
            agesOf("i-timeprest" + key + ",decay=0", i, replicas, M);
        EXPECT_EQ(ages.forward, ages.backward);
        EXPECT_EQ(ages.blended, 0);
        // Other methods under the same schedule.
        std::string error;
        ages = *getWeightAges(*parseMethodSpec("pipedream", error),
                              {static_cast<int64_t>(i), replicas, M, ahead});
        EXPECT_EQ(read(ages.forward), forward[i]);
        EXPECT_EQ(read(ages.backward), forward[i]);
      }
}

TEST(VersionTable, OneStage) {
  for (llvm::StringRef method :
       {"sync", "naive", "pipedream", "pipedream:vertical-sync", "pipemare",
        "spectrain", "xpipe", "pipeoptim", "timeprest", "v-timeprest",
        "i-timeprest"}) {
    WeightAges ages = agesOf(method, 0, {1});
    EXPECT_EQ(ages.forward, 0) << method.str();
    EXPECT_EQ(ages.backward, 0) << method.str();
  }
  EXPECT_EQ(agesOf("2bw", 0, {1}).forward, 1);
}

TEST(VersionTable, Replicas) {
  EXPECT_EQ(agesOf("pipedream", 1, {3, 3, 3, 3}, 6).backward, 6);
  EXPECT_EQ(agesOf("naive", 1, {3, 3, 3, 3}, 6).forward, 6);
}

TEST(VersionTable, NumbersOfReplicas) {
  // Of 16 devices, 15 for the first stage: ceil(16 / 15) microbatches for each.
  EXPECT_EQ(agesOf("pipedream", 0, {15, 1}, 15).forward, 15);
  EXPECT_EQ(agesOf("pipedream", 1, {15, 1}, 15).forward, 0);
  // The other way round, 16 for the one of the first stage.
  EXPECT_EQ(agesOf("pipedream", 0, {1, 15}, 15).forward, 15);
  // 6, 3 and 2 devices are left: 2 · 3, 3 · 1 and 1 · 2 microbatches.
  for (auto [i, age] : llvm::enumerate(std::vector<int64_t>{3, 2, 0})) {
    EXPECT_EQ(agesOf("pipedream", i, {3, 1, 2}, 6).backward, age);
    EXPECT_EQ(agesOf("pipemare", i, {3, 1, 2}, 6).forward, age);
    EXPECT_EQ(agesOf("pipedream:vertical-sync", i, {3, 1, 2}, 6).forward, 3);
    EXPECT_EQ(agesOf("2bw", i, {3, 1, 2}, 6).forward, 6);
    EXPECT_EQ(agesOf("xpipe", i, {3, 1, 2}, 6).forward, age ? 6 : 0);
  }
}

/// Returns the versions that microbatches 0 to 15 of a worker read.
Versions ownOf(const WaveTable &table) {
  Versions list;
  for (int64_t k = 0; k < 16; ++k)
    list.push_back(table.getOwn(k));
  return list;
}

Versions wavesOf(const WaveTable &table) {
  Versions list;
  for (int64_t k = 0; k < 16; ++k)
    list.push_back(table.getWaves(k));
  return list;
}

TEST(WaveTable, OwnUpdates) {
  EXPECT_EQ(ownOf({4, 0}),
            (Versions{0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(ownOf({3, 1}),
            (Versions{0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}));
  EXPECT_EQ(ownOf({2, 2}),
            (Versions{0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}));
}

TEST(WaveTable, WavesOfOthers) {
  EXPECT_EQ(wavesOf({4, 0}),
            (Versions{0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3}));
  EXPECT_EQ(wavesOf({4, 1}),
            (Versions{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2}));
  EXPECT_EQ(wavesOf({4, 2}),
            (Versions{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(wavesOf({3, 0}),
            (Versions{0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4}));
  EXPECT_EQ(wavesOf({3, 1}),
            (Versions{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3}));
  EXPECT_EQ(wavesOf({2, 0}),
            (Versions{0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7}));
  EXPECT_EQ(wavesOf({2, 1}),
            (Versions{0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6}));
}

TEST(WaveTable, Bounds) {
  for (int64_t wave = 2; wave <= 5; ++wave)
    for (int64_t distance = 0; distance <= 2; ++distance) {
      WaveTable table{wave, distance};
      int64_t local = table.getLocalStaleness();
      EXPECT_EQ(local, wave - 1);
      EXPECT_EQ(table.getGlobalStaleness(),
                (distance + 1) * (local + 1) + local - 1);
      EXPECT_EQ(table.getClockDistance(), distance + 1);
      EXPECT_EQ(table.getVersions(), wave);
      // It is reached, and not exceeded: of the microbatches before k that are
      // not in whole waves, the least has been read.
      int64_t most = 0;
      for (int64_t k = 0; k < 20 * wave; ++k)
        most = std::max(most, k - table.getWaves(k) * wave);
      EXPECT_EQ(most, table.getGlobalStaleness()) << wave << " " << distance;
    }
  EXPECT_EQ((WaveTable{4, 1}.getGlobalStaleness()), 10);
}

TEST(WaveTable, AgesOfHetPipe) {
  for (int64_t i = 0; i < 4; ++i) {
    WeightAges ages = agesOf("hetpipe:workers=2,distance=1", i, kFour);
    EXPECT_EQ(versions(ages.forward, 1), kOfStage[0]);
    EXPECT_EQ(versions(ages.backward, 1), kOfStage[0]);
    EXPECT_EQ(agesOf("hetpipe:wave=6", i, kFour).backward, 5);
  }
}

} // namespace
