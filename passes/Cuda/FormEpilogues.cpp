//===- FormEpilogues.cpp - A bias and ReLU within a matrix product --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product is written to memory once, and not read and written again for its
// bias. The op stays, for where the library has other bits.
//===----------------------------------------------------------------------===//

#include "dialects/Cuda/Cuda.h"
#include "passes/Cuda/Passes.h"
#include "passes/Kernels/BufferRange.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEFORMEPILOGUES
#include "passes/Cuda/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

/// An op that adds a bias to a product, bounds it below by zero, or both.
struct Epilogue {
  linalg::GenericOp op;
  OpOperand *product = nullptr;
  Value bias = {}; ///< Null: there is none.
  bool hasRelu = false;
};

/// Returns the block argument that an operand of the body is; null where it is
/// none.
BlockArgument getArgument(Value value, linalg::GenericOp op) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getOwner() == op.getBody() ? argument
                                                         : BlockArgument();
}

/// Reads the arithmetic: max(product + bias, 0) or a part of it, in either
/// order of operands.
std::optional<Epilogue> readBody(linalg::GenericOp op) {
  auto yield = cast<linalg::YieldOp>(op.getBody()->getTerminator());
  Value value = yield.getOperand(0);
  Epilogue result{op};
  unsigned count = 1;
  if (auto bound = value.getDefiningOp<arith::MaximumFOp>()) {
    bool isZeroFirst = matchPattern(bound.getLhs(), m_PosZeroFloat());
    if (!isZeroFirst && !matchPattern(bound.getRhs(), m_PosZeroFloat()))
      return std::nullopt;
    value = isZeroFirst ? bound.getRhs() : bound.getLhs();
    result.hasRelu = true;
    ++count;
  }
  SmallVector<Value> terms{value};
  if (auto sum = value.getDefiningOp<arith::AddFOp>()) {
    terms = {sum.getLhs(), sum.getRhs()};
    ++count;
  }
  if (count == 1 || !llvm::hasNItems(*op.getBody(), count) ||
      op.getNumDpsInputs() != static_cast<int64_t>(terms.size()))
    return std::nullopt;

  unsigned rank = op.getNumLoops();
  MLIRContext *context = op.getContext();
  AffineMap column =
      AffineMap::get(rank, 0, getAffineDimExpr(rank - 1, context));
  for (Value term : terms) {
    BlockArgument argument = getArgument(term, op);
    if (!argument || argument.getArgNumber() >= op.getNumDpsInputs())
      return std::nullopt;
    OpOperand &operand = op->getOpOperand(argument.getArgNumber());
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (map.isIdentity() && !result.product)
      result.product = &operand;
    else if (map == column && !result.bias)
      result.bias = operand.get();
    else
      return std::nullopt;
  }
  return result.product ? std::optional(result) : std::nullopt;
}

bool isDense(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  return type.getLayout().isIdentity() && type.hasStaticShape();
}

/// Reads an epilogue of an op on dense buffers with one result.
std::optional<Epilogue> readEpilogue(Operation *next) {
  auto op = dyn_cast_or_null<linalg::GenericOp>(next);
  if (!op || !op.hasPureBufferSemantics() || op.getNumDpsInits() != 1 ||
      op.getNumLoops() == 0 || op.getNumParallelLoops() != op.getNumLoops() ||
      !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity() ||
      !llvm::all_of(op->getOperands(), [](Value operand) {
        return isa<MemRefType>(operand.getType()) && isDense(operand);
      }))
    return std::nullopt;
  return readBody(op);
}

/// Returns the next op that is not only another view of a buffer.
Operation *getNext(kernel::GemmOp gemm) {
  Operation *op = gemm->getNextNode();
  while (op && (isa<ViewLikeOpInterface>(op) ||
                op->hasTrait<OpTrait::ConstantLike>()))
    op = op->getNextNode();
  return op;
}

/// Returns true if `buffer` holds the elements of `product` in their order.
bool isView(Value buffer, Value product) {
  while (buffer != product) {
    Operation *view = buffer.getDefiningOp();
    if (!isa_and_nonnull<memref::ExpandShapeOp, memref::CollapseShapeOp>(view))
      return false;
    buffer = view->getOperand(0);
  }
  return true;
}

/// An access of an op to bytes.
enum class Touch { Nothing, Overwrites, Reads };

/// Returns what the op does to all of the bytes at once. A part of them that it
/// overwrites is nothing; whatever is not known reads.
Touch getTouch(Operation *op, const BufferRange &bytes) {
  if (isa<ViewLikeOpInterface>(op))
    return Touch::Nothing;
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  auto gemm = dyn_cast<kernel::GemmOp>(op);
  Touch result = Touch::Nothing;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    BufferRange range = BufferRange::of(operand.get());
    if (!range.overlaps(bytes))
      continue;
    bool overwrites =
        structured
            ? structured.isDpsInit(&operand) &&
                  !structured.payloadUsesValueFromOperand(&operand) &&
                  structured.getMatchingIndexingMap(&operand).isPermutation()
            : gemm && operand.get() == gemm.getC() && !gemm.getAccumulate();
    if (!overwrites)
      return Touch::Reads;
    if (isDense(operand.get()) && range.begin <= bytes.begin &&
        range.end >= bytes.end)
      result = Touch::Overwrites;
  }
  for (Region &region : op->getRegions())
    for (Operation &inner : region.getOps())
      if (!structured && getTouch(&inner, bytes) != Touch::Nothing)
        return Touch::Reads;
  return result;
}

/// Returns true if what temporary memory holds may still be read after an op of
/// the function's body.
bool isReadAfter(Operation *op, const BufferRange &bytes) {
  if (!isa<func::FuncOp>(op->getParentOp()))
    return true;
  for (op = op->getNextNode(); op; op = op->getNextNode())
    if (Touch touch = getTouch(op, bytes); touch != Touch::Nothing)
      return touch == Touch::Reads;
  return false;
}

/// Returns true if the product may be computed where the op writes: it is in
/// temporary memory, for the op alone, and the result in memory of its own.
bool canMove(kernel::GemmOp gemm, Epilogue epilogue) {
  Value product = gemm.getC(), result = epilogue.op.getDpsInits()[0];
  auto temporary = product.getDefiningOp<memref::ViewOp>();
  if (!temporary || isReadAfter(epilogue.op, BufferRange::of(product)))
    return false;
  // Scratch of the call is in the memory of temporaries.
  BufferRange range = BufferRange::of(result);
  if (range.root == temporary.getSource())
    return false;
  const Value read[] = {gemm.getA(), gemm.getB(), epilogue.bias};
  return llvm::none_of(read, [&](Value operand) {
    return operand && BufferRange::of(operand).overlaps(range);
  });
}

void form(kernel::GemmOp gemm) {
  std::optional<Epilogue> epilogue = readEpilogue(getNext(gemm));
  if (!epilogue)
    return;
  linalg::GenericOp op = epilogue->op;
  // 1. Whose result is by rows, and the only matrix of the call.
  ArrayRef<int64_t> sizes = gemm.getSizes();
  auto type = cast<MemRefType>(op.getDpsInits()[0].getType());
  if (!isa_and_nonnull<cuda::GemmAttr>(gemm.getConfigAttr()) ||
      gemm.hasEpilogue() || gemm.getAccumulate() || sizes.size() != 3 ||
      sizes[0] == 1 || !type.getElementType().isF32() ||
      !getElementTypeOrSelf(gemm.getA().getType()).isF32() ||
      gemm.getStridesC() != ArrayRef<int64_t>{sizes[1], 1} ||
      type.getNumElements() != sizes[0] * sizes[1] ||
      type.getShape().back() != sizes[1])
    return;

  // 2. In place, or there from the start.
  Value result = op.getDpsInits()[0], product = epilogue->product->get();
  if (!isDense(gemm.getC()) || !isView(product, gemm.getC()) ||
      (product != result && !canMove(gemm, *epilogue)))
    return;
  gemm->moveBefore(op);
  if (product != result) {
    gemm.getCMutable().assign(result);
    epilogue->product->set(result);
  }

  // 3. The op only where the library has not done it.
  OpBuilder builder(gemm);
  auto whole = kernel::GemmOp::create(
      builder, gemm.getLoc(), builder.getI1Type(), gemm.getA(), gemm.getB(),
      gemm.getC(), gemm.getPacked(), epilogue->bias, epilogue->hasRelu,
      gemm.getSizes(), gemm.getStridesA(), gemm.getStridesB(),
      gemm.getStridesC(), gemm.getAccumulate(), gemm.getConfigAttr(),
      gemm.getScratchAttr());
  gemm.erase();
  builder.setInsertionPoint(op);
  auto pending = scf::IfOp::create(builder, op.getLoc(), whole.getPending(),
                                   /*withElseRegion=*/false);
  op->moveBefore(pending.thenYield());
}

struct FormEpiloguesPass
    : penstock::impl::PipelineFormEpiloguesBase<FormEpiloguesPass> {
  using PipelineFormEpiloguesBase::PipelineFormEpiloguesBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!isStageFunction(function, kind))
      return;
    SmallVector<kernel::GemmOp> gemms;
    function.walk([&](kernel::GemmOp gemm) { gemms.push_back(gemm); });
    for (kernel::GemmOp gemm : gemms)
      form(gemm);
  }
};

} // namespace
