//===- FibersTest.cpp - Threads of a block --------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Right kernels compute the same in any order of threads; what is wrong with
// the others shows as other numbers or as a sentence.
//===----------------------------------------------------------------------===//

#include "runtime/device/emulated/Fibers.h"

#include "EmulatedCode.h"

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace penstock::runtime::emulated;
using namespace penstock::test;

namespace {

constexpr uint32_t kEverybody = 0xffffffff;
constexpr uint32_t kWholeWarp = 0x1f; // a clamp: no segments

void barrier() { ps_emulated_barrier_cta_sync_aligned_all(0); }

/// Launches with addresses and numbers, a word each.
std::string run(const penstock_emulated_kernel &kernel, Dimensions grid,
                Dimensions block, std::vector<uint64_t> words, uint64_t order,
                uint32_t sharedBytes = 0) {
  std::vector<void *> parameters;
  for (uint64_t &word : words)
    parameters.push_back(&word);
  return launch(kernel, grid, block, sharedBytes, parameters.data(), order);
}

//===----------------------------------------------------------------------===//
// Threads and blocks
//===----------------------------------------------------------------------===//

/// Counts how often each of the threads of a grid runs.
void countThreads(void **parameters) {
  auto *counts = getPointer<uint32_t>(parameters, 0);
  uint32_t block = ps_emulated_read_ptx_sreg_ctaid_x() +
                   3 * (ps_emulated_read_ptx_sreg_ctaid_y() +
                        2 * ps_emulated_read_ptx_sreg_ctaid_z());
  uint32_t thread = ps_emulated_read_ptx_sreg_tid_x() +
                    7 * (ps_emulated_read_ptx_sreg_tid_y() +
                         3 * ps_emulated_read_ptx_sreg_tid_z());
  if (ps_emulated_read_ptx_sreg_ntid_x() == 7 &&
      ps_emulated_read_ptx_sreg_nctaid_x() == 3 &&
      ps_emulated_read_ptx_sreg_laneid() == thread % 32)
    ++counts[block * 105 + thread];
}

TEST(Fibers, RunEachThreadOnce) {
  for (uint32_t waits : {0, 1})
    for (uint64_t order : {0, 1, 2, 3}) {
      std::vector<uint32_t> counts(3 * 2 * 4 * 105);
      penstock_emulated_kernel kernel = {"count", countThreads, waits, 0};
      EXPECT_EQ(
          run(kernel, {3, 2, 4}, {7, 3, 5}, {addressOf(counts.data())}, order),
          "");
      EXPECT_EQ(counts, std::vector<uint32_t>(counts.size(), 1));
    }
}

// Faults of kernels are sentences; one that another process sends is no fault
// of a kernel, and ends this process as ever.
TEST(FibersDeathTest, LeaveSignalsOfOthersAlone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::vector<uint32_t> counts(105);
  penstock_emulated_kernel kernel = {"count", countThreads, 0, 0};
  auto isFault = [](int status) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    // Their report, after which they exit.
    return WIFEXITED(status) && WEXITSTATUS(status) != 0;
#endif
#endif
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
  };
  EXPECT_EXIT(
      {
        (void)run(kernel, {}, {7, 3, 5}, {addressOf(counts.data())}, 0);
        kill(getpid(), SIGSEGV);
        std::exit(0);
      },
      isFault, "");
}

/// Writes down in which order threads run.
void recordOrder(void **parameters) {
  auto *next = getPointer<uint32_t>(parameters, 0);
  next[++next[0]] = 10 * ps_emulated_read_ptx_sreg_ctaid_x() + getThread();
}

TEST(Fibers, HaveAnOrder) {
  auto record = [](uint64_t order) {
    std::vector<uint32_t> next(7);
    penstock_emulated_kernel kernel = {"record", recordOrder, 0, 0};
    EXPECT_EQ(run(kernel, {2}, {3}, {addressOf(next.data())}, order), "");
    return std::vector<uint32_t>(next.begin() + 1, next.end());
  };
  EXPECT_EQ(record(0), (std::vector<uint32_t>{0, 1, 2, 10, 11, 12}));
  EXPECT_EQ(record(1), (std::vector<uint32_t>{12, 11, 10, 2, 1, 0}));
  EXPECT_EQ(record(5), record(5));
  EXPECT_TRUE(record(5) != record(6) || record(5) != record(7));
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

/// Sums a row of n numbers per block: butterflies in warps of 32, the warps'
/// sums through shared memory. `hasBarrier`: as it must be.
template <bool hasBarrier> void sumRows(void **parameters) {
  auto *rows = getPointer<float>(parameters, 0);
  auto *sums = getPointer<float>(parameters, 1);
  auto n = getNumber<uint32_t>(parameters, 2);
  auto *shared = static_cast<float *>(ps_emulated_shared());
  uint32_t row = ps_emulated_read_ptx_sreg_ctaid_x();
  float sum = 0;
  for (uint32_t i = getThread(); i < n; i += ps_emulated_read_ptx_sreg_ntid_x())
    sum += rows[row * n + i];
  for (uint32_t offset = 16; offset; offset /= 2)
    sum += ps_emulated_shfl_sync_bfly_f32(kEverybody, sum, offset, kWholeWarp);
  if (getThread() % 32 == 0)
    shared[getThread() / 32] = sum;
  if constexpr (hasBarrier)
    barrier();
  float total = 0;
  for (uint32_t warp = 0; warp < ps_emulated_read_ptx_sreg_ntid_x() / 32;
       ++warp)
    total += shared[warp];
  if (getThread() == 37)
    sums[row] = total;
}

/// In how many of the first orders the sums of 3 rows of 201 numbers are right.
template <bool hasBarrier> int countRightSums(int orders) {
  constexpr uint32_t kRows = 3, kN = 201;
  std::vector<float> rows(kRows * kN), expected(kRows);
  for (uint32_t i = 0; i < rows.size(); ++i) {
    rows[i] = float(i % 17) - 5;
    expected[i / kN] += rows[i]; // small whole numbers: any order is exact
  }
  int right = 0;
  for (int order = 0; order < orders; ++order) {
    std::vector<float> sums(kRows, -1.0f);
    penstock_emulated_kernel kernel = {"sum", sumRows<hasBarrier>, 1, 16};
    EXPECT_EQ(run(kernel, {kRows}, {128},
                  {addressOf(rows.data()), addressOf(sums.data()), kN},
                  uint64_t(order)),
              "");
    right += sums == expected;
  }
  return right;
}

TEST(Fibers, WaitForEachOther) { EXPECT_EQ(countRightSums<true>(20), 20); }

TEST(Fibers, ShowAMissingBarrier) { EXPECT_LT(countRightSums<false>(5), 5); }

void waitInABranch(void **) {
  if (getThread() < 5)
    barrier();
}

TEST(Fibers, ReportABarrierInABranch) {
  penstock_emulated_kernel kernel = {"branch", waitInABranch, 1, 0};
  EXPECT_EQ(run(kernel, {2}, {33}, {}, 0),
            "kernel branch, block (0,0,0): of 33 threads, 5 wait at a barrier, "
            "0 in a shuffle whose other lanes do not come, 28 have ended");
}

void shuffleWithoutOddLanes(void **) {
  if (getThread() % 2 == 0)
    ps_emulated_shfl_sync_bfly_i32(kEverybody, 1, 2, kWholeWarp);
}

TEST(Fibers, ReportMissingLanes) {
  penstock_emulated_kernel kernel = {"lanes", shuffleWithoutOddLanes, 1, 0};
  EXPECT_EQ(run(kernel, {1, 2}, {40}, {}, 1),
            "kernel lanes, block (0,1,0): of 40 threads, 0 wait at a barrier, "
            "20 in a shuffle whose other lanes do not come, 20 have ended");
  // The same threads run other kernels after that.
  EXPECT_EQ(countRightSums<true>(2), 2);
}

void shuffleAmongEvenLanes(void **parameters) {
  auto *results = getPointer<uint32_t>(parameters, 0);
  if (getThread() % 2 == 0)
    results[getThread()] = ps_emulated_shfl_sync_bfly_i32(
        0x55555555, 100 + getThread(), 2, kWholeWarp);
  ps_emulated_bar_warp_sync(kEverybody);
  if (getThread() % 2 == 1)
    results[getThread()] = results[getThread() - 1];
}

TEST(Fibers, ShuffleAmongTheLanesOfAMask) {
  for (uint64_t order : {0, 1, 2, 3}) {
    std::vector<uint32_t> results(32);
    penstock_emulated_kernel kernel = {"even", shuffleAmongEvenLanes, 1, 0};
    EXPECT_EQ(run(kernel, {1}, {32}, {addressOf(results.data())}, order), "");
    for (uint32_t i = 0; i < 32; ++i)
      EXPECT_EQ(results[i], 100 + ((i & ~1u) ^ 2)) << i;
  }
}

//===----------------------------------------------------------------------===//
// Shuffles
//===----------------------------------------------------------------------===//

enum class Kind : uint32_t { Butterfly, Down, Up, Index };

void shuffleOnce(void **parameters) {
  auto *results = getPointer<uint32_t>(parameters, 0);
  auto kind = getNumber<Kind>(parameters, 1);
  auto lane = getNumber<uint32_t>(parameters, 2);
  auto clamp = getNumber<uint32_t>(parameters, 3);
  auto function = kind == Kind::Butterfly ? ps_emulated_shfl_sync_bfly_i32
                  : kind == Kind::Down    ? ps_emulated_shfl_sync_down_i32
                  : kind == Kind::Up      ? ps_emulated_shfl_sync_up_i32
                                          : ps_emulated_shfl_sync_idx_i32;
  results[getThread()] = function(kEverybody, getThread(), lane, clamp);
}

/// Returns whose value each lane of a whole warp gets.
std::vector<uint32_t> shuffle(Kind kind, uint32_t lane, uint32_t clamp) {
  std::vector<uint32_t> results(32);
  penstock_emulated_kernel kernel = {"shuffle", shuffleOnce, 1, 0};
  EXPECT_EQ(run(kernel, {1}, {32},
                {addressOf(results.data()), uint64_t(kind), lane, clamp}, 3),
            "");
  return results;
}

template <typename Function> std::vector<uint32_t> lanes(Function function) {
  std::vector<uint32_t> result(32);
  for (uint32_t i = 0; i < 32; ++i)
    result[i] = function(i);
  return result;
}

TEST(Fibers, ShuffleInWarps) {
  EXPECT_EQ(shuffle(Kind::Butterfly, 5, 0x1f),
            lanes([](uint32_t i) { return i ^ 5; }));
  EXPECT_EQ(shuffle(Kind::Down, 3, 0x1f),
            lanes([](uint32_t i) { return i + 3 < 32 ? i + 3 : i; }));
  EXPECT_EQ(shuffle(Kind::Up, 3, 0),
            lanes([](uint32_t i) { return i >= 3 ? i - 3 : i; }));
  EXPECT_EQ(shuffle(Kind::Index, 19, 0x1f),
            lanes([](uint32_t) { return 19u; }));
}

TEST(Fibers, ShuffleInSegmentsOfEight) {
  constexpr uint32_t kSegments = 0x18 << 8;
  EXPECT_EQ(shuffle(Kind::Butterfly, 5, kSegments | 0x1f),
            lanes([](uint32_t i) { return i ^ 5; }));
  EXPECT_EQ(shuffle(Kind::Down, 3, kSegments | 0x1f),
            lanes([](uint32_t i) { return i % 8 + 3 < 8 ? i + 3 : i; }));
  EXPECT_EQ(shuffle(Kind::Up, 3, kSegments),
            lanes([](uint32_t i) { return i % 8 >= 3 ? i - 3 : i; }));
  EXPECT_EQ(shuffle(Kind::Index, 6, kSegments | 0x1f),
            lanes([](uint32_t i) { return i / 8 * 8 + 6; }));
}

// The first eight lanes, then the others; bits above the predicate are noise.
void voteOnce(void **parameters) {
  auto *results = getPointer<uint32_t>(parameters, 0);
  uint32_t lane = getThread(), first = 0xff;
  results[lane] = ps_emulated_vote_ballot_sync(lane < 8 ? first : ~first,
                                               0xabcd00 | (lane % 3 == 0));
}

TEST(Fibers, VoteAmongThoseWhoTakePart) {
  std::vector<uint32_t> results(32);
  penstock_emulated_kernel kernel = {"vote", voteOnce, 1, 0};
  EXPECT_EQ(run(kernel, {1}, {32}, {addressOf(results.data())}, 3), "");
  EXPECT_EQ(results,
            lanes([](uint32_t i) { return i < 8 ? 0x49u : 0x49249200u; }));
}

//===----------------------------------------------------------------------===//
// Memory and arithmetic
//===----------------------------------------------------------------------===//

void copyShared(void **parameters) {
  auto *to = getPointer<float>(parameters, 0);
  auto *shared = static_cast<float *>(ps_emulated_shared());
  std::memcpy(to, shared, 12 * sizeof(float));
  for (int i = 0; i < 12; ++i)
    shared[i] = 1;
}

TEST(Fibers, FindNothingInSharedMemory) {
  std::vector<float> values(13);
  penstock_emulated_kernel kernel = {"shared", copyShared, 0, 40};
  EXPECT_EQ(run(kernel, {2}, {1}, {addressOf(values.data())}, 0, 8), "");
  for (int i = 0; i < 12; ++i)
    EXPECT_TRUE(std::isnan(values[i])) << i;
  EXPECT_EQ(values[12], 0);
}

void multiply(void **parameters) {
  auto *values = getPointer<volatile float>(parameters, 0);
  values[0] = values[1] * values[2];
}

TEST(Fibers, FlushSubnormals) {
  volatile float values[] = {1, 1e-20f, 1e-20f};
  penstock_emulated_kernel kernel = {"multiply", multiply, 0, 0};
  EXPECT_EQ(run(kernel, {1}, {1},
                {addressOf(const_cast<const float *>(&values[0]))}, 0),
            "");
  EXPECT_EQ(values[0], 0);
  // The host's own arithmetic is as before.
  EXPECT_GT(values[1] * values[2], 0);
}

} // namespace
