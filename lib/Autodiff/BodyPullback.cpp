//===- BodyPullback.cpp - Reverse mode in a structured body ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A scalar of the forward is computed again in the backward body, or read from
// an output that holds it.
//===----------------------------------------------------------------------===//

#include "lib/Autodiff/BodyPullback.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace penstock;
using utils::IteratorType;

SmallVector<unsigned> penstock::getAbsentDims(AffineMap map) {
  SmallVector<unsigned> absent;
  for (unsigned dim = 0; dim < map.getNumDims(); ++dim)
    if (!map.isFunctionOfDim(dim))
      absent.push_back(dim);
  return absent;
}

bool penstock::isReduction(linalg::LinalgOp op, OpOperand *out) {
  return llvm::any_of(
      getAbsentDims(op.getMatchingIndexingMap(out)), [&](unsigned dim) {
        return op.getIteratorTypesArray()[dim] == IteratorType::reduction;
      });
}

Operation *penstock::getCombiner(linalg::LinalgOp op, OpOperand *out) {
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

Value penstock::getOtherOperand(Operation *combiner, Value partial) {
  return combiner->getOperand(combiner->getOperand(0) == partial ? 1 : 0);
}

void penstock::propagateActivity(Block &body, llvm::DenseSet<Value> &active) {
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

Value BodyPullback::input(Value tensor, AffineMap map) {
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

Value BodyPullback::value(Value scalar) {
  if (Value known = known_.lookup(scalar))
    return known;
  Value found = compute(scalar);
  known_[scalar] = found;
  return found;
}

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
Value BodyPullback::emitShare(const Reduced &reduced, OpOperand *out,
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
      cotangent = emitShare(found->second, &out, element, cotangent);
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
