//===- ThreadLoops.cpp - A linalg.generic within one thread ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loops run in the order of the op and the body is copied as it is, so the
// bits of a result depend on nothing but the op.
//===----------------------------------------------------------------------===//

#include "passes/Cuda/ThreadLoops.h"

#include "passes/Cuda/ScalarBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace penstock;

namespace {

class LoopWriter {
public:
  LoopWriter(OpBuilder &builder, linalg::GenericOp op, ArrayRef<Value> indices)
      : builder(builder), loc(op.getLoc()), op(op), indices(indices),
        sizes(op.getStaticLoopRanges()), body(builder, op) {}

  void write();

private:
  /// The loops over `dims` and the body within them; takes and returns the
  /// results that are carried.
  SmallVector<Value> writeLoops(ArrayRef<unsigned> dims, ValueRange carried);
  SmallVector<Value> writeBody(ValueRange carried);
  bool isCarried(OpOperand &init) {
    return carriedInits.contains(init.getOperandNumber());
  }
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  OpBuilder &builder;
  Location loc;
  linalg::GenericOp op;
  SmallVector<Value> indices;
  SmallVector<int64_t> sizes;
  ScalarBody body;
  llvm::SmallDenseSet<unsigned> carriedInits;
};

void LoopWriter::write() {
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<unsigned> loops;
  for (auto [dim, value] : llvm::enumerate(indices)) {
    if (value)
      continue;
    if (sizes[dim] == 1)
      value = index(0);
    else
      loops.push_back(dim);
  }
  SmallVector<OpOperand *> inits;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    if (loops.empty() || llvm::any_of(loops, [&](unsigned dim) {
          return map.isFunctionOfDim(dim);
        }))
      continue;
    carriedInits.insert(init.getOperandNumber());
    inits.push_back(&init);
  }
  SmallVector<Value> carried;
  for (OpOperand *init : inits)
    carried.push_back(body.load(*init, indices));
  carried = writeLoops(loops, carried);
  for (auto [init, value] : llvm::zip_equal(inits, carried))
    body.store(*init, value, indices);
}

SmallVector<Value> LoopWriter::writeLoops(ArrayRef<unsigned> dims,
                                          ValueRange carried) {
  if (dims.empty())
    return writeBody(carried);
  unsigned dim = dims.front();
  auto loop = scf::ForOp::create(builder, loc, index(0), index(sizes[dim]),
                                 index(1), carried);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  indices[dim] = loop.getInductionVar();
  SmallVector<Value> next =
      writeLoops(dims.drop_front(), loop.getRegionIterArgs());
  indices[dim] = Value();
  if (!carried.empty())
    scf::YieldOp::create(builder, loc, next);
  return SmallVector<Value>(loop.getResults());
}

SmallVector<Value> LoopWriter::writeBody(ValueRange carried) {
  // All elements are read before any is written.
  SmallVector<Value> elements;
  unsigned next = 0;
  for (OpOperand &operand : op->getOpOperands()) {
    if (isCarried(operand))
      elements.push_back(carried[next++]);
    else
      elements.push_back(body.reads(operand) ? body.load(operand, indices)
                                             : Value());
  }
  SmallVector<Value> results;
  for (auto [init, value] : llvm::zip_equal(op.getDpsInitsMutable(),
                                            body.compute(elements, indices))) {
    if (isCarried(init))
      results.push_back(value);
    else
      body.store(init, value, indices);
  }
  return results;
}

} // namespace

SmallVector<unsigned> penstock::getThreadLoops(linalg::GenericOp op) {
  SmallVector<unsigned> result;
  for (auto [dim, iterator] : llvm::enumerate(op.getIteratorTypesArray())) {
    AffineExpr expr = getAffineDimExpr(dim, op.getContext());
    bool movesAll = llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
      return llvm::is_contained(op.getMatchingIndexingMap(&init).getResults(),
                                expr);
    });
    if (iterator == utils::IteratorType::parallel && movesAll)
      result.push_back(dim);
  }
  return result;
}

void penstock::writeThreadLoops(OpBuilder &builder, linalg::GenericOp op,
                                ArrayRef<Value> indices) {
  LoopWriter(builder, op, indices).write();
}

FailureOr<linalg::GenericOp> penstock::toGeneric(linalg::LinalgOp op) {
  if (!op.hasPureBufferSemantics() || op.hasDynamicShape())
    return op->emitOpError("has no form as a GPU kernel: it is not on buffers "
                           "of static shape");
  if (auto generic = dyn_cast<linalg::GenericOp>(op.getOperation()))
    return generic;
  IRRewriter rewriter(op.getContext());
  rewriter.setInsertionPoint(op);
  FailureOr<linalg::GenericOp> generic =
      linalg::generalizeNamedOp(rewriter, op);
  if (failed(generic))
    return op->emitOpError("has no form as scalar loops");
  return generic;
}

LogicalResult penstock::writeThreadLoops(Operation *root) {
  SmallVector<linalg::LinalgOp> ops;
  root->walk([&](linalg::LinalgOp op) { ops.push_back(op); });
  for (linalg::LinalgOp op : ops) {
    FailureOr<linalg::GenericOp> generic = toGeneric(op);
    if (failed(generic))
      return failure();
    OpBuilder builder(*generic);
    writeThreadLoops(builder, *generic,
                     SmallVector<Value>(generic->getNumLoops()));
    generic->erase();
  }
  return success();
}
