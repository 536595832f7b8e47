//===- SplitReductions.cpp - Long sums in two steps -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A device with many threads and few results would add up each result on one
// of them. So a long sum becomes partial sums, which are values like any other
// and get memory with them, and a sum of these. How many there are follows from
// the sizes of the loops alone: the order of additions is the same wherever the
// op stands and whatever it was fused with.
//===----------------------------------------------------------------------===//

#include "passes/Kernels/Passes.h"
#include "passes/Kernels/ReductionOrder.h"
#include "penstock/Target/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINESPLITREDUCTIONS
#include "passes/Kernels/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

/// Sums along memory, each of which many threads share: from this length on,
/// in parts of at least `shortSum`, until there are `manySums` of them.
constexpr int64_t longSum = 16384, shortSum = 1024, manySums = 1024;

/// Sums across memory, of which each is a thread's: from this length on, in
/// parts of at least `shortColumn`, until there are `manyColumns` of them.
constexpr int64_t longColumn = 128, shortColumn = 16, manyColumns = 1 << 17;

/// Fewer parts are not worth a second step.
constexpr int64_t fewestParts = 4;

/// Returns the largest divisor of `size` that is at most `limit`.
int64_t getDivisor(int64_t size, int64_t limit) {
  int64_t divisor = std::min(size, limit);
  while (size % divisor)
    --divisor;
  return divisor;
}

/// Returns into how many parts each loop is divided: the outermost ones that
/// add up are, one after the other, until there are enough parts.
SmallVector<int64_t> chooseParts(linalg::GenericOp op) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  SmallVector<int64_t> parts(sizes.size(), 1);
  int64_t results = 1, length = 1;
  bool isAlongMemory = false;
  for (auto [size, iterator] : llvm::zip_equal(sizes, iterators)) {
    bool isReduction = iterator == utils::IteratorType::reduction;
    (isReduction ? length : results) *= size;
    if (size > 1)
      isAlongMemory = isReduction;
  }
  if (length == 0 || results == 0 ||
      length < (isAlongMemory ? longSum + 1 : longColumn))
    return parts;
  int64_t limit = isAlongMemory
                      ? std::min(length / shortSum, manySums / results)
                      : std::min(length / shortColumn, manyColumns / results);
  int64_t total = 1;
  for (unsigned dim = 0; dim < sizes.size(); ++dim) {
    if (iterators[dim] != utils::IteratorType::reduction || sizes[dim] == 1)
      continue;
    if (limit < 2)
      break;
    parts[dim] = getDivisor(sizes[dim], limit);
    total *= parts[dim];
    if (parts[dim] != sizes[dim])
      break;
    limit /= sizes[dim];
  }
  if (total < fewestParts)
    parts.assign(sizes.size(), 1);
  return parts;
}

class ReductionSplitter {
public:
  ReductionSplitter(RewriterBase &rewriter, linalg::GenericOp op)
      : rewriter(rewriter), loc(op.getLoc()), op(op),
        sizes(op.getStaticLoopRanges()) {}

  /// Returns the sums of the second step; none where the op stays.
  SmallVector<linalg::GenericOp> run();

private:
  bool isSplittable();
  bool isSum(OpOperand &init) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    return llvm::any_of(
        reductions, [&](unsigned dim) { return !map.isFunctionOfDim(dim); });
  }
  void numberLoops();
  /// The map of an operand, and the operand in the shape that the map needs.
  AffineMap getMap(AffineMap map);
  Value expand(Value value, AffineMap map);
  SmallVector<ReassociationIndices> getGroups(AffineMap map);
  RankedTensorType getType(RankedTensorType type, AffineMap map);
  Value createPartialInit(OpOperand &init, Operation *combiner);
  linalg::GenericOp writeFirst();
  void replaceIndices(linalg::GenericOp first);
  linalg::GenericOp writeSecond(Value partial, OpOperand &init,
                                Operation *combiner);

  RewriterBase &rewriter;
  Location loc;
  linalg::GenericOp op;
  SmallVector<int64_t> sizes, parts;
  SmallVector<unsigned> reductions;
  /// The loops of the first step. By old loop: that over its parts, and that
  /// within a part.
  SmallVector<std::optional<unsigned>> outer, inner;
  SmallVector<utils::IteratorType> iterators;
  SmallVector<int64_t> partSizes;
};

bool ReductionSplitter::isSplittable() {
  if (!op.hasPureTensorSemantics() || op.hasDynamicShape())
    return false;
  for (auto [dim, iterator] : llvm::enumerate(op.getIteratorTypesArray()))
    if (iterator == utils::IteratorType::reduction)
      reductions.push_back(dim);
  parts = chooseParts(op);
  if (llvm::all_of(parts, [](int64_t count) { return count == 1; }))
    return false;
  for (AffineMap map : op.getIndexingMapsArray())
    if (!map.isProjectedPermutation())
      return false;
  for (auto [number, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    if (isSum(init) && (!getCombiner(op, number) ||
                        llvm::any_of(reductions, [&](unsigned dim) {
                          return map.isFunctionOfDim(dim);
                        })))
      return false;
  }
  return true;
}

void ReductionSplitter::numberLoops() {
  outer.resize(sizes.size());
  inner.resize(sizes.size());
  for (unsigned dim = 0; dim < sizes.size(); ++dim)
    if (parts[dim] > 1) {
      outer[dim] = iterators.size();
      iterators.push_back(utils::IteratorType::parallel);
      partSizes.push_back(parts[dim]);
    }
  SmallVector<utils::IteratorType> old = op.getIteratorTypesArray();
  for (unsigned dim = 0; dim < sizes.size(); ++dim)
    if (parts[dim] == 1 || parts[dim] < sizes[dim]) {
      inner[dim] = iterators.size();
      iterators.push_back(old[dim]);
    }
}

AffineMap ReductionSplitter::getMap(AffineMap map) {
  SmallVector<AffineExpr> results;
  for (AffineExpr result : map.getResults()) {
    unsigned dim = cast<AffineDimExpr>(result).getPosition();
    for (std::optional<unsigned> loop : {outer[dim], inner[dim]})
      if (loop)
        results.push_back(rewriter.getAffineDimExpr(*loop));
  }
  return AffineMap::get(iterators.size(), 0, results, rewriter.getContext());
}

SmallVector<ReassociationIndices> ReductionSplitter::getGroups(AffineMap map) {
  SmallVector<ReassociationIndices> groups;
  int64_t next = 0;
  for (AffineExpr result : map.getResults()) {
    unsigned dim = cast<AffineDimExpr>(result).getPosition();
    groups.emplace_back();
    for (std::optional<unsigned> loop : {outer[dim], inner[dim]})
      if (loop)
        groups.back().push_back(next++);
  }
  return groups;
}

RankedTensorType ReductionSplitter::getType(RankedTensorType type,
                                            AffineMap map) {
  SmallVector<int64_t> shape;
  for (AffineExpr result : map.getResults()) {
    unsigned dim = cast<AffineDimExpr>(result).getPosition();
    if (outer[dim])
      shape.push_back(parts[dim]);
    if (inner[dim])
      shape.push_back(sizes[dim] / parts[dim]);
  }
  return RankedTensorType::get(shape, type.getElementType());
}

Value ReductionSplitter::expand(Value value, AffineMap map) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return value;
  RankedTensorType expanded = getType(type, map);
  if (expanded == type)
    return value;
  if (value.getDefiningOp<tensor::EmptyOp>())
    return tensor::EmptyOp::create(rewriter, loc, expanded.getShape(),
                                   expanded.getElementType());
  return tensor::ExpandShapeOp::create(rewriter, loc, expanded, value,
                                       getGroups(map));
}

Value ReductionSplitter::createPartialInit(OpOperand &init,
                                           Operation *combiner) {
  auto type = cast<RankedTensorType>(init.get().getType());
  SmallVector<int64_t> shape(partSizes);
  llvm::append_range(shape, type.getShape());
  Value number = arith::ConstantOp::create(rewriter, loc, getNeutral(combiner));
  Value empty =
      tensor::EmptyOp::create(rewriter, loc, shape, type.getElementType());
  return linalg::FillOp::create(rewriter, loc, number, empty).getResult(0);
}

/// The number of an iteration of a loop that is divided.
void ReductionSplitter::replaceIndices(linalg::GenericOp first) {
  OpBuilder::InsertionGuard guard(rewriter);
  SmallVector<linalg::IndexOp> indices;
  first.getBody()->walk([&](linalg::IndexOp op) { indices.push_back(op); });
  for (linalg::IndexOp index : indices) {
    unsigned dim = index.getDim();
    rewriter.setInsertionPoint(index);
    Value number;
    if (inner[dim])
      number = linalg::IndexOp::create(rewriter, loc, *inner[dim]);
    if (outer[dim]) {
      Value part = linalg::IndexOp::create(rewriter, loc, *outer[dim]);
      if (number)
        number = arith::AddIOp::create(
            rewriter, loc, number,
            arith::MulIOp::create(rewriter, loc, part,
                                  arith::ConstantIndexOp::create(
                                      rewriter, loc, sizes[dim] / parts[dim])));
      else
        number = part;
    }
    rewriter.replaceOp(index, number);
  }
}

linalg::GenericOp ReductionSplitter::writeFirst() {
  SmallVector<Value> inputs, inits;
  SmallVector<AffineMap> maps;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(operand);
    inputs.push_back(expand(operand->get(), map));
    maps.push_back(getMap(map));
  }
  for (auto [number, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    if (!isSum(init)) {
      inits.push_back(expand(init.get(), map));
      maps.push_back(getMap(map));
      continue;
    }
    inits.push_back(createPartialInit(init, getCombiner(op, number)));
    SmallVector<AffineExpr> results;
    for (size_t part = 0; part < partSizes.size(); ++part)
      results.push_back(rewriter.getAffineDimExpr(part));
    llvm::append_range(results, getMap(map).getResults());
    maps.push_back(
        AffineMap::get(iterators.size(), 0, results, rewriter.getContext()));
  }
  auto first =
      linalg::GenericOp::create(rewriter, loc, ValueRange(inits).getTypes(),
                                inputs, inits, maps, iterators);
  rewriter.cloneRegionBefore(op.getRegion(), first.getRegion(),
                             first.getRegion().end());
  replaceIndices(first);
  return first;
}

/// Adds the partial sums in their order to what was there before.
linalg::GenericOp ReductionSplitter::writeSecond(Value partial, OpOperand &init,
                                                 Operation *combiner) {
  auto type = cast<RankedTensorType>(init.get().getType());
  unsigned rank = type.getRank(), count = partSizes.size();
  SmallVector<utils::IteratorType> loops(count, utils::IteratorType::reduction);
  loops.append(rank, utils::IteratorType::parallel);
  AffineMap all = rewriter.getMultiDimIdentityMap(count + rank);
  AffineMap maps[] = {all, AffineMap::get(count + rank, 0,
                                          all.getResults().take_back(rank),
                                          rewriter.getContext())};
  return linalg::GenericOp::create(
      rewriter, loc, type, partial, init.get(), maps, loops,
      [&](OpBuilder &builder, Location, ValueRange arguments) {
        Value sum =
            combinePartials(builder, combiner, arguments[0], arguments[1]);
        linalg::YieldOp::create(builder, loc, sum);
      });
}

SmallVector<linalg::GenericOp> ReductionSplitter::run() {
  if (!isSplittable())
    return {};
  numberLoops();
  rewriter.setInsertionPoint(op);
  linalg::GenericOp first = writeFirst();
  SmallVector<linalg::GenericOp> sums;
  SmallVector<Value> results;
  for (auto [number, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    Value result = first.getResult(number);
    if (isSum(init)) {
      sums.push_back(writeSecond(result, init, getCombiner(op, number)));
      result = sums.back().getResult(0);
    } else if (result.getType() != init.get().getType()) {
      result = tensor::CollapseShapeOp::create(
          rewriter, loc, init.get().getType(), result,
          getGroups(op.getMatchingIndexingMap(&init)));
    }
    results.push_back(result);
  }
  rewriter.replaceOp(op, results);
  return sums;
}

struct SplitReductionsPass
    : penstock::impl::PipelineSplitReductionsBase<SplitReductionsPass> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isDeclaration() || !splitsLongSums(function))
      return;
    IRRewriter rewriter(&getContext());
    SmallVector<linalg::GenericOp> work;
    function.walk([&](linalg::GenericOp op) {
      if (op.getNumReductionLoops())
        work.push_back(op);
    });
    // The second step of a sum may be long as well.
    while (!work.empty())
      llvm::append_range(
          work, ReductionSplitter(rewriter, work.pop_back_val()).run());
  }
};

} // namespace
