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

#include "runtime/device/cpu/Panels.h"
#include "runtime/device/cpu/ProductPlan.h"
#include "runtime/device/cpu/Step.h"
#include "runtime/device/cpu/Turn.h"

#include <algorithm>
#include <vector>

using namespace penstock::runtime;

namespace {

/// Up to here all algorithms of the library add up in the same order.
constexpr int64_t kBlockK = 384;

/// A primitive and what it is bound to, for the calls of one part.
struct Kind {
  Step step;
  int64_t part;
  Packing packing;
  int64_t m, n, k;
  bool accumulates;
  dnnl_memory_t a = nullptr, b = nullptr, c = nullptr;
};

/// One call: some of the batch, of the rows and columns, one block of k.
struct Call {
  size_t kind;
  int64_t part;
  int64_t atA, atB, atC; // in floats
};

} // namespace

struct Product::State {
  ProductCall gemm;
  std::string error;
  int64_t parts = 1;
  /// The result is a column whose elements are apart: the library gets and
  /// gives it in one piece, as it adds to such columns in another order.
  bool packsC = false;
  /// Scratch of a part: the library's, the copy of a block, that of C.
  uint64_t libraryBytes = 0, packedBytes = 0, scratchOfPart = 0;
  char *scratch = nullptr;
  std::vector<Kind> kinds;
  std::vector<Call> calls;         // in the order of parts, then of k
  std::vector<size_t> firstCallOf; // of a part, and behind the last
  std::vector<dnnl_stream_t> streams;

  explicit State(const ProductCall &gemm) : gemm(gemm) {}
  ~State();
  size_t findKind(int64_t part, Packing packing, uint32_t rank,
                  const int64_t *sizes, int64_t k, bool accumulates);
  void addCalls(int64_t part, const Blocks &blocks, uint32_t rank,
                const int64_t *sizes, Call call, int64_t firstColumn);
  void addPart(int64_t part, const Range &range);
};

Product::State::~State() {
  const OneDnn &dnnl = oneDnn();
  for (Kind &kind : kinds) {
    for (dnnl_memory_t memory : {kind.a, kind.b, kind.c})
      if (memory)
        dnnl.dnnl_memory_destroy(memory);
    kind.step.destroy();
  }
  for (dnnl_stream_t stream : streams)
    dnnl.dnnl_stream_destroy(stream);
}

/// The primitive for batches, rows and columns of these sizes.
size_t Product::State::findKind(int64_t part, Packing packing, uint32_t rank,
                                const int64_t *sizes, int64_t k,
                                bool accumulates) {
  const OneDnn &dnnl = oneDnn();
  int64_t m = sizes[rank], n = sizes[rank + 1];
  for (size_t i = kinds.size(); i > 0 && kinds[i - 1].part == part; --i)
    if (const Kind &kind = kinds[i - 1]; kind.m == m && kind.n == n &&
                                         kind.k == k &&
                                         kind.accumulates == accumulates)
      return i - 1;
  kinds.push_back({{}, part, packing, m, n, k, accumulates});
  Step &step = kinds.back().step;
  // The strides of a single matrix come behind those of the batch.
  uint32_t skipped = gemm.batch_rank - rank;
  const int64_t turnedA[] = {turnedStride(k), 1},
                packedB[] = {turnedStride(n), 1}, column[] = {1, 1};
  bool packsA = packing == Packing::TurnA;
  bool packsB = packing == Packing::TurnB || packing == Packing::CopyB;
  dnnl_memory_desc_t a, b, c;
  dnnl_matmul_desc_t operation;
  if (describeMatrix(rank, sizes, packsA ? turnedA : gemm.stride_a + skipped, m,
                     k, a) &&
      describeMatrix(rank, sizes, packsB ? packedB : gemm.stride_b + skipped, k,
                     n, b) &&
      describeMatrix(rank, sizes, packsC ? column : gemm.stride_c + skipped, m,
                     n, c) &&
      dnnl.dnnl_matmul_desc_init(&operation, &a, &b, nullptr, &c) ==
          dnnl_success)
    step.type = chooseProduct(operation, accumulates);
  if (!step.type)
    error = "oneDNN does not take this product";
  else if (!slowImplementation(step.type).empty())
    error = "oneDNN has only its reference implementation";
  else
    libraryBytes = std::max(libraryBytes, aligned(step.getScratchBytes()));
  uint64_t floats = packsA ? m * turnedA[0] : packsB ? k * packedB[0] : 0;
  packedBytes = std::max(packedBytes, aligned(floats * sizeof(float)));
  return kinds.size() - 1;
}

/// The blocks of rows and columns, and of k; no block has columns of two panels
/// of weights.
void Product::State::addCalls(int64_t part, const Blocks &blocks, uint32_t rank,
                              const int64_t *sizes, Call call,
                              int64_t firstColumn) {
  int64_t block[PENSTOCK_MAX_BATCH_RANK + 2];
  std::copy_n(sizes, rank + 2, block);
  const int64_t *strideA = gemm.stride_a + gemm.batch_rank,
                *strideB = gemm.stride_b + gemm.batch_rank,
                *strideC = gemm.stride_c + gemm.batch_rank;
  bool arePrepacked = gemm.weights == PENSTOCK_CPU_WEIGHTS_PREPACKED;
  Panels panels(gemm);
  auto placeOfB = [&](int64_t row, int64_t column) {
    return arePrepacked ? panels.placeOf(row, column)
                        : row * strideB[0] + column * strideB[1];
  };
  int64_t &m = block[rank], &n = block[rank + 1];
  for (int64_t row = 0; row < sizes[rank]; row += m) {
    m = endOfBlock(row, sizes[rank], blocks.rows) - row;
    for (int64_t column = 0; column < sizes[rank + 1]; column += n) {
      n = endOfBlock(column, sizes[rank + 1], blocks.columns) - column;
      int64_t columnB = firstColumn + column;
      if (arePrepacked)
        n = std::min(n, panels.endOf(panels.panelOf(columnB)) - columnB);
      for (int64_t k = 0; k < gemm.k && error.empty(); k += kBlockK)
        calls.push_back(
            {findKind(part, blocks.packing, rank, block,
                      std::min(kBlockK, gemm.k - k), gemm.accumulate || k > 0),
             part, call.atA + row * strideA[0] + k * strideA[1],
             call.atB + placeOfB(k, columnB),
             call.atC + row * strideC[0] + column * strideC[1]});
    }
  }
}

void Product::State::addPart(int64_t part, const Range &range) {
  uint32_t rank = gemm.batch_rank;
  int64_t sizes[PENSTOCK_MAX_BATCH_RANK + 2];
  std::copy_n(gemm.batch, rank, sizes);
  sizes[rank] = gemm.m, sizes[rank + 1] = gemm.n;
  sizes[range.dimension] = range.end - range.begin;
  Call first = {0, part, 0, 0, range.begin * gemm.stride_c[range.dimension]};
  if (range.dimension != rank + 1)
    first.atA = range.begin * gemm.stride_a[range.dimension];
  if (range.dimension < rank)
    first.atB = range.begin * gemm.stride_b[range.dimension];
  int64_t firstColumn = range.dimension == rank + 1 ? range.begin : 0;
  Blocks blocks = chooseBlocks(sizes[rank], sizes[rank + 1], gemm.k,
                               gemm.stride_a + rank, gemm.stride_b + rank);
  if (blocks.packing == Packing::None && !packsC)
    return addCalls(part, blocks, rank, sizes, first, firstColumn);
  // Matrix by matrix.
  int64_t batches = 1;
  for (uint32_t i = 0; i < rank; ++i)
    batches *= sizes[i];
  for (int64_t index = 0; index < batches; ++index) {
    Call call = first;
    for (int64_t i = rank, rest = index; i-- > 0; rest /= sizes[i]) {
      int64_t at = rest % sizes[i];
      call.atA += at * gemm.stride_a[i];
      call.atB += at * gemm.stride_b[i];
      call.atC += at * gemm.stride_c[i];
    }
    addCalls(part, blocks, 0, sizes + rank, call, firstColumn);
  }
}

Product::Product(const ProductCall &gemm, int64_t threads)
    : state(std::make_unique<State>(gemm)) {
  state->error = checkPanels(gemm);
  if (!state->error.empty())
    return;
  if (gemm.weights == PENSTOCK_CPU_WEIGHTS_PREPACK) {
    state->parts = Panels(gemm).getParts();
    return;
  }
  const OneDnn &dnnl = oneDnn();
  if (!dnnl.error.empty()) {
    state->error = dnnl.error;
    return;
  }
  state->packsC =
      gemm.n == 1 && gemm.m > 1 && gemm.stride_c[gemm.batch_rank] != 1;
  int former = dnnl.getThreads();
  dnnl.setThreads(1);
  std::vector<Range> ranges =
      divideProduct(gemm, std::max<int64_t>(threads, 1));
  state->parts = int64_t(ranges.size());
  for (int64_t part = 0; part < state->parts; ++part) {
    state->firstCallOf.push_back(state->calls.size());
    state->addPart(part, ranges[part]);
  }
  state->firstCallOf.push_back(state->calls.size());
  dnnl.setThreads(former);
  state->scratchOfPart = state->libraryBytes + state->packedBytes;
  if (state->packsC)
    state->scratchOfPart += aligned(uint64_t(gemm.m) * sizeof(float));
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
  if (state->gemm.weights == PENSTOCK_CPU_WEIGHTS_PREPACK)
    return true;
  const OneDnn &dnnl = oneDnn();
  int former = dnnl.getThreads();
  dnnl.setThreads(1);
  state->scratch = scratch;
  state->streams.resize(state->parts);
  bool isReady = true;
  for (dnnl_stream_t &stream : state->streams)
    isReady &=
        dnnl.dnnl_stream_create(&stream, dnnl.engine,
                                dnnl_stream_default_flags) == dnnl_success;
  for (Kind &kind : state->kinds) {
    auto bind = [&](dnnl_memory_t &memory, dnnl_query_t what, int argument) {
      isReady &= dnnl.dnnl_memory_create(&memory, kind.step.query(what),
                                         dnnl.engine, nullptr) == dnnl_success;
      kind.step.arguments.push_back({argument, memory});
    };
    bind(kind.a, dnnl_query_src_md, DNNL_ARG_SRC);
    bind(kind.b, dnnl_query_weights_md, DNNL_ARG_WEIGHTS);
    bind(kind.c, dnnl_query_dst_md, DNNL_ARG_DST);
    isReady &=
        kind.step.prepare(scratch + state->scratchOfPart * uint64_t(kind.part));
  }
  dnnl.setThreads(former);
  return isReady;
}

bool Product::run(int64_t part, const float *a, const float *b,
                  float *c) const {
  const OneDnn &dnnl = oneDnn();
  const ProductCall &gemm = state->gemm;
  if (gemm.weights == PENSTOCK_CPU_WEIGHTS_PREPACK) {
    Panels(gemm).pack(part, b, gemm.stride_b, c);
    return true;
  }
  char *scratch = state->scratch + state->scratchOfPart * uint64_t(part);
  float *packed = reinterpret_cast<float *>(scratch + state->libraryBytes);
  float *packedC = reinterpret_cast<float *>(scratch + state->libraryBytes +
                                             state->packedBytes);
  const int64_t *strideB = gemm.stride_b + gemm.batch_rank;
  int64_t columnA = gemm.stride_a[gemm.batch_rank + 1];
  int64_t rowC = gemm.stride_c[gemm.batch_rank];
  for (size_t i = state->firstCallOf[part]; i < state->firstCallOf[part + 1];
       ++i) {
    const Call &call = state->calls[i];
    const Kind &kind = state->kinds[call.kind];
    const float *left = a + call.atA, *right = b + call.atB;
    float *result = c + call.atC;
    switch (kind.packing) {
    case Packing::None:
      break;
    case Packing::TurnA:
      turn(left, columnA, kind.m, kind.k, packed, turnedStride(kind.k));
      left = packed;
      break;
    case Packing::TurnB:
      turn(right, strideB[1], kind.k, kind.n, packed, turnedStride(kind.n));
      right = packed;
      break;
    case Packing::CopyB:
      for (int64_t row = 0, to = 0; row < kind.k;
           ++row, to += turnedStride(kind.n))
        std::copy_n(right + row * strideB[0], kind.n, packed + to);
      right = packed;
      break;
    }
    if (state->packsC && kind.accumulates)
      for (int64_t row = 0; row < kind.m; ++row)
        packedC[row] = result[row * rowC];
    auto bind = [&](dnnl_memory_t memory, const float *data) {
      return dnnl.dnnl_memory_set_data_handle(
                 memory, const_cast<float *>(data)) == dnnl_success;
    };
    if (!bind(kind.a, left) || !bind(kind.b, right) ||
        !bind(kind.c, state->packsC ? packedC : result) ||
        !kind.step.run(state->streams[part]))
      return false;
    if (state->packsC)
      for (int64_t row = 0; row < kind.m; ++row)
        result[row * rowC] = packedC[row];
  }
  return true;
}
