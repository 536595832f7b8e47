//===- Product.cpp - Matrix products by oneDNN ----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The matmul primitive through the C API; accumulation is a "sum" post-op.
// Which algorithm the library takes depends on sizes, on how far rows lie
// apart, and on the number of threads. They add up blocks of k that differ
// in size above 384, and round differently. So k is cut into such blocks here.
// Without AVX-512 they differ in more, and all calls have operands of one form.
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

/// A matrix of a call. Most calls find theirs where the last one did, and the
/// library takes a lock to move one.
struct Operand {
  dnnl_memory_t memory = nullptr;
  const float *data = nullptr;

  bool bind(const float *next) {
    if (next == data)
      return true;
    data = next;
    return oneDnn().dnnl_memory_set_data_handle(
               memory, const_cast<float *>(next)) == dnnl_success;
  }
};

/// A primitive and what it is bound to, for the calls of one part. Copies in
/// scratch lie in the order B, A, C.
struct Kind {
  Step step;
  int64_t part;
  int64_t m, n, k;
  bool accumulates;
  /// As the library gets them.
  int64_t rows, columns;
  bool packsA, packsB, packsC;
  Operand a = {}, b = {}, c = {};

  int64_t getRowOfA() const { return turnedStride(k); }
  int64_t getRowOfB() const { return turnedStride(columns); }
  int64_t getRowOfC() const { return columns == 1 ? 1 : turnedStride(columns); }
  int64_t getFloatsOfA() const { return packsA ? rows * getRowOfA() : 0; }
  int64_t getFloatsOfB() const { return packsB ? k * getRowOfB() : 0; }
  int64_t getFloatsOfC() const { return packsC ? rows * getRowOfC() : 0; }
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
  /// Scratch of a part: the library's, the copies.
  uint64_t libraryBytes = 0, packedBytes = 0, scratchOfPart = 0;
  char *scratch = nullptr;
  std::vector<Kind> kinds;
  std::vector<Call> calls;         // in the order of parts, then of k
  std::vector<size_t> firstCallOf; // of a part, and behind the last
  std::vector<dnnl_stream_t> streams;

  explicit State(const ProductCall &gemm) : gemm(gemm) {}
  ~State();
  size_t findKind(int64_t part, const Blocks &blocks, uint32_t rank,
                  const int64_t *sizes, int64_t k, bool accumulates);
  void addCalls(int64_t part, const Blocks &blocks, uint32_t rank,
                const int64_t *sizes, Call call, int64_t firstColumn);
  void addPart(int64_t part, const DimensionRange &range);
};

Product::State::~State() {
  const OneDnn &dnnl = oneDnn();
  for (Kind &kind : kinds) {
    for (const Operand &operand : {kind.a, kind.b, kind.c})
      if (operand.memory)
        dnnl.dnnl_memory_destroy(operand.memory);
    kind.step.destroy();
  }
  for (dnnl_stream_t stream : streams)
    dnnl.dnnl_stream_destroy(stream);
}

/// The primitive for batches, rows and columns of these sizes.
size_t Product::State::findKind(int64_t part, const Blocks &blocks,
                                uint32_t rank, const int64_t *sizes, int64_t k,
                                bool accumulates) {
  const OneDnn &dnnl = oneDnn();
  int64_t m = sizes[rank], n = sizes[rank + 1];
  for (size_t i = kinds.size(); i > 0 && kinds[i - 1].part == part; --i)
    if (const Kind &kind = kinds[i - 1]; kind.m == m && kind.n == n &&
                                         kind.k == k &&
                                         kind.accumulates == accumulates)
      return i - 1;
  int64_t rows = m, columns = n;
  if (blocks.pads)
    rows += (kTileRows - m % kTileRows) % kTileRows,
        columns += (kTileColumns - n % kTileColumns) % kTileColumns;
  auto needsCopy = [&](bool packs, bool isFull, const int64_t *strides) {
    return packs &&
           (!blocks.pads || !isFull || strides[gemm.batch_rank + 1] != 1);
  };
  kinds.push_back({{},
                   part,
                   m,
                   n,
                   k,
                   accumulates,
                   rows,
                   columns,
                   needsCopy(blocks.packsA, rows == m, gemm.stride_a),
                   needsCopy(blocks.packsB, columns == n, gemm.stride_b),
                   packsC || rows != m || columns != n});
  Kind &kind = kinds.back();
  Step &step = kind.step;
  // The strides of a single matrix come behind those of the batch.
  uint32_t skipped = gemm.batch_rank - rank;
  const int64_t packedA[] = {kind.getRowOfA(), 1},
                packedB[] = {kind.getRowOfB(), 1},
                packedC[] = {kind.getRowOfC(), 1};
  dnnl_memory_desc_t a, b, c;
  dnnl_matmul_desc_t operation;
  if (describeMatrix(rank, sizes,
                     kind.packsA ? packedA : gemm.stride_a + skipped, rows, k,
                     a) &&
      describeMatrix(rank, sizes,
                     kind.packsB ? packedB : gemm.stride_b + skipped, k,
                     columns, b) &&
      describeMatrix(rank, sizes,
                     kind.packsC ? packedC : gemm.stride_c + skipped, rows,
                     columns, c) &&
      dnnl.dnnl_matmul_desc_init(&operation, &a, &b, nullptr, &c) ==
          dnnl_success)
    step.type = chooseProduct(operation, accumulates);
  if (!step.type)
    error = "oneDNN does not take this product";
  else if (!slowImplementation(step.type).empty())
    error = "oneDNN has only its reference implementation";
  else
    libraryBytes = std::max(libraryBytes, aligned(step.getScratchBytes()));
  int64_t floats =
      kind.getFloatsOfA() + kind.getFloatsOfB() + kind.getFloatsOfC();
  packedBytes =
      std::max(packedBytes, aligned(uint64_t(floats) * sizeof(float)));
  return kinds.size() - 1;
}

/// The blocks of rows and columns, and of k; no block has columns of two panels
/// of weights. A copy of B serves all rows.
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
    return arePrepacked ? panels.getOffset(row, column)
                        : row * strideB[0] + column * strideB[1];
  };
  const int64_t rows = sizes[rank], columns = sizes[rank + 1],
                sum = getSumOfCall();
  auto addCall = [&](int64_t row, int64_t column, int64_t k) {
    if (!error.empty())
      return;
    calls.push_back(
        {findKind(part, blocks, rank, block, std::min(sum, gemm.k - k),
                  gemm.accumulate || k > 0),
         part, call.atA + row * strideA[0] + k * strideA[1],
         call.atB + placeOfB(k, firstColumn + column),
         call.atC + row * strideC[0] + column * strideC[1]});
  };
  int64_t &m = block[rank], &n = block[rank + 1];
  auto setColumns = [&](int64_t column) {
    n = blocks.endOfColumns(column, columns) - column;
    if (arePrepacked)
      n = std::min(n, panels.getEnd(panels.getPanel(firstColumn + column)) -
                          firstColumn - column);
  };
  auto setRows = [&](int64_t row) { m = blocks.endOfRows(row, rows) - row; };
  if (blocks.packsB) {
    for (int64_t column = 0; column < columns; column += n) {
      setColumns(column);
      for (int64_t k = 0; k < gemm.k; k += sum)
        for (int64_t row = 0; row < rows; row += m)
          setRows(row), addCall(row, column, k);
    }
    return;
  }
  for (int64_t row = 0; row < rows; row += m) {
    setRows(row);
    for (int64_t column = 0; column < columns; column += n) {
      setColumns(column);
      for (int64_t k = 0; k < gemm.k; k += sum)
        addCall(row, column, k);
    }
  }
}

void Product::State::addPart(int64_t part, const DimensionRange &range) {
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
  if (!blocks.packsA && !blocks.packsB && !packsC)
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
  std::vector<DimensionRange> ranges =
      divideProduct(gemm, std::max<int64_t>(threads, 1));
  state->parts = int64_t(ranges.size());
  for (int64_t part = 0; part < state->parts; ++part) {
    state->firstCallOf.push_back(state->calls.size());
    state->addPart(part, ranges[part]);
  }
  state->firstCallOf.push_back(state->calls.size());
  dnnl.setThreads(former);
  state->scratchOfPart = state->libraryBytes + state->packedBytes;
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
    auto create = [&](Operand &operand, dnnl_query_t what, int argument) {
      isReady &= dnnl.dnnl_memory_create(&operand.memory, kind.step.query(what),
                                         dnnl.engine, nullptr) == dnnl_success;
      kind.step.arguments.push_back({argument, operand.memory});
    };
    create(kind.a, dnnl_query_src_md, DNNL_ARG_SRC);
    create(kind.b, dnnl_query_weights_md, DNNL_ARG_WEIGHTS);
    create(kind.c, dnnl_query_dst_md, DNNL_ARG_DST);
    isReady &=
        kind.step.prepare(scratch + state->scratchOfPart * uint64_t(kind.part));
  }
  dnnl.setThreads(former);
  return isReady;
}

static void copyElements(int64_t rows, int64_t columns, const float *from,
                         const int64_t *fromStrides, float *to,
                         const int64_t *toStrides) {
  for (int64_t i = 0; i < rows; ++i, from += fromStrides[0], to += toStrides[0])
    if (fromStrides[1] == 1 && toStrides[1] == 1)
      std::copy_n(from, columns, to);
    else
      for (int64_t j = 0; j < columns; ++j)
        to[j * toStrides[1]] = from[j * fromStrides[1]];
}

bool Product::run(int64_t part, const float *a, const float *b,
                  float *c) const {
  const ProductCall &gemm = state->gemm;
  if (gemm.weights == PENSTOCK_CPU_WEIGHTS_PREPACK) {
    Panels(gemm).pack(part, b, gemm.stride_b, c);
    return true;
  }
  char *scratch = state->scratch + state->scratchOfPart * uint64_t(part);
  float *packed = reinterpret_cast<float *>(scratch + state->libraryBytes);
  const int64_t *strideA = gemm.stride_a + gemm.batch_rank,
                *strideB = gemm.stride_b + gemm.batch_rank,
                *strideC = gemm.stride_c + gemm.batch_rank;
  const float *packedB = nullptr;
  for (size_t i = state->firstCallOf[part]; i < state->firstCallOf[part + 1];
       ++i) {
    const Call &call = state->calls[i];
    Kind &kind = state->kinds[call.kind];
    const float *left = a + call.atA, *right = b + call.atB;
    float *result = c + call.atC;
    float *copy = packed;
    if (kind.packsB) {
      if (packedB != right)
        copyByRows(right, strideB, kind.k, kind.n, copy, kind.getRowOfB());
      packedB = right, right = copy;
      copy += kind.getFloatsOfB();
    }
    if (kind.packsA) {
      copyByRows(left, strideA, kind.m, kind.k, copy, kind.getRowOfA());
      std::fill_n(copy + kind.m * kind.getRowOfA(),
                  (kind.rows - kind.m) * kind.getRowOfA(), 0.0f);
      left = copy;
      copy += kind.getFloatsOfA();
    }
    const int64_t packedC[] = {kind.getRowOfC(), 1};
    if (kind.packsC && kind.accumulates) {
      std::fill_n(copy, kind.getFloatsOfC(), 0.0f);
      copyElements(kind.m, kind.n, result, strideC, copy, packedC);
    }
    if (!kind.a.bind(left) || !kind.b.bind(right) ||
        !kind.c.bind(kind.packsC ? copy : result) ||
        !kind.step.run(state->streams[part]))
      return false;
    if (kind.packsC)
      copyElements(kind.m, kind.n, copy, packedC, result, strideC);
  }
  return true;
}
