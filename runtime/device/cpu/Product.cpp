//===- Product.cpp - Matrix products by oneDNN ----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The matmul primitive through the C API; accumulation is a "sum" post-op.
// Which algorithm the library takes depends on sizes, on how far rows lie
// apart, and on the number of threads. They add up blocks of k that differ
// in size above 384, and round differently. So k is cut into such blocks here.
//===----------------------------------------------------------------------===//

#include "penstock/product.h"

#include "runtime/device/cpu/Step.h"

#include <algorithm>
#include <vector>

using namespace penstock::runtime;

namespace {

/// Up to here all algorithms of the library add up in the same order.
constexpr int64_t kBlockK = 384;
/// Below so many multiplications per part, threads cost more than they gain.
constexpr double kFewMultiplications = 1 << 18;
/// Parts begin at multiples of these.
constexpr int64_t kRows = 8, kColumns = 16;
/// The library has another algorithm for so few rows.
constexpr int64_t kFewRows = 16;

/// One call: part of the batch, some rows or columns, one block of k.
struct Call {
  Step step;
  int64_t part;
  int64_t atA, atB, atC; // in floats
  dnnl_memory_t a = nullptr, b = nullptr, c = nullptr;
};

/// A range of one dimension, 0 to rank - 1 of the batch, then rows and columns.
struct Range {
  uint32_t dimension;
  int64_t begin, end;
};

/// The first dimension that can be divided: of the batch, or else the longer
/// one of the matrix. Nothing where the product is too small.
std::vector<Range> divide(const penstock_gemm_descriptor &gemm,
                          int64_t threads) {
  uint32_t rank = gemm.batch_rank, dimension = rank;
  double count = double(gemm.m) * double(gemm.n) * double(gemm.k);
  int64_t size = 0, unit = 1;
  for (uint32_t i = rank; i-- > 0;) {
    count *= double(gemm.batch[i]);
    if (gemm.batch[i] >= threads)
      dimension = i, size = gemm.batch[i];
  }
  bool areRows = gemm.m >= gemm.n && gemm.m > threads * (kFewRows + kRows);
  if (size == 0) {
    dimension = areRows ? rank : rank + 1;
    size = areRows ? gemm.m : gemm.n;
    unit = areRows ? kRows : kColumns;
  }
  int64_t units = (size + unit - 1) / unit;
  int64_t parts = std::min(threads, units);
  if (count < kFewMultiplications * double(parts))
    parts = 1;
  std::vector<Range> ranges;
  for (int64_t i = 0; i < parts; ++i)
    ranges.push_back({dimension, units * i / parts * unit,
                      std::min(size, units * (i + 1) / parts * unit)});
  return ranges;
}

} // namespace

struct Product::State {
  std::string error;
  int64_t parts = 1;
  uint64_t scratchOfPart = 0;
  std::vector<Call> calls; // of a part in the order of k
  std::vector<dnnl_stream_t> streams;

  bool add(const penstock_gemm_descriptor &gemm, const Range &range,
           int64_t part, int64_t k0, int64_t k);
  ~State();
};

Product::State::~State() {
  const OneDnn &dnnl = oneDnn();
  for (Call &call : calls) {
    for (dnnl_memory_t memory : {call.a, call.b, call.c})
      if (memory)
        dnnl.dnnl_memory_destroy(memory);
    call.step.destroy();
  }
  for (dnnl_stream_t stream : streams)
    dnnl.dnnl_stream_destroy(stream);
}

bool Product::State::add(const penstock_gemm_descriptor &gemm,
                         const Range &range, int64_t part, int64_t k0,
                         int64_t k) {
  const OneDnn &dnnl = oneDnn();
  uint32_t rank = gemm.batch_rank;
  int64_t sizes[PENSTOCK_MAX_BATCH_RANK + 2];
  std::copy_n(gemm.batch, rank, sizes);
  sizes[rank] = gemm.m, sizes[rank + 1] = gemm.n;
  sizes[range.dimension] = range.end - range.begin;
  int64_t m = sizes[rank], n = sizes[rank + 1];
  Call &call = calls.emplace_back();
  call.part = part;
  call.atA = k0 * gemm.stride_a[rank + 1];
  call.atB = k0 * gemm.stride_b[rank];
  call.atC = range.begin * gemm.stride_c[range.dimension];
  if (range.dimension != rank + 1)
    call.atA += range.begin * gemm.stride_a[range.dimension];
  if (range.dimension != rank)
    call.atB += range.begin * gemm.stride_b[range.dimension];

  dnnl_memory_desc_t a, b, c;
  dnnl_matmul_desc_t operation;
  if (!describeMatrix(rank, sizes, gemm.stride_a, m, k, a) ||
      !describeMatrix(rank, sizes, gemm.stride_b, k, n, b) ||
      !describeMatrix(rank, sizes, gemm.stride_c, m, n, c) ||
      dnnl.dnnl_matmul_desc_init(&operation, &a, &b, nullptr, &c) !=
          dnnl_success ||
      !(call.step.type = chooseProduct(operation, gemm.accumulate || k0 > 0))) {
    error = "oneDNN does not take this product";
    return false;
  }
  if (!slowImplementation(call.step.type).empty()) {
    error = "oneDNN has only its reference implementation";
    return false;
  }
  scratchOfPart = std::max(scratchOfPart, aligned(call.step.getScratchBytes()));
  return true;
}

Product::Product(const penstock_gemm_descriptor &gemm, int64_t threads)
    : state(std::make_unique<State>()) {
  const OneDnn &dnnl = oneDnn();
  if (!dnnl.error.empty()) {
    state->error = dnnl.error;
    return;
  }
  int former = dnnl.getThreads();
  dnnl.setThreads(1);
  std::vector<Range> ranges = divide(gemm, std::max<int64_t>(threads, 1));
  state->parts = int64_t(ranges.size());
  for (int64_t part = 0; part < state->parts; ++part)
    for (int64_t k0 = 0; k0 < gemm.k && state->error.empty(); k0 += kBlockK)
      state->add(gemm, ranges[part], part, k0, std::min(kBlockK, gemm.k - k0));
  dnnl.setThreads(former);
}

Product::Product(Product &&) noexcept = default;
Product &Product::operator=(Product &&) noexcept = default;
Product::~Product() = default;

const std::string &Product::getError() const { return state->error; }
int64_t Product::getParts() const { return state->parts; }
uint64_t Product::getScratchBytes() const {
  return state->scratchOfPart * uint64_t(state->parts);
}

bool Product::prepare(char *scratch) {
  const OneDnn &dnnl = oneDnn();
  int former = dnnl.getThreads();
  dnnl.setThreads(1);
  state->streams.resize(state->parts);
  bool isReady = true;
  for (dnnl_stream_t &stream : state->streams)
    isReady &=
        dnnl.dnnl_stream_create(&stream, dnnl.engine,
                                dnnl_stream_default_flags) == dnnl_success;
  for (Call &call : state->calls) {
    auto bind = [&](dnnl_memory_t &memory, dnnl_query_t what, int argument) {
      isReady &= dnnl.dnnl_memory_create(&memory, call.step.query(what),
                                         dnnl.engine, nullptr) == dnnl_success;
      call.step.arguments.push_back({argument, memory});
    };
    bind(call.a, dnnl_query_src_md, DNNL_ARG_SRC);
    bind(call.b, dnnl_query_weights_md, DNNL_ARG_WEIGHTS);
    bind(call.c, dnnl_query_dst_md, DNNL_ARG_DST);
    isReady &=
        call.step.prepare(scratch + state->scratchOfPart * uint64_t(call.part));
  }
  dnnl.setThreads(former);
  return isReady;
}

bool Product::run(int64_t part, const float *a, const float *b,
                  float *c) const {
  const OneDnn &dnnl = oneDnn();
  size_t each = state->calls.size() / size_t(state->parts);
  for (size_t i = each * size_t(part); i < each * size_t(part + 1); ++i) {
    const Call &call = state->calls[i];
    auto bind = [&](dnnl_memory_t memory, const float *data) {
      return dnnl.dnnl_memory_set_data_handle(
                 memory, const_cast<float *>(data)) == dnnl_success;
    };
    if (!bind(call.a, a + call.atA) || !bind(call.b, b + call.atB) ||
        !bind(call.c, c + call.atC) || !call.step.run(state->streams[part]))
      return false;
  }
  return true;
}
