//===- DeviceCode.cpp - Interprets a device function ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See DeviceCode.h. Values are registers and blocks are lists, so that a step
// is a few array accesses: programs of many stages have millions of them.
//===----------------------------------------------------------------------===//

#include "passes/Program/Devices/DeviceCode.h"

#include "penstock/Support/Assert.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static DeviceNumber asData(llvm::hash_code hash) {
  DeviceNumber number;
  number.value = static_cast<int64_t>(static_cast<size_t>(hash));
  number.isKnown = number.isData = true;
  return number;
}

static DeviceNumber asIndex(int64_t value) {
  DeviceNumber number;
  number.value = value;
  number.isKnown = true;
  return number;
}

static llvm::hash_code hashNumbers(ArrayRef<DeviceNumber> numbers) {
  llvm::hash_code hash = llvm::hash_value(numbers.size());
  for (const DeviceNumber &number : numbers)
    hash = llvm::hash_combine(hash, number.value, number.isData);
  return hash;
}

DeviceNumber penstock::callNumber(StringRef callee, unsigned result,
                                  ArrayRef<DeviceNumber> operands) {
  if (!llvm::all_of(operands,
                    [](const DeviceNumber &n) { return n.isPlain(); }))
    return {};
  return asData(llvm::hash_combine(callee, result, hashNumbers(operands)));
}

DeviceNumber penstock::hyperparameterNumber(StringRef name) {
  return asData(llvm::hash_value(name));
}

DeviceNumber penstock::constantNumber(Attribute value) {
  auto integer = dyn_cast<IntegerAttr>(value);
  if (!integer)
    return asData(llvm::hash_value(value.getAsOpaquePointer()));
  return asIndex(integer.getType().isInteger(1)
                     ? integer.getValue().getBoolValue()
                     : integer.getInt());
}

static IndexOp getIndexOp(StringRef op) {
  return llvm::StringSwitch<IndexOp>(op)
      .Case("arith.addi", IndexOp::Add)
      .Case("arith.subi", IndexOp::Sub)
      .Case("arith.muli", IndexOp::Mul)
      .Case("arith.divui", IndexOp::DivU)
      .Case("arith.remui", IndexOp::RemU)
      .Case("arith.divsi", IndexOp::DivS)
      .Case("arith.remsi", IndexOp::RemS)
      .Case("arith.maxsi", IndexOp::MaxS)
      .Case("arith.minsi", IndexOp::MinS)
      .Case("arith.maxui", IndexOp::MaxU)
      .Case("arith.minui", IndexOp::MinU)
      .Case("arith.andi", IndexOp::And)
      .Case("arith.ori", IndexOp::Or)
      .Case("arith.xori", IndexOp::Xor)
      .Case("arith.index_cast", IndexOp::Cast)
      .Case("arith.select", IndexOp::Select)
      .Default(IndexOp::None);
}

std::optional<int64_t> penstock::computeIndex(IndexOp op,
                                              ArrayRef<int64_t> in) {
  auto low = [&](unsigned i) { return static_cast<uint64_t>(in[i]); };
  auto wrap = [](uint64_t value) { return static_cast<int64_t>(value); };
  bool divides = op == IndexOp::DivU || op == IndexOp::RemU ||
                 op == IndexOp::DivS || op == IndexOp::RemS;
  if (divides && in[1] == 0)
    return std::nullopt;
  switch (op) {
  case IndexOp::Add:
    return addIndices(in[0], in[1]);
  case IndexOp::Sub:
    return wrap(low(0) - low(1));
  case IndexOp::Mul:
    return multiplyIndices(in[0], in[1]);
  case IndexOp::DivU:
    return wrap(low(0) / low(1));
  case IndexOp::RemU:
    return wrap(low(0) % low(1));
  case IndexOp::DivS:
    return in[1] == -1 ? wrap(0 - low(0)) : in[0] / in[1];
  case IndexOp::RemS:
    return in[1] == -1 ? 0 : in[0] % in[1];
  case IndexOp::MaxS:
    return std::max(in[0], in[1]);
  case IndexOp::MinS:
    return std::min(in[0], in[1]);
  case IndexOp::MaxU:
    return wrap(std::max(low(0), low(1)));
  case IndexOp::MinU:
    return wrap(std::min(low(0), low(1)));
  case IndexOp::And:
    return wrap(low(0) & low(1));
  case IndexOp::Or:
    return wrap(low(0) | low(1));
  case IndexOp::Xor:
    return wrap(low(0) ^ low(1));
  case IndexOp::Cast:
    return in[0];
  case IndexOp::Select:
    return in[0] ? in[1] : in[2];
  case IndexOp::None:
    break;
  }
  return std::nullopt;
}

bool penstock::computeNumber(OperationName op, DictionaryAttr attributes,
                             Type type, ArrayRef<DeviceNumber> operands,
                             DeviceNumber &result) {
  result = {};
  if (!llvm::all_of(operands,
                    [](const DeviceNumber &n) { return n.isPlain(); }))
    return true;
  bool isData =
      !type.isIntOrIndex() ||
      llvm::any_of(operands, [](const DeviceNumber &n) { return n.isData; });
  StringRef name = op.getStringRef();
  if (isData) {
    result = asData(llvm::hash_combine(name,
                                       attributes && !attributes.empty()
                                           ? attributes.getAsOpaquePointer()
                                           : nullptr,
                                       hashNumbers(operands)));
    return true;
  }
  SmallVector<int64_t, 3> in;
  for (const DeviceNumber &operand : operands)
    in.push_back(operand.value);
  if (name == "arith.cmpi") {
    auto predicate =
        cast<arith::CmpIPredicateAttr>(attributes.get("predicate")).getValue();
    result = asIndex(arith::applyCmpPredicate(
        predicate, APInt(64, static_cast<uint64_t>(in[0])),
        APInt(64, static_cast<uint64_t>(in[1]))));
    return true;
  }
  IndexOp arithmetic = getIndexOp(name);
  if (arithmetic == IndexOp::None)
    return true;
  std::optional<int64_t> value = computeIndex(arithmetic, in);
  if (value)
    result = asIndex(*value);
  return value.has_value();
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

int DeviceCode::getRegister(Value value) {
  return registers.try_emplace(value, registers.size()).first->second;
}

void DeviceCode::addEvent(Instruction &instruction, TraceEvent::Kind kind,
                          FlatSymbolRefAttr symbol, Value number,
                          ValueRange buffers) {
  instruction.kind = Instruction::Event;
  instruction.event = kind;
  instruction.symbol = symbol.getAttr();
  instruction.operands.push_back(getRegister(number));
  for (Value buffer : buffers) {
    auto slot = slotNumbers.find(buffer);
    instruction.buffers.push_back(
        {slot == slotNumbers.end() ? -1 : slot->second,
         kind != TraceEvent::Recv, kind != TraceEvent::Send});
  }
}

void DeviceCode::addCall(func::CallOp call, Instruction &instruction) {
  instruction.kind = Instruction::Call;
  instruction.event = TraceEvent::Call;
  instruction.symbol = call.getCalleeAttr().getAttr();
  auto callee = symbols->lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  PENSTOCK_ASSERT(callee && callee.getNumArguments() == call.getNumOperands(),
                  "the verifier of calls has found the function");
  for (auto [i, operand] : llvm::enumerate(call.getOperands())) {
    if (operand.getDefiningOp<ScratchOp>())
      continue;
    if (!isa<MemRefType>(operand.getType())) {
      instruction.operands.push_back(getRegister(operand));
      continue;
    }
    bool out = callee.getArgAttr(i, kOutAttr) != nullptr;
    bool into = callee.getArgAttr(i, kIntoAttr) != nullptr;
    auto slot = slotNumbers.find(operand);
    instruction.buffers.push_back(
        {slot == slotNumbers.end() ? -1 : slot->second, !out, out || into});
  }
}

void DeviceCode::addOp(Operation *op, std::vector<Instruction> &block) {
  Instruction instruction;
  instruction.op = op;
  if (auto slot = dyn_cast<SlotOp>(op)) {
    instruction.kind = Instruction::Slot;
    instruction.operands.push_back(getRegister(slot.getNumber()));
    instruction.result = static_cast<int>(slots.size());
    slotNumbers[slot.getBuffer()] = instruction.result;
    slots.push_back({slot.getSymbolAttr().getAttr(),
                     static_cast<int32_t>(slot.getField().value_or(0)),
                     static_cast<int64_t>(slot.getRing().value_or(1))});
  } else if (auto recv = dyn_cast<StartRecvOp>(op)) {
    addEvent(instruction, TraceEvent::Recv, recv.getChannelAttr(),
             recv.getNumber(), recv.getBuffer());
  } else if (auto send = dyn_cast<StartSendOp>(op)) {
    addEvent(instruction, TraceEvent::Send, send.getChannelAttr(),
             send.getNumber(), send.getBuffer());
  } else if (auto await = dyn_cast<AwaitOp>(op)) {
    addEvent(instruction, TraceEvent::Await, await.getChannelAttr(),
             await.getNumber(), ValueRange());
  } else if (auto sum = dyn_cast<StartAllReduceOp>(op)) {
    addEvent(instruction, TraceEvent::Sum, sum.getGroupAttr(), sum.getNumber(),
             sum.getBuffers());
  } else if (auto bound = dyn_cast<BoundOp>(op)) {
    hasBound = true;
    instruction.kind = Instruction::Bound;
    instruction.operands.push_back(getRegister(bound.getLeast()));
    instruction.result = getRegister(bound);
  } else if (auto mark = dyn_cast<MarkOp>(op)) {
    addEvent(instruction, TraceEvent::Mark, mark.getTaskAttr(),
             mark.getNumber(), ValueRange());
  } else if (auto call = dyn_cast<func::CallOp>(op)) {
    addCall(call, instruction);
    if (call.getNumResults())
      instruction.result = getRegister(call.getResult(0));
    for (Value result : call.getResults())
      getRegister(result);
  } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
    instruction.kind = Instruction::Loop;
    for (Value bound :
         {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
      instruction.operands.push_back(getRegister(bound));
    instruction.result = getRegister(loop.getInductionVar());
    if (loop.getNumRegionIterArgs()) {
      instruction.kind = Instruction::Error;
      instruction.error = "S8: loops of device functions count upwards and "
                          "carry no values";
    } else {
      instruction.body = addBlock(*loop.getBody());
    }
  } else if (auto test = dyn_cast<scf::IfOp>(op)) {
    instruction.kind = Instruction::Test;
    instruction.operands.push_back(getRegister(test.getCondition()));
    if (test.getNumResults()) {
      instruction.kind = Instruction::Error;
      instruction.error = "S8: tests of device functions have no results";
    } else {
      instruction.body = addBlock(*test.thenBlock());
      if (test.elseBlock())
        instruction.otherwise = addBlock(*test.elseBlock());
    }
  } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    instruction.kind = Instruction::Constant;
    instruction.result = getRegister(constant);
    instruction.constant = constantNumber(constant.getValue());
  } else if (auto number = dyn_cast<HyperparameterOp>(op)) {
    instruction.kind = Instruction::Constant;
    instruction.result = getRegister(number);
    instruction.constant = hyperparameterNumber(number.getName());
  } else if (isa<scf::YieldOp, func::ReturnOp, ScratchOp>(op)) {
    return;
  } else if (isMemoryEffectFree(op)) {
    if (op->getNumResults() != 1)
      return;
    instruction.kind = Instruction::Arith;
    instruction.result = getRegister(op->getResult(0));
    instruction.arithmetic = getIndexOp(op->getName().getStringRef());
    if (Attribute properties = op->getPropertiesAsAttribute())
      instruction.attributes = dyn_cast<DictionaryAttr>(properties);
    for (Value operand : op->getOperands())
      instruction.operands.push_back(getRegister(operand));
  } else {
    instruction.error = "S8: has no place in a device function";
  }
  block.push_back(std::move(instruction));
}

int DeviceCode::addBlock(Block &block) {
  std::vector<Instruction> list;
  for (Operation &op : block)
    addOp(&op, list);
  blocks.push_back(std::move(list));
  return static_cast<int>(blocks.size()) - 1;
}

FailureOr<DeviceCode> DeviceCode::get(func::FuncOp function,
                                      SymbolTableCollection &symbols) {
  if (function.isDeclaration() || function.getNumArguments() < 2 ||
      function.getNumArguments() > 3 || !function.getBody().hasOneBlock())
    return function.emitError("S8: the function of a device takes the first "
                              "update and their number");
  DeviceCode code;
  code.function = function;
  code.symbols = &symbols;
  for (BlockArgument argument : function.getArguments())
    code.arguments.push_back(code.getRegister(argument));
  code.addBlock(function.getBody().front());
  return code;
}

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

DeviceRun::DeviceRun(const DeviceCode &code, int64_t first, int64_t updates,
                     int64_t newest, std::optional<Shortening> shortening)
    : code(code), updates(updates), shortening(shortening),
      registers(code.registers.size()), slotNumbers(code.slots.size()) {
  const int64_t numbers[] = {first, updates, newest};
  for (auto [argument, number] : llvm::zip(code.arguments, numbers))
    registers[argument] = asIndex(number);
  registers[code.arguments[1]].slope = 1;
  Frame frame;
  frame.block = &code.blocks.back();
  frames.push_back(frame);
}

FailureOr<int64_t> DeviceRun::get(Operation *user, int number) {
  const DeviceNumber &known = registers[number];
  if (!known.isKnown || known.isData)
    return user->emitError("S8: uses a number that does not follow from the "
                           "arguments of the device function");
  if (!known.isPlain())
    monotone = false;
  return known.value;
}

/// With y(N) = y + slope * (N - updates), the least N with value < y(N).
int64_t DeviceRun::getFrom(int64_t value, const DeviceNumber &upper,
                           bool inclusive) {
  if (!upper.slope)
    return 0;
  // What is compared as unsigned has to be positive from one update on.
  if (upper.slope < 0 || upper.value - upper.slope * (updates - 1) < 0) {
    monotone = false;
    return 0;
  }
  int64_t above = value - upper.value + (inclusive ? 0 : 1);
  // The least d with upper + slope * d >= upper + above.
  int64_t d = above >= 0 ? (above + upper.slope - 1) / upper.slope
                         : -((-above) / upper.slope);
  return std::max<int64_t>(0, updates + d);
}

/// Where nobody is told otherwise, the segment has its length.
LogicalResult DeviceRun::askForBound(const DeviceCode::Instruction &bound) {
  DeviceNumber least = registers[bound.operands[0]];
  if (!least.isKnown || least.isData)
    return get(bound.op, bound.operands[0]);
  isShortened |= shortening && least.value >= shortening->reached;
  DeviceNumber &length = registers[bound.result];
  length = asIndex(isShortened ? shortening->updates : updates);
  length.slope = 1;
  return success();
}

/// Where an outermost loop ends in a segment that has become shorter. What the
/// loop itself computes from the function's argument keeps its value.
FailureOr<DeviceNumber>
DeviceRun::getShortenedEnd(const DeviceCode::Instruction &loop) {
  const std::vector<DeviceNumber> saved = registers;
  registers[code.arguments[1]].value = shortening->updates;
  for (const DeviceCode::Instruction &instruction : code.blocks.back()) {
    if (&instruction == &loop)
      break;
    if ((instruction.kind == DeviceCode::Instruction::Constant ||
         instruction.kind == DeviceCode::Instruction::Arith) &&
        failed(step(instruction)))
      return failure();
  }
  DeviceNumber end = registers[loop.operands[1]];
  registers = saved;
  return end;
}

LogicalResult DeviceRun::step(const DeviceCode::Instruction &instruction) {
  using Instruction = DeviceCode::Instruction;
  if (instruction.kind == Instruction::Constant) {
    registers[instruction.result] = instruction.constant;
    return success();
  }
  if (instruction.kind == Instruction::Slot) {
    FailureOr<int64_t> number = get(instruction.op, instruction.operands[0]);
    if (failed(number))
      return failure();
    if (*number < 0)
      return instruction.op->emitError(
          "S8: names the slot of a negative number");
    slotNumbers[instruction.result] = asIndex(*number);
    return success();
  }
  // Arithmetic: the usual ops of indices first, and by hand where the length of
  // the segment goes in.
  DeviceNumber &result = registers[instruction.result];
  auto in = [&](unsigned i) -> const DeviceNumber & {
    return registers[instruction.operands[i]];
  };
  Operation *op = instruction.op;
  auto isIndex = [](const DeviceNumber &n) { return n.isKnown && !n.isData; };
  if (instruction.operands.size() == 2 && isIndex(in(0)) && isIndex(in(1))) {
    DeviceNumber a = in(0), b = in(1);
    if (!a.from && !b.from) {
      if (isa<arith::AddIOp>(op)) {
        result = asIndex(addIndices(a.value, b.value));
        result.slope = a.slope + b.slope;
        return success();
      }
      if (isa<arith::SubIOp>(op)) {
        result = asIndex(addIndices(a.value, multiplyIndices(b.value, -1)));
        result.slope = a.slope - b.slope;
        return success();
      }
      if (isa<arith::MulIOp>(op) && (!a.slope || !b.slope)) {
        result = asIndex(multiplyIndices(a.value, b.value));
        result.slope = a.slope ? multiplyIndices(a.slope, b.value)
                               : multiplyIndices(b.slope, a.value);
        return success();
      }
    }
    if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
      bool truth = arith::applyCmpPredicate(
          compare.getPredicate(), APInt(64, static_cast<uint64_t>(a.value)),
          APInt(64, static_cast<uint64_t>(b.value)));
      result = asIndex(truth);
      if (!a.slope && !b.slope && !a.from && !b.from)
        return success();
      // x < y(N), or y(N) > x.
      DeviceNumber x = a, y = b;
      arith::CmpIPredicate predicate = compare.getPredicate();
      if (a.slope) {
        std::swap(x, y);
        predicate =
            predicate == arith::CmpIPredicate::ugt   ? arith::CmpIPredicate::ult
            : predicate == arith::CmpIPredicate::uge ? arith::CmpIPredicate::ule
            : predicate == arith::CmpIPredicate::sgt ? arith::CmpIPredicate::slt
            : predicate == arith::CmpIPredicate::sge ? arith::CmpIPredicate::sle
                                                     : arith::CmpIPredicate::eq;
      }
      bool isLess = predicate == arith::CmpIPredicate::ult ||
                    predicate == arith::CmpIPredicate::slt;
      bool isAtMost = predicate == arith::CmpIPredicate::ule ||
                      predicate == arith::CmpIPredicate::sle;
      bool isUnsigned = predicate == arith::CmpIPredicate::ult ||
                        predicate == arith::CmpIPredicate::ule;
      if (x.slope || x.from || y.from || (!isLess && !isAtMost)) {
        monotone = false;
        return success();
      }
      int64_t from = getFrom(x.value, y, isAtMost);
      // Negative numbers are large ones, in segments of any length.
      if (truth && !(isUnsigned && x.value < 0))
        result.from = from;
      return success();
    }
    if (isa<arith::AndIOp>(op) && op->getResult(0).getType().isInteger(1) &&
        !a.slope && !b.slope) {
      result = asIndex(a.value & b.value);
      if (result.value)
        result.from = std::max(a.from, b.from);
      return success();
    }
  }
  SmallVector<int64_t, 3> plain;
  for (int number : instruction.operands)
    if (registers[number].isPlain() && !registers[number].isData)
      plain.push_back(registers[number].value);
  if (instruction.arithmetic != IndexOp::None &&
      plain.size() == instruction.operands.size()) {
    std::optional<int64_t> value = computeIndex(instruction.arithmetic, plain);
    if (!value)
      return op->emitError("S8: divides by zero");
    result = asIndex(*value);
    return success();
  }
  SmallVector<DeviceNumber, 3> operands;
  for (int number : instruction.operands) {
    DeviceNumber operand = registers[number];
    if (operand.isKnown && !operand.isPlain()) {
      monotone = false;
      operand.slope = operand.from = 0;
    }
    operands.push_back(operand);
  }
  if (!isa<arith::ArithDialect>(op->getDialect()) &&
      op->getResult(0).getType().isIntOrIndex()) {
    result = {};
    return success();
  }
  if (!computeNumber(op->getName(), instruction.attributes,
                     op->getResult(0).getType(), operands, result))
    return op->emitError("S8: divides by zero");
  return success();
}

LogicalResult DeviceRun::enterLoop(const DeviceCode::Instruction &loop) {
  FailureOr<int64_t> lower = get(loop.op, loop.operands[0]);
  FailureOr<int64_t> step = get(loop.op, loop.operands[2]);
  DeviceNumber upper = registers[loop.operands[1]];
  if (failed(lower) || failed(step))
    return failure();
  if (!upper.isKnown || upper.isData)
    return get(loop.op, loop.operands[1]);
  if (*step <= 0)
    return loop.op->emitError("S8: loops of device functions count upwards and "
                              "carry no values");
  Frame frame;
  frame.block = &code.blocks[loop.body];
  frame.from = frames.back().from;
  frame.loop = &loop;
  frame.counter = *lower - *step;
  frame.step = *step;
  frame.upper = upper;
  frame.position = frame.block->size();
  frames.push_back(frame);
  return success();
}

LogicalResult DeviceRun::enterTest(const DeviceCode::Instruction &test) {
  DeviceNumber condition = registers[test.operands[0]];
  if (!condition.isKnown || condition.isData)
    return get(test.op, test.operands[0]);
  if (condition.slope || (condition.from > 1 && test.otherwise >= 0))
    monotone = false;
  int block = condition.value ? test.body : test.otherwise;
  if (block < 0)
    return success();
  Frame frame;
  frame.block = &code.blocks[block];
  frame.from = std::max(frames.back().from, condition.from);
  frames.push_back(frame);
  return success();
}

FailureOr<bool>
DeviceRun::addAccesses(const DeviceCode::Instruction &instruction,
                       TraceEvent &event) {
  for (const DeviceCode::BufferUse &use : instruction.buffers) {
    if (use.slot < 0 || !slotNumbers[use.slot].isKnown)
      return instruction.op->emitError("S8: uses a buffer that is no slot");
    const DeviceCode::SlotUse &slot = code.slots[use.slot];
    event.accesses.push_back(
        {{slot.symbol, slotNumbers[use.slot].value, slot.ring, slot.field, {}},
         use.reads,
         use.writes});
  }
  return true;
}

LogicalResult DeviceRun::forEachEvent(function_ref<void(TraceEvent &)> visit) {
  TraceEvent event;
  while (true) {
    FailureOr<bool> more = next(event);
    if (failed(more))
      return failure();
    if (!*more)
      return success();
    visit(event);
  }
}

FailureOr<bool> DeviceRun::next(TraceEvent &event) {
  using Instruction = DeviceCode::Instruction;
  while (!frames.empty()) {
    Frame &frame = frames.back();
    if (frame.position == frame.block->size()) {
      if (!frame.loop) {
        frames.pop_back();
        continue;
      }
      frame.counter += frame.step;
      if (isShortened && frames.size() == 2 && frame.hasBegun) {
        FailureOr<DeviceNumber> end = getShortenedEnd(*frame.loop);
        if (failed(end))
          return failure();
        frame.upper = *end;
      }
      frame.hasBegun = true;
      if (frame.counter >= frame.upper.value) {
        frames.pop_back();
        continue;
      }
      registers[frame.loop->result] = asIndex(frame.counter);
      int64_t outer = frames.size() > 1 ? frames[frames.size() - 2].from : 0;
      frame.from = std::max(
          outer, getFrom(frame.counter, frame.upper, /*inclusive=*/false));
      frame.position = 0;
      continue;
    }
    const Instruction &instruction = (*frame.block)[frame.position++];
    switch (instruction.kind) {
    case Instruction::Error:
      return instruction.op->emitError(instruction.error);
    case Instruction::Bound:
      if (failed(askForBound(instruction)))
        return failure();
      continue;
    case Instruction::Loop:
      if (failed(enterLoop(instruction)))
        return failure();
      continue;
    case Instruction::Test:
      if (failed(enterTest(instruction)))
        return failure();
      continue;
    case Instruction::Event:
    case Instruction::Call: {
      event.kind = instruction.event;
      event.op = instruction.op;
      event.symbol = instruction.symbol;
      event.number = 0;
      event.from = frame.from;
      event.accesses.clear();
      if (instruction.kind == Instruction::Event) {
        FailureOr<int64_t> number =
            get(instruction.op, instruction.operands[0]);
        if (failed(number))
          return failure();
        event.number = *number;
      } else {
        lastCall = &instruction;
        SmallVector<DeviceNumber, 4> numbers;
        getNumbers(numbers);
        for (Value result : instruction.op->getResults())
          registers[code.registers.lookup(result)] =
              callNumber(instruction.symbol,
                         cast<OpResult>(result).getResultNumber(), numbers);
      }
      return addAccesses(instruction, event);
    }
    default:
      if (failed(step(instruction)))
        return failure();
    }
  }
  return false;
}

void DeviceRun::getNumbers(SmallVectorImpl<DeviceNumber> &numbers) const {
  for (int number : lastCall->operands)
    numbers.push_back(registers[number]);
}
