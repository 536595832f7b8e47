//===- LoopBackTest.cpp - One program in two instances --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The devices of a program in two instances, whatever the time that messages
// take, compute the bits that they compute in one. Also under the thread
// sanitizer.
//===----------------------------------------------------------------------===//

#include "LoopBack.h"
#include "LinearProgram.h"
#include "runtime/run/SinkValues.h"

#include <gtest/gtest.h>

using namespace penstock::runtime;
using namespace penstock::test;

namespace {

/// What the devices of one or several instances computed.
struct Results {
  std::vector<float> losses;
  std::vector<char> w1, w2;

  bool operator==(const Results &) const = default;
};

class LoopBackTest : public testing::Test {
protected:
  void SetUp() override {
    const penstock_program &program = linear.program;
    ASSERT_FALSE(data.open(program, {{"x", linear.dataPath}}, linear.labelsPath,
                           "data", "labels"));
    ASSERT_FALSE(data.setUpdate(program, kM, Last::Drop, "data"));
    files.resize(1);
    ASSERT_FALSE(files[0].open(linear.modelPath, "model"));
  }

  /// Trains, evaluates and trains again.
  void run(Instance &instance, std::vector<float> &losses) {
    Error error = instance.open(files, /*isTraced=*/false);
    ASSERT_FALSE(error) << error.text;
    struct {
      uint32_t role;
      int64_t first, count, version;
    } segments[] = {{PENSTOCK_SCHEDULE_TRAIN, 0, 60, 0},
                    {PENSTOCK_SCHEDULE_EVALUATE, 0, 7, 60},
                    {PENSTOCK_SCHEDULE_TRAIN, 60, 1, 60},
                    {PENSTOCK_SCHEDULE_TRAIN, 61, 19, 61}};
    SinkValues values;
    for (auto [role, first, count, version] : segments)
      ASSERT_FALSE(instance.run(*findSchedule(instance.program, role), first,
                                count, version, data,
                                [&] { values.collect(instance); }));
    for (const SinkRing::Item &item : values.losses)
      losses.push_back(floatOf(item));
  }

  std::vector<char> read(const Instance &instance, uint32_t variable) {
    std::vector<char> value(linear.variables[variable].type.bytes);
    instance.read(linear.variables[variable], 80, value.data());
    return value;
  }

  Results runTogether() {
    Instance both(linear.program);
    Results results;
    run(both, results.losses);
    results.w1 = read(both, 0);
    results.w2 = read(both, 1);
    return results;
  }

  Results runApart(uint32_t seed) {
    Wire wire(seed);
    Instance first(linear.program, wire.makeEnd(), {true, false});
    Instance second(linear.program, wire.makeEnd(), {false, true});
    Results results;
    std::vector<float> none;
    std::thread other([&] { run(first, none); });
    run(second, results.losses);
    other.join();
    EXPECT_TRUE(none.empty());
    EXPECT_EQ(first.devices().size(), 1u);
    EXPECT_EQ(second.devices()[0]->index, 1u);
    results.w1 = read(first, 0);
    results.w2 = read(second, 1);
    return results;
  }

  ScratchFolder folder;
  LinearProgram linear{folder.path};
  DataSet data;
  std::vector<MappedFile> files;
};

TEST_F(LoopBackTest, ComputesTheBitsOfOneInstance) {
  Results expected = runTogether();
  ASSERT_EQ(expected.losses.size(), 80 * kM + 7u);
  for (uint32_t seed : {1, 2, 3, 4, 5})
    EXPECT_TRUE(runApart(seed) == expected) << seed;
}

} // namespace
