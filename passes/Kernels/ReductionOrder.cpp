//===- ReductionOrder.cpp - The dimension that becomes lanes --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Looks at indexing maps and the scalar body; see the header.
//===----------------------------------------------------------------------===//

#include "passes/Kernels/ReductionOrder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

Operation *penstock::getCombiner(linalg::GenericOp op, unsigned output) {
  BlockArgument accumulator = op.getRegionOutputArgs()[output];
  Value result = op.getBody()->getTerminator()->getOperand(output);
  Operation *combiner = result.getDefiningOp();
  if (!combiner || combiner->getBlock() != op.getBody() ||
      !accumulator.hasOneUse() || !result.hasOneUse() ||
      *accumulator.getUsers().begin() != combiner)
    return nullptr;
  if (auto fma = dyn_cast<math::FmaOp>(combiner))
    return fma.getC() == accumulator ? combiner : nullptr;
  if (isa<arith::AddFOp, arith::MulFOp, arith::MaximumFOp, arith::MinimumFOp,
          arith::MaxNumFOp, arith::MinNumFOp, arith::AddIOp, arith::MulIOp,
          arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::MaxSIOp,
          arith::MinSIOp, arith::MaxUIOp, arith::MinUIOp>(combiner))
    return combiner;
  return nullptr;
}

TypedAttr penstock::getNeutral(Operation *combiner) {
  Type type = combiner->getResult(0).getType();
  if (isa<math::FmaOp>(combiner))
    return FloatAttr::get(type, -0.0);
  return *arith::getNeutralElement(combiner);
}

Value penstock::combinePartials(OpBuilder &builder, Operation *combiner,
                                Value a, Value b) {
  if (isa<math::FmaOp>(combiner))
    return arith::AddFOp::create(builder, combiner->getLoc(), a, b);
  Operation *result = builder.clone(*combiner);
  result->setOperands({a, b});
  return result->getResult(0);
}

/// Returns true if every op of the body works on vectors as it does on scalars.
static bool hasVectorForm(linalg::GenericOp op) {
  auto isScalar = [](Type type) { return type.isIntOrIndexOrFloat(); };
  return llvm::all_of(op.getBody()->without_terminator(), [&](Operation &body) {
    if (isa<linalg::IndexOp, arith::ConstantOp>(body))
      return isScalar(body.getResult(0).getType());
    // Lanes that are masked off would divide by zero, which traps.
    if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
            arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp>(body))
      return false;
    return OpTrait::hasElementwiseMappableTraits(&body) &&
           llvm::all_of(body.getOperandTypes(), isScalar) &&
           llvm::all_of(body.getResultTypes(), isScalar);
  });
}

/// Returns true if `dim` is the last index of an operand, alone, or none of it.
static bool isFastest(AffineMap map, unsigned dim) {
  if (!map.isFunctionOfDim(dim))
    return true;
  if (map.getResults().back() != getAffineDimExpr(dim, map.getContext()))
    return false;
  return llvm::none_of(map.getResults().drop_back(), [&](AffineExpr result) {
    return result.isFunctionOfDim(dim);
  });
}

std::optional<unsigned> penstock::chooseVectorDimension(linalg::GenericOp op) {
  if (!hasVectorForm(op))
    return std::nullopt;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (unsigned dim = op.getNumLoops(); dim-- > 0;) {
    if (!llvm::all_of(maps, [&](AffineMap map) { return isFastest(map, dim); }))
      continue;
    bool isParallel = iterators[dim] == utils::IteratorType::parallel;
    bool possible = true;
    for (auto [index, init] : llvm::enumerate(op.getDpsInitsMutable())) {
      if (op.getMatchingIndexingMap(&init).isFunctionOfDim(dim))
        continue;
      possible &= !isParallel && getCombiner(op, index);
    }
    if (possible)
      return dim;
  }
  return std::nullopt;
}
