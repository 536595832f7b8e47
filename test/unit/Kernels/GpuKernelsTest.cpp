//===- GpuKernelsTest.cpp - Kernels of a GPU, executed --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The same functions for a CPU and for the emulated GPU, on sizes that are no
// multiple of a block, in three orders of threads. Elementwise results have the
// same bits; sums agree within rounding.
//===----------------------------------------------------------------------===//

#include "Kernels.h"

#include <cmath>
#include <gtest/gtest.h>

namespace {

/// A function and its buffers in order, of which the last `results` are
/// written.
struct Call {
  std::string name;
  std::vector<std::vector<float>> buffers;
  size_t results = 1;
  std::vector<float> scalars = {};
};

std::vector<std::vector<float>> run(Kernels &kernels, const Call &call,
                                    uint64_t order) {
  std::vector<std::vector<float>> buffers = call.buffers;
  std::vector<void *> arguments;
  for (std::vector<float> &buffer : buffers)
    arguments.push_back(buffer.data());
  kernels.order = order;
  kernels.call(call.name, arguments, call.scalars);
  return {buffers.end() - static_cast<int64_t>(call.results), buffers.end()};
}

/// Runs a call on both; `tolerance` is relative to the largest result, 0 for
/// the same bits.
void compareCall(Kernels &cpu, Kernels &gpu, const Call &call,
                 double tolerance) {
  std::vector<std::vector<float>> expected = run(cpu, call, 0), first;
  for (uint64_t order : {0, 1, 7}) {
    std::vector<std::vector<float>> actual = run(gpu, call, order);
    for (size_t i = 0; i < expected.size(); ++i) {
      double scale = 0;
      for (float value : expected[i])
        scale = std::max(scale, std::fabs(static_cast<double>(value)));
      for (size_t j = 0; j < expected[i].size(); ++j) {
        float a = actual[i][j], b = expected[i][j];
        if (std::memcmp(&a, &b, sizeof a) == 0)
          continue;
        EXPECT_LE(std::fabs(a - b), tolerance * scale)
            << call.name << ", result " << i << ", element " << j << ": " << a
            << ", not " << b << " in order " << order;
      }
    }
    // No order changes a bit.
    if (order == 0)
      first = actual;
    for (size_t i = 0; i < first.size(); ++i)
      EXPECT_EQ(std::memcmp(first[i].data(), actual[i].data(),
                            first[i].size() * sizeof(float)),
                0)
          << call.name << " in order " << order;
  }
}

/// Runs calls of functions of `source` on both.
void compare(const std::string &source, const std::vector<Call> &calls,
             double tolerance, bool plain = false) {
  auto cpu = Kernels::compile(source);
  auto gpu = Kernels::compile(source, {.gpu = true, .plain = plain});
  ASSERT_TRUE(cpu && gpu);
  ASSERT_FALSE(gpu->launches.empty());
  for (const Call &call : calls)
    compareCall(*cpu, *gpu, call, tolerance);
}

void compare(const std::string &source, const Call &call, double tolerance,
             bool plain = false) {
  compare(source, std::vector<Call>{call}, tolerance, plain);
}

std::vector<float> outputOf(size_t size) {
  return std::vector<float>(size, NAN);
}

/// Puts numbers in the place of names.
std::string replace(std::string text,
                    const std::vector<std::pair<std::string, int64_t>> &names) {
  for (const auto &[name, number] : names)
    for (size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, name.size(), std::to_string(number));
  return text;
}

/// Integers in the memory of floats.
std::vector<float> fromIntegers(const std::vector<int32_t> &numbers) {
  std::vector<float> result(numbers.size());
  std::memcpy(result.data(), numbers.data(), numbers.size() * sizeof(float));
  return result;
}

TEST(GpuKernels, ElementwiseFunctionsHaveTheBitsOfTheCpu) {
  compare(R"mlir(
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#column = affine_map<(i, j) -> (i)>
func.func private @f(%x: tensor<37x29xf32>, %bias: tensor<29xf32>, %scale: tensor<37xf32>, %rate: f32) -> tensor<37x29xf32> {
  %e = tensor.empty() : tensor<37x29xf32>
  %one = arith.constant 1.0 : f32
  %r = linalg.generic {indexing_maps = [#id, #row, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %bias, %scale : tensor<37x29xf32>, tensor<29xf32>, tensor<37xf32>) outs(%e : tensor<37x29xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32, %o: f32):
    %1 = arith.addf %a, %b : f32
    %2 = math.exp %1 : f32
    %3 = math.tanh %a : f32
    %4 = math.erf %3 : f32
    %5 = arith.divf %4, %s : f32
    %6 = math.fma %2, %rate, %5 : f32
    %7 = math.absf %6 : f32
    %8 = arith.addf %7, %one : f32
    %9 = math.log %8 : f32
    %10 = math.sqrt %9 : f32
    %11 = math.floor %a : f32
    %12 = arith.maximumf %10, %11 : f32
    linalg.yield %12 : f32
  } -> tensor<37x29xf32>
  return %r : tensor<37x29xf32>
}
)mlir",
          {"f",
           {randomVector(37 * 29, 1, 3), randomVector(29, 2),
            randomVector(37, 3), outputOf(37 * 29)},
           1,
           {0.25f}},
          0);
}

// The emulator finds the index that a kernel forgot to check, although there is
// memory behind the buffer.
TEST(GpuKernels, IndicesOutOfRangeAreFound) {
  auto gpu = Kernels::compile(R"mlir(
#id = affine_map<(i) -> (i)>
func.func private @f(%x: tensor<37xf32>, %at: tensor<5xi32>) -> tensor<5xf32> {
  %e = tensor.empty() : tensor<5xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%at : tensor<5xi32>) outs(%e : tensor<5xf32>) {
  ^bb0(%i: i32, %o: f32):
    %n = arith.index_cast %i : i32 to index
    %v = tensor.extract %x[%n] : tensor<37xf32>
    linalg.yield %v : f32
  } -> tensor<5xf32>
  return %r : tensor<5xf32>
}
)mlir",
                              {.gpu = true});
  ASSERT_TRUE(gpu);
  auto gather = [&](int32_t index) {
    return run(*gpu,
               {"f",
                {randomVector(37, 70), fromIntegers({3, 36, index, 0, 1}),
                 outputOf(5)}},
               1)[0][2];
  };
  EXPECT_EQ(gather(36), randomVector(37, 70)[36]);
  EXPECT_DEATH(gather(37), "kernel f.*, block \\(0,0,0\\), thread "
                           "0: an access at byte 148 of parameter [0-2], which "
                           "has 148");
  EXPECT_DEATH(gather(-1),
               "an access at byte -4 of parameter [0-2], which has");
}

//===----------------------------------------------------------------------===//
// Mistakes of a compiler
//===----------------------------------------------------------------------===//

// Threads of a block that meet: rows of several warps, and tiles.
const char *const kMeetings = R"mlir(
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#swap = affine_map<(i, j) -> (j, i)>
func.func private @sums(%x: tensor<3x4100xf32>) -> tensor<3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %r = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<3x4100xf32>) outs(%z : tensor<3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}
func.func private @transpose(%x: tensor<64x96xf32>) -> tensor<96x64xf32> {
  %e = tensor.empty() : tensor<96x64xf32>
  %r = linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x96xf32>) outs(%e : tensor<96x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<96x64xf32>
  return %r : tensor<96x64xf32>
}
)mlir";
const Call kMeetingCalls[] = {
    {"sums", {randomVector(3 * 4100, 80), std::vector<float>(3)}},
    {"transpose", {randomVector(64 * 96, 81), std::vector<float>(96 * 64)}}};

// Without them, a block has other numbers in one of three orders at least.
TEST(GpuKernels, MissingBarriersShow) {
  auto right = Kernels::compile(kMeetings, {.gpu = true});
  auto wrong = Kernels::compile(
      kMeetings, {.gpu = true, .fault = KernelFault::NoBarriers});
  ASSERT_TRUE(right && wrong);
  for (const Call &call : kMeetingCalls) {
    int others = 0;
    for (uint64_t order : {0, 1, 7}) {
      std::vector<float> expected = run(*right, call, order)[0],
                         actual = run(*wrong, call, order)[0];
      others += std::memcmp(expected.data(), actual.data(),
                            expected.size() * sizeof(float)) != 0;
    }
    EXPECT_GT(others, 0) << call.name;
  }
}

// It would hang, or not, as the GPU is.
TEST(GpuKernels, BarriersInABranchAreFound) {
  auto wrong = Kernels::compile(
      kMeetings, {.gpu = true, .fault = KernelFault::BarriersInABranch});
  ASSERT_TRUE(wrong);
  for (const Call &call : kMeetingCalls)
    EXPECT_DEATH(
        run(*wrong, call, 0),
        "block \\(0,0,0\\): of [0-9]+ threads, 16 wait at a barrier, 0 "
        "in a shuffle whose other lanes do not come, [0-9]+ have "
        "ended")
        << call.name;
}

// One row with a rest, rows of whole vectors, and rows that are not.
TEST(GpuKernels, VectorsHaveTheBitsOfTheirElements) {
  for (auto [rows, length] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 3}, {1, 4}, {37, 29}, {5, 132}, {129, 4}, {9, 1}}) {
    auto elements = static_cast<size_t>(rows * length);
    compare(replace(R"mlir(
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#swap = affine_map<(i, j) -> (j, i)>
func.func private @f(%x: tensor<RxLxf32>, %b: tensor<Lxf32>, %t: tensor<LxRxf32>)
    -> (tensor<RxLxf32>, tensor<RxLxf32>, tensor<RxLxi32>, tensor<RxLxf32>) {
  %e = tensor.empty() : tensor<RxLxf32>
  %i = tensor.empty() : tensor<RxLxi32>
  %whole = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<RxLxf32>) outs(%e : tensor<RxLxf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = math.exp %a : f32
    linalg.yield %1 : f32
  } -> tensor<RxLxf32>
  %bias:2 = linalg.generic {indexing_maps = [#id, #row, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : tensor<RxLxf32>, tensor<Lxf32>) outs(%e, %i : tensor<RxLxf32>, tensor<RxLxi32>) {
  ^bb0(%a: f32, %s: f32, %o: f32, %p: i32):
    %1 = arith.addf %a, %s : f32
    %n = linalg.index 0 : index
    %m = linalg.index 1 : index
    %k = arith.addi %n, %m : index
    %l = arith.index_cast %k : index to i32
    linalg.yield %1, %l : f32, i32
  } -> (tensor<RxLxf32>, tensor<RxLxi32>)
  %turned = linalg.generic {indexing_maps = [#id, #swap, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %t : tensor<RxLxf32>, tensor<LxRxf32>) outs(%e : tensor<RxLxf32>) {
  ^bb0(%a: f32, %s: f32, %o: f32):
    %1 = arith.subf %a, %s : f32
    linalg.yield %1 : f32
  } -> tensor<RxLxf32>
  return %whole, %bias#0, %bias#1, %turned : tensor<RxLxf32>, tensor<RxLxf32>, tensor<RxLxi32>, tensor<RxLxf32>
}
)mlir",
                    {{"R", rows}, {"L", length}}),
            {"f",
             {randomVector(elements, 30), randomVector(size_t(length), 31),
              randomVector(elements, 32), outputOf(elements),
              outputOf(elements), outputOf(elements), outputOf(elements)},
             4},
            0);
  }
}

/// `bytes` in the memory of floats.
template <typename T> std::vector<float> pack(const std::vector<T> &bytes) {
  std::vector<float> result((bytes.size() * sizeof(T) + 3) / 4);
  std::memcpy(result.data(), bytes.data(), bytes.size() * sizeof(T));
  return result;
}

/// The upper halves of small integers.
std::vector<float> packBf16(const std::vector<float> &values) {
  std::vector<uint16_t> halves;
  for (float value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    halves.push_back(static_cast<uint16_t>(bits >> 16));
  }
  return pack(halves);
}

// Truth values are bytes; several fit into what is loaded at once.
TEST(GpuKernels, NarrowVectorsHaveTheBitsOfTheirElements) {
  for (auto [rows, length] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 7}, {3, 16}, {37, 29}, {5, 132}, {7, 40}, {129, 4}}) {
    auto elements = static_cast<size_t>(rows * length);
    std::vector<uint8_t> truths;
    for (float value : randomVector(elements, 33))
      truths.push_back(value < 0.2f);
    compare(replace(R"mlir(
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
func.func private @f(%x: tensor<RxLxf32>, %h: tensor<RxLxbf16>, %m: tensor<RxLxi1>, %b: tensor<Lxf32>)
    -> (tensor<RxLxbf16>, tensor<RxLxi1>, tensor<RxLxi1>, tensor<RxLxf32>) {
  %e = tensor.empty() : tensor<RxLxf32>
  %n = tensor.empty() : tensor<RxLxbf16>
  %t = tensor.empty() : tensor<RxLxi1>
  %true = arith.constant true
  %narrow = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%h, %b : tensor<RxLxbf16>, tensor<Lxf32>) outs(%n : tensor<RxLxbf16>) {
  ^bb0(%a: bf16, %s: f32, %o: bf16):
    %1 = arith.extf %a : bf16 to f32
    %2 = arith.addf %1, %s : f32
    %3 = arith.truncf %2 : f32 to bf16
    linalg.yield %3 : bf16
  } -> tensor<RxLxbf16>
  %not = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%m : tensor<RxLxi1>) outs(%t : tensor<RxLxi1>) {
  ^bb0(%a: i1, %o: i1):
    %1 = arith.xori %a, %true : i1
    linalg.yield %1 : i1
  } -> tensor<RxLxi1>
  %both:2 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<RxLxf32>, tensor<RxLxi1>) outs(%t, %e : tensor<RxLxi1>, tensor<RxLxf32>) {
  ^bb0(%a: f32, %k: i1, %o: i1, %p: f32):
    %zero = arith.constant 0.0 : f32
    %1 = arith.cmpf olt, %a, %zero : f32
    %2 = arith.select %k, %a, %zero : f32
    linalg.yield %1, %2 : i1, f32
  } -> (tensor<RxLxi1>, tensor<RxLxf32>)
  return %narrow, %not, %both#0, %both#1 : tensor<RxLxbf16>, tensor<RxLxi1>, tensor<RxLxi1>, tensor<RxLxf32>
}
)mlir",
                    {{"R", rows}, {"L", length}}),
            {"f",
             {randomVector(elements, 34), packBf16(randomVector(elements, 35)),
              pack(truths), randomVector(size_t(length), 36),
              outputOf((elements + 1) / 2), outputOf((elements + 3) / 4),
              outputOf((elements + 3) / 4), outputOf(elements)},
             4},
            0);
  }
}

// Sums of ones, which no order rounds.
TEST(GpuKernels, SumsOfNarrowNumbersAreSharedToo) {
  for (const char *type : {"bf16", "f16"})
    for (int64_t length : {31, 32, 100, 128, 2048}) {
      auto count = static_cast<size_t>(length);
      std::vector<uint16_t> x;
      uint16_t one = type[0] == 'b' ? 0x3f80 : 0x3c00;
      for (size_t i = 0; i < 5 * count; ++i)
        x.push_back(i * 7 % 11 < 2 ? one : i * 7 % 11 == 2 ? one | 0x8000 : 0);
      std::string source = replace(R"mlir(
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func private @f(%x: tensor<5xLxT>, %s: tensor<5xT> {pipeline.into = 0 : i64}) -> tensor<5xT> {
  %r = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<5xLxT>) outs(%s : tensor<5xT>) {
  ^bb0(%a: T, %o: T):
    %sum = arith.addf %a, %o : T
    linalg.yield %sum : T
  } -> tensor<5xT>
  return %r : tensor<5xT>
}
)mlir",
                                   {{"L", length}});
      for (size_t at; (at = source.find('T')) != std::string::npos;)
        source.replace(at, 1, type);
      std::vector<uint16_t> sums(6, one);
      compare(source, Call{"f", {pack(x), pack(sums)}}, 0);
    }
}

// Tiles that are full and that are not, with another operand that lies as the
// result does.
TEST(GpuKernels, TransposesGoThroughTiles) {
  for (auto [count, rows, columns] :
       std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {1, 64, 32}, {3, 33, 70}, {2, 16, 17}, {2, 5, 40}}) {
    auto elements = static_cast<size_t>(count * rows * columns);
    compare(
        replace(R"mlir(
#id = affine_map<(n, i, j) -> (n, i, j)>
#swap = affine_map<(n, i, j) -> (n, j, i)>
#across = affine_map<(n, i, j) -> (j, n, i)>
func.func private @f(%x: tensor<NxCxRxf32>, %y: tensor<NxRxCxf32>, %z: tensor<CxNxRxf32>)
    -> (tensor<NxRxCxf32>, tensor<NxRxCxi32>) {
  %e = tensor.empty() : tensor<NxRxCxf32>
  %i = tensor.empty() : tensor<NxRxCxi32>
  %s:2 = linalg.generic {indexing_maps = [#swap, #id, #across, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %y, %z : tensor<NxCxRxf32>, tensor<NxRxCxf32>, tensor<CxNxRxf32>) outs(%e, %i : tensor<NxRxCxf32>, tensor<NxRxCxi32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32, %p: i32):
    %1 = arith.addf %a, %b : f32
    %2 = arith.mulf %1, %c : f32
    %k = linalg.index 2 : index
    %l = arith.index_cast %k : index to i32
    linalg.yield %2, %l : f32, i32
  } -> (tensor<NxRxCxf32>, tensor<NxRxCxi32>)
  return %s#0, %s#1 : tensor<NxRxCxf32>, tensor<NxRxCxi32>
}
)mlir",
                {{"N", count}, {"R", rows}, {"C", columns}}),
        {"f",
         {randomVector(elements, 40), randomVector(elements, 41),
          randomVector(elements, 42), outputOf(elements), outputOf(elements)},
         2},
        0);
  }
}

TEST(GpuKernels, FunctionsOfLibdeviceAreThoseOfTheCLibrary) {
  compare(R"mlir(
#id = affine_map<(i) -> (i)>
func.func private @f(%x: tensor<301xf32>) -> tensor<301xf32> {
  %e = tensor.empty() : tensor<301xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<301xf32>) outs(%e : tensor<301xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = math.sin %a : f32
    %2 = math.atan2 %1, %a : f32
    %3 = math.absf %a : f32
    %4 = math.powf %3, %2 : f32
    linalg.yield %4 : f32
  } -> tensor<301xf32>
  return %r : tensor<301xf32>
}
)mlir",
          {"f", {randomVector(301, 4, 10), outputOf(301)}}, 0);
}

TEST(GpuKernels, SumsAlongRowsAndColumns) {
  compare(R"mlir(
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#all = affine_map<(i, j) -> ()>
func.func private @f(%x: tensor<131x67xf32>, %sums: tensor<67xf32> {pipeline.into = 0 : i64})
    -> (tensor<67xf32>, tensor<131xf32>, tensor<131x67xf32>, tensor<f32>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<131xf32>
  %e1 = tensor.empty() : tensor<131x67xf32>
  %e2 = tensor.empty() : tensor<f32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<131xf32>) -> tensor<131xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<f32>) -> tensor<f32>
  %columns = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<131x67xf32>) outs(%sums : tensor<67xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<67xf32>
  %rows = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<131x67xf32>) outs(%z0 : tensor<131xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.mulf %a, %a : f32
    %r = arith.addf %s, %o : f32
    linalg.yield %r : f32
  } -> tensor<131xf32>
  %quotient = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %rows : tensor<131x67xf32>, tensor<131xf32>) outs(%e1 : tensor<131x67xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<131x67xf32>
  %total = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["reduction", "reduction"]}
      ins(%quotient : tensor<131x67xf32>) outs(%z2 : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %columns, %rows, %quotient, %total : tensor<67xf32>, tensor<131xf32>, tensor<131x67xf32>, tensor<f32>
}
)mlir",
          {"f",
           {randomVector(131 * 67, 5), randomVector(67, 6), outputOf(131),
            outputOf(131 * 67), outputOf(1)},
           4},
          1e-5);
}

// Rows for a thread, a warp and blocks of two sizes, of whole vectors and not;
// numbers of rows that fill no block. Numbers of a row become elements again.
TEST(GpuKernels, RowsOfAnyLengthHaveTheirMaximaSumsAndMoments) {
  for (auto [rows, length] :
       std::vector<std::pair<int64_t, int64_t>>{{131, 9},
                                                {131, 33},
                                                {7, 64},
                                                {5, 1000},
                                                {6, 1027},
                                                {3, 2052},
                                                {2, 16385},
                                                {3, 20004}}) {
    size_t elements = static_cast<size_t>(rows * length);
    Call call{"f",
              {randomVector(elements, 20, 3), randomVector(elements, 21),
               outputOf(elements), outputOf(elements), outputOf(elements)},
              3};
    std::string source = replace(R"mlir(
func.func private @f(%x: tensor<RxLxf32>, %dy: tensor<RxLxf32>)
    -> (tensor<RxLxf32>, tensor<RxLxf32>, tensor<RxLxf32>) {
  %e = tensor.empty() : tensor<RxLxf32>
  %p = linalg.softmax dimension(1) ins(%x : tensor<RxLxf32>) outs(%e : tensor<RxLxf32>) -> tensor<RxLxf32>
  %y, %m, %v = nn.normalize %x dims [1] epsilon(1.0e-5) : tensor<RxLxf32> -> tensor<Rxf32>
  %dx = nn.normalize_grad %dy, %y, %v dims [1] epsilon(1.0e-5) : tensor<RxLxf32>, tensor<Rxf32>
  return %p, %y, %dx : tensor<RxLxf32>, tensor<RxLxf32>, tensor<RxLxf32>
}
)mlir",
                                 {{"R", rows}, {"L", length}});
    compare(source, call, 1e-5);
    compare(source, call, 1e-5, /*plain=*/true);
  }
}

/// A function of the rows or columns of a matrix that combines the elements of
/// each by `body`.
std::string combineElements(const std::string &name, bool columns,
                            const std::string &element,
                            const std::string &neutral,
                            const std::string &body) {
  std::string text = R"mlir(
func.func private @NAME(%x: tensor<RxLxf32>) -> RESULT {
  %e = tensor.empty() : RESULT
  %n = arith.constant NEUTRAL : ELEMENT
  %z = linalg.fill ins(%n : ELEMENT) outs(%e : RESULT) -> RESULT
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (KEPT)>], iterator_types = [FIRST, SECOND]}
      ins(%x : tensor<RxLxf32>) outs(%z : RESULT) {
  ^bb0(%a: f32, %o: ELEMENT):
    BODY
    linalg.yield %r : ELEMENT
  } -> RESULT
  return %s : RESULT
}
)mlir";
  for (auto [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"NAME", name},
           {"RESULT", columns ? "tensor<LxELEMENT>" : "tensor<RxELEMENT>"},
           {"ELEMENT", element},
           {"NEUTRAL", neutral},
           {"BODY", body},
           {"KEPT", columns ? "j" : "i"},
           {"FIRST", columns ? "\"reduction\"" : "\"parallel\""},
           {"SECOND", columns ? "\"parallel\"" : "\"reduction\""}})
    for (size_t at; (at = text.find(from)) != std::string::npos;)
      text.replace(at, from.size(), to);
  return text;
}

// All ways to combine the elements of rows and of columns, of rows that are a
// thread's, a warp's and a block's, alone and many.
TEST(GpuKernels, RowsAndColumnsAreCombinedInEveryWay) {
  struct Way {
    const char *element, *neutral, *body;
  };
  std::string source;
  size_t count = 0;
  for (const Way &way : std::vector<Way>{
           {"f32", "0.0", "%r = arith.addf %a, %o : f32"},
           {"f32", "0xFF800000", "%r = arith.maximumf %a, %o : f32"},
           {"f32", "0x7F800000", "%r = arith.minnumf %a, %o : f32"},
           {"f32", "1.0",
            "%p = math.exp2 %a : f32 %r = arith.mulf %p, %o : f32"},
           {"i32", "0",
            "%p = arith.bitcast %a : f32 to i32 %r = arith.xori %p, %o : i32"},
           {"i8", "-9",
            "%p = arith.fptosi %a : f32 to i8 %r = arith.maxsi %p, %o : i8"},
           {"i64", "0",
            "%p = arith.fptosi %a : f32 to i64 %r = arith.addi %p, %o : i64"},
           {"f64", "1.0",
            "%p = arith.extf %a : f32 to f64 %r = arith.maximumf %p, %o : "
            "f64"}})
    for (bool columns : {false, true})
      source += combineElements("f" + std::to_string(count++), columns,
                                way.element, way.neutral, way.body);
  for (auto [rows, length] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {3, 31}, {131, 32}, {5, 33}, {1, 1000}, {2, 4097}}) {
    std::vector<Call> calls;
    for (size_t i = 0; i < count; ++i)
      // Numbers of 64 bits take the place of two floats.
      calls.push_back(
          {"f" + std::to_string(i),
           {randomVector(static_cast<size_t>(rows * length), 50, 3),
            outputOf(2 * static_cast<size_t>(i % 2 ? length : rows))}});
    std::string sized = replace(source, {{"R", rows}, {"L", length}});
    compare(sized, calls, 1e-5);
    if (length == 33)
      compare(sized, calls, 1e-5, /*plain=*/true);
  }
}

// Alone, beside a result that lies otherwise, and with elements that it looks
// up: what is fused with a sum does not change its bits.
TEST(GpuKernels, SumsHaveTheirOrderInAnyCompany) {
  auto gpu = Kernels::compile(R"mlir(
#id = affine_map<(n, c, w) -> (n, c, w)>
#channel = affine_map<(n, c, w) -> (c)>
func.func private @alone(%x: tensor<3x5x67xf32>, %sums: tensor<5xf32> {pipeline.into = 0 : i64}) -> tensor<5xf32> {
  %s = linalg.generic {indexing_maps = [#id, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : tensor<3x5x67xf32>) outs(%sums : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<5xf32>
  return %s : tensor<5xf32>
}
func.func private @beside(%x: tensor<3x5x67xf32>, %sums: tensor<5xf32> {pipeline.into = 0 : i64}) -> (tensor<5xf32>, tensor<3x5x67xf32>) {
  %e = tensor.empty() : tensor<3x5x67xf32>
  %s:2 = linalg.generic {indexing_maps = [#id, #channel, #id], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : tensor<3x5x67xf32>) outs(%sums, %e : tensor<5xf32>, tensor<3x5x67xf32>) {
  ^bb0(%a: f32, %o: f32, %p: f32):
    %r = arith.addf %a, %o : f32
    %n = arith.negf %a : f32
    linalg.yield %r, %n : f32, f32
  } -> (tensor<5xf32>, tensor<3x5x67xf32>)
  return %s#0, %s#1 : tensor<5xf32>, tensor<3x5x67xf32>
}
func.func private @lookup(%x: tensor<3x5x67xf32>, %sums: tensor<5xf32> {pipeline.into = 0 : i64}) -> tensor<5xf32> {
  %e = tensor.empty() : tensor<3x67xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(n, c, w) -> (n, w)>, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%e : tensor<3x67xf32>) outs(%sums : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = linalg.index 0 : index
    %c = linalg.index 1 : index
    %w = linalg.index 2 : index
    %v = tensor.extract %x[%n, %c, %w] : tensor<3x5x67xf32>
    %r = arith.addf %v, %o : f32
    linalg.yield %r : f32
  } -> tensor<5xf32>
  return %s : tensor<5xf32>
}
)mlir",
                              {.gpu = true});
  ASSERT_TRUE(gpu);
  std::vector<float> x = randomVector(3 * 5 * 67, 24),
                     sums = randomVector(5, 25);
  auto getSums = [&](const std::string &name, bool hasElements) {
    std::vector<float> data = x, result = sums, elements(x.size());
    std::vector<void *> arguments{data.data(), result.data()};
    if (hasElements)
      arguments.push_back(elements.data());
    gpu->call(name, arguments);
    return result;
  };
  std::vector<float> alone = getSums("alone", false);
  EXPECT_NE(alone, sums);
  EXPECT_EQ(alone, getSums("beside", true));
  EXPECT_EQ(alone, getSums("lookup", false));
}

// Statistics of channels, where rows are apart in memory, and sums over all,
// with and without a second step.
TEST(GpuKernels, SumsOverSeveralDimensionsInOneStepOrTwo) {
  for (auto [samples, channels, length] :
       std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {3, 5, 7}, {6, 3, 35}, {16, 2, 2100}, {13, 1, 3001}, {134, 5, 1}}) {
    size_t elements = static_cast<size_t>(samples * channels * length);
    auto count = static_cast<size_t>(channels);
    compare(replace(R"mlir(
#id = affine_map<(n, c, w) -> (n, c, w)>
#channel = affine_map<(n, c, w) -> (c)>
#all = affine_map<(n, c, w) -> ()>
func.func private @f(%x: tensor<NxCxLxf32>, %sums: tensor<Cxf32> {pipeline.into = 0 : i64})
    -> (tensor<Cxf32>, tensor<Cxf32>, tensor<Cxf32>, tensor<f32>) {
  %y, %m, %v = nn.normalize %x dims [0, 2] epsilon(1.0e-5) : tensor<NxCxLxf32> -> tensor<Cxf32>
  %zero = arith.constant 0.0 : f32
  %s0 = tensor.empty() : tensor<f32>
  %s1 = linalg.fill ins(%zero : f32) outs(%s0 : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [#id, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : tensor<NxCxLxf32>) outs(%sums : tensor<Cxf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<Cxf32>
  %all = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["reduction", "reduction", "reduction"]}
      ins(%y : tensor<NxCxLxf32>) outs(%s1 : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %q = arith.mulf %a, %a : f32
    %r = arith.addf %q, %o : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %sum, %m, %v, %all : tensor<Cxf32>, tensor<Cxf32>, tensor<Cxf32>, tensor<f32>
}
)mlir",
                    {{"N", samples}, {"C", channels}, {"L", length}}),
            {"f",
             {randomVector(elements, 22, 2), randomVector(count, 23),
              outputOf(count), outputOf(count), outputOf(1)},
             4},
            1e-5);
  }
}

// Elements whose sum has one rounding only are equal to the bit, so a thread
// that has none of its own, or one twice, would show. The elementwise result of
// the op that adds up comes along.
TEST(GpuKernels, SumsOfSmallIntegersAreExact) {
  for (int64_t length : {31, 32, 128, 160, 1025, 4096, 8192, 17000, 32768}) {
    auto count = static_cast<size_t>(length);
    std::vector<float> x = randomVector(5 * count, 24);
    for (float &value : x)
      value = std::floor(value * 8);
    compare(replace(R"mlir(
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j, i)>
#other = affine_map<(i, j) -> (j)>
func.func private @f(%x: tensor<5xLxf32>) -> (tensor<5xLxf32>, tensor<5xf32>, tensor<5xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : tensor<5xf32>
  %e1 = tensor.empty() : tensor<5xLxf32>
  %z = linalg.fill ins(%zero : f32) outs(%e0 : tensor<5xf32>) -> tensor<5xf32>
  %n = linalg.fill ins(%low : f32) outs(%e0 : tensor<5xf32>) -> tensor<5xf32>
  %r:3 = linalg.generic {indexing_maps = [#id, #id, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<5xLxf32>) outs(%e1, %z, %n : tensor<5xLxf32>, tensor<5xf32>, tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32, %s: f32, %m: f32):
    %j = linalg.index 1 : index
    %i = arith.index_cast %j : index to i32
    %f = arith.sitofp %i : i32 to f32
    %t = arith.mulf %a, %f : f32
    %sum = arith.addf %a, %s : f32
    %max = arith.maximumf %t, %m : f32
    linalg.yield %t, %sum, %max : f32, f32, f32
  } -> (tensor<5xLxf32>, tensor<5xf32>, tensor<5xf32>)
  return %r#0, %r#1, %r#2 : tensor<5xLxf32>, tensor<5xf32>, tensor<5xf32>
}
func.func private @g(%x: tensor<Lx5xf32>, %s: tensor<5xf32> {pipeline.into = 0 : i64}) -> tensor<5xf32> {
  %r = linalg.generic {indexing_maps = [#id, #other], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<Lx5xf32>) outs(%s : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %sum = arith.addf %a, %o : f32
    linalg.yield %sum : f32
  } -> tensor<5xf32>
  return %r : tensor<5xf32>
}
)mlir",
                    {{"L", length}}),
            {"f", {x, outputOf(5 * count), outputOf(5), outputOf(5)}, 3}, 0);
  }
}

// Rows in the order of their positions, whatever the order of threads; several
// go to the same place, some come from the end, one is out of range.
TEST(GpuKernels, GathersAndScattersHaveTheBitsOfTheCpu) {
  std::vector<float> at = fromIntegers({3, 0, 3, -1, 7, 3, 10, 0, 55, 3, -11});
  compare(R"mlir(
func.func private @gather(%x: tensor<11x37xf32>, %i: tensor<11xi32>) -> tensor<11x37xf32> {
  %y = nn.gather %x[%i] at affine_map<(i, j)[s] -> (s, j)>
       index_maps [affine_map<(i, j) -> (i)>]
     : tensor<11x37xf32>, tensor<11xi32> -> tensor<11x37xf32>
  return %y : tensor<11x37xf32>
}
)mlir",
          {"gather", {randomVector(11 * 37, 7), at, outputOf(11 * 37)}}, 0);
  compare(
      R"mlir(
func.func private @rows(%dy: tensor<11x37xf32>, %i: tensor<11xi32>, %sum: tensor<11x37xf32> {pipeline.into = 0 : i64}) -> tensor<11x37xf32> {
  %y = nn.scatter add %dy into %sum[%i] at affine_map<(i, j)[s] -> (s, j)>
       index_maps [affine_map<(i, j) -> (i)>]
     : tensor<11x37xf32>, tensor<11x37xf32>, tensor<11xi32>
  return %y : tensor<11x37xf32>
}
)mlir",
      {"rows", {randomVector(11 * 37, 8), at, randomVector(11 * 37, 9)}}, 0);
  compare(R"mlir(
func.func private @elements(%dy: tensor<11xf32>, %i: tensor<11xi32>, %sum: tensor<11xf32> {pipeline.into = 0 : i64}) -> tensor<11xf32> {
  %y = nn.scatter mul %dy into %sum[%i] at affine_map<(i)[s] -> (s)>
       index_maps [affine_map<(i) -> (i)>]
     : tensor<11xf32>, tensor<11xf32>, tensor<11xi32>
  return %y : tensor<11xf32>
}
)mlir",
          {"elements", {randomVector(11, 10), at, randomVector(11, 11)}}, 0);
}

// More indices than a warp looks at at a time, and longer rows than it adds.
// Every third row goes to the same place; some indices are out of range.
TEST(GpuKernels, LongScattersHaveTheBitsOfTheCpu) {
  std::vector<int32_t> places;
  for (int32_t i = 0; i < 3 * 75; ++i)
    places.push_back(i % 3 == 0 ? 5 : i % 50 == 1 ? 19 : (i * i) % 19 - 2);
  std::vector<float> at = fromIntegers(places);
  compare(
      R"mlir(
func.func private @rows(%dy: tensor<3x75x37xf32>, %i: tensor<3x75xi32>, %sum: tensor<19x37xf32> {pipeline.into = 0 : i64}) -> tensor<19x37xf32> {
  %y = nn.scatter add %dy into %sum[%i] at affine_map<(b, i, j)[s] -> (s, j)>
       index_maps [affine_map<(b, i, j) -> (b, i)>]
     : tensor<3x75x37xf32>, tensor<19x37xf32>, tensor<3x75xi32>
  return %y : tensor<19x37xf32>
}
)mlir",
      {"rows", {randomVector(3 * 75 * 37, 8), at, randomVector(19 * 37, 9)}},
      0);
  compare(R"mlir(
func.func private @elements(%dy: tensor<225xf32>, %i: tensor<225xi32>, %sum: tensor<19xf32> {pipeline.into = 0 : i64}) -> tensor<19xf32> {
  %y = nn.scatter none %dy into %sum[%i] at affine_map<(i)[s] -> (s)>
       index_maps [affine_map<(i) -> (i)>]
     : tensor<225xf32>, tensor<19xf32>, tensor<225xi32>
  return %y : tensor<19xf32>
}
)mlir",
          {"elements", {randomVector(225, 10), at, randomVector(19, 11)}}, 0);
}

// As an evaluation finds the prediction: by a warp per row, of several largest
// ones the first, and nowhere where nothing is a number.
TEST(GpuKernels, TheFirstOfTheLargestIsFoundByAWarp) {
  constexpr size_t kRows = 37, kClasses = 132;
  const std::string source = R"mlir(
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func private @f(%x: tensor<37x132xf32>) -> tensor<37xi64> {
  %low = arith.constant 0xFF800000 : f32
  %nowhere = arith.constant 9223372036854775807 : i64
  %e = tensor.empty() : tensor<37xf32>
  %p = tensor.empty() : tensor<37xi64>
  %a = linalg.fill ins(%low : f32) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %b = linalg.fill ins(%nowhere : i64) outs(%p : tensor<37xi64>) -> tensor<37xi64>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<37x132xf32>) outs(%a : tensor<37xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.maxnumf %o, %v : f32
    linalg.yield %r : f32
  } -> tensor<37xf32>
  %i = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %m : tensor<37x132xf32>, tensor<37xf32>) outs(%b : tensor<37xi64>) {
  ^bb0(%v: f32, %l: f32, %o: i64):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    %s = arith.cmpf oeq, %v, %l : f32
    %c = arith.select %s, %k, %nowhere : i64
    %r = arith.minsi %o, %c : i64
    linalg.yield %r : i64
  } -> tensor<37xi64>
  return %i : tensor<37xi64>
}
)mlir";
  std::vector<float> x = randomVector(kRows * kClasses, 90);
  for (size_t i = 0; i < kClasses; ++i) {
    x[5 * kClasses + i] = i % 50 == 49 ? 2.0f : 1.0f;
    x[7 * kClasses + i] = NAN;
    x[9 * kClasses + i] = i < 40 ? NAN : -INFINITY;
  }
  Call call = {"f", {x, std::vector<float>(2 * kRows)}};
  auto cpu = Kernels::compile(source);
  auto gpu = Kernels::compile(source, {.gpu = true});
  ASSERT_TRUE(cpu && gpu);
  compareCall(*cpu, *gpu, call, 0);
  // Four rows to a block.
  ASSERT_EQ(gpu->launches.size(), 1u);
  EXPECT_EQ(gpu->launches[0].block[0], 128);
  EXPECT_EQ(gpu->launches[0].grid[0], 10);
  std::vector<float> found = run(*gpu, call, 0)[0];
  std::vector<int64_t> at(kRows);
  std::memcpy(at.data(), found.data(), kRows * sizeof(int64_t));
  EXPECT_EQ(at[5], 49);
  EXPECT_EQ(at[7], INT64_MAX);
  EXPECT_EQ(at[9], 40);
}

TEST(GpuKernels, StepsAlongAnAxisKeepTheirOrder) {
  for (const char *kind : {"", "exclusive", "reverse", "exclusive reverse"})
    compare(std::string(R"mlir(
func.func private @sums(%x: tensor<5x131x3xf32>) -> tensor<5x131x3xf32> {
  %y = nn.cumulative_sum %x dim(1) )mlir") +
                kind + R"mlir( : tensor<5x131x3xf32>
  return %y : tensor<5x131x3xf32>
}
)mlir",
            {"sums", {randomVector(5 * 131 * 3, 12), outputOf(5 * 131 * 3)}},
            0);
}

// Lines in parts, and parts of sums of parts: exact numbers, which have the
// same sums in any order.
TEST(GpuKernels, FewLongLinesAreSummedInParts) {
  for (auto [lines, length, inner] :
       std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {3, 257, 2}, {1, 1000, 1}, {1, 200003, 1}}) {
    auto elements = static_cast<size_t>(lines * length * inner);
    std::vector<float> x = randomVector(elements, 60, 3);
    for (float &value : x)
      value = std::round(value);
    std::string source;
    std::vector<Call> calls;
    for (const char *kind : {"", "exclusive", "reverse", "exclusive reverse"}) {
      std::string name = "f" + std::to_string(calls.size());
      source += "func.func private @" + name +
                "(%x: tensor<NxLxMxf32>) -> tensor<NxLxMxf32> {\n"
                "  %y = nn.cumulative_sum %x dim(1) " +
                kind +
                " : tensor<NxLxMxf32>\n"
                "  return %y : tensor<NxLxMxf32>\n}\n";
      calls.push_back({name, {x, outputOf(elements)}});
    }
    compare(replace(source, {{"N", lines}, {"L", length}, {"M", inner}}), calls,
            0);
  }
}

// By one place after the other in each line, and by the ranks of all elements;
// equal elements and NaN among them.
TEST(GpuKernels, TheFirstElementsAreThoseOfTheCpu) {
  for (auto [lines, length, places] :
       std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {1, 1000, 5}, {3, 67, 67}, {900, 37, 2}, {1, 1, 1}}) {
    std::vector<float> x =
        randomVector(static_cast<size_t>(lines * length), 61, 20);
    for (float &value : x)
      value = std::round(value);
    x[x.size() / 2] = NAN;
    x[x.size() / 3] = NAN;
    std::string source = replace(R"mlir(
func.func private @last(%x: tensor<NxLxf32>) -> tensor<NxKxi64> {
  %i = nn.top_k %x dim(1) : tensor<NxLxf32> -> tensor<NxKxi64>
  return %i : tensor<NxKxi64>
}
func.func private @first(%x: tensor<LxNxf32>) -> tensor<KxNxi64> {
  %i = nn.top_k %x dim(0) smallest : tensor<LxNxf32> -> tensor<KxNxi64>
  return %i : tensor<KxNxi64>
}
)mlir",
                                 {{"N", lines}, {"L", length}, {"K", places}});
    std::vector<Call> calls;
    for (const char *name : {"last", "first"})
      calls.push_back(
          {name, {x, outputOf(2 * static_cast<size_t>(lines * places))}});
    compare(source, calls, 0);
    compare(source, calls, 0, /*plain=*/true);
  }
}

// Windows overlap, so that several add to one element.
TEST(GpuKernels, PoolingHasTheBitsOfTheCpu) {
  compare(R"mlir(
func.func private @pool(%x: tensor<3x5x11x9xf32>, %dy: tensor<3x5x6x5xf32>)
    -> (tensor<3x5x6x5xf32>, tensor<3x5x11x9xf32>, tensor<3x5x11x9xf32>) {
  %y, %i = nn.max_pool %x window [3, 3] strides [2, 2] dilations [1, 1] pads [1, 1]
      : tensor<3x5x11x9xf32> -> tensor<3x5x6x5xf32>, tensor<3x5x6x5xi32>
  %dx = nn.max_pool_grad %dy, %i window [3, 3] strides [2, 2] dilations [1, 1] pads [1, 1]
      : tensor<3x5x6x5xf32>, tensor<3x5x6x5xi32> -> tensor<3x5x11x9xf32>
  %dz = nn.sum_pool_grad %dy window [3, 3] strides [2, 2] dilations [1, 1] pads [1, 1]
      : tensor<3x5x6x5xf32> -> tensor<3x5x11x9xf32>
  return %y, %dx, %dz : tensor<3x5x6x5xf32>, tensor<3x5x11x9xf32>, tensor<3x5x11x9xf32>
}
)mlir",
          {"pool",
           {randomVector(3 * 5 * 11 * 9, 13), randomVector(3 * 5 * 6 * 5, 14),
            outputOf(3 * 5 * 6 * 5), outputOf(3 * 5 * 11 * 9),
            outputOf(3 * 5 * 11 * 9)},
           3},
          0);
}

} // namespace
