//===- AllReduceTest.cpp - Sums over threads ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Additions have the order of the summands, whoever comes first, and what is
// kept in parts begins anew. Also under the thread sanitizer.
//===----------------------------------------------------------------------===//

#include "runtime/transport/threads/AllReduce.h"
#include "HostMemory.h"

#include <gtest/gtest.h>
#include <thread>

using namespace penstock::runtime;
using namespace penstock::test;

namespace {

// The longer one is more than a piece.
constexpr int64_t kLong[] = {41237}, kShort[] = {3};
constexpr uint64_t kCounts[] = {41237, 3};
constexpr int kUpdates = 40;

/// Element i of summand k, value j, update t. Sums depend on their order.
float valueOf(int k, int j, uint64_t i, int t) {
  return (k % 2 ? -1.0f : 1.0f) * (1e7f / float(k + 1)) +
         float(i * 7 + 13 * j + t) / 3;
}

/// Two devices, of which the host addresses some.
void testOrder(bool isFirstAddressable, bool isSecondAddressable) {
  // Summands 0, 2 and 4 are of device 1, 1 and 3 of device 0; 3 is a further
  // part, 4 only receives.
  const uint32_t devices[] = {1, 0, 1, 0, 1}, resets[] = {0, 0, 0, 1, 2};
  const penstock_tensor types[] = {{PENSTOCK_F32, 1, kLong, 4 * kCounts[0]},
                                   {PENSTOCK_F32, 1, kShort, 4 * kCounts[1]}};
  penstock_group group = {"g", 2, types, 5, devices, resets};
  ASSERT_TRUE(AllReduce::canSum(group));
  AllReduce sum(group, {true, true});
  HostMemory first(isFirstAddressable), second(isSecondAddressable);
  sum.open({&first, &second});
  EXPECT_EQ(sum.find(2), nullptr);
  auto run = [&](uint32_t device) {
    AllReduce::Side *side = sum.find(device);
    ASSERT_NE(side, nullptr);
    for (int t = 5; t < 5 + kUpdates; ++t) {
      std::vector<std::vector<float>> values;
      std::vector<int> summands;
      for (int k = 0; k < 5; ++k)
        if (devices[k] == device)
          summands.push_back(k);
      for (int k : summands)
        for (int j = 0; j < 2; ++j) {
          std::vector<float> &value = values.emplace_back(kCounts[j]);
          for (uint64_t i = 0; i < kCounts[j]; ++i)
            value[i] = valueOf(k, j, i, t);
        }
      std::vector<Address> cells;
      for (std::vector<float> &value : values)
        cells.push_back(addressOf(value.data()));
      if (t % 3 == int(device))
        std::this_thread::yield();
      ASSERT_TRUE(sum.post(*side, t, cells.data()));
      ASSERT_FALSE(sum.post(*side, t + 1, cells.data()));
      sum.complete(*side, WaitPolicy{t % 2 ? 20000 : 0});
      for (size_t s = 0; s < summands.size(); ++s)
        for (int j = 0; j < 2; ++j)
          for (uint64_t i = 0; i < kCounts[j]; ++i) {
            float expected = valueOf(0, j, i, t);
            for (int k = 1; k < 4; ++k)
              expected += valueOf(k, j, i, t);
            ASSERT_EQ(values[s * 2 + j][i],
                      resets[summands[s]] == 1 ? 0.0f : expected);
          }
    }
  };
  std::thread other(run, 0);
  run(1);
  other.join();
}

TEST(AllReduce, AddsInTheOrderOfSummands) { testOrder(true, true); }

// In pieces, to the same bits.
TEST(AllReduce, AddsWhatTheHostCannotAddress) {
  testOrder(false, false);
  testOrder(true, false);
}

// As the threads of devices compute, whoever adds.
TEST(AllReduce, TakesSubnormalsAsZero) {
  const int64_t shape[] = {3};
  const uint32_t devices[] = {0, 0}, resets[] = {0, 0};
  const penstock_tensor type = {PENSTOCK_F32, 1, shape, 12};
  penstock_group group = {"g", 1, &type, 2, devices, resets};
  AllReduce sum(group, {true});
  HostMemory memory(true);
  sum.open({&memory});
  float first[] = {1e-40f, 1e-38f, 1}, second[] = {1e-40f, 1e-38f, 1e-40f};
  Address cells[] = {addressOf(first), addressOf(second)};
  AllReduce::Side &side = *sum.find(0);
  ASSERT_TRUE(sum.post(side, 0, cells));
  sum.complete(side, WaitPolicy{0});
  for (const float *values : {first, second}) {
    EXPECT_EQ(values[0], 0.0f);
    // Both are subnormal, their sum would not be.
    EXPECT_EQ(values[1], 0.0f);
    EXPECT_EQ(values[2], 1.0f);
  }
}

TEST(AllReduce, RefusesWhatItCannotAdd) {
  const uint32_t device = 0, reset = 0;
  const penstock_tensor type = {PENSTOCK_I64, 1, kShort, 24};
  EXPECT_FALSE(AllReduce::canSum({"g", 1, &type, 1, &device, &reset}));
}

} // namespace
