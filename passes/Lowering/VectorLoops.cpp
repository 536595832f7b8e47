//===- VectorLoops.cpp - linalg.generic becomes loops over vectors --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the loops ourselves, because the order of a reduction must be ours:
// LLVM's vectoriser changes it from function to function, or needs fast-math
// flags. Here it follows from the op alone, with explicit accumulators and an
// explicit tree at the end.
//===----------------------------------------------------------------------===//

#include "passes/Lowering/CollapseLoops.h"
#include "passes/Lowering/Passes.h"
#include "passes/Lowering/VectorPlan.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEVECTORLOOPS
#include "passes/Lowering/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

/// Partial results per reduction: enough to hide the latency of an addition.
constexpr int64_t accumulatorCount = 4;

/// From this many elements on, folding costs less than going through memory in
/// another order than it lies.
constexpr int64_t longRow = 256;

/// Writes the loops of one op.
class LoopWriter {
public:
  LoopWriter(OpBuilder &builder, linalg::GenericOp op, unsigned dimension,
             int64_t width)
      : builder(builder), loc(op.getLoc()), op(op), dimension(dimension),
        width(width), sizes(op.getStaticLoopRanges()),
        counters(op.getNumLoops()) {}

  void write();

private:
  /// The part of the work on `lanes` elements from counters[dimension] on;
  /// takes and returns the accumulators.
  SmallVector<Value> step(ArrayRef<Value> accumulators, int64_t lanes);
  using Body = llvm::function_ref<SmallVector<Value>(ArrayRef<Value>)>;
  /// A loop over `dim` that carries `values`, and gives those of its end.
  SmallVector<Value> writeLoop(unsigned dim, ArrayRef<Value> values, Body body);
  void writeOuter(ArrayRef<unsigned> dims);
  void writeParallel();
  void writeReduction();
  /// The loops over `dims` and the row within them; takes and returns the
  /// accumulators, `count` for each reduction.
  SmallVector<Value> accumulate(ArrayRef<unsigned> dims,
                                SmallVector<Value> accumulators, int64_t count);
  /// Loads what does not change along the dimension, as soon as the loops that
  /// it depends on are there.
  void loadRowValues();

  bool isVector(OpOperand &operand) {
    return op.getMatchingIndexingMap(&operand).isFunctionOfDim(dimension);
  }
  /// Whether the elements along the dimension lie side by side in memory, one
  /// per `element` (booleans are bytes in memory but bits in a vector).
  bool isContiguous(Value buffer);
  SmallVector<Value> indices(OpOperand &operand, int64_t lane = 0);
  Value load(OpOperand &operand, int64_t lanes);
  void store(OpOperand &operand, Value value, int64_t lanes);
  Value loadScalar(OpOperand &operand);
  Value mask(int64_t lanes);
  VectorType vectorOf(Type element) {
    return VectorType::get({width}, element);
  }
  Value broadcast(Value scalar) {
    return vector::BroadcastOp::create(builder, loc, vectorOf(scalar.getType()),
                                       scalar);
  }
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  /// Joins a value, or a partial result, with a partial result.
  Value combine(unsigned output, Value value, Value accumulator);
  /// The same op on these operands, of whose type the result is.
  Value clone(Operation &inner, ValueRange operands);
  Value fold(unsigned output, Value vector);

  OpBuilder &builder;
  Location loc;
  linalg::GenericOp op;
  unsigned dimension;
  int64_t width;
  SmallVector<int64_t> sizes;
  /// Per loop dimension, its current index.
  SmallVector<Value> counters;
  /// Per operand without the dimension, its value in the current row.
  llvm::DenseMap<unsigned, Value> rowValues;
  /// Outputs that are folded along the dimension.
  SmallVector<unsigned> reductions;
  /// The other loops: those around a fold, and those that are folded as well.
  SmallVector<unsigned> outer, inner;
};

void LoopWriter::write() {
  for (OpOperand &init : op.getDpsInitsMutable())
    if (!isVector(init))
      reductions.push_back(init.getOperandNumber() - op.getNumDpsInputs());
  auto isFolded = [&](unsigned dim) {
    return !reductions.empty() &&
           llvm::none_of(reductions, [&](unsigned output) {
             return op.getMatchingIndexingMap(op.getDpsInitOperand(output))
                 .isFunctionOfDim(dim);
           });
  };
  // Accumulators stay in registers through the innermost loops along which no
  // folded output moves, and through all such loops where those are short.
  unsigned begin = sizes.size();
  int64_t elements = 1;
  while (begin > 0 && (begin - 1 == dimension || isFolded(begin - 1)))
    elements *= sizes[--begin];
  if (elements < longRow)
    begin = 0;
  for (unsigned dim = 0; dim < sizes.size(); ++dim)
    if (dim != dimension)
      (dim >= begin && isFolded(dim) ? inner : outer).push_back(dim);
  loadRowValues();
  writeOuter(outer);
}

void LoopWriter::loadRowValues() {
  for (OpOperand *operand : op.getDpsInputOperands()) {
    unsigned number = operand->getOperandNumber();
    AffineMap map = op.getMatchingIndexingMap(operand);
    if (isVector(*operand) || rowValues.contains(number) ||
        op.getMatchingBlockArgument(operand).use_empty())
      continue;
    bool isKnown = true;
    for (unsigned dim = 0; dim < sizes.size(); ++dim)
      isKnown &= !map.isFunctionOfDim(dim) || counters[dim];
    if (isKnown)
      rowValues[number] = broadcast(loadScalar(*operand));
  }
}

void LoopWriter::writeOuter(ArrayRef<unsigned> dims) {
  if (dims.empty())
    return reductions.empty() ? writeParallel() : writeReduction();
  writeLoop(dims.front(), {}, [&](ArrayRef<Value>) {
    writeOuter(dims.drop_front());
    return SmallVector<Value>();
  });
}

SmallVector<Value> LoopWriter::writeLoop(unsigned dim, ArrayRef<Value> values,
                                         Body body) {
  auto known = rowValues;
  SmallVector<Value> results;
  if (sizes[dim] == 1) {
    counters[dim] = index(0);
    loadRowValues();
    results = body(values);
  } else {
    auto loop = scf::ForOp::create(builder, loc, index(0), index(sizes[dim]),
                                   index(1), values);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    counters[dim] = loop.getInductionVar();
    loadRowValues();
    results = body(SmallVector<Value>(loop.getRegionIterArgs()));
    if (!values.empty())
      scf::YieldOp::create(builder, loc, results);
    results.assign(loop.result_begin(), loop.result_end());
  }
  // What was loaded in the loop is known in the loop only.
  counters[dim] = Value();
  rowValues = std::move(known);
  return results;
}

void LoopWriter::writeParallel() {
  int64_t size = sizes[dimension], full = size / width * width;
  if (full) {
    auto loop =
        scf::ForOp::create(builder, loc, index(0), index(full), index(width));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    counters[dimension] = loop.getInductionVar();
    step({}, width);
  }
  if (full == size)
    return;
  counters[dimension] = index(full);
  step({}, size - full);
}

/// What partial results begin with. None of them is NaN where NaN does not
/// count.
static TypedAttr getStart(Operation *combiner, Type element) {
  if (isa<math::FmaOp>(combiner))
    return FloatAttr::get(element, 0.0);
  if (isa<arith::MaxNumFOp, arith::MinNumFOp>(combiner)) {
    const auto &semantics = cast<FloatType>(element).getFloatSemantics();
    bool isNegative = isa<arith::MaxNumFOp>(combiner);
    return FloatAttr::get(element, APFloat::getInf(semantics, isNegative));
  }
  return *arith::getNeutralElement(combiner);
}

/// Element i of a row goes to accumulator (i / width) mod n, and the rest
/// behind the last n vectors to the first ones in turn, in all rows alike. Then
/// the accumulators are joined in pairs, then the halves of the vector.
void LoopWriter::writeReduction() {
  int64_t vectors = (sizes[dimension] + width - 1) / width;
  int64_t count = std::min(accumulatorCount, vectors);
  // accumulators[reduction * count + i]
  SmallVector<Value> accumulators;
  for (unsigned output : reductions) {
    Operation *combiner = getCombiner(op, output);
    Type element = op.getRegionOutputArgs()[output].getType();
    TypedAttr neutral = getStart(combiner, element);
    Value start = arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(vectorOf(element), neutral));
    accumulators.append(count, start);
  }
  accumulators = accumulate(inner, std::move(accumulators), count);

  for (auto [r, output] : llvm::enumerate(reductions)) {
    ArrayRef<Value> parts = ArrayRef(accumulators).slice(r * count, count);
    SmallVector<Value> level(parts);
    while (level.size() > 1) {
      SmallVector<Value> next;
      for (size_t k = 0; k + 1 < level.size(); k += 2)
        next.push_back(combine(output, level[k], level[k + 1]));
      if (level.size() % 2)
        next.push_back(level.back());
      level = next;
    }
    OpOperand &operand = *op.getDpsInitOperand(output);
    Value old = loadScalar(operand);
    Value sum = fold(output, level.front());
    Operation *combiner = getCombiner(op, output);
    // Unlike partial results, what was there may be NaN.
    Value result = isa<math::FmaOp>(combiner)
                       ? Value(arith::AddFOp::create(builder, loc, old, sum))
                       : clone(*combiner, {old, sum});
    memref::StoreOp::create(builder, loc, result, operand.get(),
                            indices(operand));
  }
}

SmallVector<Value> LoopWriter::accumulate(ArrayRef<unsigned> dims,
                                          SmallVector<Value> accumulators,
                                          int64_t count) {
  if (!dims.empty())
    return writeLoop(dims.front(), accumulators, [&](ArrayRef<Value> current) {
      return accumulate(dims.drop_front(), SmallVector<Value>(current), count);
    });
  int64_t size = sizes[dimension];
  int64_t block = count * width, full = size / block * block;
  auto advance = [&](int64_t i, int64_t lanes) {
    SmallVector<Value> current;
    for (unsigned r = 0; r < reductions.size(); ++r)
      current.push_back(accumulators[r * count + i]);
    for (auto [r, next] : llvm::enumerate(step(current, lanes)))
      accumulators[r * count + i] = next;
  };

  if (full) {
    auto loop = scf::ForOp::create(builder, loc, index(0), index(full),
                                   index(block), accumulators);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    llvm::copy(loop.getRegionIterArgs(), accumulators.begin());
    for (int64_t i = 0; i < count; ++i) {
      counters[dimension] = arith::AddIOp::create(
          builder, loc, loop.getInductionVar(), index(i * width));
      advance(i, width);
    }
    scf::YieldOp::create(builder, loc, accumulators);
    llvm::copy(loop.getResults(), accumulators.begin());
  }
  int64_t i = 0;
  for (int64_t at = full; at < size; at += width, ++i) {
    counters[dimension] = index(at);
    advance(i, std::min(width, size - at));
  }
  return accumulators;
}

/// Joins the lower and the upper half until one element is left.
Value LoopWriter::fold(unsigned output, Value vector) {
  for (int64_t half = width / 2; half >= 1; half /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < half; ++lane) {
      low.push_back(lane);
      high.push_back(lane + half);
    }
    Value a = vector::ShuffleOp::create(builder, loc, vector, vector, low);
    Value b = vector::ShuffleOp::create(builder, loc, vector, vector, high);
    vector = combine(output, a, b);
  }
  return vector::ExtractOp::create(builder, loc, vector, 0);
}

Value LoopWriter::combine(unsigned output, Value value, Value accumulator) {
  Operation *combiner = getCombiner(op, output);
  if (isa<math::FmaOp>(combiner))
    return arith::AddFOp::create(builder, loc, value, accumulator);
  if (isa<arith::MaxNumFOp, arith::MinNumFOp>(combiner)) {
    // The accumulator is never NaN, so that one instruction leaves out those
    // of the values; else it takes three.
    auto isBetter = isa<arith::MaxNumFOp>(combiner) ? arith::CmpFPredicate::OGT
                                                    : arith::CmpFPredicate::OLT;
    Value better =
        arith::CmpFOp::create(builder, loc, isBetter, value, accumulator);
    return arith::SelectOp::create(builder, loc, better, value, accumulator);
  }
  return clone(*combiner, {value, accumulator});
}

Value LoopWriter::clone(Operation &inner, ValueRange operands) {
  OperationState state(loc, inner.getName(), operands,
                       {operands.front().getType()}, inner.getAttrs());
  return builder.create(state)->getResult(0);
}

SmallVector<Value> LoopWriter::step(ArrayRef<Value> accumulators,
                                    int64_t lanes) {
  // 1. Operands.
  IRMapping mapping;
  Block *body = op.getBody();
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    if (argument.use_empty())
      continue;
    if (isVector(operand))
      mapping.map(argument, load(operand, lanes));
    else if (op.isDpsInput(&operand))
      mapping.map(argument, rowValues.lookup(operand.getOperandNumber()));
  }
  for (auto [r, output] : llvm::enumerate(reductions))
    mapping.map(op.getRegionOutputArgs()[output], accumulators[r]);

  // 2. The body on vectors; what comes from outside of it is a scalar.
  auto lookup = [&](Value value) -> Value {
    if (Value mapped = mapping.lookupOrNull(value))
      return mapped;
    Value mapped = broadcast(value);
    mapping.map(value, mapped);
    return mapped;
  };
  for (Operation &inner : body->without_terminator()) {
    if (auto number = dyn_cast<linalg::IndexOp>(inner)) {
      Value vector = broadcast(counters[number.getDim()]);
      if (number.getDim() == dimension)
        vector = arith::AddIOp::create(
            builder, loc, vector,
            vector::StepOp::create(builder, loc, vector.getType()));
      mapping.map(number.getResult(), vector);
      continue;
    }
    if (isa<arith::ConstantOp>(inner)) {
      Value constant = builder.clone(inner)->getResult(0);
      mapping.map(inner.getResult(0), broadcast(constant));
      continue;
    }
    SmallVector<Value> operands;
    for (Value operand : inner.getOperands())
      operands.push_back(lookup(operand));
    if (const auto *reduction = llvm::find_if(
            reductions,
            [&](unsigned output) { return getCombiner(op, output) == &inner; });
        reduction != reductions.end() &&
        isa<arith::MaxNumFOp, arith::MinNumFOp>(inner)) {
      Value accumulator = accumulators[reduction - reductions.begin()];
      Value value = operands[operands[0] == accumulator ? 1 : 0];
      mapping.map(inner.getResult(0), combine(*reduction, value, accumulator));
      continue;
    }
    SmallVector<Type> types;
    for (Type type : inner.getResultTypes())
      types.push_back(vectorOf(type));
    OperationState state(loc, inner.getName(), operands, types,
                         inner.getAttrs());
    Operation *clone = builder.create(state);
    mapping.map(inner.getResults(), clone->getResults());
  }

  // 3. Results.
  SmallVector<Value> next;
  Operation *yield = body->getTerminator();
  SmallVector<std::pair<OpOperand *, Value>> stores;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    unsigned output = init.getOperandNumber() - op.getNumDpsInputs();
    Value value = lookup(yield->getOperand(output));
    if (isVector(init)) {
      stores.push_back({&init, value});
      continue;
    }
    Value old = accumulators[next.size()];
    if (lanes < width)
      value = arith::SelectOp::create(builder, loc, mask(lanes), value, old);
    next.push_back(value);
  }
  for (auto [init, value] : stores)
    store(*init, value, lanes);
  return next;
}

bool LoopWriter::isContiguous(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  return type.isLastDimUnitStride() && !type.getElementType().isInteger(1);
}

SmallVector<Value> LoopWriter::indices(OpOperand &operand, int64_t lane) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  SmallVector<Value> result;
  for (AffineExpr expr : map.getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      Value counter = counters[dim.getPosition()];
      if (lane && dim.getPosition() == dimension)
        counter = arith::AddIOp::create(builder, loc, counter, index(lane));
      result.push_back(counter);
    } else if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
      result.push_back(index(constant.getValue()));
    } else {
      // The dimension itself does not occur here: see VectorPlan. Counters that
      // are not set yet do not either.
      SmallVector<Value> dims;
      for (Value counter : counters)
        dims.push_back(counter ? counter : index(0));
      AffineMap one = AffineMap::get(map.getNumDims(), 0, expr);
      result.push_back(affine::AffineApplyOp::create(builder, loc, one, dims));
    }
  }
  return result;
}

Value LoopWriter::mask(int64_t lanes) {
  SmallVector<bool> bits(width, false);
  std::fill_n(bits.begin(), lanes, true);
  return arith::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(vectorOf(builder.getI1Type()), bits));
}

Value LoopWriter::loadScalar(OpOperand &operand) {
  if (!isa<MemRefType>(operand.get().getType()))
    return operand.get();
  return memref::LoadOp::create(builder, loc, operand.get(), indices(operand));
}

Value LoopWriter::load(OpOperand &operand, int64_t lanes) {
  Value buffer = operand.get();
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  VectorType type = vectorOf(element);
  if (!isContiguous(buffer)) {
    SmallVector<Value> elements;
    for (int64_t lane = 0; lane < width; ++lane)
      elements.push_back(memref::LoadOp::create(
          builder, loc, buffer, indices(operand, std::min(lane, lanes - 1))));
    return vector::FromElementsOp::create(builder, loc, type, elements);
  }
  if (lanes == width)
    return vector::LoadOp::create(builder, loc, type, buffer, indices(operand));
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  return vector::MaskedLoadOp::create(builder, loc, type, buffer,
                                      indices(operand), mask(lanes), zero);
}

void LoopWriter::store(OpOperand &operand, Value value, int64_t lanes) {
  Value buffer = operand.get();
  if (!isContiguous(buffer)) {
    for (int64_t lane = 0; lane < lanes; ++lane)
      memref::StoreOp::create(
          builder, loc, vector::ExtractOp::create(builder, loc, value, lane),
          buffer, indices(operand, lane));
    return;
  }
  if (lanes == width)
    vector::StoreOp::create(builder, loc, value, buffer, indices(operand));
  else
    vector::MaskedStoreOp::create(builder, loc, buffer, indices(operand),
                                  mask(lanes), value);
}

struct VectorLoopsPass
    : penstock::impl::PipelineVectorLoopsBase<VectorLoopsPass> {
  using PipelineVectorLoopsBase::PipelineVectorLoopsBase;

  LogicalResult lower(RewriterBase &rewriter, linalg::LinalgOp op) {
    rewriter.setInsertionPoint(op);
    if (!op.hasPureBufferSemantics() || op.hasDynamicShape())
      return op->emitOpError("internal error: not on static buffers");
    // 1. One form for all.
    if (!isa<linalg::GenericOp>(op)) {
      FailureOr<linalg::GenericOp> generic =
          linalg::generalizeNamedOp(rewriter, op);
      if (failed(generic))
        return op->emitOpError("has no form as scalar loops");
      op = *generic;
    }
    auto generic = cast<linalg::GenericOp>(op.getOperation());
    if (llvm::is_contained(generic.getStaticLoopRanges(), 0)) {
      rewriter.eraseOp(generic);
      return success();
    }
    generic = collapseParallelLoops(rewriter, generic);
    rewriter.setInsertionPoint(generic);
    // 2. Vectors where the op allows, scalars elsewhere.
    if (std::optional<unsigned> dimension = chooseVectorDimension(generic))
      LoopWriter(rewriter, generic, *dimension, width).write();
    else if (failed(linalg::linalgOpToLoops(rewriter, generic)))
      return generic.emitOpError("has no form as scalar loops");
    rewriter.eraseOp(generic);
    return success();
  }

  void runOnOperation() override {
    if (width < 2 || (width & (width - 1)) != 0) {
      getOperation().emitError("the vector width must be a power of two, got ")
          << width.getValue();
      return signalPassFailure();
    }
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : ops)
      if (failed(lower(rewriter, op)))
        return signalPassFailure();
  }
};

} // namespace
