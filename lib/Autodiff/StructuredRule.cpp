//===- StructuredRule.cpp - Derivative of linalg.generic ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One generic per active operand, over the iteration space of the forward: the
// body is the scalar reverse mode of the forward body, and the dimensions that
// the operand's map lacks (those it was broadcast over) are summed.
//===----------------------------------------------------------------------===//

#include "lib/Autodiff/Rules.h"
#include "lib/Autodiff/ScalarRules.h"
#include "penstock/Support/Assert.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace penstock;
using utils::IteratorType;

namespace {

/// Dimensions, each at most once, and zeros: what can be summed over.
bool isAccess(AffineMap map) {
  return map.isProjectedPermutation(/*allowZeroInResults=*/true);
}

/// The dimensions that the map does not name.
SmallVector<unsigned> getAbsentDims(AffineMap map) {
  SmallVector<unsigned> absent;
  for (unsigned dim = 0; dim < map.getNumDims(); ++dim)
    if (!map.isFunctionOfDim(dim))
      absent.push_back(dim);
  return absent;
}

bool isReduction(linalg::LinalgOp op, OpOperand *out) {
  return llvm::any_of(
      getAbsentDims(op.getMatchingIndexingMap(out)), [&](unsigned dim) {
        return op.getIteratorTypesArray()[dim] == IteratorType::reduction;
      });
}

/// The op that combines a reduction's partial result with the next element, if
/// that is all it does with it.
Operation *getCombiner(linalg::LinalgOp op, OpOperand *out) {
  Value partial = op.getMatchingBlockArgument(out);
  auto result = op.getTiedOpResult(out);
  Value yielded =
      op.getBlock()->getTerminator()->getOperand(result.getResultNumber());
  Operation *combiner = yielded.getDefiningOp();
  if (!combiner || combiner->getNumOperands() != 2 || !partial.hasOneUse() ||
      !yielded.hasOneUse() || *partial.getUsers().begin() != combiner)
    return nullptr;
  return combiner;
}

Value getOtherOperand(Operation *combiner, Value partial) {
  return combiner->getOperand(combiner->getOperand(0) == partial ? 1 : 0);
}

/// Adds to `active` what depends on scalars in it.
void propagateActivity(Block &body, llvm::DenseSet<Value> &active) {
  for (Operation &op : body.without_terminator()) {
    if (isLocallyConstant(&op))
      continue;
    bool any = false;
    forEachUsedValue(&op, [&](Value used) { any |= active.contains(used); });
    if (any)
      for (Value result : op.getResults())
        if (isa<FloatType>(result.getType()))
          active.insert(result);
  }
}

/// What the elements of a maximum, a minimum or a product share its cotangent
/// by, per result.
struct Reduced {
  /// How many elements are the extremum, or are zero.
  Value count;
  /// The product of the elements that are not zero; null for an extremum.
  Value product;
};

/// Builds the body of one backward generic.
class BodyPullback : public ScalarPullback {
public:
  BodyPullback(linalg::LinalgOp op, Pullback &pullback, OpBuilder &body,
               Block &block)
      : ScalarPullback(body, op.getLoc()), op(op), pullback(pullback),
        block(block), mayReuse(!pullback.mixesDataAndParameters(op)) {}

  /// An element of a tensor of the backward function.
  Value input(Value tensor, AffineMap map) {
    // A constant seed enters the body as a scalar, not as a buffer.
    DenseElementsAttr splat;
    if (map.getNumResults() == 0 && matchPattern(tensor, m_Constant(&splat)))
      return arith::ConstantOp::create(builder, loc,
                                       splat.getSplatValue<TypedAttr>());
    Value &element = elements[{tensor, map}];
    if (!element) {
      element = block.addArgument(getElementTypeOrSelf(tensor.getType()), loc);
      inputs.push_back(tensor);
      maps.push_back(map);
    }
    return element;
  }

  Value value(Value scalar) override {
    if (Value known = known_.lookup(scalar))
      return known;
    Value found = compute(scalar);
    known_[scalar] = found;
    return found;
  }

  /// Runs the scalar reverse mode towards the block arguments `targets`, whose
  /// cotangents sum to the result; null when nothing reaches them, failure
  /// (reported) when some op has no rule.
  FailureOr<Value> pullBackTo(ArrayRef<BlockArgument> targets);

  linalg::LinalgOp op;
  Pullback &pullback;
  Block &block;
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  /// For each result that is reduced otherwise than by a sum.
  llvm::DenseMap<Value, Reduced> reduced;

  /// The share in the cotangent of a reduced result that its elements have.
  Value shareOf(const Reduced &reduced, OpOperand *out, Value element,
                Value cotangent);

private:
  Value compute(Value scalar);

  bool mayReuse;
  llvm::DenseMap<std::pair<Value, AffineMap>, Value> elements;
  llvm::DenseMap<Value, Value> known_;
};

Value BodyPullback::compute(Value scalar) {
  auto argument = dyn_cast<BlockArgument>(scalar);
  if (argument && argument.getOwner() == op.getBlock()) {
    OpOperand *operand = op.getMatchingOpOperand(argument);
    return isa<RankedTensorType>(operand->get().getType())
               ? input(pullback.getPrimal(operand->get()),
                       op.getMatchingIndexingMap(operand))
               : pullback.getPrimal(operand->get());
  }
  Operation *definition = scalar.getDefiningOp();
  if (argument || definition->getBlock() != op.getBlock())
    return pullback.getPrimal(scalar);
  // An output that holds the value saves computing it again.
  if (mayReuse && !isLocallyConstant(definition))
    for (OpOperand &out : op.getDpsInitsMutable()) {
      OpResult result = op.getTiedOpResult(&out);
      if (op.getBlock()->getTerminator()->getOperand(
              result.getResultNumber()) == scalar &&
          !isReduction(op, &out) && pullback.getKind(result) == ValueKind::Data)
        return input(pullback.getPrimal(result),
                     op.getMatchingIndexingMap(&out));
    }
  IRMapping mapping;
  forEachUsedValue(definition,
                   [&](Value used) { mapping.map(used, value(used)); });
  builder.clone(*definition, mapping);
  for (Value other : definition->getResults())
    known_[other] = mapping.lookup(other);
  return mapping.lookup(scalar);
}

/// Elements equal to the extremum share evenly, as the frameworks have it. Of a
/// product, a factor gets the product of the others: what is not zero, divided
/// by it, as long as none of the others is zero.
Value BodyPullback::shareOf(const Reduced &reduced, OpOperand *out,
                            Value element, Value cotangent) {
  AffineMap map = op.getMatchingIndexingMap(out);
  Value zero = like(cotangent, 0), one = like(cotangent, 1);
  Value count = input(reduced.count, map);
  Value own = value(element);
  if (!reduced.product) {
    Value extremum = input(pullback.getPrimal(op.getTiedOpResult(out)), map);
    Value here = compare(arith::CmpFPredicate::OEQ, own, extremum);
    return select(here, div(cotangent, count), zero);
  }
  Value isZero = compare(arith::CmpFPredicate::OEQ, own, zero);
  Value others = sub(count, select(isZero, one, zero));
  Value rest = div(input(reduced.product, map), select(isZero, one, own));
  Value none = compare(arith::CmpFPredicate::OEQ, others, zero);
  return select(none, mul(cotangent, rest), zero);
}

FailureOr<Value> BodyPullback::pullBackTo(ArrayRef<BlockArgument> targets) {
  Block &forward = *op.getBlock();
  active.insert(targets.begin(), targets.end());
  propagateActivity(forward, active);

  // 1. What the results' cotangents are to the yielded scalars.
  Operation *terminator = forward.getTerminator();
  for (OpOperand &out : op.getDpsInitsMutable()) {
    OpResult result = op.getTiedOpResult(&out);
    Value tensor = pullback.getCotangent(result);
    Value yielded = terminator->getOperand(result.getResultNumber());
    if (!tensor || !isActive(yielded))
      continue;
    Value cotangent = input(tensor, op.getMatchingIndexingMap(&out));
    if (!isReduction(op, &out)) {
      add(yielded, cotangent);
      continue;
    }
    // The partial result passes the cotangent on unchanged; every element of a
    // sum gets it, of a maximum or a product its share.
    Value element = getOtherOperand(getCombiner(op, &out),
                                    op.getMatchingBlockArgument(&out));
    if (auto found = reduced.find(result); found != reduced.end())
      cotangent = shareOf(found->second, &out, element, cotangent);
    add(element, cotangent);
  }

  // 2. The body, backwards.
  for (Operation &scalar : llvm::reverse(forward.without_terminator())) {
    if (scalar.getNumResults() != 1)
      continue;
    Value cotangent = getCotangent(scalar.getResult(0));
    if (!cotangent || failed(pullBackScalar(&scalar, cotangent, *this))) {
      if (!cotangent)
        continue;
      InFlightDiagnostic error =
          op.emitError() << "'" << scalar.getName() << "' in a '"
                         << op->getName()
                         << "' has no derivative rule, and a gradient has to "
                            "flow through it";
      error.attachNote() << "freeze every parameter before it (--freeze), or "
                            "replace the node by operations with derivatives";
      return failure();
    }
  }
  Value total;
  for (BlockArgument target : targets)
    if (Value cotangent = getCotangent(target))
      total = total ? sum(total, cotangent) : cotangent;
  return total;
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
  Value start = arith::ConstantOp::create(
      builder, loc, builder.getFloatAttr(element, byProduct ? 1 : 0));
  Value destination =
      linalg::FillOp::create(
          builder, loc, start,
          Value(tensor::EmptyOp::create(builder, loc, type, ValueRange())))
          .getResult(0);
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

/// What the elements of an extremum or a product share its cotangent by.
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
