//===- GpuTransposes.cpp - Tiles that go through shared memory ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where an op reads along one dimension and writes along another, a warp would
// touch 32 lines of memory for 32 elements. A block reads a square of 32 by 32
// elements as it lies, and writes it as it shall lie.
//===----------------------------------------------------------------------===//

#include "passes/Cuda/KernelOp.h"
#include "passes/Cuda/LaunchSizes.h"
#include "passes/Cuda/Passes.h"
#include "passes/Cuda/ScalarBody.h"
#include "passes/Cuda/ThreadLoops.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEGPUTRANSPOSES
#include "passes/Cuda/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

/// The side of a tile; rows of it that the threads of a block touch at a time;
/// and the shortest side of a matrix that is worth tiles.
constexpr int64_t kTile = 32, kTileRows = 8, kShortestSide = 16;

/// Tiles that a block has in shared memory, at most.
constexpr size_t kMostTiles = 4;

/// Shared memory, as NVPTX numbers address spaces.
constexpr unsigned kShared = 3;

class TransposeMapper {
public:
  TransposeMapper(gpu::GPUFuncOp kernel, linalg::GenericOp op)
      : builder(op), loc(op.getLoc()), kernel(kernel), op(op),
        sizes(op.getStaticLoopRanges()), body(builder, op) {}

  /// Returns whether the op is elementwise and reads across what it writes.
  bool isTranspose();
  LogicalResult map();

private:
  std::optional<unsigned> getDenseLoop(OpOperand &operand);
  void findPosition();
  void readTiles();
  void writeElements();
  /// Runs `step` for each row of a tile that the thread has part in, where the
  /// row is below `rows` and the column below `columns` of the matrix. It gets
  /// the row within the tile and both in the matrix.
  void forTileRows(Value rowTile, int64_t rows, Value columnTile,
                   int64_t columns,
                   function_ref<void(Value row, Value i, Value j)> step);
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  int64_t getTiles(unsigned dim) { return (sizes[dim] + kTile - 1) / kTile; }

  OpBuilder builder;
  Location loc;
  gpu::GPUFuncOp kernel;
  linalg::GenericOp op;
  SmallVector<int64_t> sizes;
  ScalarBody body;
  /// The loops along which it writes, and along which it reads.
  unsigned writeDim = 0, readDim = 0;
  SmallVector<OpOperand *> transposed;
  /// Their tiles.
  SmallVector<Value> tiles;
  /// The index by loop; of the two above, that of the tile.
  SmallVector<Value> indices;
  /// The thread's column of a tile, and its first row.
  Value column, firstRow;
};

/// Returns the loop along which the operand lies in memory.
std::optional<unsigned> TransposeMapper::getDenseLoop(OpOperand &operand) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  if (map.getNumResults() == 0)
    return std::nullopt;
  auto last = dyn_cast<AffineDimExpr>(map.getResults().back());
  if (!last || !isDenseAlong(op, operand, last.getPosition()))
    return std::nullopt;
  return last.getPosition();
}

bool TransposeMapper::isTranspose() {
  if (getThreadLoops(op).size() != op.getNumLoops() || op.getNumLoops() < 2)
    return false;
  WalkResult readsElsewhere = op.getBody()->walk([](Operation *inner) {
    return isMemoryEffectFree(inner) ? WalkResult::advance()
                                     : WalkResult::interrupt();
  });
  if (readsElsewhere.wasInterrupted())
    return false;
  // 1. All results lie along one loop.
  std::optional<unsigned> along;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    std::optional<unsigned> own = getDenseLoop(init);
    if (!own || (along && along != own))
      return false;
    along = own;
  }
  writeDim = *along;

  // 2. All operands that do not, but move along it, lie along another.
  std::optional<unsigned> across;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()) || !body.reads(operand) ||
        !op.getMatchingIndexingMap(&operand).isFunctionOfDim(writeDim))
      continue;
    std::optional<unsigned> own = getDenseLoop(operand);
    if (own == along)
      continue;
    if (!own || (across && across != own) ||
        !op.getMatchingIndexingMap(&operand).isProjectedPermutation())
      return false;
    across = own;
    transposed.push_back(&operand);
  }
  if (!across || transposed.size() > kMostTiles)
    return false;
  readDim = *across;
  return sizes[readDim] >= kShortestSide && sizes[writeDim] >= kShortestSide;
}

void TransposeMapper::findPosition() {
  SmallVector<int64_t> counts(sizes);
  counts[readDim] = getTiles(readDim);
  counts[writeDim] = getTiles(writeDim);
  Value block = gpu::BlockIdOp::create(builder, loc, gpu::Dimension::x);
  Value thread = gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x);
  indices = delinearize(builder, loc, block, counts);
  column = arith::RemUIOp::create(builder, loc, thread, index(kTile));
  firstRow = arith::DivUIOp::create(builder, loc, thread, index(kTile));
}

void TransposeMapper::forTileRows(
    Value rowTile, int64_t rows, Value columnTile, int64_t columns,
    function_ref<void(Value, Value, Value)> step) {
  auto add = [&](Value a, Value b) {
    return arith::AddIOp::create(builder, loc, a, b);
  };
  auto scale = [&](Value tile) {
    return arith::MulIOp::create(builder, loc, tile, index(kTile));
  };
  auto isBelow = [&](Value value, int64_t bound) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, value,
                                 index(bound));
  };
  OpBuilder::InsertionGuard outside(builder);
  auto loop = scf::ForOp::create(builder, loc, index(0),
                                 index(kTile / kTileRows), index(1));
  builder.setInsertionPointToStart(loop.getBody());
  Value row =
      add(firstRow, arith::MulIOp::create(builder, loc, loop.getInductionVar(),
                                          index(kTileRows)));
  Value i = add(scale(rowTile), row), j = add(scale(columnTile), column);
  if (rows % kTile || columns % kTile) {
    Value isInside = arith::AndIOp::create(builder, loc, isBelow(i, rows),
                                           isBelow(j, columns));
    auto guard = scf::IfOp::create(builder, loc, isInside);
    builder.setInsertionPointToStart(guard.thenBlock());
  }
  step(row, i, j);
}

/// A warp reads along what lies side by side. The tile has a column more than
/// it needs: else a column of it would be in one bank of the memory.
void TransposeMapper::readTiles() {
  for (OpOperand *operand : transposed) {
    Type element = cast<MemRefType>(operand->get().getType()).getElementType();
    auto type = MemRefType::get({kTile, kTile + 1}, element, AffineMap(),
                                builder.getI64IntegerAttr(kShared));
    tiles.push_back(kernel.addWorkgroupAttribution(type, loc));
  }
  forTileRows(indices[writeDim], sizes[writeDim], indices[readDim],
              sizes[readDim], [&](Value row, Value i, Value j) {
                SmallVector<Value> at(indices);
                at[writeDim] = i;
                at[readDim] = j;
                for (auto [operand, tile] : llvm::zip_equal(transposed, tiles))
                  memref::StoreOp::create(builder, loc, body.load(*operand, at),
                                          tile, ValueRange{row, column});
              });
  gpu::BarrierOp::create(builder, loc);
}

void TransposeMapper::writeElements() {
  auto step = [&](Value row, Value i, Value j) {
    SmallVector<Value> at(indices);
    at[readDim] = i;
    at[writeDim] = j;
    SmallVector<Value> elements;
    for (OpOperand &operand : op->getOpOperands()) {
      const auto *found = llvm::find(transposed, &operand);
      if (found != transposed.end())
        elements.push_back(memref::LoadOp::create(
            builder, loc, tiles[found - transposed.begin()],
            ValueRange{column, row}));
      else
        elements.push_back(body.reads(operand) ? body.load(operand, at)
                                               : Value());
    }
    for (auto [init, value] :
         llvm::zip_equal(op.getDpsInitsMutable(), body.compute(elements, at)))
      body.store(init, value, at);
  };
  forTileRows(indices[readDim], sizes[readDim], indices[writeDim],
              sizes[writeDim], step);
}

LogicalResult TransposeMapper::map() {
  int64_t blocks = getTiles(readDim) * getTiles(writeDim);
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (dim != readDim && dim != writeDim)
      blocks *= size;
  if (failed(setLaunchSizes(kernel, blocks, kTile * kTileRows)))
    return failure();
  findPosition();
  readTiles();
  writeElements();
  op.erase();
  return success();
}

struct GpuTransposesPass
    : penstock::impl::PipelineGpuTransposesBase<GpuTransposesPass> {
  void runOnOperation() override {
    auto map = [](gpu::GPUFuncOp kernel, linalg::GenericOp op) {
      TransposeMapper mapper(kernel, op);
      return mapper.isTranspose() ? mapper.map() : success();
    };
    if (failed(mapElementwiseKernels(getOperation(), map)))
      signalPassFailure();
  }
};

} // namespace
