//===- GpuRows.cpp - Rows shared by the threads of a warp or block --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A team of threads goes through a row side by side. Numbers of the row, such
// as its maximum, are in a register of each thread, and one thread stores them
// at the end. An element is always the same thread's, unless ops see the row in
// different order: then the team waits between them.
//===----------------------------------------------------------------------===//

#include "passes/Cuda/KernelOp.h"
#include "passes/Cuda/LaunchSizes.h"
#include "passes/Cuda/Passes.h"
#include "passes/Cuda/RowTeams.h"
#include "passes/Cuda/ScalarBody.h"
#include "passes/Cuda/ThreadLoops.h"
#include "passes/Kernels/ReductionOrder.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEGPUROWS
#include "passes/Cuda/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

/// Partial sums of a thread, so that one addition need not wait for another.
constexpr int64_t kAccumulators = kVectorElements;

/// An access of the threads to the elements of a row.
struct RowUse {
  Value buffer;
  AffineMap map;
  SmallVector<int64_t> sizes;

  /// Returns whether each thread has the same elements in both.
  bool hasSameOwners(const RowUse &other) const {
    return map == other.map && sizes == other.sizes;
  }
};

class RowMapper {
public:
  RowMapper(gpu::GPUFuncOp kernel, scf::ForallOp forall)
      : builder(forall), loc(forall.getLoc()), kernel(kernel), forall(forall) {}

  LogicalResult map();

private:
  void enterRow();
  LogicalResult writeOp(linalg::GenericOp op);
  void writeNumbers(linalg::GenericOp op, ArrayRef<Value> indices);
  void writeElements(linalg::GenericOp op, const RowLoops &loops,
                     SmallVector<Value> indices);
  void storeNumbers();

  bool isWarp() const { return team == kWarpThreads; }
  /// The number of a row that `buffer` has.
  Value getNumber(ScalarBody &body, OpOperand &operand,
                  ArrayRef<Value> indices);
  static bool isNumber(Value buffer) {
    auto type = dyn_cast<MemRefType>(buffer.getType());
    return type && type.getNumElements() == 1;
  }
  void setNumber(Value buffer, Value number) {
    numbers[buffer] = number;
    changed.insert(buffer);
  }

  /// Waits for the team where an op touches elements that were another thread's
  /// before.
  void protect(linalg::GenericOp op, ScalarBody &body);
  void waitForTeam();
  Value combine(Operation *combiner, Value a, Value b) {
    return combinePartials(builder, combiner, a, b);
  }
  Value combineTeam(Operation *combiner, Value value);
  Value shuffle(Value value, int64_t distance);

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  OpBuilder builder;
  Location loc;
  gpu::GPUFuncOp kernel;
  scf::ForallOp forall;
  /// Threads per row, and the number of this one among them.
  int64_t team = kWarpThreads;
  Value thread;
  /// In a block: the warp, and the thread's number within.
  Value warp, lane;
  llvm::DenseMap<Value, Value> numbers;
  llvm::SmallSetVector<Value, 4> changed;
  /// Since the team has waited.
  SmallVector<RowUse> reads, writes;
  SmallVector<Value> numberReads;
};

//===----------------------------------------------------------------------===//
// Teams
//===----------------------------------------------------------------------===//

void RowMapper::waitForTeam() {
  if (isWarp()) {
    Value all = arith::ConstantIntOp::create(builder, loc, -1, 32);
    NVVM::SyncWarpOp::create(builder, loc, all);
  } else {
    gpu::BarrierOp::create(builder, loc);
  }
  reads.clear();
  writes.clear();
  numberReads.clear();
}

Value RowMapper::shuffle(Value value, int64_t distance) {
  Type type = value.getType();
  Type i32 = builder.getI32Type();
  bool isNarrow = type.getIntOrFloatBitWidth() < 32;
  Type integer = builder.getIntegerType(type.getIntOrFloatBitWidth());
  if (isNarrow && !type.isInteger())
    value = arith::BitcastOp::create(builder, loc, integer, value);
  if (isNarrow)
    value = arith::ExtUIOp::create(builder, loc, i32, value);
  value = gpu::ShuffleOp::create(
              builder, loc, value, static_cast<int32_t>(distance),
              static_cast<int32_t>(kWarpThreads), gpu::ShuffleMode::XOR)
              .getShuffleResult();
  if (isNarrow)
    value = arith::TruncIOp::create(builder, loc, integer, value);
  if (isNarrow && !type.isInteger())
    value = arith::BitcastOp::create(builder, loc, type, value);
  return value;
}

/// The sum over the team, the same in each thread: of a warp by halves, of
/// warps in their order.
Value RowMapper::combineTeam(Operation *combiner, Value value) {
  for (int64_t distance = kWarpThreads / 2; distance > 0; distance /= 2)
    value = combine(combiner, value, shuffle(value, distance));
  if (isWarp())
    return value;
  // Each sum has memory of its own: nobody waits for those that still read.
  constexpr unsigned kShared = 3;
  int64_t warps = team / kWarpThreads;
  auto type = MemRefType::get({warps}, value.getType(), AffineMap(),
                              builder.getI64IntegerAttr(kShared));
  Value shared = kernel.addWorkgroupAttribution(type, loc);
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        lane, index(0));
  auto guard = scf::IfOp::create(builder, loc, isFirst);
  {
    OpBuilder::InsertionGuard outside(builder);
    builder.setInsertionPointToStart(guard.thenBlock());
    memref::StoreOp::create(builder, loc, value, shared, warp);
  }
  waitForTeam();
  for (int64_t i = 0; i < warps; ++i) {
    Value part = memref::LoadOp::create(builder, loc, shared, index(i));
    value = i == 0 ? part : combine(combiner, value, part);
  }
  return value;
}

//===----------------------------------------------------------------------===//
// What threads touch
//===----------------------------------------------------------------------===//

/// Returns true if the written buffer may be the one that was read under
/// another name: a new weight in the place of the old one.
static bool mayBeSame(Value read, Value written) {
  return read == written || read.getType() == written.getType();
}

void RowMapper::protect(linalg::GenericOp op, ScalarBody &body) {
  SmallVector<RowUse> newReads, newWrites;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()) || isNumber(operand.get()))
      continue;
    RowUse use{operand.get(), op.getMatchingIndexingMap(&operand),
               op.getStaticLoopRanges()};
    if (body.reads(operand))
      newReads.push_back(use);
    if (op.isDpsInit(&operand))
      newWrites.push_back(use);
  }
  auto conflicts = [](ArrayRef<RowUse> before, ArrayRef<RowUse> after,
                      bool isReadBefore) {
    return llvm::any_of(before, [&](const RowUse &a) {
      return llvm::any_of(after, [&](const RowUse &b) {
        bool isSame =
            isReadBefore ? mayBeSame(a.buffer, b.buffer) : a.buffer == b.buffer;
        return isSame && !a.hasSameOwners(b);
      });
    });
  };
  if (conflicts(writes, newReads, false) ||
      conflicts(writes, newWrites, false) || conflicts(reads, newWrites, true))
    waitForTeam();
  llvm::append_range(reads, newReads);
  llvm::append_range(writes, newWrites);
}

Value RowMapper::getNumber(ScalarBody &body, OpOperand &operand,
                           ArrayRef<Value> indices) {
  if (!isa<MemRefType>(operand.get().getType()))
    return operand.get();
  Value &number = numbers[operand.get()];
  if (!number) {
    number = body.load(operand, indices);
    numberReads.push_back(operand.get());
  }
  return number;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// An op on the numbers of a row: each thread computes them.
void RowMapper::writeNumbers(linalg::GenericOp op, ArrayRef<Value> indices) {
  ScalarBody body(builder, op);
  SmallVector<Value> elements;
  for (OpOperand &operand : op->getOpOperands())
    elements.push_back(body.reads(operand) ? getNumber(body, operand, indices)
                                           : Value());
  for (auto [init, value] :
       llvm::zip_equal(op.getDpsInits(), body.compute(elements, indices)))
    setNumber(init, value);
}

/// Writes one op's loop over the elements of a row. Thread t has vectors t,
/// t + team, .. where rows are of whole vectors, and elements t, t + team, ..
/// otherwise, in four turns with a sum each.
class ElementLoop {
public:
  using Indices = SmallVector<SmallVector<Value>>;
  /// Takes the indices of kAccumulators elements, or fewer, and the sums so
  /// far; returns the next ones.
  using Body = function_ref<SmallVector<Value>(const Indices &, ValueRange)>;

  ElementLoop(OpBuilder &builder, Location loc, ArrayRef<int64_t> sizes,
              const RowLoops &loops, int64_t team, Value thread)
      : builder(builder), loc(loc), loops(loops), team(team), thread(thread) {
    for (unsigned dim : loops.inner)
      inner.push_back(sizes[dim]);
    isVector = inner.back() % kVectorElements == 0;
  }

  bool hasVectors() const { return isVector; }
  SmallVector<Value> write(ArrayRef<Value> indices, SmallVector<Value> sums,
                           Body body);

private:
  /// The indices of the elements of turn `turn`, from `begin` to `end`.
  Indices locate(ArrayRef<Value> indices, Value turn, int64_t begin,
                 int64_t end);
  SmallVector<Value> writeGuarded(Value isMine, SmallVector<Value> sums,
                                  function_ref<SmallVector<Value>()> body);
  Value isBelow(int64_t bound) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                 thread, index(bound));
  }
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  OpBuilder &builder;
  Location loc;
  const RowLoops &loops;
  int64_t team;
  Value thread;
  SmallVector<int64_t> inner;
  bool isVector;
};

ElementLoop::Indices ElementLoop::locate(ArrayRef<Value> indices, Value turn,
                                         int64_t begin, int64_t end) {
  auto multiply = [&](Value value, int64_t by) {
    return arith::MulIOp::create(builder, loc, value, index(by)).getResult();
  };
  auto add = [&](Value a, Value b) {
    return arith::AddIOp::create(builder, loc, a, b).getResult();
  };
  Indices result;
  for (int64_t i = begin; i < end; ++i) {
    SmallVector<Value> own(indices);
    Value element;
    if (isVector) {
      // Only the first one: the others follow along the last loop.
      element = multiply(add(multiply(turn, team), thread), kVectorElements);
    } else {
      element = multiply(turn, team * kAccumulators);
      element = add(add(element, index(i * team)), thread);
    }
    for (auto [dim, value] : llvm::zip_equal(
             loops.inner, delinearize(builder, loc, element, inner)))
      own[dim] = value;
    if (!isVector) {
      result.push_back(std::move(own));
      continue;
    }
    for (int64_t j = 0; j < kVectorElements; ++j) {
      result.push_back(own);
      Value &last = result.back()[loops.inner.back()];
      if (j)
        last = add(last, index(j));
    }
    break;
  }
  return result;
}

SmallVector<Value>
ElementLoop::writeGuarded(Value isMine, SmallVector<Value> sums,
                          function_ref<SmallVector<Value>()> body) {
  SmallVector<Type> types(ValueRange(sums).getTypes());
  auto guard = scf::IfOp::create(builder, loc, types, isMine,
                                 /*withElseRegion=*/!sums.empty());
  OpBuilder::InsertionGuard outside(builder);
  builder.setInsertionPointToStart(guard.thenBlock());
  SmallVector<Value> next = body();
  if (!sums.empty()) {
    scf::YieldOp::create(builder, loc, next);
    builder.setInsertionPointToStart(guard.elseBlock());
    scf::YieldOp::create(builder, loc, sums);
  }
  return SmallVector<Value>(guard.getResults());
}

SmallVector<Value> ElementLoop::write(ArrayRef<Value> indices,
                                      SmallVector<Value> sums, Body body) {
  // 1. Turns in which every thread has all of its elements.
  int64_t turn = team * kAccumulators, turns = loops.elements / turn;
  if (turns > 0) {
    auto loop = scf::ForOp::create(builder, loc, index(0), index(turns),
                                   index(1), sums);
    OpBuilder::InsertionGuard outside(builder);
    builder.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> next =
        body(locate(indices, loop.getInductionVar(), 0, kAccumulators),
             loop.getRegionIterArgs());
    if (!sums.empty())
      scf::YieldOp::create(builder, loc, next);
    sums = SmallVector<Value>(loop.getResults());
  }

  // 2. The rest.
  int64_t rest = loops.elements % turn;
  if (rest == 0)
    return sums;
  Value last = index(turns);
  if (isVector)
    return writeGuarded(isBelow(rest / kVectorElements), sums, [&] {
      return body(locate(indices, last, 0, kAccumulators), sums);
    });
  size_t perSum = sums.size() / kAccumulators;
  for (int64_t i = 0; i * team < rest; ++i) {
    // One element: only its own sums take part.
    SmallVector<Value> own;
    for (size_t s = 0; s < perSum; ++s)
      own.push_back(sums[s * kAccumulators + i]);
    auto step = [&] { return body(locate(indices, last, i, i + 1), own); };
    SmallVector<Value> next =
        rest - i * team >= team
            ? step()
            : writeGuarded(isBelow(rest - i * team), own, step);
    for (size_t s = 0; s < perSum; ++s)
      sums[s * kAccumulators + i] = next[s];
  }
  return sums;
}

void RowMapper::writeElements(linalg::GenericOp op, const RowLoops &loops,
                              SmallVector<Value> indices) {
  ScalarBody body(builder, op);
  protect(op, body);

  // 1. What all elements of the row share.
  SmallVector<Value> shared(op->getNumOperands());
  for (OpOperand &operand : op->getOpOperands())
    if (body.reads(operand) && !op.isDpsInit(&operand) &&
        (!isa<MemRefType>(operand.get().getType()) || isNumber(operand.get())))
      shared[operand.getOperandNumber()] = getNumber(body, operand, indices);

  // 2. Sums, which begin with what adds nothing.
  SmallVector<std::pair<OpOperand *, Operation *>> reductions;
  SmallVector<Value> sums;
  for (auto [number, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    if (isAlongRow(op, init, loops))
      continue;
    Operation *combiner = getCombiner(op, number);
    reductions.emplace_back(&init, combiner);
    Value neutral =
        arith::ConstantOp::create(builder, loc, getNeutral(combiner));
    sums.append(kAccumulators, neutral);
  }

  // 3. Elements: all of a turn are read before any is written.
  ElementLoop loop(builder, loc, op.getStaticLoopRanges(), loops, team, thread);
  unsigned last = loops.inner.back();
  auto step = [&](const ElementLoop::Indices &at,
                  ValueRange current) -> SmallVector<Value> {
    size_t count = at.size();
    SmallVector<SmallVector<Value>> elements(
        count, SmallVector<Value>(op->getNumOperands()));
    for (OpOperand &operand : op->getOpOperands()) {
      unsigned number = operand.getOperandNumber();
      bool isSum = llvm::any_of(
          reductions, [&](auto &sum) { return sum.first == &operand; });
      if (isSum || !body.reads(operand))
        continue;
      SmallVector<Value> values;
      if (shared[number])
        values.assign(count, shared[number]);
      else if (loop.hasVectors())
        values = body.loadVector(operand, at[0], last);
      else
        for (ArrayRef<Value> own : at)
          values.push_back(body.load(operand, own));
      for (auto [own, value] : llvm::zip_equal(elements, values))
        own[number] = value;
    }
    SmallVector<Value> next(current);
    SmallVector<SmallVector<Value>> results(op.getNumDpsInits());
    for (size_t i = 0; i < count; ++i) {
      for (auto [s, sum] : llvm::enumerate(reductions))
        elements[i][sum.first->getOperandNumber()] = current[s * count + i];
      SmallVector<Value> computed = body.compute(elements[i], at[i]);
      size_t s = 0;
      for (auto [number, init] : llvm::enumerate(op.getDpsInitsMutable())) {
        if (isAlongRow(op, init, loops))
          results[number].push_back(computed[number]);
        else
          next[s++ * count + i] = computed[number];
      }
    }
    for (auto [number, init] : llvm::enumerate(op.getDpsInitsMutable())) {
      if (!isAlongRow(op, init, loops))
        continue;
      if (loop.hasVectors())
        body.storeVector(init, results[number], at[0], last);
      else
        for (auto [own, value] : llvm::zip_equal(at, results[number]))
          body.store(init, value, own);
    }
    return next;
  };
  sums = loop.write(indices, std::move(sums), step);

  // 4. The row's sums. What was there before is added once, by the first
  // thread.
  for (auto [s, sum] : llvm::enumerate(reductions)) {
    auto [init, combiner] = sum;
    ArrayRef<Value> parts =
        ArrayRef(sums).slice(s * kAccumulators, kAccumulators);
    Value value = combine(combiner, combine(combiner, parts[0], parts[1]),
                          combine(combiner, parts[2], parts[3]));
    Value old = getNumber(body, *init, indices);
    Value isFirst = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::eq, thread, index(0));
    value = arith::SelectOp::create(builder, loc, isFirst,
                                    combine(combiner, old, value), value);
    setNumber(init->get(), combineTeam(combiner, value));
  }
}

LogicalResult RowMapper::writeOp(linalg::GenericOp op) {
  // The loops over rows have one iteration.
  std::optional<RowLoops> loops = getRowLoops(op, 0);
  if (!loops)
    return op.emitOpError("internal error: a team of threads cannot share its "
                          "rows");
  loc = op.getLoc();
  SmallVector<Value> indices(op.getNumLoops(), index(0));
  if (loops->inner.empty())
    writeNumbers(op, indices);
  else
    writeElements(op, *loops, std::move(indices));
  return success();
}

void RowMapper::storeNumbers() {
  // Others may still have to load.
  bool isRead = llvm::any_of(numberReads, [&](Value read) {
    return llvm::any_of(
        changed, [&](Value written) { return mayBeSame(read, written); });
  });
  if (isRead)
    waitForTeam();
  if (changed.empty())
    return;
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        thread, index(0));
  auto guard = scf::IfOp::create(builder, loc, isFirst);
  builder.setInsertionPointToStart(guard.thenBlock());
  for (Value buffer : changed) {
    SmallVector<Value> zeros(cast<MemRefType>(buffer.getType()).getRank(),
                             index(0));
    memref::StoreOp::create(builder, loc, numbers[buffer], buffer, zeros);
  }
}

void RowMapper::enterRow() {
  SmallVector<int64_t> counts =
      *getConstantIntValues(forall.getMixedUpperBound());
  int64_t rows = ShapedType::getNumElements(counts);
  int64_t rowsPerBlock = isWarp() ? kBlockThreads / kWarpThreads : 1;
  Value block = gpu::BlockIdOp::create(builder, loc, gpu::Dimension::x);
  thread = gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x);
  warp = arith::DivUIOp::create(builder, loc, thread, index(kWarpThreads));
  lane = arith::RemUIOp::create(builder, loc, thread, index(kWarpThreads));
  Value row = block;
  if (isWarp()) {
    thread = lane;
    row = arith::AddIOp::create(
        builder, loc,
        arith::MulIOp::create(builder, loc, block, index(rowsPerBlock)), warp);
    if (rows % rowsPerBlock) {
      Value isRow = arith::CmpIOp::create(
          builder, loc, arith::CmpIPredicate::ult, row, index(rows));
      auto guard = scf::IfOp::create(builder, loc, isRow);
      builder.setInsertionPointToStart(guard.thenBlock());
    }
  }
  IRMapping mapping;
  mapping.map(forall.getInductionVars(),
              delinearize(builder, loc, row, counts));
  for (Operation &inner : forall.getBody()->without_terminator())
    builder.clone(inner, mapping);
}

LogicalResult RowMapper::map() {
  // 1. Threads.
  bool hasBlocks = llvm::all_of(*forall.getMapping(),
                                llvm::IsaPred<gpu::GPUBlockMappingAttr>);
  if (hasBlocks)
    for (auto op : forall.getBody()->getOps<linalg::GenericOp>()) {
      std::optional<RowLoops> loops = getRowLoops(op, 0);
      if (loops && loops->isReduction)
        team = std::max(team, getTeamThreads(loops->elements));
    }
  std::optional<SmallVector<int64_t>> counts =
      getConstantIntValues(forall.getMixedUpperBound());
  if (!counts || !forall.isNormalized() || hasBlocks == isWarp())
    return forall.emitOpError("internal error: rows of unknown number or size");
  int64_t rows = ShapedType::getNumElements(*counts);
  int64_t rowsPerBlock = isWarp() ? kBlockThreads / kWarpThreads : 1;
  if (failed(setLaunchSizes(kernel, (rows + rowsPerBlock - 1) / rowsPerBlock,
                            team * rowsPerBlock)))
    return failure();

  // 2. A row of each team.
  enterRow();
  SmallVector<linalg::GenericOp> ops;
  kernel.walk([&](linalg::GenericOp op) {
    if (!forall->isAncestor(op))
      ops.push_back(op);
  });
  Block *end = builder.getInsertionBlock();
  for (linalg::GenericOp op : ops) {
    builder.setInsertionPoint(op);
    if (failed(writeOp(op)))
      return failure();
    op.erase();
  }
  builder.setInsertionPoint(end->getTerminator());
  storeNumbers();
  forall.erase();
  return success();
}

struct GpuRowsPass : penstock::impl::PipelineGpuRowsBase<GpuRowsPass> {
  void runOnOperation() override {
    auto map = [](gpu::GPUFuncOp kernel, Operation *op) -> LogicalResult {
      auto forall = dyn_cast<scf::ForallOp>(op);
      if (!forall || !forall.getMapping() || forall.getMapping()->empty())
        return success();
      return RowMapper(kernel, forall).map();
    };
    if (failed(mapKernels(getOperation(), map)))
      signalPassFailure();
  }
};

} // namespace
