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

/// Makes the backward function of one forward function.
class Differentiator {
public:
  Differentiator(func::FuncOp forward, const DifferentiationRequest &request,
                 func::FuncOp backward)
      : forward(forward), request(request), backward(backward),
        source(forward.front()), block(*backward.addEntryBlock()),
        pullback(block) {}

  FailureOr<Differentiation> run();

private:
  void seedCotangents();
  LogicalResult pullBackOps();
  void returnResults();
  void orderArguments();
  void describeArgument(ArgumentRole role, Value value);

  func::FuncOp forward;
  const DifferentiationRequest &request;
  func::FuncOp backward;
  Block &source, &block;
  Pullback pullback;

  Differentiation result;
  /// Gradients of data, each once, then the accumulators.
  SmallVector<Value> results;
  /// The cotangent of each argument that is data.
  SmallVector<std::pair<unsigned, Value>> inputGradients;
  SmallVector<std::pair<Pullback::ArgumentKey, Value>> arguments;
  /// The arguments that something uses, in their final order.
  SmallVector<Value> ordered;
};

} // namespace

SmallVector<bool> penstock::findActiveResults(func::FuncOp forward,
                                              ArrayRef<bool> isWanted) {
  llvm::DenseSet<Value> active = findActive(forward, isWanted);
  return llvm::map_to_vector(
      forward.front().getTerminator()->getOperands(),
      [&](Value result) { return active.contains(result); });
}

/// Where cotangents start: at arguments that have one, and at results.
void Differentiator::seedCotangents() {
  setKinds(forward, request.isParameter, pullback);
  for (Value value : findActive(forward, request.isWanted))
    pullback.setActive(value);
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
      OpBuilder &builder = pullback.getBuilder();
      auto type = cast<RankedTensorType>(value.getType());
      cotangent = arith::ConstantOp::create(
          builder, value.getLoc(),
          DenseElementsAttr::get(
              type, builder.getFloatAttr(type.getElementType(), seed.value)));
    }
    pullback.add(value, cotangent, value.getLoc());
  }
}

/// Every op that a cotangent reaches, from the last one back.
LogicalResult Differentiator::pullBackOps() {
  for (Operation &op : llvm::reverse(source.without_terminator())) {
    if (llvm::none_of(op.getResults(), [&](Value value) {
          return pullback.getCotangent(value);
        }))
      continue;
    auto rule = dyn_cast<DifferentiableOpInterface>(op);
    if (failed(rule ? rule.pullBack(pullback) : reportNoRule(&op)))
      return failure();
  }
  keepOperandsOfNormalizations(source, pullback);
  return success();
}

void Differentiator::returnResults() {
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
  arguments = sortArguments(pullback, forward);
  for (auto &[key, argument] : arguments)
    if (key.first == static_cast<int>(ArgumentRole::Accumulator))
      results.push_back(pullback.getCotangent(key.second));
  func::ReturnOp::create(pullback.getBuilder(), forward.getLoc(), results);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// Notes the meaning of the argument that has `value` of the forward in this
/// role.
void Differentiator::describeArgument(ArgumentRole role, Value value) {
  auto number = [&] { return cast<BlockArgument>(value).getArgNumber(); };
  switch (role) {
  case ArgumentRole::ResultCotangent:
    result.cotangents.push_back(
        llvm::find(source.getTerminator()->getOperands(), value) -
        source.getTerminator()->operand_begin());
    break;
  case ArgumentRole::ArgumentCotangent:
    result.priorCotangents.push_back(number());
    break;
  case ArgumentRole::Residual:
    result.residuals.push_back(value);
    break;
  case ArgumentRole::Parameter:
    result.parameters.push_back(number());
    break;
  case ArgumentRole::Accumulator:
    result.accumulators.push_back(number());
    break;
  case ArgumentRole::Scalar:
    result.scalars.push_back(number());
    break;
  }
}

/// The arguments in their final order, without those that nothing uses.
void Differentiator::orderArguments() {
  for (auto &[key, argument] : arguments) {
    auto role = static_cast<ArgumentRole>(key.first);
    bool isReturned =
        llvm::any_of(inputGradients, [&, argument = argument](auto &pair) {
          return pair.second == argument;
        });
    if (argument.use_empty() && !isReturned &&
        role != ArgumentRole::ResultCotangent)
      continue;
    describeArgument(role, key.second);
    ordered.push_back(argument);
  }
  for (auto [index, cotangent] : inputGradients) {
    bool isResult = !isa<BlockArgument>(cotangent);
    ArrayRef<Value> among = isResult ? ArrayRef(results) : ArrayRef(ordered);
    result.inputGradients.push_back(
        {index, isResult,
         static_cast<unsigned>(llvm::find(among, cotangent) - among.begin())});
  }
}

FailureOr<Differentiation> Differentiator::run() {
  // 1. The body.
  seedCotangents();
  if (failed(pullBackOps())) {
    backward.erase();
    return failure();
  }

  // 2. What goes in and out.
  returnResults();
  orderArguments();
  // Nothing to compute: at most cotangents are passed on as they are.
  if (results.empty()) {
    backward.erase();
    return result;
  }
  unsigned old = block.getNumArguments();
  for (Value argument : ordered)
    argument.replaceAllUsesWith(
        block.addArgument(argument.getType(), argument.getLoc()));
  block.eraseArguments(0, old);
  backward.setFunctionType(FunctionType::get(backward.getContext(),
                                             block.getArgumentTypes(),
                                             ValueRange(results).getTypes()));
  result.function = backward;
  return result;
}

FailureOr<Differentiation>
penstock::differentiate(func::FuncOp forward,
                        const DifferentiationRequest &request, StringRef name) {
  OpBuilder builder(forward->getContext());
  builder.setInsertionPointAfter(forward);
  auto backward = func::FuncOp::create(builder, forward.getLoc(), name,
                                       builder.getFunctionType({}, {}));
  backward.setPrivate();
  return Differentiator(forward, request, backward).run();
}
