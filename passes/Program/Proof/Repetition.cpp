//===- Repetition.cpp - Longer segments repeat what was proved ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An outermost loop ends later by K when the segment is longer by Q updates.
// Each number of its body has a growth, what it gains K iterations later, a
// rise, what it gains in a segment of Q more updates, and a shift, what it
// gains in one that begins Q updates later. A comparison a < b is at its limit
// where a - b cannot change its sign any more. Then:
//
// - Behind the last iteration with a comparison not at the limit of growth and
//   rise together, iteration i + K of a segment of N + Q updates does what
//   iteration i does in one of N.
// - Before the first one with a comparison not at the limit of its rise,
//   or a number of an event has a rise, it does the same in all longer
//   segments.
// - Where K of them in a row are of both kinds, a segment of N + Q updates is
//   one of N with these repeated.
//
// All comparisons are at the limit of their shift, so that segments do the same
// wherever they begin.
//
// Nothing is carried from one iteration to the next, so that each is computed
// by itself.
//===----------------------------------------------------------------------===//

#include "passes/Program/Proof/Repetition.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <numeric>

using namespace mlir;
using namespace penstock;

namespace penstock {

class Repetition {
public:
  Repetition(const DeviceCode &code, int64_t updates, int64_t period)
      : code(code), updates(updates), period(period),
        registers(code.registers.size()) {}

  LogicalResult run();
  /// Not 1 after run() if the period has to be so many times as long.
  int64_t getFactor() const { return factor; }

private:
  using Instruction = DeviceCode::Instruction;
  struct Number {
    int64_t value = 0, growth = 0, rise = 0, shift = 0;
    bool isKnown = false;
    /// The comparison behind it that is not at the limit of growth and rise,
    /// and those which are not at the limit of their rise and of their shift.
    Operation *isOfStart = nullptr, *isOfEnd = nullptr, *isOfFirst = nullptr;
    /// It would be known in periods so many times as long.
    int64_t factor = 1;

    bool isFixed() const { return isKnown && !growth && !rise && !shift; }
  };

  LogicalResult runBlock(int block, bool isOutermost);
  LogicalResult runLoop(const Instruction &loop);
  LogicalResult runOutermostLoop(const Instruction &loop);
  LogicalResult step(const Instruction &instruction);
  LogicalResult useNumber(const Instruction &instruction);
  static Number compare(Operation *op, arith::CmpIPredicate predicate,
                        const Number &a, const Number &b);
  static Number divide(Operation *op, bool isQuotient, const Number &number,
                       const Number &by);
  LogicalResult use(Operation *op, const Number &number);
  void noteStart(Operation *op);
  void noteEnd(Operation *op);
  LogicalResult reject(Operation *op) const {
    return op->emitError("S8: does not repeat itself within a segment of ")
           << updates << " updates, so that nothing is known of longer ones";
  }

  const DeviceCode &code;
  const int64_t updates, period;
  int64_t factor = 1;
  std::vector<Number> registers;
  /// The iteration of the outermost loop, the last one of the start and the
  /// first one of the end of a segment, and why they are.
  int64_t iteration = 0, start = 0, end = 0;
  Operation *startReason = nullptr, *endReason = nullptr;
};

} // namespace penstock

void Repetition::noteStart(Operation *op) {
  if (iteration <= start)
    return;
  start = iteration;
  startReason = op;
}

void Repetition::noteEnd(Operation *op) {
  if (iteration >= end)
    return;
  end = iteration;
  endReason = op;
}

/// Returns the least common multiple, or kMostPeriod if that is less: no
/// segment that is executed has so many updates.
static constexpr int64_t kMostPeriod = 1 << 20;
static int64_t getCommon(int64_t a, int64_t b) {
  return std::min(std::lcm(std::min(a, kMostPeriod), std::min(b, kMostPeriod)),
                  kMostPeriod);
}

/// Returns true if `sign`, of a difference that changes by `change` again and
/// again, leaves the predicate as it is.
static bool isAtLimit(arith::CmpIPredicate predicate, int sign,
                      int64_t change) {
  if (!change)
    return true;
  if (sign)
    return (sign > 0) == (change > 0);
  auto holds = [&](int64_t value) {
    return arith::applyCmpPredicate(
        predicate, APInt(64, static_cast<uint64_t>(value)), APInt(64, 0));
  };
  return holds(0) == holds(change);
}

static arith::CmpIPredicate asSigned(arith::CmpIPredicate predicate) {
  switch (predicate) {
  case arith::CmpIPredicate::ult:
    return arith::CmpIPredicate::slt;
  case arith::CmpIPredicate::ule:
    return arith::CmpIPredicate::sle;
  case arith::CmpIPredicate::ugt:
    return arith::CmpIPredicate::sgt;
  case arith::CmpIPredicate::uge:
    return arith::CmpIPredicate::sge;
  default:
    return predicate;
  }
}

/// Takes in what an event depends on, and nothing else: a learning rate may
/// have a step at any update.
LogicalResult Repetition::use(Operation *op, const Number &number) {
  factor = getCommon(factor, number.factor);
  if (factor == 1 && !number.isKnown)
    return reject(op);
  if (number.isOfFirst)
    return number.isOfFirst->emitError(
        "S8: is decided otherwise where a segment begins later");
  if (number.isOfStart)
    noteStart(number.isOfStart);
  if (number.isOfEnd)
    noteEnd(number.isOfEnd);
  return success();
}

Repetition::Number Repetition::compare(Operation *op,
                                       arith::CmpIPredicate predicate,
                                       const Number &a, const Number &b) {
  Number truth;
  truth.value = arith::applyCmpPredicate(
      predicate, APInt(64, static_cast<uint64_t>(a.value)),
      APInt(64, static_cast<uint64_t>(b.value)));
  truth.isKnown = true;
  // Negative numbers are large ones for as long as they are negative.
  if (asSigned(predicate) != predicate && (a.value < 0 || b.value < 0)) {
    for (const Number &number : {a, b}) {
      if (number.value >= 0)
        continue;
      if (number.growth || number.rise)
        truth.isOfStart = op;
      if (number.rise)
        truth.isOfEnd = op;
      if (number.shift)
        truth.isOfFirst = op;
    }
    return truth;
  }
  predicate = asSigned(predicate);
  int sign = int(a.value > b.value) - int(a.value < b.value);
  int64_t rise = addIndices(a.rise, -b.rise),
          growth = addIndices(a.growth, -b.growth);
  if (!isAtLimit(predicate, sign, addIndices(growth, rise)))
    truth.isOfStart = op;
  if (!isAtLimit(predicate, sign, rise))
    truth.isOfEnd = op;
  if (!isAtLimit(predicate, sign, addIndices(a.shift, -b.shift)))
    truth.isOfFirst = op;
  return truth;
}

/// Returns the growth and rise of a quotient or rest. It grows evenly where
/// what the number gains is a multiple.
Repetition::Number Repetition::divide(Operation *op, bool isQuotient,
                                      const Number &number, const Number &by) {
  Number zero, result;
  zero.isKnown = true;
  // It goes on as it does where the number keeps its sign.
  if (!number.isFixed())
    result = compare(op, arith::CmpIPredicate::slt, number, zero);
  result.isKnown = by.isFixed() && (number.isFixed() || by.value > 0);
  if (number.isFixed() || !result.isKnown)
    return result;
  int64_t common = std::gcd(std::gcd(number.growth, number.rise),
                            std::gcd(number.shift, by.value));
  result.factor = std::min(by.value / common, kMostPeriod);
  result.isKnown = result.factor == 1;
  if (isQuotient) {
    result.growth = number.growth / by.value;
    result.rise = number.rise / by.value;
    result.shift = number.shift / by.value;
  }
  return result;
}

LogicalResult Repetition::step(const Instruction &instruction) {
  Operation *op = instruction.op;
  Number result;
  SmallVector<Number, 3> in;
  for (int operand : instruction.operands)
    in.push_back(registers[operand]);
  bool isKnown = llvm::all_of(in, [](const Number &n) { return n.isKnown; });
  if (auto test = dyn_cast<arith::CmpIOp>(op); test && isKnown) {
    result = compare(op, test.getPredicate(), in[0], in[1]);
  } else if (isKnown && instruction.arithmetic != IndexOp::None) {
    auto is = [&](std::initializer_list<IndexOp> ops) {
      return llvm::is_contained(ops, instruction.arithmetic);
    };
    SmallVector<int64_t, 3> values;
    for (const Number &number : in)
      values.push_back(number.value);
    std::optional<int64_t> value = computeIndex(instruction.arithmetic, values);
    if (!value)
      return op->emitError("S8: divides by zero");
    result.isKnown = true;
    Number a = in[0], b = in.back();
    if (is({IndexOp::Add})) {
      result.growth = addIndices(a.growth, b.growth);
      result.rise = addIndices(a.rise, b.rise);
      result.shift = addIndices(a.shift, b.shift);
    } else if (is({IndexOp::Sub})) {
      result.growth = addIndices(a.growth, -b.growth);
      result.rise = addIndices(a.rise, -b.rise);
      result.shift = addIndices(a.shift, -b.shift);
    } else if (is({IndexOp::Mul})) {
      const Number &constant = a.isFixed() ? a : b,
                   &other = a.isFixed() ? b : a;
      result.growth = multiplyIndices(other.growth, constant.value);
      result.rise = multiplyIndices(other.rise, constant.value);
      result.shift = multiplyIndices(other.shift, constant.value);
      result.isKnown = constant.isFixed();
    } else if (is({IndexOp::DivU, IndexOp::DivS, IndexOp::RemU,
                   IndexOp::RemS})) {
      result = divide(op, is({IndexOp::DivU, IndexOp::DivS}), a, b);
    } else if (is({IndexOp::MaxS, IndexOp::MinS, IndexOp::MaxU,
                   IndexOp::MinU})) {
      Number isLess = compare(op,
                              is({IndexOp::MaxU, IndexOp::MinU})
                                  ? arith::CmpIPredicate::ult
                                  : arith::CmpIPredicate::slt,
                              a, b);
      // Of equal operands, the one that goes on to be the result.
      result = isLess.value == is({IndexOp::MinS, IndexOp::MinU}) ? a : b;
      in.push_back(isLess);
    } else if (is({IndexOp::Select})) {
      result = in[0].value ? in[1] : in[2];
    } else if (is({IndexOp::Cast})) {
      result = a;
    } else {
      // Bits, of truth values.
      result.isKnown =
          llvm::all_of(in, [](const Number &n) { return n.isFixed(); });
      // As long as one is false, others do not matter.
      if (is({IndexOp::And})) {
        auto isFalse = [](const Number &n) { return n.isKnown && !n.value; };
        auto decides = llvm::find_if(
            in, [&](const Number &n) { return isFalse(n) && !n.isOfFirst; });
        if (decides != in.end())
          in = {*decides};
      }
    }
    result.value = *value;
  }
  for (const Number &number : in) {
    result.factor = getCommon(result.factor, number.factor);
    if (number.isOfStart)
      result.isOfStart = number.isOfStart;
    if (number.isOfEnd)
      result.isOfEnd = number.isOfEnd;
    if (number.isOfFirst)
      result.isOfFirst = number.isOfFirst;
  }
  registers[instruction.result] = result;
  return success();
}

/// In the midst of a segment a number does not depend on its length.
LogicalResult Repetition::useNumber(const Instruction &instruction) {
  const Number &number = registers[instruction.operands[0]];
  if (number.rise)
    noteEnd(instruction.op);
  return use(instruction.op, number);
}

LogicalResult Repetition::runLoop(const Instruction &loop) {
  const Number lower = registers[loop.operands[0]],
               upper = registers[loop.operands[1]],
               step = registers[loop.operands[2]];
  for (const Number &number : {lower, upper, step})
    if (failed(use(loop.op, number)))
      return failure();
  if (factor > 1)
    return success();
  if (!step.isFixed() || lower.growth != upper.growth ||
      lower.rise != upper.rise || lower.shift != upper.shift)
    return reject(loop.op);
  Number counter = lower;
  for (; counter.value < upper.value; counter.value += step.value) {
    registers[loop.result] = counter;
    if (failed(runBlock(loop.body, /*isOutermost=*/false)))
      return failure();
  }
  return success();
}

LogicalResult Repetition::runOutermostLoop(const Instruction &loop) {
  const Number lower = registers[loop.operands[0]],
               upper = registers[loop.operands[1]],
               step = registers[loop.operands[2]];
  iteration = 0;
  start = -1;
  end = 1;
  startReason = endReason = nullptr;
  for (const Number &number : {lower, upper, step})
    if (failed(use(loop.op, number)))
      return failure();
  if (factor > 1)
    return success();
  if (lower.growth || lower.rise || lower.shift != upper.shift ||
      !step.isFixed() || startReason || endReason)
    return reject(loop.op);
  if (upper.rise <= 0)
    return loop.op->emitError(
        "S8: has no more iterations in a segment of more updates");
  if (upper.rise % step.value)
    factor = getCommon(factor, step.value / std::gcd(step.value, upper.rise));
  start = lower.value - 1;
  end = upper.value;
  for (iteration = lower.value; iteration < upper.value;
       iteration += step.value) {
    registers[loop.result] = {iteration, upper.rise, 0, lower.shift, true};
    if (failed(runBlock(loop.body, /*isOutermost=*/false)))
      return failure();
    if (factor > 1)
      return success();
  }
  if (end - start > upper.rise)
    return success();
  return reject(startReason ? startReason : endReason ? endReason : loop.op);
}

LogicalResult Repetition::runBlock(int block, bool isOutermost) {
  for (const Instruction &instruction : code.blocks[block]) {
    switch (instruction.kind) {
    case Instruction::Constant:
      registers[instruction.result] = {instruction.constant.value, 0, 0, 0,
                                       !instruction.constant.isData};
      break;
    case Instruction::Bound:
      // As nobody is told otherwise, the segment has its length.
      registers[instruction.result] = {updates, 0, period, 0, true};
      break;
    case Instruction::Slot:
    case Instruction::Event:
      if (failed(useNumber(instruction)))
        return failure();
      break;
    case Instruction::Call:
      for (Value result : instruction.op->getResults())
        registers[code.registers.lookup(result)] = {};
      break;
    case Instruction::Loop:
      if (failed(isOutermost ? runOutermostLoop(instruction)
                             : runLoop(instruction)))
        return failure();
      break;
    case Instruction::Test: {
      const Number &condition = registers[instruction.operands[0]];
      if (failed(use(instruction.op, condition)))
        return failure();
      if (factor > 1)
        return success();
      int body = condition.value ? instruction.body : instruction.otherwise;
      if (body >= 0 && failed(runBlock(body, /*isOutermost=*/false)))
        return failure();
      break;
    }
    default:
      if (failed(step(instruction)))
        return failure();
    }
    if (factor > 1)
      return success();
  }
  return success();
}

LogicalResult Repetition::run() {
  // Evaluation is told which version to take.
  const Number arguments[] = {{0, 0, 0, period, true},
                              {updates, 0, period, 0, true},
                              {1, 0, 0, period, true}};
  for (auto [argument, number] : llvm::zip(code.arguments, arguments))
    registers[argument] = number;
  return runBlock(static_cast<int>(code.blocks.size()) - 1,
                  /*isOutermost=*/true);
}

LogicalResult penstock::verifyRepetition(const DeviceCode &code,
                                         int64_t updates) {
  int64_t period = 1;
  for (int64_t less = 0; less < std::min(period, updates); ++less) {
    Repetition repetition(code, updates - less, period);
    if (failed(repetition.run()))
      return failure();
    if (repetition.getFactor() == 1)
      continue;
    period *= repetition.getFactor();
    if (period > updates)
      return code.getFunction().emitError("S8: does not repeat itself within ")
             << updates << " updates";
    less = -1;
  }
  return success();
}
