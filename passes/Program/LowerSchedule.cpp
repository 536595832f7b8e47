//===- LowerSchedule.cpp - Orders become functions ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes one function per device and schedule: loops, slots, transfers and calls
// of bufferised functions. `ahead` becomes an offset of the loop counter with a
// range test, `every` a remainder test. Tasks and schedules remain as names.
//===----------------------------------------------------------------------===//

#include "passes/Program/Numbering.h"
#include "passes/Program/Passes.h"
#include "passes/Program/Storage.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

namespace penstock {
#define GEN_PASS_DEF_LOWERSCHEDULE
#include "passes/Program/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

constexpr StringLiteral kKernelSuffix = ".kernel";

/// Emits the function of one device.
class DeviceBuilder {
public:
  DeviceBuilder(ModuleOp root, const Storage &storage, ScheduleOp schedule)
      : builder(schedule.getContext()), root(root), storage(storage),
        schedule(schedule),
        microbatches(static_cast<int64_t>(schedule.getMicrobatches())) {}

  LogicalResult run(OrderOp order);

private:
  /// One loop around the entry that is being emitted. `body` is the loop of the
  /// schedule; `counter` the induction variable; `count` the iterations that
  /// each entry takes part in.
  struct Loop {
    Block *body;
    Value counter;
    Value count;
    LoopRange range;
  };

  LogicalResult emitOutermost(RepeatOp repeat);
  LogicalResult emitBody(RepeatOp repeat, const Loop &loop);
  LogicalResult emitEntry(Operation *entry, Value index, bool outermost);
  LogicalResult emitRun(RunOp run, Value number);
  LogicalResult emitSend(SendOp send, Value number);
  LogicalResult emitRecv(RecvOp recv, Value number);
  LogicalResult emitCall(func::CallOp call, Value number, IRMapping &values);

  FailureOr<Value> getVersion(VariableOp variable, TaskOp task, Value number,
                              std::optional<int64_t> lag);
  FailureOr<Value> getValueSlot(Value value, Value number, IRMapping &values);
  Value getNumber(Operation *entry);
  Value getSlot(const Buffer &buffer, Value number);
  /// Before message `number` fills the buffer, the former one must have left.
  void awaitSends(const Buffer &buffer, Value number);

  Value constant(int64_t value);
  /// `value * factor`, computed where `value` is.
  Value scale(Value value, int64_t factor);
  Value add(Value value, int64_t constant);
  template <typename OpTy> Value emit(Value a, Value b) {
    return OpTy::create(builder, loc, a, b);
  }
  /// Forgets values that the current block alone may use.
  void enterBlock() {
    numberCache.clear();
    slotCache.clear();
  }

  OpBuilder builder;
  ModuleOp root;
  const Storage &storage;
  ScheduleOp schedule;
  int64_t microbatches;

  Location loc = builder.getUnknownLoc();
  func::FuncOp function;
  Value first, updates;
  llvm::MapVector<int64_t, Value> constants;
  llvm::MapVector<std::pair<Value, int64_t>, Value> products;

  /// Of the outermost loop: the numbers of its entries, the current update (in
  /// a loop over updates), the current microbatch (in one over microbatches).
  llvm::MapVector<Operation *, Number> numbers;
  Value update, microbatch;
  SmallVector<Value, 2> indices;
  SmallVector<std::pair<const Number *, Value>> numberCache;
  SmallVector<std::pair<Buffer, std::pair<Value, Value>>> slotCache;
};

} // namespace

/// Printed with --mlir-use-nameloc-as-prefix.
static void nameArgument(Value argument, StringRef name) {
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
  return known = emit<arith::MulIOp>(value, other);
}

Value DeviceBuilder::add(Value value, int64_t other) {
  if (other == 0)
    return value;
  if (other < 0)
    return emit<arith::SubIOp>(value, constant(-other));
  return emit<arith::AddIOp>(value, constant(other));
}

Value DeviceBuilder::getNumber(Operation *entry) {
  if (microbatch) {
    // One entry per task and channel and iteration: the microbatch itself.
    std::optional<int64_t> every = getEvery(entry);
    if (!every || *every == 1)
      return microbatch;
    return emit<arith::DivUIOp>(microbatch, constant(*every));
  }
  const Number &number = numbers.find(entry)->second;
  for (auto &[known, value] : numberCache)
    if (known->base == number.base && known->factors == number.factors &&
        known->perIteration == number.perIteration)
      return value;
  Value value = scale(update, number.perIteration);
  for (auto [index, factor] : llvm::zip_equal(indices, number.factors))
    if (factor)
      value = emit<arith::AddIOp>(value, scale(index, factor));
  value = add(value, number.base);
  numberCache.push_back({&number, value});
  return value;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

LogicalResult DeviceBuilder::run(OrderOp order) {
  loc = order.getLoc();
  auto device = static_cast<int64_t>(order.getDevice());
  Type index = builder.getIndexType();
  builder.setInsertionPoint(schedule);
  function = func::FuncOp::create(
      builder, loc, (schedule.getSymName() + "." + Twine(device)).str(),
      builder.getFunctionType({index, index}, {}));
  // The name may be taken, by an initialiser of the model.
  function->remove();
  SymbolTable(schedule->getParentOp())
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

  for (Operation &op : order.getBody().front()) {
    auto repeat = dyn_cast<RepeatOp>(op);
    if (!repeat || repeat.getKind() == RepeatKind::Times)
      return op.emitError("an order consists of loops over updates or over "
                          "microbatches");
    if (failed(emitOutermost(repeat)))
      return failure();
  }
  return success();
}

LogicalResult DeviceBuilder::emitOutermost(RepeatOp repeat) {
  auto numbered = numberEntries(repeat);
  if (failed(numbered))
    return failure();
  numbers = std::move(*numbered);

  bool open = repeat.getKind() == RepeatKind::Microbatches;
  for (auto &[entry, number] : numbers) {
    if (auto run = dyn_cast<RunOp>(entry)) {
      auto task = storage.lookup<TaskOp>(run, run.getTaskAttr());
      if (!task)
        return failure();
      int64_t expected = open || !task.countsMicrobatches() ? 1 : microbatches;
      if (number.perIteration != expected)
        return run.emitError()
               << "S1: " << run.getTaskAttr() << " runs " << number.perIteration
               << " times instead of " << expected << " in one iteration";
      std::optional<int64_t> every = getEvery(run);
      if (open &&
          every.value_or(1) != (task.countsMicrobatches() ? 1 : microbatches))
        return run.emitError()
               << "S1: " << run.getTaskAttr() << " must run once in every "
               << (task.countsMicrobatches() ? 1 : microbatches)
               << " microbatches";
    } else if (open && number.perIteration != 1) {
      return entry->emitError("S1: two entries for one channel in one "
                              "iteration of a loop over microbatches");
    }
  }

  // Without entries that run ahead, the counter is the update or microbatch
  // itself; else it counts from 0.
  Block &body = repeat.getBody().front();
  LoopRange range = LoopRange::get(body);
  Value count = scale(updates, open ? microbatches : 1);
  Value lower, upper;
  if (range.getExtra()) {
    lower = constant(0);
    upper = add(count, range.getExtra());
  } else {
    lower = scale(first, open ? microbatches : 1);
    upper = emit<arith::AddIOp>(lower, count);
  }
  auto loop = scf::ForOp::create(builder, loc, lower, upper, constant(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  nameArgument(loop.getInductionVar(), range.getExtra() ? "j"
                                       : open           ? "k"
                                                        : "t");
  update = microbatch = nullptr;
  enterBlock();
  return emitBody(repeat, {&body, loop.getInductionVar(), count, range});
}

LogicalResult DeviceBuilder::emitBody(RepeatOp repeat, const Loop &loop) {
  bool outermost = repeat.getKind() != RepeatKind::Times;
  // Neighbours with the same `ahead` and `every` share their tests.
  auto isLike = [](Operation *a, Operation *b) {
    return getAhead(a) == getAhead(b) && getEvery(a) == getEvery(b);
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
        current =
            emit<arith::AddIOp>(scale(first, open ? microbatches : 1), index);
      (open ? microbatch : update) = current;
      std::optional<int64_t> every = getEvery(leader);
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
      result = entry->emitError("is not lowered to device programs yet");
  }
  if (!outermost)
    indices.pop_back();
  return result;
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

Value DeviceBuilder::getSlot(const Buffer &buffer, Value number) {
  for (auto &[known, slot] : slotCache)
    if (known.isSameRing(buffer) && slot.first == number)
      return slot.second;
  RankedTensorType type;
  if (auto variable = dyn_cast<VariableOp>(buffer.symbol))
    type = variable.getTensorType();
  else
    type = cast<ChannelOp>(buffer.symbol).getTensorType(buffer.field);
  auto optional = [&](int64_t value, int64_t unset) {
    return value == unset ? IntegerAttr() : builder.getI64IntegerAttr(value);
  };
  Value slot = SlotOp::create(
      builder, loc, getMemRefType(type),
      FlatSymbolRefAttr::get(SymbolTable::getSymbolName(buffer.symbol)), number,
      optional(buffer.field, 0), optional(buffer.ring, 1), IntegerAttr(),
      IntegerAttr());
  slotCache.push_back({buffer, {number, slot}});
  return slot;
}

void DeviceBuilder::awaitSends(const Buffer &buffer, Value number) {
  for (ChannelOp channel : storage.getSends(buffer))
    AwaitOp::create(builder, loc, FlatSymbolRefAttr::get(channel),
                    add(number, -buffer.ring));
}

FailureOr<Value> DeviceBuilder::getVersion(VariableOp variable, TaskOp task,
                                           Value number,
                                           std::optional<int64_t> lag) {
  bool single = storage.getVersions(variable) == 1;
  if (!storage.isUpdated(variable)) {
    if (single)
      return constant(0);
    return task.emitError()
           << "uses " << FlatSymbolRefAttr::get(variable)
           << ", of which there are several versions, but "
           << schedule.getSymNameAttr() << " does not update it";
  }
  if (!task.countsMicrobatches())
    return number;
  if (!lag && !single)
    return task.emitError() << "reads " << FlatSymbolRefAttr::get(variable)
                            << " without a lag: run pipeline-assign-versions";
  // first + max(0, floor((k - first * M - lag) / M)), without negative numbers
  // in the division.
  int64_t behind = lag.value_or(0);
  if (update && behind % microbatches == 0) {
    if (!behind)
      return update;
    return emit<arith::MaxSIOp>(add(update, -behind / microbatches), first);
  }
  Value microbatch = number;
  if (behind)
    microbatch =
        emit<arith::MaxSIOp>(add(number, -behind), scale(first, microbatches));
  if (microbatches == 1)
    return microbatch;
  return emit<arith::DivUIOp>(microbatch, constant(microbatches));
}

FailureOr<Value> DeviceBuilder::getValueSlot(Value value, Value number,
                                             IRMapping &values) {
  if (Value known = values.lookupOrNull(value))
    return known;
  FailureOr<Buffer> buffer = storage.getBuffer(value);
  if (failed(buffer))
    return failure();
  Operation *op = value.getDefiningOp();
  auto task = op->getParentOfType<TaskOp>();
  if (auto variable = dyn_cast<VariableOp>(buffer->symbol)) {
    // Read, or written as a new version. In-place results are their operands.
    auto read = dyn_cast<ReadOp>(op);
    std::optional<int64_t> lag;
    if (!read)
      lag = 0;
    else if (read.getLag())
      lag = static_cast<int64_t>(*read.getLag());
    FailureOr<Value> version = getVersion(variable, task, number, lag);
    if (failed(version))
      return failure();
    if (!read && !task.countsMicrobatches() && storage.isUpdated(variable))
      number = add(*version, 1);
    else
      number = *version;
  }
  Value slot = getSlot(*buffer, number);
  values.map(value, slot);
  return slot;
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

LogicalResult DeviceBuilder::emitSend(SendOp send, Value number) {
  auto channel = storage.lookup<ChannelOp>(send, send.getChannelAttr());
  if (!channel)
    return failure();
  FailureOr<Buffer> buffer = storage.getSendBuffer(channel);
  if (failed(buffer))
    return failure();
  StartSendOp::create(builder, loc, send.getChannelAttr(), number,
                      getSlot(*buffer, number));
  return success();
}

LogicalResult DeviceBuilder::emitRecv(RecvOp recv, Value number) {
  auto channel = storage.lookup<ChannelOp>(recv, recv.getChannelAttr());
  if (!channel)
    return failure();
  FailureOr<Buffer> buffer = storage.getReceiveBuffer(channel);
  if (failed(buffer))
    return failure();
  awaitSends(*buffer, number);
  StartRecvOp::create(builder, loc, recv.getChannelAttr(), number,
                      getSlot(*buffer, number));
  return success();
}

LogicalResult DeviceBuilder::emitRun(RunOp run, Value number) {
  auto task = storage.lookup<TaskOp>(run, run.getTaskAttr());
  if (!task)
    return failure();
  Block &body = task.getBody().front();

  // Wait for what is taken, and until what is overwritten has left.
  llvm::SmallSetVector<Operation *, 4> filled;
  for (auto take : body.getOps<TakeOp>()) {
    auto channel = storage.lookup<ChannelOp>(take, take.getChannelAttr());
    if (!channel)
      return failure();
    if (storage.isReceived(channel))
      AwaitOp::create(builder, loc, take.getChannelAttr(), number);
  }
  SmallVector<Buffer> overwritten;
  for (auto put : body.getOps<PutOp>()) {
    for (Value value : put.getValues()) {
      FailureOr<Buffer> buffer = storage.getBuffer(value);
      if (failed(buffer))
        return failure();
      if (value.getDefiningOp<TakeOp>() ||
          llvm::any_of(overwritten, [&](const Buffer &other) {
            return other.isSameRing(*buffer);
          }))
        continue;
      overwritten.push_back(*buffer);
      awaitSends(*buffer, number);
    }
  }

  MarkOp::create(builder, loc, run.getTaskAttr(), number);
  IRMapping values;
  values.map(task.getCounter(), number);
  for (Operation &op : body) {
    if (isa<TakeOp, ReadOp, PutOp, WriteOp>(op))
      continue;
    if (auto call = dyn_cast<func::CallOp>(op)) {
      if (failed(emitCall(call, number, values)))
        return failure();
      continue;
    }
    if (llvm::any_of(op.getResultTypes(), llvm::IsaPred<TensorType>))
      return op.emitError("is not lowered to device programs yet");
    for (Value operand : op.getOperands())
      if (!values.contains(operand))
        return op.emitError("has an operand that is no scalar");
    builder.clone(op, values);
  }
  return success();
}

LogicalResult DeviceBuilder::emitCall(func::CallOp call, Value number,
                                      IRMapping &values) {
  auto callee = storage.lookup<func::FuncOp>(call, call.getCalleeAttr());
  if (!callee)
    return failure();
  auto isTensor = llvm::IsaPred<TensorType>;
  bool scalar = llvm::none_of(callee.getArgumentTypes(), isTensor) &&
                llvm::none_of(callee.getResultTypes(), isTensor);
  func::FuncOp kernel = callee;
  if (!scalar) {
    kernel = root.lookupSymbol<func::FuncOp>(
        (callee.getSymName() + kKernelSuffix).str());
    if (!kernel)
      return call.emitError()
             << call.getCalleeAttr()
             << " has no bufferised form: run pipeline-bufferize-functions";
  }

  SmallVector<Value> operands;
  for (Value operand : call.getOperands()) {
    if (!isa<TensorType>(operand.getType())) {
      operands.push_back(values.lookup(operand));
      continue;
    }
    FailureOr<Value> slot = getValueSlot(operand, number, values);
    if (failed(slot))
      return failure();
    operands.push_back(*slot);
  }
  llvm::SmallDenseMap<unsigned, unsigned> inPlace;
  for (unsigned i : llvm::seq(callee.getNumArguments()))
    if (auto into = callee.getArgAttrOfType<IntegerAttr>(i, kIntoAttr))
      inPlace[into.getInt()] = i;
  SmallVector<Type> resultTypes;
  for (OpResult result : call.getResults()) {
    if (!isa<TensorType>(result.getType())) {
      resultTypes.push_back(result.getType());
      continue;
    }
    auto into = inPlace.find(result.getResultNumber());
    if (into != inPlace.end()) {
      if (failed(storage.getBuffer(result)))
        return failure();
      values.map(result, operands[into->second]);
      continue;
    }
    FailureOr<Value> slot = getValueSlot(result, number, values);
    if (failed(slot))
      return failure();
    if (operands.size() < kernel.getNumArguments())
      kernel.setArgAttr(operands.size(), kOutAttr, builder.getUnitAttr());
    operands.push_back(*slot);
  }
  unsigned arguments = kernel.getNumArguments();
  if (arguments == operands.size() + 1 &&
      kernel.getArgAttr(arguments - 1, kScratchAttr))
    operands.push_back(ScratchOp::create(
        builder, loc, kernel.getArgumentTypes().back(), IntegerAttr()));
  if (ValueRange(operands).getTypes() != kernel.getArgumentTypes() ||
      resultTypes != kernel.getResultTypes())
    return call.emitError()
           << "does not fit the bufferised form of " << call.getCalleeAttr()
           << ", which is " << kernel.getFunctionType();
  auto lowered = func::CallOp::create(
      builder, call.getLoc(), callee.getSymName(), resultTypes, operands);
  unsigned next = 0;
  for (OpResult result : call.getResults())
    if (!isa<TensorType>(result.getType()))
      values.map(result, lowered.getResult(next++));
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

bool usesTensors(func::FuncOp function) {
  return llvm::any_of(function.getArgumentTypes(), llvm::IsaPred<TensorType>) ||
         llvm::any_of(function.getResultTypes(), llvm::IsaPred<TensorType>);
}

struct LowerSchedule : public penstock::impl::LowerScheduleBase<LowerSchedule> {
  void runOnOperation() override {
    ModuleOp root = getOperation();
    // The replay program calls the kernels of this one.
    SmallVector<ModuleOp> modules{root};
    llvm::append_range(modules, root.getOps<ModuleOp>());
    for (ModuleOp module : modules)
      if (failed(lowerOrders(root, module)))
        return signalPassFailure();
    for (ModuleOp module : llvm::drop_begin(modules))
      retypeDeclarations(root, module);
    replaceFunctions(root);
  }

  LogicalResult lowerOrders(ModuleOp root, ModuleOp module) {
    for (auto schedule : module.getOps<ScheduleOp>()) {
      if (schedule.isBodyless())
        continue;
      FailureOr<Storage> storage = Storage::get(schedule);
      if (failed(storage))
        return failure();
      for (auto order : schedule.getBody().getOps<OrderOp>())
        if (failed(DeviceBuilder(root, *storage, schedule).run(order)))
          return failure();
    }
    for (auto schedule : module.getOps<ScheduleOp>())
      schedule.getBody().getBlocks().clear();
    for (auto task : module.getOps<TaskOp>())
      task.getBody().getBlocks().clear();
    return success();
  }

  /// Declarations of the replay program take the type of the kernels.
  void retypeDeclarations(ModuleOp root, ModuleOp module) {
    for (auto function :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (!function.isDeclaration())
        continue;
      auto kernel = root.lookupSymbol<func::FuncOp>(
          (function.getSymName() + kKernelSuffix).str());
      if (kernel) {
        function.setFunctionType(kernel.getFunctionType());
        function.setAllArgAttrs(kernel.getAllArgAttrs());
        function.setAllResultAttrs(kernel.getAllResultAttrs());
      } else if (usesTensors(function)) {
        function.erase();
      }
    }
  }

  /// Kernels take the names of the functions that they were made from.
  void replaceFunctions(ModuleOp root) {
    llvm::StringMap<StringRef> names;
    for (auto function :
         llvm::make_early_inc_range(root.getOps<func::FuncOp>())) {
      if (!usesTensors(function))
        continue;
      std::string kernel = (function.getSymName() + kKernelSuffix).str();
      names[kernel] = function.getSymNameAttr().strref();
      function.erase();
    }
    for (auto function : root.getOps<func::FuncOp>()) {
      auto name = names.find(function.getSymName());
      if (name != names.end())
        function.setSymName(name->second);
      function.walk([&](func::CallOp call) {
        auto callee = names.find(call.getCallee());
        if (callee != names.end())
          call.setCallee(callee->second);
      });
    }
  }
};

} // namespace
