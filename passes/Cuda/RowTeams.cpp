//===- RowTeams.cpp - Which threads share a row ---------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See RowTeams.h.
//===----------------------------------------------------------------------===//

#include "passes/Cuda/RowTeams.h"

#include "passes/Kernels/ReductionOrder.h"
#include "passes/Kernels/RowGroups.h"

using namespace mlir;
using namespace penstock;

int64_t penstock::getTeamThreads(int64_t elements) {
  constexpr int64_t warpRow = 1024, blockRow = 16384, block = 256,
                    largeBlock = 512;
  if (elements <= warpRow)
    return kWarpThreads;
  return elements <= blockRow ? block : largeBlock;
}

bool penstock::isAlongRow(linalg::GenericOp op, OpOperand &init,
                          const RowLoops &loops) {
  AffineMap map = op.getMatchingIndexingMap(&init);
  return llvm::any_of(loops.inner,
                      [&](unsigned dim) { return map.isFunctionOfDim(dim); });
}

/// Returns whether a shuffle can pass a number of this type on.
static bool canShuffle(Type type) {
  return type.isF16() || type.isBF16() || type.isF32() || type.isF64() ||
         (type.isSignlessInteger() && type.getIntOrFloatBitWidth() <= 64);
}

std::optional<RowLoops> penstock::getRowLoops(linalg::GenericOp op,
                                              unsigned depth) {
  // 1. Rows of their own.
  if (op.getNumLoops() < depth || !op.hasPureBufferSemantics() ||
      op.hasDynamicShape())
    return std::nullopt;
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (unsigned dim = 0; dim < depth; ++dim)
    if (iterators[dim] != utils::IteratorType::parallel)
      return std::nullopt;
  for (OpOperand &operand : op->getOpOperands())
    if (isa<MemRefType>(operand.get().getType()) &&
        (!op.getMatchingIndexingMap(&operand).isProjectedPermutation() ||
         getRowAccess(op, operand, depth) == RowAccess::Other))
      return std::nullopt;
  // Wherever the rows are among the dimensions of a result: a sum has its order
  // also beside a result that lies otherwise.
  for (OpOperand &init : op.getDpsInitsMutable())
    for (unsigned dim = 0; dim < depth; ++dim)
      if (!op.getMatchingIndexingMap(&init).isFunctionOfDim(dim))
        return std::nullopt;

  // 2. All of the loops within add up, or none does.
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  RowLoops loops{depth, {}, 1, false};
  unsigned reductions = 0;
  for (unsigned dim = depth; dim < op.getNumLoops(); ++dim) {
    if (sizes[dim] == 1)
      continue;
    loops.inner.push_back(dim);
    loops.elements *= sizes[dim];
    reductions += iterators[dim] == utils::IteratorType::reduction;
  }
  loops.isReduction = reductions > 0;
  if (loops.isReduction && reductions < loops.inner.size())
    return std::nullopt;

  // 3. A result is the row's, as a number, or moves along with all loops.
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    bool movesWithAll = llvm::all_of(
        loops.inner, [&](unsigned dim) { return map.isFunctionOfDim(dim); });
    if (!movesWithAll && (!loops.isReduction || isAlongRow(op, init, loops)))
      return std::nullopt;
  }
  return loops;
}

bool penstock::canShareRows(linalg::GenericOp op, const RowLoops &loops) {
  for (auto [number, init] : llvm::enumerate(op.getDpsInitsMutable()))
    if (loops.isReduction && !isAlongRow(op, init, loops) &&
        (!getCombiner(op, number) ||
         !canShuffle(getElementTypeOrSelf(init.get().getType()))))
      return false;
  return true;
}
