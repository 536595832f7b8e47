//===- DeviceTrace.cpp - What a device function does ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An interpreter for loops, tests and index arithmetic. Numbers that are no
// index or truth value are data and left out.
//===----------------------------------------------------------------------===//

#include "passes/Program/Devices/DeviceTrace.h"

#include "penstock/Support/Assert.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

class Tracer {
public:
  LogicalResult run(Block &block);
  void set(Value value, int64_t number) { numbers[value] = number; }

  std::vector<TraceEvent> events;
  /// An argument of the function.
  Value updates;
  std::optional<Shortening> shortening;

private:
  /// The length of the segment, once the device has learned that it is shorter.
  std::optional<int64_t> learned;

  LogicalResult visit(Operation *op);
  LogicalResult visitArith(Operation *op);
  LogicalResult visitCall(func::CallOp call);
  LogicalResult visitLoop(scf::ForOp loop);
  LogicalResult visitBound(BoundOp bound);
  FailureOr<int64_t> getUpperBound(scf::ForOp loop, int64_t length);
  LogicalResult add(TraceEvent::Kind kind, Operation *op,
                    FlatSymbolRefAttr symbol, Value number, ValueRange buffers);
  FailureOr<int64_t> get(Operation *user, Value value);
  FailureOr<CellRef> getCell(Operation *user, Value buffer);

  /// Which operands of a call are buffers, and what it does with them.
  struct BufferUse {
    unsigned operand;
    bool reads, writes;
  };
  FailureOr<ArrayRef<BufferUse>> getBufferUses(func::CallOp call);

  llvm::DenseMap<Value, int64_t> numbers;
  llvm::DenseMap<Value, CellRef> cells;
  SymbolTableCollection symbols;
  /// A call in a loop is looked up once.
  llvm::DenseMap<Operation *, SmallVector<BufferUse>> uses;
};

} // namespace

FailureOr<int64_t> Tracer::get(Operation *user, Value value) {
  auto it = numbers.find(value);
  if (it != numbers.end())
    return it->second;
  return user->emitError("S8: uses a number that does not follow from the "
                         "arguments of the device function");
}

FailureOr<CellRef> Tracer::getCell(Operation *user, Value buffer) {
  auto it = cells.find(buffer);
  if (it != cells.end())
    return it->second;
  return user->emitError("S8: uses a buffer that is no slot");
}

LogicalResult Tracer::add(TraceEvent::Kind kind, Operation *op,
                          FlatSymbolRefAttr symbol, Value number,
                          ValueRange buffers) {
  FailureOr<int64_t> n = get(op, number);
  if (failed(n))
    return failure();
  TraceEvent event{kind, op, symbol.getAttr(), *n, {}};
  for (Value buffer : buffers) {
    FailureOr<CellRef> cell = getCell(op, buffer);
    if (failed(cell))
      return failure();
    event.accesses.push_back(
        {*cell, kind != TraceEvent::Recv, kind != TraceEvent::Send});
  }
  events.push_back(std::move(event));
  return success();
}

FailureOr<ArrayRef<Tracer::BufferUse>>
Tracer::getBufferUses(func::CallOp call) {
  auto [it, isNew] = uses.try_emplace(call);
  if (!isNew)
    return ArrayRef<BufferUse>(it->second);
  auto callee =
      symbols.lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  PENSTOCK_ASSERT(callee && callee.getNumArguments() == call.getNumOperands(),
                  "the verifier of calls has found the function");
  for (auto [i, operand] : llvm::enumerate(call.getOperands())) {
    if (!isa<MemRefType>(operand.getType()) ||
        operand.getDefiningOp<ScratchOp>())
      continue;
    bool out = callee.getArgAttr(i, kOutAttr) != nullptr;
    bool into = callee.getArgAttr(i, kIntoAttr) != nullptr;
    it->second.push_back({static_cast<unsigned>(i), !out, out || into});
  }
  return ArrayRef<BufferUse>(it->second);
}

LogicalResult Tracer::visitCall(func::CallOp call) {
  FailureOr<ArrayRef<BufferUse>> buffers = getBufferUses(call);
  if (failed(buffers))
    return failure();
  TraceEvent event{
      TraceEvent::Call, call, call.getCalleeAttr().getAttr(), 0, {}};
  event.accesses.reserve(buffers->size());
  for (const BufferUse &use : *buffers) {
    FailureOr<CellRef> cell = getCell(call, call.getOperand(use.operand));
    if (failed(cell))
      return failure();
    event.accesses.push_back({*cell, use.reads, use.writes});
  }
  events.push_back(std::move(event));
  return success();
}

LogicalResult Tracer::visitLoop(scf::ForOp loop) {
  FailureOr<int64_t> lower = get(loop, loop.getLowerBound());
  FailureOr<int64_t> upper = get(loop, loop.getUpperBound());
  FailureOr<int64_t> step = get(loop, loop.getStep());
  if (failed(lower) || failed(upper) || failed(step))
    return failure();
  if (*step <= 0 || loop.getNumRegionIterArgs())
    return loop.emitError("S8: loops of device functions count upwards and "
                          "carry no values");
  for (int64_t i = *lower; i < *upper; i += *step) {
    set(loop.getInductionVar(), i);
    if (failed(run(*loop.getBody())))
      return failure();
    if (!learned || !isa<func::FuncOp>(loop->getParentOp()))
      continue;
    upper = getUpperBound(loop, *learned);
    if (failed(upper))
      return failure();
  }
  return success();
}

/// Where the loop ends in a segment of so many updates. What the loop itself
/// computes from the function's argument keeps its value.
FailureOr<int64_t> Tracer::getUpperBound(scf::ForOp loop, int64_t length) {
  const auto saved = numbers;
  set(updates, length);
  for (Operation &op : *loop->getBlock())
    if (isa<arith::ArithDialect>(op.getDialect()) && failed(visitArith(&op)))
      return failure();
  FailureOr<int64_t> upper = get(loop, loop.getUpperBound());
  numbers = saved;
  return upper;
}

LogicalResult Tracer::visitBound(BoundOp bound) {
  FailureOr<int64_t> least = get(bound, bound.getLeast());
  if (failed(least))
    return failure();
  if (shortening && *least >= shortening->reached)
    learned = shortening->updates;
  set(bound, learned.value_or(numbers.lookup(updates)));
  return success();
}

/// Index arithmetic. Everything else is left unknown, an error where it is used
/// as a number.
LogicalResult Tracer::visitArith(Operation *op) {
  if (op->getNumResults() != 1 || !op->getResult(0).getType().isIntOrIndex())
    return success();
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (auto value = dyn_cast<IntegerAttr>(constant.getValue()))
      set(constant, value.getType().isInteger(1)
                        ? value.getValue().getBoolValue()
                        : value.getInt());
    return success();
  }
  SmallVector<int64_t, 3> in;
  for (Value operand : op->getOperands()) {
    auto it = numbers.find(operand);
    if (it == numbers.end())
      return success();
    in.push_back(it->second);
  }
  auto low = [&](unsigned i) { return static_cast<uint64_t>(in[i]); };
  bool divides =
      isa<arith::DivUIOp, arith::RemUIOp, arith::DivSIOp, arith::RemSIOp>(op);
  if (divides && in[1] == 0)
    return op->emitError("S8: divides by zero");
  Value result = op->getResult(0);
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    set(result, arith::applyCmpPredicate(compare.getPredicate(),
                                         APInt(64, low(0)), APInt(64, low(1))));
    return success();
  }
  std::optional<uint64_t> value =
      llvm::TypeSwitch<Operation *, std::optional<uint64_t>>(op)
          .Case<arith::AddIOp>([&](auto) { return low(0) + low(1); })
          .Case<arith::SubIOp>([&](auto) { return low(0) - low(1); })
          .Case<arith::MulIOp>([&](auto) { return low(0) * low(1); })
          .Case<arith::DivUIOp>([&](auto) { return low(0) / low(1); })
          .Case<arith::RemUIOp>([&](auto) { return low(0) % low(1); })
          .Case<arith::DivSIOp>([&](auto) { return in[0] / in[1]; })
          .Case<arith::RemSIOp>([&](auto) { return in[0] % in[1]; })
          .Case<arith::MaxSIOp>([&](auto) { return std::max(in[0], in[1]); })
          .Case<arith::MinSIOp>([&](auto) { return std::min(in[0], in[1]); })
          .Case<arith::MaxUIOp>([&](auto) { return std::max(low(0), low(1)); })
          .Case<arith::MinUIOp>([&](auto) { return std::min(low(0), low(1)); })
          .Case<arith::AndIOp>([&](auto) { return low(0) & low(1); })
          .Case<arith::OrIOp>([&](auto) { return low(0) | low(1); })
          .Case<arith::XOrIOp>([&](auto) { return low(0) ^ low(1); })
          .Case<arith::IndexCastOp>([&](auto) { return low(0); })
          .Case<arith::SelectOp>([&](auto) { return low(0) ? low(1) : low(2); })
          .Default([](Operation *) { return std::nullopt; });
  if (value)
    set(result, static_cast<int64_t>(*value));
  return success();
}

LogicalResult Tracer::visit(Operation *op) {
  if (auto slot = dyn_cast<SlotOp>(op)) {
    FailureOr<int64_t> number = get(slot, slot.getNumber());
    if (failed(number))
      return failure();
    if (*number < 0)
      return slot.emitError("S8: names the slot of a negative number");
    cells[slot] = {slot.getSymbolAttr().getAttr(), *number,
                   static_cast<int64_t>(slot.getRing().value_or(1)),
                   static_cast<int32_t>(slot.getField().value_or(0))};
    return success();
  }
  if (auto recv = dyn_cast<StartRecvOp>(op))
    return add(TraceEvent::Recv, op, recv.getChannelAttr(), recv.getNumber(),
               recv.getBuffer());
  if (auto send = dyn_cast<StartSendOp>(op))
    return add(TraceEvent::Send, op, send.getChannelAttr(), send.getNumber(),
               send.getBuffer());
  if (auto await = dyn_cast<AwaitOp>(op))
    return add(TraceEvent::Await, op, await.getChannelAttr(), await.getNumber(),
               ValueRange());
  if (auto sum = dyn_cast<StartAllReduceOp>(op))
    return add(TraceEvent::Sum, op, sum.getGroupAttr(), sum.getNumber(),
               sum.getBuffers());
  if (auto bound = dyn_cast<BoundOp>(op))
    return visitBound(bound);
  if (auto mark = dyn_cast<MarkOp>(op))
    return add(TraceEvent::Mark, op, mark.getTaskAttr(), mark.getNumber(),
               ValueRange());
  if (auto call = dyn_cast<func::CallOp>(op))
    return visitCall(call);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return visitLoop(loop);
  if (auto test = dyn_cast<scf::IfOp>(op)) {
    FailureOr<int64_t> condition = get(test, test.getCondition());
    if (failed(condition))
      return failure();
    if (test.getNumResults())
      return test.emitError("S8: tests of device functions have no results");
    if (*condition)
      return run(*test.thenBlock());
    return test.elseBlock() ? run(*test.elseBlock()) : success();
  }
  if (isa<arith::ArithDialect>(op->getDialect()))
    return visitArith(op);
  if (isa<scf::YieldOp, func::ReturnOp, ScratchOp, HyperparameterOp>(op) ||
      isMemoryEffectFree(op))
    return success();
  return op->emitError("S8: has no place in a device function");
}

LogicalResult Tracer::run(Block &block) {
  for (Operation &op : block)
    if (failed(visit(&op)))
      return failure();
  return success();
}

FailureOr<std::vector<TraceEvent>>
penstock::traceDevice(func::FuncOp function, int64_t first, int64_t updates,
                      int64_t newest, std::optional<Shortening> shortening) {
  Tracer tracer;
  if (function.isDeclaration() || function.getNumArguments() < 2 ||
      function.getNumArguments() > 3 || !function.getBody().hasOneBlock())
    return function.emitError("S8: the function of a device takes the first "
                              "update and their number");
  const int64_t numbers[] = {first, updates, newest};
  for (auto [argument, number] : llvm::zip(function.getArguments(), numbers))
    tracer.set(argument, number);
  tracer.updates = function.getArgument(1);
  tracer.shortening = shortening;
  if (failed(tracer.run(function.getBody().front())))
    return failure();
  return std::move(tracer.events);
}

static bool countsMicrobatches(const TraceEvent &event,
                               SymbolTableCollection &symbols) {
  if (event.kind != TraceEvent::Mark)
    return event.kind != TraceEvent::Sum;
  auto task = symbols.lookupNearestSymbolFrom<TaskOp>(event.op, event.symbol);
  return task && task.countsMicrobatches();
}

FailureOr<int64_t> penstock::getUpdatesUntilSteady(func::FuncOp function,
                                                   int64_t microbatches) {
  constexpr int64_t kMost = 1 << 20;
  SymbolTableCollection symbols;
  for (int64_t updates = 1; updates * microbatches <= kMost; updates *= 2) {
    FailureOr<std::vector<TraceEvent>> trace =
        traceDevice(function, 0, updates, 0);
    if (failed(trace))
      return failure();
    // The number that some have come to when the last of them begins.
    int64_t furthest = 0, lead = 0;
    llvm::DenseSet<std::pair<int, Attribute>> begun;
    for (const TraceEvent &event : *trace) {
      if (event.kind == TraceEvent::Call || event.kind == TraceEvent::Await)
        continue;
      if (begun.insert({event.kind, event.symbol}).second &&
          countsMicrobatches(event, symbols))
        lead = furthest;
      furthest = std::max(furthest, event.number);
    }
    // Behind the last update, all of them have begun however short it was.
    if (lead + 1 < updates * microbatches)
      return (lead + microbatches) / microbatches;
  }
  return function.emitError("S8: begins to do something only when all else is "
                            "done, however long the segment");
}
