//===- Differentiate.cpp - The reverse mode -------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Walks a function backwards, lets every op with a cotangent pull it back, and
// orders what the rules asked for into the signature of the backward function.
//===----------------------------------------------------------------------===//

#include "lib/Autodiff/Rules.h"
#include "penstock/Autodiff/Autodiff.h"
#include "penstock/Autodiff/Pullback.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace penstock;

namespace {

bool isFloat(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value.getType()));
}

/// Adds to `active` what depends, with a derivative, on values in it.
void propagateActivity(Block &block, llvm::DenseSet<Value> &active) {
  for (Operation &op : block.without_terminator()) {
    auto rule = dyn_cast<DifferentiableOpInterface>(op);
    SmallVector<Value> sources;
    forEachUsedValue(&op, [&](Value used) {
      if (active.contains(used))
        sources.push_back(used);
    });
    for (Value result : op.getResults())
      if (isFloat(result) && llvm::any_of(sources, [&](Value source) {
            return !rule || rule.carriesGradient(source, result);
          }))
        active.insert(result);
  }
}

llvm::DenseSet<Value> findActive(func::FuncOp forward,
                                 ArrayRef<bool> isWanted) {
  llvm::DenseSet<Value> active;
  for (auto [argument, wanted] : llvm::zip(forward.getArguments(), isWanted))
    if (wanted && isFloat(argument))
      active.insert(argument);
  propagateActivity(forward.front(), active);
  return active;
}

/// Says of every forward value whether it is data or made of parameters only.
void setKinds(func::FuncOp forward, ArrayRef<bool> isParameter,
              Pullback &pullback) {
  for (auto [argument, parameter] :
       llvm::zip(forward.getArguments(), isParameter))
    pullback.setKind(argument,
                     parameter ? ValueKind::Parameter : ValueKind::Data);
  for (Operation &op : forward.front().without_terminator()) {
    ValueKind kind = ValueKind::Constant;
    forEachUsedValue(&op, [&](Value used) {
      kind = std::max(kind, pullback.getKind(used));
    });
    for (Value result : op.getResults())
      pullback.setKind(result, kind);
  }
}

LogicalResult reportNoRule(Operation *op) {
  InFlightDiagnostic error = op->emitError()
                             << "'" << op->getName()
                             << "' has no derivative rule, and a gradient "
                                "has to flow through it";
  error.attachNote() << "freeze every parameter before it (--freeze), or "
                        "replace the node by operations with derivatives";
  return error;
}

/// The arguments in the order of their roles; within a role, in the order of
/// the forward values.
SmallVector<std::pair<Pullback::ArgumentKey, Value>>
sortArguments(const Pullback &pullback, func::FuncOp forward) {
  llvm::DenseMap<Value, unsigned> position;
  for (Value argument : forward.getArguments())
    position[argument] = position.size();
  for (Operation &op : forward.front())
    for (Value result : op.getResults())
      position[result] = position.size();
  SmallVector<std::pair<Pullback::ArgumentKey, Value>> sorted(
      pullback.getArguments().begin(), pullback.getArguments().end());
  llvm::sort(sorted, [&](const auto &a, const auto &b) {
    return std::pair(a.first.first, position.lookup(a.first.second)) <
           std::pair(b.first.first, position.lookup(b.first.second));
  });
  return sorted;
}

} // namespace

SmallVector<bool> penstock::findActiveResults(func::FuncOp forward,
                                              ArrayRef<bool> isWanted) {
  llvm::DenseSet<Value> active = findActive(forward, isWanted);
  return llvm::map_to_vector(
      forward.front().getTerminator()->getOperands(),
      [&](Value result) { return active.contains(result); });
}

FailureOr<Differentiation>
penstock::differentiate(func::FuncOp forward,
                        const DifferentiationRequest &request, StringRef name) {
  Location loc = forward.getLoc();
  Block &source = forward.front();
  OpBuilder builder(forward->getContext());
  builder.setInsertionPointAfter(forward);
  auto backward =
      func::FuncOp::create(builder, loc, name, builder.getFunctionType({}, {}));
  backward.setPrivate();
  Block *block = backward.addEntryBlock();
  Pullback pullback(*block);
  setKinds(forward, request.isParameter, pullback);
  for (Value value : findActive(forward, request.isWanted))
    pullback.setActive(value);

  // 1. Where cotangents start.
  for (auto [index, argument] : llvm::enumerate(forward.getArguments())) {
    if (!pullback.isActive(argument))
      continue;
    if (request.isParameter[index])
      pullback.setAccumulates(argument);
    else if (request.hasPriorCotangent[index])
      pullback.setCotangent(
          argument,
          pullback.getArgument(ArgumentRole::ArgumentCotangent, argument));
  }
  for (auto [value, seed] :
       llvm::zip(source.getTerminator()->getOperands(), request.seeds)) {
    if (seed.kind == Seed::None || !pullback.isActive(value))
      continue;
    Value cotangent;
    if (seed.kind == Seed::Argument) {
      cotangent = pullback.getArgument(ArgumentRole::ResultCotangent, value);
    } else {
      auto type = cast<RankedTensorType>(value.getType());
      cotangent = arith::ConstantOp::create(
          pullback.getBuilder(), value.getLoc(),
          DenseElementsAttr::get(
              type, builder.getFloatAttr(type.getElementType(), seed.value)));
    }
    pullback.add(value, cotangent, value.getLoc());
  }

  // 2. Every op from the last one back.
  for (Operation &op : llvm::reverse(source.without_terminator())) {
    if (llvm::none_of(op.getResults(), [&](Value result) {
          return pullback.getCotangent(result);
        }))
      continue;
    auto rule = dyn_cast<DifferentiableOpInterface>(op);
    if (failed(rule ? rule.pullBack(pullback) : reportNoRule(&op))) {
      backward.erase();
      return failure();
    }
  }

  keepOperandsOfNormalizations(source, pullback);

  // 3. The results: gradients of data, each once, then the accumulators.
  Differentiation result;
  SmallVector<Value> results;
  SmallVector<std::pair<unsigned, Value>> inputGradients;
  for (auto [index, argument] : llvm::enumerate(forward.getArguments())) {
    Value cotangent = pullback.getCotangent(argument);
    if (!cotangent || request.isParameter[index])
      continue;
    Value prior =
        pullback.findArgument(ArgumentRole::ArgumentCotangent, argument);
    // Without a contribution of this function, the prior one stays elsewhere.
    if (cotangent == prior)
      continue;
    inputGradients.emplace_back(index, cotangent);
    if (!isa<BlockArgument>(cotangent) &&
        !llvm::is_contained(results, cotangent))
      results.push_back(cotangent);
  }
  result.firstAccumulatorResult = results.size();
  auto arguments = sortArguments(pullback, forward);
  for (auto &[key, argument] : arguments)
    if (key.first == static_cast<int>(ArgumentRole::Accumulator))
      results.push_back(pullback.getCotangent(key.second));
  func::ReturnOp::create(pullback.getBuilder(), loc, results);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
    if (isOpTriviallyDead(&op))
      op.erase();

  // 4. The arguments in their final order, without those that nothing uses.
  SmallVector<Type> types;
  SmallVector<Value> ordered;
  for (auto &[key, argument] : arguments) {
    auto [role, value] = key;
    bool isReturned =
        llvm::any_of(inputGradients, [&, argument = argument](auto &pair) {
          return pair.second == argument;
        });
    if (argument.use_empty() && !isReturned &&
        role != static_cast<int>(ArgumentRole::ResultCotangent))
      continue;
    auto forwardArgument = dyn_cast<BlockArgument>(value);
    switch (static_cast<ArgumentRole>(role)) {
    case ArgumentRole::ResultCotangent:
      result.cotangents.push_back(
          llvm::find(source.getTerminator()->getOperands(), value) -
          source.getTerminator()->operand_begin());
      break;
    case ArgumentRole::ArgumentCotangent:
      result.priorCotangents.push_back(forwardArgument.getArgNumber());
      break;
    case ArgumentRole::Residual:
      result.residuals.push_back(value);
      break;
    case ArgumentRole::Parameter:
      result.parameters.push_back(forwardArgument.getArgNumber());
      break;
    case ArgumentRole::Accumulator:
      result.accumulators.push_back(forwardArgument.getArgNumber());
      break;
    case ArgumentRole::Scalar:
      result.scalars.push_back(forwardArgument.getArgNumber());
      break;
    }
    ordered.push_back(argument);
    types.push_back(argument.getType());
  }
  for (auto [index, cotangent] : inputGradients) {
    bool isResult = !isa<BlockArgument>(cotangent);
    ArrayRef<Value> among = isResult ? ArrayRef(results) : ArrayRef(ordered);
    result.inputGradients.push_back(
        {index, isResult,
         static_cast<unsigned>(llvm::find(among, cotangent) - among.begin())});
  }
  // Nothing to compute: at most cotangents are passed on as they are.
  if (results.empty()) {
    backward.erase();
    return result;
  }
  unsigned old = block->getNumArguments();
  for (Value argument : ordered)
    argument.replaceAllUsesWith(
        block->addArgument(argument.getType(), argument.getLoc()));
  block->eraseArguments(0, old);
  backward.setFunctionType(
      builder.getFunctionType(types, ValueRange(results).getTypes()));
  result.function = backward;
  return result;
}
