//===- DeviceFunctions.cpp - Device programs as LLVM functions ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots become addresses in the arena of the device; transfers, sums, marks and
// hyperparameters calls of the runtime.
//===----------------------------------------------------------------------===//

#include "passes/Runtime/DeviceFunctions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

/// Converts the body of one device function, and the function itself.
class DeviceConverter {
public:
  DeviceConverter(RuntimeCalls &runtime, const ProgramTable &table,
                  TaskRuns &runs, func::FuncOp function)
      : runtime(runtime), table(table), runs(runs), function(function),
        builder(runtime.root.getContext()) {}

  LogicalResult convert(StringRef name);

private:
  LogicalResult shareRuns();
  FailureOr<LLVM::LLVMFuncOp> createRun(const TaskRun &run);
  LogicalResult convertRun(const TaskRun &run, LLVM::LLVMFuncOp into);
  Value getRunNumber(int64_t number);
  void convertOp(Operation *op);
  Value getEntry(Value table, LLVM::GEPArg index);
  Value getOffset(SlotOp slot);
  void replaceBuffer(Operation *op, Value address);
  LogicalResult passDevice(func::CallOp call);
  Value computeFor(Value other, Value value, IRMapping &known);
  void endEarly(scf::ForOp loop, Value bound);
  Value getCells(StartAllReduceOp sum);
  std::pair<Value, Value> getEndpoint(StringRef channel, Value index);

  Value toI64(Value index) {
    return arith::IndexCastOp::create(builder, loc, runtime.i64, index);
  }
  Value number(uint32_t value) { return runtime.number(builder, loc, value); }
  Value word(int64_t value) { return runtime.word(builder, loc, value); }
  Value offset(Value address, Value bytes) {
    return LLVM::GEPOp::create(builder, loc, runtime.pointer,
                               builder.getI8Type(), address,
                               ArrayRef<LLVM::GEPArg>{bytes});
  }

  RuntimeCalls &runtime;
  const ProgramTable &table;
  TaskRuns &runs;
  func::FuncOp function;
  OpBuilder builder;
  Location loc = builder.getUnknownLoc();
  Value device, arena, updates;
  /// The table of numbers of the function of a run, and how many of them have
  /// been read.
  Value numbers;
  int32_t numberCount = 0;
  bool evaluates = false;
  llvm::DenseMap<Value, Value> addresses;
  /// Those that were looked up.
  llvm::DenseMap<StringAttr, func::FuncOp> callees;
  /// Loops, and how many updates the segment has.
  SmallVector<std::pair<scf::ForOp, Value>> bounds;
};
} // namespace

/// A number that differs from run to run: in the function of several, from the
/// table.
Value DeviceConverter::getRunNumber(int64_t number) {
  if (!numbers)
    return word(number);
  return getEntry(numbers, numberCount++);
}

/// A number from a table.
Value DeviceConverter::getEntry(Value table, LLVM::GEPArg index) {
  Value entry = LLVM::GEPOp::create(builder, loc, runtime.pointer, runtime.i64,
                                    table, ArrayRef<LLVM::GEPArg>{index});
  return LLVM::LoadOp::create(builder, loc, runtime.i64, entry);
}

Value DeviceConverter::getOffset(SlotOp slot) {
  uint64_t ring = slot.getRing().value_or(1);
  if (ring == 1)
    return getRunNumber(slot.getOffset(0));
  Value position = toI64(arith::RemUIOp::create(
      builder, loc, slot.getNumber(),
      arith::ConstantIndexOp::create(builder, loc, ring)));
  if (numbers && TaskRun::listsPositions(slot)) {
    // All slots that are in this position of their rings begin with this.
    Value row = LLVM::GEPOp::create(builder, loc, runtime.pointer, runtime.i64,
                                    numbers, ArrayRef<LLVM::GEPArg>{position});
    int32_t column = numberCount;
    numberCount += static_cast<int32_t>(ring);
    return getEntry(row, column);
  }
  if (DenseI64ArrayAttr places = slot.getPlacesAttr())
    return getEntry(
        LLVM::AddressOfOp::create(builder, loc, runtime.getTable(places)),
        position);
  Value first = getRunNumber(slot.getOffset(0));
  Value distance = getRunNumber(slot.getOffset(1) - slot.getOffset(0));
  return LLVM::AddOp::create(
      builder, loc, first,
      LLVM::MulOp::create(builder, loc, position, distance));
}

/// Kernels take memrefs, at this point; the runtime takes addresses.
void DeviceConverter::replaceBuffer(Operation *op, Value address) {
  Value buffer = op->getResult(0);
  addresses[buffer] = address;
  if (llvm::any_of(buffer.getUsers(), llvm::IsaPred<func::CallOp>)) {
    Value memref = runtime.makeBuffer(
        builder, loc, cast<MemRefType>(buffer.getType()), address);
    buffer.replaceUsesWithIf(memref, [](OpOperand &use) {
      return isa<func::CallOp>(use.getOwner());
    });
  }
}

/// The addresses of the buffers, in an array on the stack of the function.
Value DeviceConverter::getCells(StartAllReduceOp sum) {
  Block &entry = function.getBody().front();
  OpBuilder atStart = OpBuilder::atBlockBegin(&entry);
  Value count = runtime.number(atStart, loc,
                               static_cast<int64_t>(sum.getBuffers().size()));
  Value cells = LLVM::AllocaOp::create(atStart, loc, runtime.pointer,
                                       runtime.pointer, count);
  for (auto [index, buffer] : llvm::enumerate(sum.getBuffers())) {
    Value cell = LLVM::GEPOp::create(
        builder, loc, runtime.pointer, runtime.pointer, cells,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
    LLVM::StoreOp::create(builder, loc, addresses.lookup(buffer), cell);
  }
  return cells;
}

/// Returns the endpoint of a channel between replicas that message `index` goes
/// through, and its number there.
std::pair<Value, Value> DeviceConverter::getEndpoint(StringRef channel,
                                                     Value index) {
  uint32_t first = table.getEndpoint(channel);
  int64_t ways = table.getWays(channel);
  Value base = number(evaluates ? table.getEvaluationEndpoint(channel) : first);
  Value n = toI64(index);
  if (ways == 1 || evaluates)
    return {base, n};
  // What is awaited may have a small negative number, and keeps it.
  constexpr int64_t kTurns = int64_t(1) << 32;
  Value positive = LLVM::AddOp::create(builder, loc, n, word(kTurns * ways));
  Value way = LLVM::URemOp::create(builder, loc, positive, word(ways));
  Value turn = LLVM::UDivOp::create(builder, loc, positive, word(ways));
  Value narrow = LLVM::TruncOp::create(builder, loc, runtime.i32, way);
  Value endpoint = LLVM::AddOp::create(builder, loc, base, narrow);
  Value message = LLVM::SubOp::create(builder, loc, turn, word(kTurns));
  return {endpoint, message};
}

void DeviceConverter::convertOp(Operation *op) {
  builder.setInsertionPoint(op);
  loc = op->getLoc();
  auto transfer = [&](StringRef name, StringRef channel, Value n,
                      Value buffer) {
    auto [endpoint, message] = getEndpoint(channel, n);
    SmallVector<Value> operands{device, endpoint, message};
    if (buffer)
      operands.push_back(addresses.lookup(buffer));
    runtime.call(builder, loc, name, runtime.none, operands);
  };
  if (auto slot = dyn_cast<SlotOp>(op))
    return replaceBuffer(op, offset(arena, getOffset(slot)));
  if (auto scratch = dyn_cast<ScratchOp>(op)) {
    Value bytes =
        getRunNumber(static_cast<int64_t>(scratch.getAt().value_or(0)));
    return replaceBuffer(op, offset(arena, bytes));
  }
  if (auto recv = dyn_cast<StartRecvOp>(op))
    return transfer("penstock_recv", recv.getChannel(), recv.getNumber(),
                    recv.getBuffer());
  if (auto send = dyn_cast<StartSendOp>(op))
    return transfer("penstock_send", send.getChannel(), send.getNumber(),
                    send.getBuffer());
  if (auto await = dyn_cast<AwaitOp>(op))
    return transfer("penstock_await", await.getChannel(), await.getNumber(),
                    Value());
  if (auto sum = dyn_cast<StartAllReduceOp>(op)) {
    runtime.call(builder, loc, "penstock_all_reduce", runtime.none,
                 {device, number(table.getGroup(sum.getGroup())),
                  toI64(sum.getNumber()), getCells(sum)});
    return;
  }
  if (auto bound = dyn_cast<BoundOp>(op)) {
    Value shorter = runtime.call(builder, loc, "penstock_bound", runtime.i64,
                                 {device, toI64(bound.getLeast())});
    shorter = arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                         shorter);
    bound.replaceAllUsesWith(shorter);
    bounds.push_back({cast<scf::ForOp>(bound->getParentOp()), shorter});
    return;
  }
  if (auto mark = dyn_cast<MarkOp>(op)) {
    Value task = number(table.getTask(mark.getTask()));
    if (numbers)
      task = LLVM::TruncOp::create(builder, loc, runtime.i32, getRunNumber(0));
    runtime.call(builder, loc, "penstock_mark", runtime.none,
                 {device, task, toI64(mark.getNumber())});
    return;
  }
  auto parameter = cast<HyperparameterOp>(op);
  bool isInteger = parameter.getType().isInteger();
  Value value = runtime.call(
      builder, loc,
      isInteger ? "penstock_integer_hyperparameter" : "penstock_hyperparameter",
      isInteger ? runtime.i64 : runtime.f64,
      {device, number(table.getHyperparameter(parameter.getName()))});
  if (value.getType() != parameter.getType())
    value = arith::TruncFOp::create(builder, loc, parameter.getType(), value);
  parameter.replaceAllUsesWith(value);
}

/// Computes a value that follows from the number of updates, for another one.
Value DeviceConverter::computeFor(Value other, Value value, IRMapping &known) {
  if (value == updates)
    return other;
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumOperands() == 0 ||
      !isa<arith::ArithDialect>(op->getDialect()))
    return value;
  if (Value result = known.lookupOrNull(value))
    return result;
  for (Value operand : op->getOperands())
    known.map(operand, computeFor(other, operand, known));
  builder.clone(*op, known);
  return known.lookup(value);
}

/// The loop ends where it would in a segment as long as the bound says.
void DeviceConverter::endEarly(scf::ForOp loop, Value bound) {
  loc = loop.getLoc();
  builder.setInsertionPoint(loop);
  SmallVector<Value, 2> starts{loop.getLowerBound(), loop.getUpperBound()};
  auto early = scf::WhileOp::create(
      builder, loc, TypeRange(starts), starts,
      [&](OpBuilder &inner, Location where, ValueRange values) {
        Value goesOn = arith::CmpIOp::create(
            inner, where, arith::CmpIPredicate::slt, values[0], values[1]);
        scf::ConditionOp::create(inner, where, goesOn, values);
      },
      [&](OpBuilder &, Location, ValueRange) {});
  Block *body = &early.getAfter().front();
  loop.getInductionVar().replaceAllUsesWith(body->getArgument(0));
  loop.getBody()->getTerminator()->erase();
  body->getOperations().splice(body->end(), loop.getBody()->getOperations());
  builder.setInsertionPointToEnd(body);
  Value next =
      arith::AddIOp::create(builder, loc, body->getArgument(0), loop.getStep());
  IRMapping known;
  Value end = computeFor(bound, loop.getUpperBound(), known);
  scf::YieldOp::create(builder, loc, ValueRange{next, end});
  loop.erase();
}

/// Kernels have taken the device as an additional first argument.
LogicalResult DeviceConverter::passDevice(func::CallOp call) {
  func::FuncOp &callee = callees[call.getCalleeAttr().getAttr()];
  if (!callee)
    callee = runtime.root.lookupSymbol<func::FuncOp>(call.getCalleeAttr());
  if (!callee)
    return call.emitError() << "calls " << call.getCalleeAttr()
                            << ", which the program does not have";
  bool wants = callee.getNumArguments() &&
               callee.getArgumentTypes().front() == runtime.pointer;
  bool has =
      call.getNumOperands() && call.getOperand(0).getType() == runtime.pointer;
  if (wants && !has)
    call->insertOperands(0, device);
  return success();
}

/// Fills the function of a run: (device, arena, numbers, inputs...).
LogicalResult DeviceConverter::convertRun(const TaskRun &run,
                                          LLVM::LLVMFuncOp into) {
  Block *entry = into.addEntryBlock(builder);
  builder.setInsertionPointToEnd(entry);
  loc = into.getLoc();
  device = entry->getArgument(0);
  arena = entry->getArgument(1);
  numbers = entry->getArgument(2);
  IRMapping known;
  for (Operation *op : run.effects)
    for (Value operand : op->getOperands())
      if (operand.getType() == runtime.pointer)
        known.map(operand, device);
  for (auto [input, argument] :
       llvm::zip_equal(run.inputs, entry->getArguments().drop_front(3)))
    known.map(input, input.getType() == argument.getType()
                         ? Value(argument)
                         : Value(arith::IndexCastOp::create(
                               builder, loc, input.getType(), argument)));
  SmallVector<Operation *> ops;
  for (Operation *op : run.ops)
    ops.push_back(builder.clone(*op, known));
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  SmallVector<Operation *> replaced;
  for (Operation *op : ops) {
    if (auto call = dyn_cast<func::CallOp>(op)) {
      if (failed(passDevice(call)))
        return failure();
    } else if (isa<SlotOp, ScratchOp, MarkOp, HyperparameterOp>(op)) {
      convertOp(op);
      replaced.push_back(op);
    }
  }
  for (Operation *op : llvm::reverse(replaced))
    op->erase();
  return success();
}

FailureOr<LLVM::LLVMFuncOp> DeviceConverter::createRun(const TaskRun &run) {
  SmallVector<Type> types(3, runtime.pointer);
  for (Value input : run.inputs)
    types.push_back(input.getType().isIndex() ? runtime.i64 : input.getType());
  std::string name, task = cast<MarkOp>(run.effects.front()).getTask().str();
  for (unsigned i = 0; name.empty() || runtime.root.lookupSymbol(name); ++i)
    name = "run." + task + (i ? "." + std::to_string(i) : "");
  OpBuilder atEnd = OpBuilder::atBlockEnd(runtime.root.getBody());
  auto made =
      LLVM::LLVMFuncOp::create(atEnd, run.effects.front()->getLoc(), name,
                               LLVM::LLVMFunctionType::get(runtime.none, types),
                               LLVM::Linkage::Internal);
  // One for all: the specializer of LLVM would make one for each table again.
  made.setNoInline(true);
  made.setPassthroughAttr(atEnd.getStrArrayAttr({"noduplicate"}));
  DeviceConverter converter(runtime, table, runs, func::FuncOp());
  if (failed(converter.convertRun(run, made)))
    return failure();
  return made;
}

/// Calls functions in place of runs that stand more than once.
LogicalResult DeviceConverter::shareRuns() {
  SmallVector<MarkOp> marks;
  function.walk([&](MarkOp mark) { marks.push_back(mark); });
  for (MarkOp mark : marks) {
    std::optional<TaskRun> run = TaskRun::find(mark);
    LLVM::LLVMFuncOp *shared = run ? runs.find(*run, table) : nullptr;
    if (!shared)
      continue;
    if (!*shared) {
      FailureOr<LLVM::LLVMFuncOp> made = createRun(*run);
      if (failed(made))
        return failure();
      *shared = *made;
    }
    builder.setInsertionPoint(mark);
    loc = mark.getLoc();
    Value places = LLVM::AddressOfOp::create(
        builder, loc,
        runtime.getTable(builder.getDenseI64ArrayAttr(run->getNumbers(table))));
    SmallVector<Value> operands{device, arena, places};
    for (Value input : run->inputs)
      operands.push_back(input.getType().isIndex() ? toI64(input) : input);
    LLVM::CallOp::create(builder, loc, *shared, operands);
    for (Operation *op : llvm::reverse(run->ops))
      if (llvm::is_contained(run->effects, op) || op->use_empty())
        op->erase();
  }
  return success();
}

LogicalResult DeviceConverter::convert(StringRef name) {
  if (auto name = function->getAttrOfType<FlatSymbolRefAttr>(kScheduleAttr)) {
    auto schedule =
        SymbolTable::lookupNearestSymbolFrom<ScheduleOp>(function, name);
    evaluates = schedule && schedule.getRole() == ScheduleRole::Evaluate;
  }
  Block &entry = function.getBody().front();
  if (entry.getArgument(0).getType() != runtime.pointer)
    entry.insertArgument(0u, runtime.pointer, function.getLoc());
  Type index = builder.getIndexType();
  // Who does not ask which version is the newest is told all the same.
  if (entry.getNumArguments() == 3)
    entry.addArgument(index, function.getLoc());
  if (entry.getNumArguments() != 4 ||
      llvm::any_of(llvm::drop_begin(entry.getArgumentTypes()),
                   [&](Type type) { return type != index; }))
    return function.emitError(
        "the function of a device takes the first update "
        "and their number, and perhaps the newest version");
  device = entry.getArgument(0);
  loc = function.getLoc();
  builder.setInsertionPointToStart(&entry);
  for (unsigned i : {1u, 2u, 3u}) {
    BlockArgument argument = entry.getArgument(i);
    auto cast = arith::IndexCastOp::create(builder, loc, index, argument);
    argument.replaceAllUsesExcept(cast, cast);
    argument.setType(runtime.i64);
    if (i == 2)
      updates = cast;
  }
  arena =
      runtime.call(builder, loc, "penstock_arena", runtime.pointer, {device});

  if (failed(shareRuns()))
    return failure();

  SmallVector<Operation *> ops;
  WalkResult result = function.walk([&](Operation *op) {
    if (auto call = dyn_cast<func::CallOp>(op))
      return failed(passDevice(call)) ? WalkResult::interrupt()
                                      : WalkResult::advance();
    if (isa<SlotOp, ScratchOp, StartRecvOp, StartSendOp, StartAllReduceOp,
            AwaitOp, BoundOp, MarkOp, HyperparameterOp>(op))
      ops.push_back(op);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  for (Operation *op : ops)
    convertOp(op);
  for (Operation *op : llvm::reverse(ops))
    op->erase();
  for (auto [loop, bound] : bounds)
    endEarly(loop, bound);

  auto type = LLVM::LLVMFunctionType::get(
      runtime.none, {runtime.pointer, runtime.i64, runtime.i64, runtime.i64});
  OpBuilder atEnd = OpBuilder::atBlockEnd(runtime.root.getBody());
  auto converted = LLVM::LLVMFuncOp::create(atEnd, function.getLoc(), name,
                                            type, LLVM::Linkage::Internal);
  converted.getBody().takeBody(function.getBody());
  for (Block &block : converted.getBody()) {
    if (auto exit = dyn_cast<func::ReturnOp>(block.getTerminator())) {
      builder.setInsertionPoint(exit);
      LLVM::ReturnOp::create(builder, exit.getLoc(), ValueRange());
      exit.erase();
    }
  }
  function.erase();
  return success();
}

LogicalResult penstock::convertDeviceFunction(RuntimeCalls &runtime,
                                              const ProgramTable &table,
                                              TaskRuns &runs,
                                              func::FuncOp function,
                                              StringRef name) {
  return DeviceConverter(runtime, table, runs, function).convert(name);
}
