//===- DeviceBuilder.cpp - Loops of a device function ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `ahead` of an entry becomes an offset of the loop counter with a range test,
// `every` a remainder test. Index arithmetic is made once per block, constants
// once per function, so that the printed program stays short.
//===----------------------------------------------------------------------===//

#include "passes/Program/Devices/DeviceBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

void penstock::nameArgument(Value argument, StringRef name) {
  argument.setLoc(NameLoc::get(StringAttr::get(argument.getContext(), name)));
}

//===----------------------------------------------------------------------===//
// Index arithmetic
//===----------------------------------------------------------------------===//

Value DeviceBuilder::constant(int64_t value) {
  Value &known = constants[value];
  if (!known) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&function.front());
    known = arith::ConstantIndexOp::create(builder, loc, value);
  }
  return known;
}

Value DeviceBuilder::scale(Value value, int64_t factor) {
  if (factor == 1)
    return value;
  Value other = constant(factor);
  Value &known = products[{value, factor}];
  if (known)
    return known;
  OpBuilder::InsertionGuard guard(builder);
  if (value.getParentBlock() == &function.front())
    // Constants are at the start; do not go before them.
    builder.setInsertionPointAfterValue(value.getDefiningOp() ? value : other);
  else
    builder.setInsertionPointAfterValue(value);
  return known = arith::MulIOp::create(builder, loc, value, other);
}

Value DeviceBuilder::add(Value value, int64_t other) {
  if (other == 0)
    return value;
  if (other < 0)
    return emit<arith::SubIOp>(value, constant(-other));
  return emit<arith::AddIOp>(value, constant(other));
}

Value DeviceBuilder::toGlobal(Value n, Share share) {
  return add(scale(n, share.count), share.index);
}

Value DeviceBuilder::getNumber(Operation *entry) {
  const Number &number = numbers.find(entry)->second;
  if (turn) {
    std::optional<int64_t> every = getPeriod(entry);
    if (every && *every > 1)
      return emit<arith::DivUIOp>(turn, constant(*every));
    // With one entry per task and channel, the microbatch itself.
    if (number.perIteration == 1)
      return turn;
  }
  Value value = scale(turn ? turn : update, number.perIteration);
  for (auto [index, factor] : llvm::zip_equal(indices, number.factors))
    if (factor)
      value = emit<arith::AddIOp>(value, scale(index, factor));
  return add(value, number.base);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

LogicalResult DeviceBuilder::run(OrderOp order) {
  loc = order.getLoc();
  device = static_cast<int64_t>(order.getDevice());
  // Stages that share a device have equally many replicas.
  ownMicrobatches = microbatches;
  WalkResult found = order.walk([&](RunOp run) {
    auto task = storage.lookup<TaskOp>(run, run.getTaskAttr());
    if (!task)
      return WalkResult::interrupt();
    ownMicrobatches = microbatches / storage.getShare(task, device).count;
    return WalkResult::advance();
  });
  if (found.wasInterrupted())
    return failure();
  Type index = builder.getIndexType();
  builder.setInsertionPoint(schedule);
  function = func::FuncOp::create(
      builder, loc, (schedule.getSymName() + "." + Twine(device)).str(),
      builder.getFunctionType({index, index}, {}));
  // The name may be taken, by an initializer of the model.
  function->remove();
  symbols.getSymbolTable(schedule->getParentOp())
      .insert(function, schedule->getIterator());
  function->setAttr(kScheduleAttr, FlatSymbolRefAttr::get(schedule));
  function->setAttr(kDeviceAttr, builder.getI64IntegerAttr(device));
  Block *entryBlock = function.addEntryBlock();
  first = entryBlock->getArgument(0);
  nameArgument(first, "first");
  nameArgument(entryBlock->getArgument(1), "updates");
  updates = entryBlock->getArgument(1);
  builder.setInsertionPointToEnd(entryBlock);
  func::ReturnOp::create(builder, loc);
  builder.setInsertionPoint(entryBlock->getTerminator());
  firstWave = first;
  first = scale(first, wave);
  updates = scale(updates, wave);

  for (auto repeat : order.getBody().getOps<RepeatOp>())
    if (failed(emitOutermost(repeat)))
      return failure();
  return success();
}

LogicalResult DeviceBuilder::emitOutermost(RepeatOp repeat) {
  auto numbered = numberEntries(repeat);
  if (failed(numbered))
    return failure();
  numbers = std::move(*numbered);

  bool open = repeat.getKind() == RepeatKind::Microbatches;
  int64_t step = open ? static_cast<int64_t>(repeat.getCount().value_or(1)) : 1;
  if (ownMicrobatches % step != 0)
    return repeat.emitError() << "S1: goes on by " << step
                              << " microbatches, which do not divide the "
                              << ownMicrobatches << " of an update";
  int64_t turns = open ? ownMicrobatches / step : 1;
  for (auto &[entry, number] : numbers) {
    if (auto run = dyn_cast<RunOp>(entry)) {
      auto task = storage.lookup<TaskOp>(run, run.getTaskAttr());
      if (!task)
        return failure();
      int64_t expected = !task.countsMicrobatches() ? 1
                         : open                     ? step
                                                    : ownMicrobatches;
      if (number.perIteration != expected)
        return run.emitError()
               << "S1: " << run.getTaskAttr() << " runs " << number.perIteration
               << " times instead of " << expected << " in one iteration";
      std::optional<int64_t> every = getPeriod(run);
      int64_t period = task.countsMicrobatches() ? 1
                       : task.countsWaves()      ? turns * wave
                                                 : turns;
      if (open && every.value_or(1) != period)
        return run.emitError()
               << "S1: " << run.getTaskAttr() << " must run once in every "
               << period * step << " microbatches";
    } else if (int64_t expected = isa<AllReduceOp>(entry) ? 1 : step;
               open && number.perIteration != expected) {
      return entry->emitError("S1: ")
             << number.perIteration << " entries instead of " << expected
             << " for one channel or group in one iteration of a loop over "
                "microbatches";
    }
  }

  // Without entries that run ahead, the counter is the update or microbatch
  // itself; else it counts from 0.
  Block &body = repeat.getBody().front();
  LoopRange range = LoopRange::get(body);
  Value count = scale(updates, turns);
  Value lower, upper;
  if (range.getExtra()) {
    lower = constant(0);
    upper = add(count, range.getExtra());
  } else {
    lower = scale(first, turns);
    upper = emit<arith::AddIOp>(lower, count);
  }
  auto loop = scf::ForOp::create(builder, loc, lower, upper, constant(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  nameArgument(loop.getInductionVar(), range.getExtra()    ? "j"
                                       : open && step == 1 ? "k"
                                                           : "t");
  update = turn = nullptr;
  turnsPerUpdate = turns;
  enterBlock();
  Value done = loop.getInductionVar();
  if (!range.getExtra())
    done = emit<arith::SubIOp>(done, lower);
  if (turns > 1)
    done = emit<arith::DivUIOp>(done, constant(turns));
  // The shortest segment of whole waves that has this update.
  Value least = add(done, wave);
  if (wave > 1)
    least = emit<arith::DivUIOp>(least, constant(wave));
  Value bound = scale(BoundOp::create(builder, loc, least), wave);
  length = bound;
  if (!range.getExtra()) {
    // Entries have no range tests of their own.
    Value isInside = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ult, done, bound);
    auto test = scf::IfOp::create(builder, loc, isInside,
                                  /*withElseRegion=*/false);
    builder.setInsertionPointToStart(test.thenBlock());
    enterBlock();
  }
  return emitBody(repeat,
                  {&body, loop.getInductionVar(), scale(bound, turns), range});
}

LogicalResult DeviceBuilder::emitBody(RepeatOp repeat, const Loop &loop) {
  bool outermost = repeat.getKind() != RepeatKind::Times;
  // Neighbors with the same `ahead` and `every` share their tests.
  auto isLike = [](Operation *a, Operation *b) {
    return getAhead(a) == getAhead(b) && getPeriod(a) == getPeriod(b);
  };
  for (auto it = loop.body->begin(); it != loop.body->end();) {
    Operation *leader = &*it;
    Value index = add(loop.counter, -loop.range.getShift(getAhead(leader)));
    Value condition;
    if (loop.range.getExtra())
      condition = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                        index, loop.count);

    if (outermost) {
      bool open = repeat.getKind() == RepeatKind::Microbatches;
      Value current = index;
      if (loop.range.getExtra())
        current = emit<arith::AddIOp>(scale(first, turnsPerUpdate), index);
      (open ? turn : update) = current;
      std::optional<int64_t> every = getPeriod(leader);
      if (every && *every > 1) {
        Value rest = emit<arith::RemUIOp>(add(current, 1), constant(*every));
        Value due = arith::CmpIOp::create(
            builder, loc, arith::CmpIPredicate::eq, rest, constant(0));
        condition = condition ? emit<arith::AndIOp>(condition, due) : due;
      }
    }

    OpBuilder::InsertionGuard guard(builder);
    if (condition) {
      auto test = scf::IfOp::create(builder, loc, condition,
                                    /*withElseRegion=*/false);
      builder.setInsertionPointToStart(test.thenBlock());
      enterBlock();
    }
    for (; it != loop.body->end() && isLike(leader, &*it); ++it)
      if (failed(emitEntry(&*it, index, outermost)))
        return failure();
    if (condition)
      enterBlock();
  }
  return success();
}

LogicalResult DeviceBuilder::emitEntry(Operation *entry, Value index,
                                       bool outermost) {
  if (!outermost)
    indices.push_back(index);
  LogicalResult result = failure();
  if (auto repeat = dyn_cast<RepeatOp>(entry)) {
    Block &body = repeat.getBody().front();
    LoopRange range = LoopRange::get(body);
    auto count = static_cast<int64_t>(*repeat.getCount());
    auto loop =
        scf::ForOp::create(builder, loc, constant(0),
                           constant(count + range.getExtra()), constant(1));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    nameArgument(loop.getInductionVar(), "j");
    enterBlock();
    result =
        emitBody(repeat, {&body, loop.getInductionVar(),
                          range.getExtra() ? constant(count) : Value(), range});
    enterBlock();
  } else {
    loc = entry->getLoc();
    Value number = getNumber(entry);
    if (auto run = dyn_cast<RunOp>(entry))
      result = emitRun(run, number);
    else if (auto send = dyn_cast<SendOp>(entry))
      result = emitSend(send, number);
    else if (auto recv = dyn_cast<RecvOp>(entry))
      result = emitRecv(recv, number);
    else
      result = emitAllReduce(cast<AllReduceOp>(entry), number);
  }
  if (!outermost)
    indices.pop_back();
  return result;
}
