//===- EpiloguesTest.cpp - Products that add a bias and apply ReLU --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// By calls of the emulated cuBLASLt, which rounds as libraries may: an
// epilogue is used where its bits are those of kernels, and only there.
//===----------------------------------------------------------------------===//

#include "GemmCases.h"
#include "InstalledCublasLt.h"
#include "TestStream.h"
#include "runtime/device/cuda/EpilogueTrial.h"
#include "runtime/device/cuda/Libraries.h"
#include "runtime/device/cuda/Products.h"
#include "runtime/device/emulated/Libraries.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

using namespace penstock::runtime;
using namespace penstock::test;
using emulated::EpilogueKind;

namespace {

char *toHost(uint64_t address) {
  return reinterpret_cast<char *>(address - emulated::kBias);
}

/// A driver whose copies run on the stream of the test.
cuda::Driver makeDriver() {
  cuda::Driver driver = {};
  driver.cuMemcpyHtoDAsync = [](uint64_t to, const void *from, size_t bytes,
                                cuda::Stream stream) {
    emulated::enqueue(stream, [=] { std::memcpy(toHost(to), from, bytes); });
    return int(cuda::CUDA_SUCCESS);
  };
  driver.cuMemcpyDtoHAsync = [](void *to, uint64_t from, size_t bytes,
                                cuda::Stream stream) {
    emulated::enqueue(stream, [=] { std::memcpy(to, toHost(from), bytes); });
    return int(cuda::CUDA_SUCCESS);
  };
  driver.cuStreamSynchronize = [](cuda::Stream) {
    runStream();
    return int(cuda::CUDA_SUCCESS);
  };
  return driver;
}

class EpiloguesTest : public testing::Test {
protected:
  void SetUp() override { cuda::emulatedLibraries = &libraries; }
  void TearDown() override {
    cuda::emulatedLibraries = nullptr;
    emulated::epilogueKind = EpilogueKind::LikeKernels;
  }

  /// Prepares a product with an epilogue. Returns whether the library applies
  /// it.
  bool open(Case each, const penstock_cuda_gemm &epilogue,
            cuda::Products &products, size_t bytes = sizeof(memory)) {
    config = epilogue;
    gemm = each.gemm;
    gemm.config = &config;
    gemm.scratch = scratch;
    program.gemm_count = 1;
    program.gemms = &gemm;
    cuda::EpilogueTrial trial(driver, testStream(), arena, bytes);
    Error error = products.prepare(program, 0, arena, nullptr, &trial);
    EXPECT_EQ(error.text, "");
    EXPECT_EQ(products.countEpilogues(), 1u);
    return products.countAppliedEpilogues() == 1;
  }
  bool applies(const Case &each, const penstock_cuda_gemm &epilogue,
               size_t bytes = sizeof(memory)) {
    cuda::Products products;
    return open(each, epilogue, products, bytes);
  }

  /// Runs the product. Returns whether its epilogue is pending.
  static bool run(const cuda::Products &products, const float *a,
                  const float *b, float *c, const float *bias) {
    auto at = [](const float *p) { return p ? addressOf(p) : 0; };
    bool pending = true;
    Error error =
        products.run(0, at(a), at(b), at(c), at(bias), testStream(), pending);
    EXPECT_EQ(error.text, "");
    EXPECT_EQ(runStream(), 1u);
    return pending;
  }

  cuda::CublasLt functions = emulated::cublasLt;
  cuda::Libraries libraries = {nullptr, &functions, nullptr};
  cuda::Driver driver = makeDriver();
  penstock_gemm_descriptor gemm = {};
  penstock_cuda_gemm config = {};
  penstock_program program = {};
  uint64_t scratchOffset = 0;
  penstock_scratch scratch = {1000, &scratchOffset};
  alignas(256) char memory[1 << 16] = {};
  const Address arena = addressOf(memory);
};

constexpr penstock_cuda_gemm kBias = {0, 1, 0}, kRelu = {0, 0, 1},
                             kBoth = {0, 1, 1}, kBothOfTf32 = {1, 1, 1};

Case makeRows(int64_t m, int64_t n, int64_t k) {
  return makeCase({}, m, n, k, {k, 1}, {n, 1}, {n, 1}, false);
}

} // namespace

// With factors by rows and by columns: the bits of a product and of what
// kernels do after it, at addresses that were not those of the trial.
TEST_F(EpiloguesTest, HaveTheBitsOfKernels) {
  std::mt19937 random(11);
  for (const penstock_cuda_gemm &epilogue : {kBias, kRelu, kBoth, kBothOfTf32})
    for (int layout = 0; layout < 4; ++layout) {
      const int64_t m = 7, n = 11, k = 5;
      auto choose = [&](int bit, int64_t rows, int64_t columns) {
        return layout & bit ? std::vector<int64_t>{1, rows}
                            : std::vector<int64_t>{columns, 1};
      };
      Case each = makeCase({}, m, n, k, choose(1, m, k), choose(2, k, n),
                           {n, 1}, false);
      cuda::Products products;
      ASSERT_TRUE(open(each, epilogue, products)) << layout;

      alignas(64) float a[m * k], b[k * n], c[m * n], sums[m * n], bias[n];
      auto fill = [&](std::span<float> values) {
        std::ranges::copy(randomValues(random, values.size()), values.begin());
      };
      fill(a), fill(b), fill(bias);
      a[3] = NAN;
      EXPECT_FALSE(run(products, a, b, c, epilogue.has_bias ? bias : nullptr));
      // An address that is not aligned leaves the product alone.
      EXPECT_TRUE(run(products, a, b, sums, bias + 1));
      int nans = 0, zeros = 0;
      for (int64_t i = 0; i < m * n; ++i) {
        float expected = cuda::applyEpilogue(sums[i], bias[i % n], epilogue);
        nans += std::isnan(c[i]);
        zeros += c[i] == 0.0f;
        EXPECT_TRUE(std::isnan(expected) ? std::isnan(c[i]) : c[i] == expected)
            << i;
      }
      EXPECT_EQ(nans, n);
      EXPECT_EQ(zeros > 10, epilogue.has_relu == 1);
    }
}

// A library that rounds otherwise is found out by whatever the epilogue has:
// NaN matters to ReLU, subnormal numbers to all.
TEST_F(EpiloguesTest, AreLeftToKernelsWhereBitsDiffer) {
  const Case each = makeRows(7, 11, 5);
  emulated::epilogueKind = EpilogueKind::DropsNaN;
  EXPECT_TRUE(applies(each, kBias));
  EXPECT_FALSE(applies(each, kRelu));
  EXPECT_FALSE(applies(each, kBoth));
  emulated::epilogueKind = EpilogueKind::KeepsSubnormal;
  EXPECT_FALSE(applies(each, kBias));
  EXPECT_FALSE(applies(each, kRelu));
  EXPECT_FALSE(applies(each, kBoth));
  emulated::epilogueKind = EpilogueKind::None;
  EXPECT_FALSE(applies(each, kBoth));

  // The product is there, and what follows is pending.
  cuda::Products products;
  ASSERT_FALSE(open(each, kBoth, products));
  std::vector<float> a(35, 2.0f), b(55, 3.0f), c(77, NAN), bias(11, -40.0f);
  EXPECT_TRUE(run(products, a.data(), b.data(), c.data(), bias.data()));
  EXPECT_EQ(c, std::vector<float>(77, 30.0f));
}

// Sums in another order than the product's own. With few rows, too, those that
// differ are among what is tried.
TEST_F(EpiloguesTest, AreLeftToKernelsWhereSumsDiffer) {
  functions.cublasLtMatmul =
      [](cuda::CublasLtHandle handle, cuda::MatmulDescriptor matmul,
         const void *alpha, const void *a, cuda::MatrixLayout layoutA,
         const void *b, cuda::MatrixLayout layoutB, const void *beta,
         const void *c, cuda::MatrixLayout layoutC, void *d,
         cuda::MatrixLayout layoutD, const cuda::MatmulAlgorithm *algorithm,
         void *workspace, size_t bytes, cuda::Stream stream) {
        static int count = 0;
        // Each second call has an epilogue, and factors that are off a bit.
        const float other = std::nextafter(1.0f, 2.0f);
        return emulated::cublasLt.cublasLtMatmul(
            handle, matmul, ++count % 2 ? alpha : &other, a, layoutA, b,
            layoutB, beta, c, layoutC, d, layoutD, algorithm, workspace, bytes,
            stream);
      };
  for (int64_t m : {2, 3, 7})
    EXPECT_FALSE(applies(makeRows(m, 11, 5), kBias)) << m;
}

// Calls of which a bias cannot be an element per row of what the library sees,
// operands that were not tried, and memory that is too small to try.
TEST_F(EpiloguesTest, AreLeftToKernelsWhereNoneFits) {
  EXPECT_FALSE(
      applies(makeCase({}, 7, 11, 5, {5, 1}, {11, 1}, {1, 7}, false), kBoth));
  const Case each = makeRows(7, 11, 5);
  // Workspace, and each operand in multiples of 256 bytes.
  EXPECT_FALSE(applies(each, kBoth, 768 + 256 + 256 + 512 + 255));
  EXPECT_TRUE(applies(each, kBoth, 768 + 256 + 256 + 512 + 256));

  cuda::Products products;
  ASSERT_TRUE(open(each, kBoth, products));
  alignas(16) float values[128] = {};
  for (int operand = 0; operand < 4; ++operand) {
    auto at = [&](int i) { return values + (i == operand); };
    EXPECT_TRUE(run(products, at(0), at(1), at(2), at(3))) << operand;
  }
}

// Without a trial, as where PENSTOCK_EPILOGUES=0 is set.
TEST_F(EpiloguesTest, AreLeftToKernelsWithoutATrial) {
  cuda::Products products;
  gemm = makeRows(7, 11, 5).gemm;
  config = kBoth;
  gemm.config = &config;
  program.gemm_count = 1;
  program.gemms = &gemm;
  EXPECT_EQ(products.prepare(program, 0, arena).text, "");
  EXPECT_EQ(products.countEpilogues(), 1u);
  EXPECT_EQ(products.countAppliedEpilogues(), 0u);
}

// The real library takes the attributes; to choose and run, it needs a GPU.
TEST_F(EpiloguesTest, InstalledLibraryTakesDescriptors) {
  std::string reason = loadInstalledCublasLt(functions);
  if (!reason.empty())
    GTEST_SKIP() << reason;
  // It takes every attribute, so that results are compared: zeros, which are
  // what ReLU leaves of zeros.
  EXPECT_TRUE(applies(makeRows(7, 11, 5), kRelu));
  EXPECT_FALSE(applies(makeRows(7, 11, 5), kBias));
  EXPECT_EQ(productsAsked, 4);
}
