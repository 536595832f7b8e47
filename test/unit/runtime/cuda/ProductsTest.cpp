//===- ProductsTest.cpp - Matrix products of a GPU ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of odd, distinct sizes in all layouts, by calls of the emulated
// cuBLASLt, against plain loops.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Products.h"
#include "GemmCases.h"
#include "InstalledCublasLt.h"
#include "TestStream.h"
#include "penstock/cuda.h"
#include "runtime/device/cuda/Libraries.h"
#include "runtime/device/emulated/Libraries.h"
#include "runtime/support/Bf16.h"

#include <cmath>
#include <cstdlib>

using namespace penstock::runtime;
using namespace penstock::test;

namespace {

class CudaProductsTest : public testing::Test {
protected:
  void SetUp() override { cuda::emulatedLibraries = &libraries; }
  void TearDown() override { cuda::emulatedLibraries = nullptr; }

  /// Runs a product; `shift` elements before each operand. Returns the largest
  /// difference from plain loops, or NaN where an element is one.
  double run(const Case &each, int shift = 0);
  /// Runs it with factors of bf16, and a result of f32 or bf16. Returns the
  /// largest difference in units of its tolerance.
  double runBf16(Case each, bool isResultBf16, int shift);
  Error open(const penstock_gemm_descriptor &gemm, cuda::Products &products) {
    gemms = {gemm};
    program.gemm_count = 1;
    program.gemms = gemms.data();
    return products.prepare(program, 0, addressOf(arena));
  }

  cuda::CublasLt functions = emulated::cublasLt;
  cuda::Libraries libraries = {nullptr, &functions, nullptr};
  uint64_t scratchOffset = 72;
  penstock_scratch scratch = {1000, &scratchOffset};
  alignas(256) char arena[2048] = {};
  size_t calls = 0; // of the last run
  /// Operands are rounded before they are compared with.
  bool isTf32 = false;

private:
  std::vector<penstock_gemm_descriptor> gemms;
  penstock_program program = {};
  std::mt19937 random{7};
};

double CudaProductsTest::run(const Case &each, int shift) {
  penstock_gemm_descriptor gemm = each.gemm;
  gemm.scratch = scratch;
  cuda::Products products;
  Error error = open(gemm, products);
  EXPECT_EQ(error.text, "");
  if (error)
    return NAN;

  // Operands are aligned as in an arena; what is around them stays.
  auto make = [&](uint64_t elements) {
    return randomValues(random, elements + 2 * size_t(shift) + 64);
  };
  std::vector<float> a = make(each.bytesA), b = make(each.bytesB),
                     c = make(each.bytesC);
  auto begin = [&](std::vector<float> &values) {
    return (-reinterpret_cast<uintptr_t>(values.data()) % 64) / sizeof(float) +
           size_t(shift);
  };
  size_t fromA = begin(a), fromB = begin(b), toC = begin(c);
  std::vector<float> expected = c;
  std::vector<float> result(c.begin() + toC, c.end());
  std::vector<float> left(a.begin() + fromA, a.end());
  std::vector<float> right(b.begin() + fromB, b.end());
  if (isTf32)
    for (std::vector<float> *operand : {&left, &right})
      for (float &value : *operand)
        value = emulated::roundToTf32(value);
  multiply(gemm, left, right, result);
  std::copy(result.begin(), result.end(), expected.begin() + toC);
  if (!gemm.accumulate)
    // What is overwritten is not read.
    for (size_t i = toC; i < c.size(); ++i)
      if (expected[i] != c[i])
        c[i] = NAN;

  error = products.run(0, addressOf(&a[fromA]), addressOf(&b[fromB]),
                       addressOf(&c[toC]), testStream());
  EXPECT_EQ(error.text, "");
  calls = runStream();
  double difference = 0.0;
  for (size_t i = 0; i < c.size(); ++i) {
    double each = std::fabs(double(c[i]) - expected[i]);
    if (std::isnan(each))
      return NAN;
    difference = std::max(difference, each);
  }
  return difference;
}

double CudaProductsTest::runBf16(Case each, bool isResultBf16, int shift) {
  penstock_gemm_descriptor &gemm = each.gemm;
  gemm.element = PENSTOCK_BF16;
  gemm.result_element = isResultBf16 ? PENSTOCK_BF16 : PENSTOCK_F32;
  gemm.scratch = scratch;
  cuda::Products products;
  Error error = open(gemm, products);
  EXPECT_EQ(error.text, "");
  if (error)
    return NAN;
  auto round = [&](std::vector<float> &values) {
    std::vector<uint16_t> narrow;
    for (float &value : values) {
      narrow.push_back(roundToBf16(value));
      value = fromBf16(narrow.back());
    }
    return narrow;
  };
  size_t from = size_t(shift);
  std::vector<float> a = randomValues(random, each.bytesA + from),
                     b = randomValues(random, each.bytesB + from),
                     c = randomValues(random, each.bytesC + from);
  std::vector<uint16_t> narrowA = round(a), narrowB = round(b), narrowC;
  if (isResultBf16)
    narrowC = round(c);
  std::vector<float> expected(c.begin() + shift, c.end());
  multiply(gemm, {a.begin() + shift, a.end()}, {b.begin() + shift, b.end()},
           expected);
  error = products.run(0, addressOf(&narrowA[from]), addressOf(&narrowB[from]),
                       isResultBf16 ? addressOf(&narrowC[from])
                                    : addressOf(&c[from]),
                       testStream());
  EXPECT_EQ(error.text, "");
  calls = runStream();
  double difference = 0.0;
  for (size_t i = 0; i < expected.size(); ++i) {
    float result = isResultBf16 ? fromBf16(narrowC[from + i]) : c[from + i];
    double tolerance = isResultBf16 ? std::fabs(expected[i]) * 0x1p-8 + 1e-30
                                    : 1e-6 * double(gemm.k);
    difference = std::max(difference,
                          std::fabs(double(result) - expected[i]) / tolerance);
  }
  return difference;
}

} // namespace

// All operands by rows and by columns, dense and with gaps, from the smallest
// sizes to odd ones.
TEST_F(CudaProductsTest, AllLayouts) {
  const int64_t sizes[][3] = {{1, 1, 1},  {1, 7, 1},  {7, 1, 3}, {1, 1, 9},
                              {5, 11, 7}, {3, 1, 64}, {1, 33, 5}};
  for (auto [m, n, k] : sizes)
    for (int layout = 0; layout < 32; ++layout) {
      int64_t pad = layout & 8 ? 3 : 0;
      std::vector<int64_t> a = {k + pad, 1}, b = {n + pad, 1}, c = {n + pad, 1};
      if (layout & 1)
        a = {1, m + pad};
      if (layout & 2)
        b = {1, k + pad};
      if (layout & 16)
        c = {1, m + pad};
      Case each = makeCase({}, m, n, k, a, b, c, layout & 4);
      EXPECT_LE(run(each), 1e-6 * double(k)) << m << n << k << " " << layout;
      EXPECT_EQ(calls, 1u);
      // Operands of 4-byte alignment.
      EXPECT_LE(run(each, 3), 1e-6 * double(k)) << m << n << k << " " << layout;
    }
}

// Batches that one call takes: with gaps, repeated operands, in another order
// in memory, and several that are one.
TEST_F(CudaProductsTest, BatchesInOneCall) {
  for (bool accumulate : {false, true})
    for (const Case &each :
         {makeCase({4}, 5, 7, 3, {15, 3, 1}, {21, 7, 1}, {35, 7, 1},
                   accumulate),
          makeCase({4}, 5, 7, 3, {17, 3, 1}, {0, 7, 1}, {39, 7, 1}, accumulate),
          makeCase({4}, 5, 7, 3, {0, 3, 1}, {21, 1, 3}, {35, 1, 5}, accumulate),
          makeCase({2, 3}, 5, 7, 3, {45, 15, 3, 1}, {63, 21, 7, 1},
                   {105, 35, 7, 1}, accumulate),
          makeCase({3, 2}, 5, 7, 3, {15, 45, 3, 1}, {21, 63, 7, 1},
                   {35, 105, 7, 1}, accumulate),
          makeCase({3, 1, 2}, 5, 7, 3, {30, 9, 15, 3, 1}, {0, 8, 0, 7, 1},
                   {70, 5, 35, 7, 1}, accumulate),
          makeCase({2, 5, 3}, 5, 7, 3, {225, 15, 75, 3, 1},
                   {315, 21, 105, 7, 1}, {525, 35, 175, 7, 1}, accumulate)}) {
      EXPECT_LE(run(each), 3e-6);
      EXPECT_EQ(calls, 1u);
    }
}

// The longest batch is that of the calls; [batch 2, sequence 6, heads 3, size
// 4]: scores = q . transposed k, then values.
TEST_F(CudaProductsTest, BatchesInSeveralCalls) {
  EXPECT_LE(run(makeCase({2, 3}, 6, 6, 4, {72, 4, 12, 1}, {72, 4, 1, 12},
                         {108, 36, 6, 1}, false)),
            4e-6);
  EXPECT_EQ(calls, 2u);
  EXPECT_LE(run(makeCase({2, 3}, 6, 4, 6, {108, 36, 6, 1}, {72, 4, 12, 1},
                         {72, 4, 12, 1}, true)),
            6e-6);
  EXPECT_EQ(calls, 2u);
  EXPECT_LE(run(makeCase({3, 5, 2}, 5, 7, 3, {200, 30, 15, 3, 1},
                         {0, 21, 0, 7, 1}, {400, 80, 40, 7, 1}, true)),
            3e-6);
  EXPECT_EQ(calls, 6u);
}

// What no call computes is refused by name; the compiler makes loops of it.
TEST_F(CudaProductsTest, Reasons) {
  cuda::ProductCalls calls;
  auto getReason = [&](const Case &each) {
    return cuda::planProductCalls(each.gemm, calls);
  };
  const char *noUnitStride = "a matrix has no unit stride, or its rows overlap";
  EXPECT_EQ(getReason(makeCase({}, 5, 7, 3, {30, 2}, {7, 1}, {7, 1}, false)),
            noUnitStride);
  EXPECT_EQ(getReason(makeCase({}, 5, 7, 3, {3, 1}, {0, 1}, {7, 1}, false)),
            noUnitStride);
  EXPECT_EQ(getReason(makeCase({}, 5, 7, 3, {3, 1}, {7, 1}, {14, 2}, false)),
            noUnitStride);
  EXPECT_EQ(getReason(makeCase({4}, 5, 7, 3, {15, 3, 1}, {21, 7, 1}, {0, 7, 1},
                               true)),
            "its results overlap");
  EXPECT_EQ(getReason(makeCase({5, 13, 17}, 5, 7, 3, {4000, 300, 15, 3, 1},
                               {0, 0, 0, 7, 1}, {9900, 700, 40, 7, 1}, true)),
            "its batch takes more than 64 calls");
  Case huge =
      makeCase({}, 5, 7, 3, {int64_t(1) << 31, 1}, {7, 1}, {7, 1}, false);
  EXPECT_EQ(getReason(huge), "a matrix has more than 2^31 rows or columns");
  huge.gemm.element = PENSTOCK_F64;
  EXPECT_EQ(getReason(huge), "it is neither f32 nor bf16");

  cuda::Products products;
  Error error = open(makeCase({}, 5, 7, 3, {30, 2}, {7, 1}, {7, 1}, false).gemm,
                     products);
  EXPECT_EQ(error.code, PENSTOCK_DEFECT);
  EXPECT_EQ(error.text,
            "no call of cuBLASLt computes the product (5 x 3 by 3 x 7): a "
            "matrix has no unit stride, or its rows overlap");
}

// 1000 bytes from byte 72 on have 744 from byte 256 on; the rest stays as it
// is.
TEST_F(CudaProductsTest, OverwritesItsScratchOnly) {
  std::fill(std::begin(arena), std::end(arena), 1);
  EXPECT_LE(run(makeCase({}, 5, 7, 3, {3, 1}, {7, 1}, {7, 1}, false)), 3e-6);
  for (size_t i = 0; i < sizeof(arena); ++i)
    ASSERT_EQ(arena[i] != 1, i >= 256 && i < 1000) << i;
  scratch = {};
  EXPECT_LE(run(makeCase({}, 5, 7, 3, {3, 1}, {7, 1}, {7, 1}, false)), 3e-6);
}

// The comparison finds operands in the wrong order.
TEST_F(CudaProductsTest, FindsExchangedOperands) {
  functions.cublasLtMatmul =
      [](cuda::CublasLtHandle handle, cuda::MatmulDescriptor matmul,
         const void *alpha, const void *a, cuda::MatrixLayout layoutA,
         const void *b, cuda::MatrixLayout layoutB, const void *beta,
         const void *c, cuda::MatrixLayout layoutC, void *d,
         cuda::MatrixLayout layoutD, const cuda::MatmulAlgorithm *algorithm,
         void *workspace, size_t bytes, cuda::Stream stream) {
        return emulated::cublasLt.cublasLtMatmul(
            handle, matmul, alpha, b, layoutA, a, layoutB, beta, c, layoutC, d,
            layoutD, algorithm, workspace, bytes, stream);
      };
  for (int layout = 0; layout < 8; ++layout) {
    auto choose = [&](int bit) {
      return layout & bit ? std::vector<int64_t>{1, 5}
                          : std::vector<int64_t>{5, 1};
    };
    EXPECT_GT(
        run(makeCase({}, 5, 5, 5, choose(1), choose(2), choose(4), false)),
        0.1);
  }
}

// An algorithm that adds partial sums in any order is not taken, though it is
// offered first, and alone.
TEST_F(CudaProductsTest, RefusesOtherReductions) {
  functions.cublasLtMatmulPreferenceSetAttribute =
      [](cuda::MatmulPreference preference, int attribute, const void *value,
         size_t bytes) {
        const uint32_t inPlace = cuda::CUBLASLT_REDUCTION_SCHEME_INPLACE;
        if (attribute == cuda::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
          value = &inPlace;
        return emulated::cublasLt.cublasLtMatmulPreferenceSetAttribute(
            preference, attribute, value, bytes);
      };
  functions.cublasLtMatmulAlgoGetHeuristic =
      [](cuda::CublasLtHandle handle, cuda::MatmulDescriptor matmul,
         cuda::MatrixLayout a, cuda::MatrixLayout b, cuda::MatrixLayout c,
         cuda::MatrixLayout d, cuda::MatmulPreference preference, int,
         cuda::MatmulChoice *choices, int *count) {
        return emulated::cublasLt.cublasLtMatmulAlgoGetHeuristic(
            handle, matmul, a, b, c, d, preference, 1, choices, count);
      };
  cuda::Products products;
  Error error = open(
      makeCase({2}, 5, 7, 3, {15, 3, 1}, {21, 7, 1}, {35, 7, 1}, false).gemm,
      products);
  EXPECT_EQ(error.code, PENSTOCK_USER_ERROR);
  EXPECT_EQ(error.text, "cuBLASLt has no algorithm for the product 2 x (5 x 3 "
                        "by 3 x 7) with 0 bytes of workspace: "
                        "CUBLAS_STATUS_NOT_SUPPORTED");
}

TEST_F(CudaProductsTest, RefusesRoundedOperands) {
  const Case each = makeCase({}, 5, 7, 3, {3, 1}, {7, 1}, {7, 1}, false);
  for (const char *name :
       {"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION"}) {
    cuda::Products products;
    setenv(name, "1", 1);
    EXPECT_EQ(open(each.gemm, products).text,
              std::string(name) + "=1 in the environment would round the "
                                  "operands of f32 matrix products; unset it, "
                                  "or compile with --precision=tf32");
    setenv(name, "0", 1);
    EXPECT_EQ(open(each.gemm, products).text, "");
    unsetenv(name);
  }
}

// Operands as tensor cores read them, and sums in f32. Then the environment may
// ask for what there is.
TEST_F(CudaProductsTest, RoundsOperandsToTf32) {
  EXPECT_EQ(emulated::roundToTf32(1.0f + 0x1p-10f), 1.0f + 0x1p-10f);
  EXPECT_EQ(emulated::roundToTf32(1.0f + 0x1p-11f), 1.0f + 0x1p-10f);
  EXPECT_EQ(emulated::roundToTf32(-1.0f - 0x1p-12f), -1.0f);
  EXPECT_EQ(emulated::roundToTf32(INFINITY), INFINITY);
  Case each = makeCase({2}, 5, 7, 33, {165, 33, 1}, {231, 7, 1}, {35, 7, 1},
                       /*accumulate=*/true);
  const penstock_cuda_gemm config = {1, 0, 0};
  each.gemm.config = &config;
  setenv("NVIDIA_TF32_OVERRIDE", "1", 1);
  EXPECT_GT(run(each), 1e-4);
  isTf32 = true;
  EXPECT_LE(run(each), 1e-6 * 33);
  unsetenv("NVIDIA_TF32_OVERRIDE");
}

// Factors of bf16 in all layouts and batches, aligned as vectors and as
// elements; sums that stay in f32, and that are rounded once.
TEST_F(CudaProductsTest, MultipliesBf16) {
  for (bool isResultBf16 : {false, true})
    for (int layout = 0; layout < 32; ++layout) {
      const int64_t m = 5, n = 11, k = 7, pad = layout & 8 ? 3 : 0;
      std::vector<int64_t> a = {77, k + pad, 1}, b = {121, n + pad, 1},
                           c = {165, n + pad, 1};
      if (layout & 1)
        a = {77, 1, m + pad};
      if (layout & 2)
        b = {121, 1, k + pad};
      if (layout & 16)
        c = {165, 1, m + pad};
      for (int shift : {0, 1}) {
        EXPECT_LE(runBf16(makeCase({3}, m, n, k, a, b, c, layout & 4),
                          isResultBf16, shift),
                  1.0)
            << layout;
        EXPECT_EQ(calls, 1u);
      }
    }
}

// The real library takes what we ask of its descriptors; to choose and run, it
// wants a GPU.
TEST_F(CudaProductsTest, InstalledLibraryTakesDescriptors) {
  std::string reason = loadInstalledCublasLt(functions);
  if (!reason.empty())
    GTEST_SKIP() << reason;
  ASSERT_GE(functions.cublasLtGetVersion(), 120000u);
  penstock_gemm_descriptor gemm =
      makeCase({2, 3}, 6, 6, 4, {72, 4, 12, 1}, {72, 4, 1, 12}, {108, 36, 6, 1},
               true)
          .gemm;
  gemm.scratch = scratch;
  for (uint32_t element : {PENSTOCK_F32, PENSTOCK_BF16}) {
    gemm.element = element;
    gemm.result_element = PENSTOCK_F32;
    cuda::Products products;
    EXPECT_EQ(open(gemm, products).text, "");
  }
}

TEST_F(CudaProductsTest, NamesTheMissingLibrary) {
  cuda::emulatedLibraries = nullptr;
  // Where the loader finds the library, there is nothing to miss.
  if (cuda::openLibrary({"libcublasLt.so.12", "libcublasLt.so.13"}))
    GTEST_SKIP() << "cuBLASLt is installed";
  cuda::Products products;
  Error error =
      open(makeCase({}, 5, 7, 3, {3, 1}, {7, 1}, {7, 1}, false).gemm, products);
  EXPECT_EQ(error.code, PENSTOCK_USER_ERROR);
  EXPECT_EQ(error.text, "matrix products need libcublasLt.so.12 or .13; set "
                        "PENSTOCK_CUDA_PATH or install CUDA");
}
