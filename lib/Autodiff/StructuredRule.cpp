//===- StructuredRule.cpp - Derivative of linalg.generic ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One generic per active operand, over the iteration space of the forward: the
// body is the scalar reverse mode of the forward body, and the dimensions that
// the operand's map lacks (those it was broadcast over) are summed.
//===----------------------------------------------------------------------===//

#include "lib/Autodiff/BodyPullback.h"
#include "lib/Autodiff/Rules.h"
#include "penstock/Support/Assert.h"
#include "penstock/Support/Structured.h"

using namespace mlir;
using namespace penstock;
using utils::IteratorType;

namespace {

/// Dimensions, each at most once, and zeros: what can be summed over.
bool isAccess(AffineMap map) {
  return map.isProjectedPermutation(/*allowZeroInResults=*/true);
}

/// Emits the generic of a finished body over the op's iteration space.
Value emitGeneric(BodyPullback &body, std::unique_ptr<Block> block,
                  Value destination, AffineMap map) {
  linalg::LinalgOp op = body.op;
  OpBuilder &builder = body.pullback.getBuilder();
  SmallVector<IteratorType> iterators(map.getNumDims(), IteratorType::parallel);
  for (unsigned dim : getAbsentDims(map))
    iterators[dim] = IteratorType::reduction;

  // Every dimension must be the dimension of some operand.
  SmallVector<AffineExpr> uncovered;
  SmallVector<int64_t> sizes;
  for (unsigned dim : getAbsentDims(map))
    if (llvm::none_of(body.maps, [&](AffineMap used) {
          return used.isFunctionOfDim(dim);
        })) {
      uncovered.push_back(builder.getAffineDimExpr(dim));
      sizes.push_back(op.getStaticLoopRanges()[dim]);
    }
  SmallVector<Value> inputs = body.inputs;
  SmallVector<AffineMap> maps = body.maps;
  if (!uncovered.empty()) {
    Type element = getElementTypeOrSelf(destination.getType());
    inputs.push_back(
        tensor::EmptyOp::create(builder, op.getLoc(), sizes, element));
    maps.push_back(
        AffineMap::get(map.getNumDims(), 0, uncovered, builder.getContext()));
    block->insertArgument(body.inputs.size(), element, op.getLoc());
  }
  maps.push_back(map);
  auto generic = linalg::GenericOp::create(
      builder, op.getLoc(), TypeRange(destination.getType()), inputs,
      ValueRange(destination), maps, iterators);
  generic.getRegion().push_back(block.release());
  return generic.getResult(0);
}

/// Reduces what `measure` makes of the elements of a reduction, over the same
/// space, by a sum or a product.
Value emitMeasure(linalg::LinalgOp op, OpOperand *out, Pullback &pullback,
                  bool byProduct,
                  function_ref<Value(BodyPullback &, Value)> measure) {
  OpBuilder &builder = pullback.getBuilder();
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getTiedOpResult(out).getType());
  Type element = type.getElementType();
  Value destination =
      Structured(builder, loc).filled(type, byProduct ? 1.0 : 0.0);
  auto block = std::make_unique<Block>();
  OpBuilder bodyBuilder(op.getContext());
  bodyBuilder.setInsertionPointToEnd(block.get());
  BodyPullback body(op, pullback, bodyBuilder, *block);
  Value own = body.value(
      getOtherOperand(getCombiner(op, out), op.getMatchingBlockArgument(out)));
  Value next = measure(body, own);
  Value sum = block->addArgument(element, loc);
  linalg::YieldOp::create(
      bodyBuilder, loc, byProduct ? body.mul(sum, next) : body.sum(sum, next));
  return emitGeneric(body, std::move(block), destination,
                     op.getMatchingIndexingMap(out));
}

/// Emits the shares that the elements of an extremum or a product have of its
/// cotangent.
FailureOr<Reduced> emitReduced(linalg::LinalgOp op, OpOperand *out,
                               Pullback &pullback, bool isProduct) {
  if (!isProduct && pullback.mixesDataAndParameters(op))
    return op.emitError()
           << "the derivative of a maximum over an expression of both data "
              "and parameters is not supported: compute the expression in a "
              "node of its own";
  auto isMeant = [&](BodyPullback &body, Value own) {
    Value wanted = isProduct
                       ? body.like(own, 0)
                       : body.input(pullback.getPrimal(op.getTiedOpResult(out)),
                                    op.getMatchingIndexingMap(out));
    return body.compare(arith::CmpFPredicate::OEQ, own, wanted);
  };
  Reduced reduced;
  reduced.count = emitMeasure(
      op, out, pullback, /*byProduct=*/false, [&](BodyPullback &body, Value x) {
        return body.select(isMeant(body, x), body.like(x, 1), body.like(x, 0));
      });
  if (isProduct)
    reduced.product =
        emitMeasure(op, out, pullback, /*byProduct=*/true,
                    [&](BodyPullback &body, Value x) {
                      return body.select(isMeant(body, x), body.like(x, 1), x);
                    });
  return reduced;
}

/// One generic for the gradient of `value`, which enters the op as the given
/// operands, all with the same map.
LogicalResult emitGradient(linalg::LinalgOp op, Value value,
                           ArrayRef<OpOperand *> operands, Pullback &pullback,
                           const llvm::DenseMap<Value, Reduced> &reduced) {
  AffineMap map = op.getMatchingIndexingMap(operands.front());
  if (!isAccess(map))
    return op.emitError()
           << "'" << op->getName() << "' reads an operand as "
           << AffineMapAttr::get(map)
           << ", whose derivative would have to scatter: not supported";
  auto block = std::make_unique<Block>();
  OpBuilder bodyBuilder(op.getContext());
  bodyBuilder.setInsertionPointToEnd(block.get());
  BodyPullback body(op, pullback, bodyBuilder, *block);
  body.reduced = reduced;
  auto targets = llvm::map_to_vector(operands, [&](OpOperand *operand) {
    return op.getMatchingBlockArgument(operand);
  });
  FailureOr<Value> contribution = body.pullBackTo(targets);
  if (failed(contribution))
    return failure();
  if (!*contribution)
    return success();

  OpBuilder &builder = pullback.getBuilder();
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  Value accumulator = pullback.getAccumulator(value);
  bool adds = accumulator || !getAbsentDims(map).empty();
  Value destination =
      accumulator ? accumulator
      : adds ? createZeros(builder, loc, type)
             : Value(tensor::EmptyOp::create(builder, loc, type, ValueRange()));
  Value old = block->addArgument(type.getElementType(), loc);
  Value yielded = adds ? body.sum(old, *contribution) : *contribution;
  linalg::YieldOp::create(bodyBuilder, loc, yielded);
  Value gradient = emitGeneric(body, std::move(block), destination, map);
  if (accumulator)
    pullback.setAccumulator(value, gradient);
  else
    pullback.add(value, gradient, loc);
  return success();
}

} // namespace

bool penstock::structuredCarriesGradient(linalg::LinalgOp op, Value operand,
                                         Value result) {
  llvm::DenseSet<Value> active;
  bool captured = true;
  for (OpOperand &use : op->getOpOperands())
    if (use.get() == operand) {
      captured = false;
      active.insert(op.getMatchingBlockArgument(&use));
    }
  if (captured)
    return true;
  propagateActivity(*op.getBlock(), active);
  return active.contains(op.getBlock()->getTerminator()->getOperand(
      cast<OpResult>(result).getResultNumber()));
}

LogicalResult penstock::pullBackStructured(linalg::LinalgOp op,
                                           Pullback &pullback) {
  PENSTOCK_ASSERT(op.hasPureTensorSemantics(),
                  "on buffers nothing has a cotangent");
  // 1. Reductions: a sum, an extremum or a product, and nothing else.
  llvm::DenseMap<Value, Reduced> reduced;
  for (OpOperand &out : op.getDpsInitsMutable()) {
    OpResult result = op.getTiedOpResult(&out);
    if (!pullback.getCotangent(result))
      continue;
    if (!isAccess(op.getMatchingIndexingMap(&out)))
      return op.emitError()
             << "'" << op->getName() << "' writes as "
             << AffineMapAttr::get(op.getMatchingIndexingMap(&out))
             << ": its derivative is not supported";
    if (!isReduction(op, &out))
      continue;
    Operation *combiner = getCombiner(op, &out);
    bool isExtremum =
        isa_and_present<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
                        arith::MinNumFOp>(combiner);
    bool isProduct = isa_and_present<arith::MulFOp>(combiner);
    if (!isExtremum && !isProduct &&
        !isa_and_present<arith::AddFOp>(combiner)) {
      InFlightDiagnostic error =
          op.emitError() << "a reduction by "
                         << (combiner ? combiner->getName().getStringRef()
                                      : StringRef("several operations"))
                         << " has no derivative rule";
      error.attachNote() << "sums, products, maxima and minima have one";
      return error;
    }
    if (isExtremum || isProduct) {
      FailureOr<Reduced> found = emitReduced(op, &out, pullback, isProduct);
      if (failed(found))
        return failure();
      reduced[result] = *found;
    }
  }

  // 2. Captured values: scalars that no rule reaches.
  WalkResult captured = op->walk([&](Operation *nested) {
    for (Value value : nested->getOperands())
      if (nested != op && pullback.isActive(value))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  if (captured.wasInterrupted())
    return op.emitError() << "the body of a '" << op->getName()
                          << "' uses a scalar that needs a gradient";

  // 3. Operands of the same value and map together, from the last one back.
  llvm::MapVector<std::pair<Value, AffineMap>, SmallVector<OpOperand *>> groups;
  for (OpOperand &operand : llvm::reverse(op->getOpOperands())) {
    Value value = operand.get();
    if (!pullback.isActive(value))
      continue;
    if (!isa<RankedTensorType>(value.getType()))
      return op.emitError() << "'" << op->getName()
                            << "' has a scalar operand that needs a gradient";
    if (op.isDpsInit(&operand) && isReduction(op, &operand)) {
      // What a sum starts from; others start from their neutral element.
      OpResult result = op.getTiedOpResult(&operand);
      Value cotangent = pullback.getCotangent(result);
      if (!cotangent)
        continue;
      if (reduced.contains(result))
        return op.emitError() << "a maximum or product that starts from a "
                                 "value which needs a gradient has no "
                                 "derivative rule";
      pullback.add(value, cotangent, op.getLoc());
      continue;
    }
    groups[{value, op.getMatchingIndexingMap(&operand)}].push_back(&operand);
  }
  for (auto &[key, operands] : groups)
    if (failed(emitGradient(op, key.first, operands, pullback, reduced)))
      return failure();
  return success();
}
