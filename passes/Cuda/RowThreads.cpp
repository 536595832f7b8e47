//===- RowThreads.cpp - Threads for the elements of a row -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See RowThreads.h. Each thread runs the whole loop, on one element of each
// row: the same sums in the same order.
//===----------------------------------------------------------------------===//

#include "passes/Cuda/RowThreads.h"

#include "passes/Kernels/BufferRange.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace penstock;

bool penstock::mayOverlap(Value a, Value b) {
  return a == b || BufferRange::of(a).overlaps(BufferRange::of(b));
}

namespace {

/// Where loop `dim` of an op goes along in a buffer from outside of the loop
/// nest: at `offset` + counter of dimension `position`.
struct Track {
  unsigned position;
  int64_t offset;

  bool operator==(const Track &other) const {
    return position == other.position && offset == other.offset;
  }
};

class RowDistributor {
public:
  explicit RowDistributor(scf::ForOp loop) : loop(loop) {}

  bool run();

private:
  bool collect();
  void chooseDims();
  bool isOutside(Value value) {
    return !loop.getRegion().isAncestor(value.getParentRegion());
  }
  /// The buffer from outside that `operand` is or is a slice of; null where it
  /// is something else.
  Value getBuffer(Value operand);
  std::optional<Track> getTrack(linalg::GenericOp op, OpOperand &operand,
                                unsigned dim);
  Value emitSlice(OpBuilder &builder, linalg::GenericOp op, OpOperand &operand,
                  ValueRange indices);

  scf::ForOp loop;
  SmallVector<linalg::GenericOp> ops;
  /// Buffers that the nest loads from directly.
  SmallVector<Value> loaded;
  SmallVector<int64_t> sizes;
  /// The loops that become threads.
  SmallVector<unsigned> dims;
};

/// Fails where the nest is more than elementwise ops over one space and loads.
bool RowDistributor::collect() {
  WalkResult result = loop.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      bool fits =
          generic.hasPureBufferSemantics() && !generic.hasDynamicShape() &&
          generic.getNumReductionLoops() == 0 && !generic.hasIndexSemantics() &&
          llvm::all_of(generic.getIndexingMapsArray(), [](AffineMap map) {
            return map.isProjectedPermutation();
          });
      SmallVector<int64_t> ranges = generic.getStaticLoopRanges();
      if (!fits || (!ops.empty() && ranges != sizes))
        return WalkResult::interrupt();
      sizes = ranges;
      ops.push_back(generic);
      generic.getBody()->walk(
          [&](memref::LoadOp load) { loaded.push_back(load.getMemRef()); });
      return WalkResult::skip();
    }
    if (auto load = dyn_cast<memref::LoadOp>(op)) {
      loaded.push_back(load.getMemRef());
      return WalkResult::advance();
    }
    bool isHarmless = isMemoryEffectFree(op) ||
                      op->hasTrait<OpTrait::HasRecursiveMemoryEffects>();
    return isHarmless ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted() && !ops.empty();
}

Value RowDistributor::getBuffer(Value operand) {
  if (isOutside(operand))
    return operand;
  auto slice = operand.getDefiningOp<memref::SubViewOp>();
  return slice && isOutside(slice.getSource()) ? slice.getSource() : Value();
}

std::optional<Track> RowDistributor::getTrack(linalg::GenericOp op,
                                              OpOperand &operand,
                                              unsigned dim) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  std::optional<unsigned> position =
      map.getResultPosition(getAffineDimExpr(dim, op.getContext()));
  if (!position)
    return std::nullopt;
  auto slice = operand.get().getDefiningOp<memref::SubViewOp>();
  if (!slice || isOutside(slice))
    return Track{*position, 0};
  // Dimensions that the slice has dropped are not counted.
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  unsigned left = *position;
  for (unsigned source = 0; source < dropped.size(); ++source) {
    if (dropped.test(source) || left-- > 0)
      continue;
    std::optional<int64_t> offset =
        getConstantIntValue(slice.getMixedOffsets()[source]);
    if (!offset || !isConstantIntValue(slice.getMixedStrides()[source], 1))
      return std::nullopt;
    return Track{source, *offset};
  }
  return std::nullopt;
}

void RowDistributor::chooseDims() {
  SmallVector<Value> written;
  for (linalg::GenericOp op : ops)
    for (Value init : op.getDpsInits())
      written.push_back(getBuffer(init));
  for (Value buffer : written)
    if (!buffer || llvm::any_of(loaded, [&](Value other) {
          return mayOverlap(buffer, other);
        }))
      return;
  for (unsigned dim = 0; dim < sizes.size(); ++dim) {
    bool isOwn = sizes[dim] > 1;
    for (Value buffer : written) {
      std::optional<Track> common;
      for (linalg::GenericOp op : ops)
        for (OpOperand &operand : op->getOpOperands()) {
          if (!isa<MemRefType>(operand.get().getType()))
            continue;
          Value other = getBuffer(operand.get());
          if (other && !mayOverlap(other, buffer))
            continue;
          std::optional<Track> track;
          if (other == buffer)
            track = getTrack(op, operand, dim);
          isOwn = isOwn && track && (!common || *common == *track);
          common = track;
        }
    }
    if (isOwn)
      dims.push_back(dim);
  }
}

/// The element, or what else is left of an operand, that a thread touches.
Value RowDistributor::emitSlice(OpBuilder &builder, linalg::GenericOp op,
                                OpOperand &operand, ValueRange indices) {
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  if (!type)
    return operand.get();
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0)),
      strides(type.getRank(), builder.getIndexAttr(1)),
      extents = getAsIndexOpFoldResult(op.getContext(), type.getShape());
  AffineMap map = op.getMatchingIndexingMap(&operand);
  for (auto [dim, index] : llvm::zip_equal(dims, indices))
    if (std::optional<unsigned> position =
            map.getResultPosition(getAffineDimExpr(dim, op.getContext()))) {
      offsets[*position] = index;
      extents[*position] = builder.getIndexAttr(1);
    }
  return memref::SubViewOp::create(builder, op.getLoc(), operand.get(), offsets,
                                   extents, strides);
}

bool RowDistributor::run() {
  if (!collect())
    return false;
  chooseDims();
  if (dims.empty())
    return false;
  OpBuilder builder(loop);
  SmallVector<OpFoldResult> counts;
  for (unsigned dim : dims)
    counts.push_back(builder.getIndexAttr(sizes[dim]));
  auto forall = scf::ForallOp::create(builder, loop.getLoc(), counts,
                                      ValueRange(), std::nullopt);
  loop->moveBefore(forall.getTerminator());
  for (linalg::GenericOp op : ops) {
    builder.setInsertionPoint(op);
    for (OpOperand &operand : op->getOpOperands())
      operand.set(emitSlice(builder, op, operand, forall.getInductionVars()));
  }
  return true;
}

} // namespace

bool penstock::distributeRows(scf::ForOp loop) {
  return RowDistributor(loop).run();
}
