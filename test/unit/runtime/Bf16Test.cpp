//===- Bf16Test.cpp -------------------------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rounding to bf16: the nearest number, of two the even one, against a search
// for it; what is no number, and what is below the smallest normal one.
//===----------------------------------------------------------------------===//

#include "runtime/support/Bf16.h"
#include "runtime/support/CompilerCalls.h"

#include "gtest/gtest.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace penstock::runtime;

static uint16_t roundBits(uint32_t bits) {
  return roundToBf16(std::bit_cast<float>(bits));
}

TEST(Bf16, KeepsWhatItHolds) {
  for (uint32_t bits = 0; bits < 1u << 16; ++bits) {
    float value = fromBf16(uint16_t(bits));
    if (std::isnan(value)) {
      EXPECT_EQ(roundToBf16(value), 0x7fc0) << std::hex << bits;
    } else if (std::fpclassify(value) == FP_SUBNORMAL) {
      EXPECT_EQ(roundToBf16(value), bits & 0x8000) << std::hex << bits;
    } else {
      EXPECT_EQ(roundToBf16(value), bits) << std::hex << bits;
    }
  }
}

TEST(Bf16, RoundsHalvesToEven) {
  EXPECT_EQ(roundBits(0x3f808000), 0x3f80); // 1 + 2^-8: down
  EXPECT_EQ(roundBits(0x3f818000), 0x3f82); // 1 + 3 * 2^-8: up
  EXPECT_EQ(roundBits(0x3f807fff), 0x3f80);
  EXPECT_EQ(roundBits(0x3f808001), 0x3f81);
  EXPECT_EQ(roundBits(0xbf808000), 0xbf80);
  EXPECT_EQ(roundBits(0xbf818000), 0xbf82);
  // Over a power of two.
  EXPECT_EQ(roundBits(0x3fffffff), 0x4000);
}

TEST(Bf16, RoundsToTheNearest) {
  std::mt19937 random(7);
  for (int i = 0; i < 100000; ++i) {
    auto value = std::bit_cast<float>(uint32_t(random()));
    if (!std::isnormal(value) || std::fabs(value) > 3e38f)
      continue;
    double distance = std::fabs(double(fromBf16(roundToBf16(value))) - value);
    auto below = uint16_t(std::bit_cast<uint32_t>(value) >> 16);
    for (uint16_t near : {below, uint16_t(below + 1)})
      EXPECT_LE(distance, std::fabs(double(fromBf16(near)) - value))
          << std::hex << std::bit_cast<uint32_t>(value);
  }
}

TEST(Bf16, OverflowsToInfinity) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(roundToBf16(kInfinity), 0x7f80);
  EXPECT_EQ(roundToBf16(-kInfinity), 0xff80);
  EXPECT_EQ(roundBits(0x7f7f7fff), 0x7f7f);
  EXPECT_EQ(roundBits(0x7f7f8000), 0x7f80);
  EXPECT_EQ(roundToBf16(std::numeric_limits<float>::lowest()), 0xff80);
}

TEST(Bf16, HasOneNaN) {
  // The lower half alone says that these are none.
  EXPECT_EQ(roundBits(0x7f800001), 0x7fc0);
  EXPECT_EQ(roundBits(0xff800001), 0x7fc0);
  EXPECT_EQ(roundBits(0xffffffff), 0x7fc0);
}

TEST(Bf16, FlushesSubnormals) {
  EXPECT_EQ(roundBits(0x00000001), 0x0000);
  EXPECT_EQ(roundBits(0x007fffff), 0x0000);
  EXPECT_EQ(roundBits(0x807fffff), 0x8000);
  EXPECT_EQ(roundBits(0x00800000), 0x0080);
}

TEST(Bf16, RoundsBytesAtAnyAddress) {
  std::vector<float> values = {1.0f, -2.5f, 3.0e-39f, 1.00390625f};
  std::vector<char> from(values.size() * sizeof(float) + 1), to(9);
  std::memcpy(from.data() + 1, values.data(), values.size() * sizeof(float));
  roundToBf16(to.data() + 1, from.data() + 1, values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t rounded;
    std::memcpy(&rounded, to.data() + 1 + 2 * i, sizeof(rounded));
    EXPECT_EQ(rounded, roundToBf16(values[i]));
  }
}

/// The bits that the function of the code generator returns.
static uint32_t roundForCompiler(float value) {
  return std::bit_cast<uint32_t>(__truncsfbf2(value));
}

TEST(Bf16, IsMovedByCompiledCodeUnchanged) {
  constexpr uint32_t kQuiet = 0x40;
  for (uint32_t bits = 0; bits < 1u << 16; ++bits) {
    auto value = std::bit_cast<float>(bits << 16);
    EXPECT_EQ(roundForCompiler(value), std::isnan(value) ? bits | kQuiet : bits)
        << std::hex << bits;
  }
}

TEST(Bf16, IsRoundedByCompiledCodeAsByUs) {
  std::mt19937 random(11);
  for (int i = 0; i < 100000; ++i) {
    auto value = std::bit_cast<float>(uint32_t(random()));
    if (std::isnormal(value))
      EXPECT_EQ(roundForCompiler(value), roundToBf16(value))
          << std::hex << std::bit_cast<uint32_t>(value);
  }
}
