//===- PanelsTest.cpp - Products by prepacked weights ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GemmCases.h"

#include "penstock/onednn.h"
#include "penstock/product.h"

#include <memory>

using namespace penstock::runtime;
using namespace penstock::test;

namespace {

/// All parts, one after the other.
void compute(const ProductCall &gemm, int threads, const float *a,
             const float *b, float *c) {
  Product product(gemm, threads);
  ASSERT_EQ(product.getError(), "");
  std::vector<char> scratch(product.getScratchBytes() + 64);
  size_t space = scratch.size();
  void *start = scratch.data();
  ASSERT_TRUE(product.prepare(static_cast<char *>(
      std::align(64, product.getScratchBytes(), start, space))));
  oneDnn().setThreads(1);
  for (int64_t part = product.getParts(); part-- > 0;)
    ASSERT_TRUE(product.run(part, a, b, c));
}

/// With columns of B apart or rows, as a forward and a gradient of the input
/// read it.
Case makeProduct(int64_t m, int64_t n, int64_t k, bool isTurned,
                 bool accumulates) {
  return makeCase({}, m, n, k, {k, 1},
                  isTurned ? std::vector<int64_t>{1, k}
                           : std::vector<int64_t>{n, 1},
                  {n, 1}, accumulates);
}

std::optional<PrepackedProduct> prepack(const Case &each) {
  return prepackProduct(ProductCall::get(each.gemm, 1));
}

// One panel, several, the last one with up to 15 columns more, or as few as 16;
// parts of threads end within panels. The bits are the same, and those columns
// that no panel has are not written.
TEST(PanelsTest, RoundsLikeWeightsAsTheyAre) {
  if (!oneDnn().error.empty())
    GTEST_SKIP() << oneDnn().error;
  std::mt19937 random(3);
  for (int64_t m : {17, 40, 300})
    for (int64_t n : {16, 100, 384, 399, 400, 783, 1024})
      for (int64_t k : {1, 20, 130, 384, 500, 1024})
        for (bool isTurned : {false, true}) {
          bool accumulates = (m + n + k) % 3 == 0;
          Case each = makeProduct(m, n, k, isTurned, accumulates);
          auto prepacked = prepack(each);
          ASSERT_TRUE(prepacked.has_value());
          std::vector<float> a = randomValues(random, each.bytesA),
                             b = randomValues(random, each.bytesB),
                             c = randomValues(random, each.bytesC),
                             panels(prepacked->bytes / sizeof(float) + 16,
                                    -2.0f);
          std::vector<float> expected = c;
          compute(ProductCall::get(each.gemm, 1), 1, a.data(), b.data(),
                  expected.data());
          for (int threads : {1, 2, 3, 5}) {
            compute(prepacked->prepack, threads, nullptr, b.data(),
                    panels.data());
            for (size_t i = prepacked->bytes / sizeof(float); i < panels.size();
                 ++i)
              ASSERT_EQ(panels[i], -2.0f);
            std::vector<float> result = c;
            compute(prepacked->product, threads, a.data(), panels.data(),
                    result.data());
            ASSERT_EQ(result, expected) << m << " x " << n << " x " << k << ", "
                                        << threads << " threads";
          }
        }
}

// Other algorithms compute few rows and columns, and turn B for many rows.
TEST(PanelsTest, LeavesWhatWouldRoundOtherwise) {
  EXPECT_FALSE(prepack(makeProduct(16, 64, 64, true, false)));
  EXPECT_FALSE(prepack(makeProduct(64, 15, 64, true, false)));
  EXPECT_FALSE(prepack(makeProduct(1025, 64, 64, true, false)));
  EXPECT_TRUE(prepack(makeProduct(1025, 64, 64, false, false)));
  EXPECT_FALSE(prepack(makeCase({2}, 64, 64, 64, {4096, 64, 1}, {0, 1, 64},
                                {4096, 64, 1}, false)));
}

// Rows of B that share sets of a cache, or that have to be turned.
TEST(PanelsTest, KnowsWhatGains) {
  auto gains = [](int64_t n, int64_t k, bool isTurned) {
    return prepack(makeProduct(64, n, k, isTurned, false))->gains;
  };
  EXPECT_TRUE(gains(1000, 1000, true));
  EXPECT_FALSE(gains(1000, 1000, false));
  EXPECT_TRUE(gains(1024, 1000, false));
  EXPECT_FALSE(gains(1024, 100, false));
  EXPECT_FALSE(gains(64, 1000, true));
}

TEST(PanelsTest, RefusesPanelsThatOverlap) {
  Case each = makeProduct(64, 800, 64, false, false);
  auto prepacked = prepack(each);
  ASSERT_TRUE(prepacked.has_value());
  prepacked->prepack.stride_c[0] = 390;
  EXPECT_EQ(Product(prepacked->prepack, 1).getError(),
            "its weights do not fit into panels");
  prepacked->product.panel = 0;
  EXPECT_EQ(Product(prepacked->product, 1).getError(),
            "its weights do not fit into panels");
}

} // namespace
