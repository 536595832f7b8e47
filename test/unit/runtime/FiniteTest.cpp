//===- FiniteTest.cpp - Values that are no numbers ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every element type, with the largest finite value beside infinity and NaN.
//===----------------------------------------------------------------------===//

#include "runtime/io/Finite.h"

#include <gtest/gtest.h>
#include <vector>

using namespace penstock::runtime;

namespace {

template <typename Bits>
bool check(uint32_t element, std::initializer_list<Bits> values) {
  penstock_tensor type = {};
  type.element = element;
  type.bytes = values.size() * sizeof(Bits);
  return areFinite(type, reinterpret_cast<const char *>(values.begin()));
}

TEST(FiniteTest, FindsInfinitiesAndNansOfEveryType) {
  EXPECT_TRUE(check<uint32_t>(PENSTOCK_F32, {0, 0x7f7fffff, 0xff7fffff, 1}));
  EXPECT_FALSE(check<uint32_t>(PENSTOCK_F32, {0, 1, 0x7f800000}));
  EXPECT_FALSE(check<uint32_t>(PENSTOCK_F32, {0xffc00001, 0, 1}));
  EXPECT_TRUE(check<uint64_t>(PENSTOCK_F64, {0x7fefffffffffffff, 1}));
  EXPECT_FALSE(check<uint64_t>(PENSTOCK_F64, {1, 0xfff0000000000000}));
  EXPECT_TRUE(check<uint16_t>(PENSTOCK_F16, {0x7bff, 0xfbff, 0}));
  EXPECT_FALSE(check<uint16_t>(PENSTOCK_F16, {0, 0, 0x7e00}));
  EXPECT_TRUE(check<uint16_t>(PENSTOCK_BF16, {0x7f7f, 0x7c00}));
  EXPECT_FALSE(check<uint16_t>(PENSTOCK_BF16, {0xff80}));
}

// Wherever it is: in whole vectors, several at a time, or behind them.
TEST(FiniteTest, FindsASingleOneAnywhere) {
  for (size_t count : {1, 15, 16, 17, 63, 64, 65, 331}) {
    std::vector<uint32_t> values(count, 0xff7fffff);
    penstock_tensor type = {};
    type.element = PENSTOCK_F32;
    type.bytes = count * sizeof(uint32_t);
    auto areAllFinite = [&] {
      return areFinite(type, reinterpret_cast<const char *>(values.data()));
    };
    EXPECT_TRUE(areAllFinite()) << count;
    for (uint32_t &value : values) {
      value = 0x7f800001;
      EXPECT_FALSE(areAllFinite()) << count << ", " << &value - values.data();
      value = 0;
    }
  }
}

TEST(FiniteTest, TakesIntegersAsTheyAre) {
  EXPECT_TRUE(check<uint32_t>(PENSTOCK_I32, {0x7f800000}));
}

} // namespace
