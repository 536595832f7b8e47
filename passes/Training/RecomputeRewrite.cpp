//===- RecomputeRewrite.cpp - Moving residuals to the backward ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The forward function returns less, the channel carries less, and the ops that
// run again are cloned into the backward function, each before its first user.
//===----------------------------------------------------------------------===//

#include "passes/Training/RecomputeRewrite.h"

#include "dialects/Pipeline/ArgumentAttributes.h"
#include "passes/Training/ForwardStage.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

class RecomputeRewriter {
public:
  RecomputeRewriter(RecomputeStage &stage, const RecomputePlan &plan,
                    SymbolTable &symbols)
      : stage(stage), plan(plan), symbols(symbols),
        builder(stage.stage.getContext()), call(stage.backwardCall),
        function(stage.backwardFunction), body(function.front()),
        operands(call.getOperands()) {}

  void run();

private:
  void mapTaken();
  void changeForward();
  void putLess();
  void takeLess();
  void addOperands(Operation *op);
  void cloneOps();
  void orderArguments();

  void addArgument(Value value, Value operand) {
    mapping.map(value, body.addArgument(value.getType(), value.getLoc()));
    operands.push_back(operand);
  }

  RecomputeStage &stage;
  const RecomputePlan &plan;
  SymbolTable &symbols;
  OpBuilder builder;
  /// The call and the function of the backward.
  func::CallOp call;
  func::FuncOp function;
  Block &body;
  /// Operands of the backward function; the first are those of `call`.
  SmallVector<Value> operands;
  /// Which of these reads a variable.
  llvm::StringMap<unsigned> readAs;
  /// From values of the forward function to those of the backward function, and
  /// to those of the forward task.
  IRMapping mapping;
  llvm::MapVector<Value, Value> valueOf;
  /// Values that the channel carries: those that are stored, then those that
  /// the tasks only pass on.
  SmallVector<Value> puts;
  TakeOp take;
  bool readsParameters = false;
};

/// Moves each of the ops, which are in order, to its first user.
void sinkToUsers(ArrayRef<Operation *> ops) {
  for (Operation *op : llvm::reverse(ops)) {
    Operation *first = nullptr;
    for (Operation *user : op->getUsers()) {
      Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
      if (!first || ancestor->isBeforeInBlock(first))
        first = ancestor;
    }
    if (first)
      op->moveBefore(first);
  }
}

} // namespace

/// Maps values of the forward to the operands of the backward function.
void RecomputeRewriter::mapTaken() {
  for (auto [field, taken] : llvm::zip(stage.fields, stage.take.getValues()))
    for (auto [index, operand] : llvm::enumerate(call.getOperands()))
      if (field && operand == taken)
        mapping.map(field, function.getArgument(index));
  for (auto [index, operand] : llvm::enumerate(call.getOperands()))
    if (auto read = operand.getDefiningOp<ReadOp>())
      readAs[read.getVariable()] = index;
}

/// The forward function returns what is stored and what leaves the stage.
void RecomputeRewriter::changeForward() {
  func::FuncOp forward = stage.forwardFunction;
  func::CallOp old = stage.forwardCall;
  Operation *terminator = forward.front().getTerminator();
  SmallVector<Value> results;
  SmallVector<std::pair<Value, unsigned>> moved; // Of the old call.
  for (auto [result, value] :
       llvm::zip(old.getResults(), terminator->getOperands())) {
    if (result.use_empty() && !plan.stored.contains(value))
      continue;
    moved.push_back({result, results.size()});
    results.push_back(value);
  }
  for (Value value : plan.stored)
    if (value.getDefiningOp() && !llvm::is_contained(results, value))
      results.push_back(value);
  terminator->setOperands(results);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(old);
  forward.setFunctionType(builder.getFunctionType(
      forward.getArgumentTypes(), ValueRange(results).getTypes()));
  auto renewed =
      func::CallOp::create(builder, old.getLoc(), forward, old.getOperands());
  llvm::DenseMap<int64_t, unsigned> numbers;
  for (auto [result, index] : moved)
    numbers[cast<OpResult>(result).getResultNumber()] = index;
  changeArgAttrs(forward, [&](unsigned, NamedAttrList &attributes) {
    auto into = dyn_cast_or_null<IntegerAttr>(attributes.get(kIntoAttr));
    auto moved = into ? numbers.find(into.getInt()) : numbers.end();
    if (moved != numbers.end())
      attributes.set(kIntoAttr, builder.getI64IntegerAttr(moved->second));
  });
  for (auto [result, index] : moved)
    result.replaceAllUsesWith(renewed.getResult(index));
  for (auto [index, value] : llvm::enumerate(results))
    valueOf[value] = renewed.getResult(index);
  for (auto [argument, operand] :
       llvm::zip(forward.getArguments(), old.getOperands()))
    valueOf[argument] = operand;
  old.erase();
  stage.forwardCall = renewed;
}

/// The forward task puts what is stored; what it only passes on stays.
void RecomputeRewriter::putLess() {
  SmallVector<Value> passedOn;
  for (auto [field, value] : llvm::zip(stage.fields, stage.put.getValues()))
    if (!field)
      passedOn.push_back(value);
  Location loc = stage.take.getLoc();
  stage.put.erase();
  changeForward();
  for (Value value : plan.stored)
    puts.push_back(valueOf.lookup(value));
  llvm::append_range(puts, passedOn);
  builder.setInsertionPointToEnd(&stage.forward.getBody().front());
  if (!puts.empty())
    PutOp::create(builder, loc, puts, FlatSymbolRefAttr::get(stage.channel));
  stage.channel.setTypesAttr(
      builder.getTypeArrayAttr(llvm::to_vector(ValueRange(puts).getTypes())));
}

/// The backward task takes the same, and gives it to its function.
void RecomputeRewriter::takeLess() {
  builder.setInsertionPoint(call);
  if (!puts.empty())
    take =
        TakeOp::create(builder, stage.take.getLoc(),
                       ValueRange(puts).getTypes(), stage.channel.getSymName());
  unsigned next = 0;
  for (Value value : plan.stored) {
    Value taken = take.getValues()[next++];
    if (mapping.contains(value))
      operands[cast<BlockArgument>(mapping.lookup(value)).getArgNumber()] =
          taken;
    else
      addArgument(value, taken);
  }
  for (auto [field, taken] : llvm::zip(stage.fields, stage.take.getValues()))
    if (!field)
      taken.replaceAllUsesWith(take.getValues()[next++]);
}

/// Arguments for what an op that runs again needs of the stage: parameters and
/// scalars.
void RecomputeRewriter::addOperands(Operation *op) {
  for (Value value : op->getOperands()) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner() != stage.problem.block ||
        stage.problem.data.contains(value))
      continue;
    Value operand = stage.forwardCall.getOperand(argument.getArgNumber());
    auto read = operand.getDefiningOp<ReadOp>();
    readsParameters |= !!read;
    if (mapping.contains(value))
      continue;
    if (read && readAs.contains(read.getVariable())) {
      mapping.map(value, function.getArgument(readAs[read.getVariable()]));
      continue;
    }
    addArgument(value, read ? builder.clone(*read)->getResult(0)
                            : cloneScalar(builder, operand, stage.backward));
  }
}

/// The ops that run again, at first in front of the others.
void RecomputeRewriter::cloneOps() {
  for (Operation *op : plan.ops)
    op->walk([&](Operation *nested) { addOperands(nested); });
  OpBuilder inner = OpBuilder::atBlockBegin(&body);
  SmallVector<Operation *> clones;
  for (Operation *op : plan.ops) {
    // What is stored comes from its argument, also where an op runs again for
    // another of its results.
    IRMapping before = mapping;
    Operation *clone = inner.clone(*op, mapping);
    for (Value result : op->getResults())
      if (plan.stored.contains(result))
        mapping.map(result, before.lookup(result));
    clones.push_back(clone);
  }
  for (auto [field, taken] : llvm::zip(stage.fields, stage.take.getValues()))
    for (auto [index, operand] : llvm::enumerate(call.getOperands()))
      if (field && plan.dropped.contains(field) && operand == taken)
        function.getArgument(index).replaceAllUsesWith(mapping.lookup(field));
  sinkToUsers(clones);
}

/// The arguments in their usual order: taken, read, accumulators, scalars; and
/// the call with them.
void RecomputeRewriter::orderArguments() {
  auto rank = [&](unsigned index) {
    Value operand = operands[index];
    if (auto read = operand.getDefiningOp<ReadOp>()) {
      auto variable = symbols.lookup<VariableOp>(read.getVariable());
      return variable && variable.getRole() == Role::Gradient ? 2 : 1;
    }
    return isa<RankedTensorType>(operand.getType()) ? 0 : 3;
  };
  SmallVector<unsigned> order;
  for (unsigned index = 0; index < operands.size(); ++index) {
    bool isDropped =
        index < call.getNumOperands() &&
        operands[index].getDefiningOp() == stage.take.getOperation();
    if (!isDropped)
      order.push_back(index);
  }
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return std::pair(rank(a), a) < std::pair(rank(b), b);
  });
  SmallVector<DictionaryAttr> attributes;
  for (unsigned index : order)
    attributes.push_back(index < call.getNumOperands()
                             ? function.getArgAttrDict(index)
                             : DictionaryAttr());
  unsigned old = body.getNumArguments();
  SmallVector<Value> ordered;
  for (unsigned index : order) {
    Value argument = body.getArgument(index);
    argument.replaceAllUsesWith(
        body.addArgument(argument.getType(), argument.getLoc()));
    ordered.push_back(operands[index]);
  }
  body.eraseArguments(0, old);
  function.removeArgAttrsAttr();
  function.setFunctionType(builder.getFunctionType(
      ValueRange(ordered).getTypes(), function.getResultTypes()));
  function.setAllArgAttrs(attributes);
  auto renewed =
      func::CallOp::create(builder, call.getLoc(), function, ordered);
  call.replaceAllUsesWith(renewed.getResults());
  call.erase();
}

void RecomputeRewriter::run() {
  // 1. The forward.
  mapTaken();
  putLess();

  // 2. The backward.
  takeLess();
  cloneOps();
  orderArguments();

  // 3. What is left between them.
  stage.take.erase();
  if (puts.empty())
    symbols.erase(stage.channel);
  if (readsParameters)
    stage.backward->setDiscardableAttr(kRecomputesAttr, builder.getUnitAttr());
}

void penstock::applyRecomputePlan(RecomputeStage &stage,
                                  const RecomputePlan &plan,
                                  SymbolTable &symbols) {
  RecomputeRewriter(stage, plan, symbols).run();
}
