//===- SplitBackward.cpp - Input and weight gradients apart ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slices each backward function on the input cotangents, so that a schedule may
// run the weight gradients later. What both halves need is computed by the
// first and flows to the second; constants and destinations are cheaper made
// twice.
//===----------------------------------------------------------------------===//

#include "passes/Training/ForwardStage.h"
#include "passes/Training/Passes.h"

#include "mlir/IR/IRMapping.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINESPLITBACKWARD
#include "passes/Training/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

/// One half of a backward function: ops of the whole, and the values of the
/// whole that are its arguments and results.
struct Half {
  SmallVector<Operation *> ops;
  llvm::SetVector<Value> arguments;
  SmallVector<Value> results;
  func::FuncOp function;
};

class SplitBackwardPass
    : public penstock::impl::PipelineSplitBackwardBase<SplitBackwardPass> {
  using PipelineSplitBackwardBase::PipelineSplitBackwardBase;
  void runOnOperation() override;
  LogicalResult split(TaskOp task);
  void createFunction(Half &half, func::CallOp call, func::FuncOp whole,
                      const Twine &name);
  TaskOp createTask(TaskOp whole, TaskKind kind, StringRef letter);
  ChannelOp createChannel(const Twine &name, ArrayRef<Value> values,
                          Location loc);

  SymbolTable *symbols = nullptr;
};

/// Made again by whoever needs it.
bool isCheap(Operation *op) {
  return op->hasTrait<OpTrait::ConstantLike>() ||
         isa<tensor::EmptyOp, linalg::FillOp>(op);
}

/// An operand that a task has of its own: a variable, or a scalar.
bool isOwn(Value operand) {
  return operand.getDefiningOp<ReadOp>() ||
         !isa<RankedTensorType>(operand.getType());
}

/// The ops that the values are computed from, in order.
SmallVector<Operation *> slice(Block &block, ArrayRef<Value> values) {
  llvm::DenseSet<Operation *> needed;
  for (Value value : values)
    if (Operation *op = value.getDefiningOp())
      needed.insert(op);
  for (Operation &op : llvm::reverse(block)) {
    if (!needed.contains(&op))
      continue;
    op.walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (Operation *source = operand.getDefiningOp())
          if (source->getBlock() == &block)
            needed.insert(source);
    });
  }
  SmallVector<Operation *> ops;
  for (Operation &op : block)
    if (needed.contains(&op))
      ops.push_back(&op);
  return ops;
}

} // namespace

void SplitBackwardPass::runOnOperation() {
  SymbolTable table(getOperation());
  symbols = &table;
  SmallVector<TaskOp> backwards;
  for (auto task : getOperation().getOps<TaskOp>())
    if (task.getKind() == TaskKind::Backward && !task.isBodyless())
      backwards.push_back(task);
  for (TaskOp task : backwards)
    if (failed(split(task)))
      return signalPassFailure();
}

/// A function of the half's ops, whose arguments are, in this order, what is
/// taken, what the other half computed, and what is read.
void SplitBackwardPass::createFunction(Half &half, func::CallOp call,
                                       func::FuncOp whole, const Twine &name) {
  llvm::DenseSet<Operation *> inside(half.ops.begin(), half.ops.end());
  llvm::DenseSet<Value> used(half.results.begin(), half.results.end());
  for (Operation *op : half.ops)
    op->walk([&](Operation *nested) {
      used.insert(nested->operand_begin(), nested->operand_end());
    });
  auto addArguments = [&](bool read) {
    for (auto [argument, operand] :
         llvm::zip(whole.getArguments(), call.getOperands()))
      if (used.contains(argument) && read == isOwn(operand))
        half.arguments.insert(argument);
  };
  addArguments(/*read=*/false);
  for (Operation &op : whole.front())
    for (Value result : op.getResults())
      if (used.contains(result) && !inside.contains(&op))
        half.arguments.insert(result);
  addArguments(/*read=*/true);

  OpBuilder builder(&getContext());
  auto type = builder.getFunctionType(
      ValueRange(half.arguments.getArrayRef()).getTypes(),
      ValueRange(half.results).getTypes());
  half.function = func::FuncOp::create(whole.getLoc(), name.str(), type);
  half.function.setPrivate();
  Block *body = half.function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  IRMapping mapping;
  for (auto [value, argument] : llvm::zip(half.arguments, body->getArguments()))
    mapping.map(value, argument);
  for (Operation *op : half.ops)
    builder.clone(*op, mapping);
  SmallVector<Value> results;
  for (Value result : half.results)
    results.push_back(mapping.lookup(result));
  func::ReturnOp::create(builder, whole.getLoc(), results);
  symbols->insert(half.function, whole->getIterator());
}

TaskOp SplitBackwardPass::createTask(TaskOp whole, TaskKind kind,
                                     StringRef letter) {
  OpBuilder builder(&getContext());
  auto task = TaskOp::create(builder, whole.getLoc(),
                             (whole.getStage() + "." + letter).str(), kind,
                             whole.getStage());
  symbols->insert(task, whole->getIterator());
  task->setDiscardableAttrs(whole->getDiscardableAttrDictionary());
  task.addBody();
  return task;
}

ChannelOp SplitBackwardPass::createChannel(const Twine &name,
                                           ArrayRef<Value> values,
                                           Location loc) {
  OpBuilder builder(&getContext());
  auto channel = ChannelOp::create(
      builder, loc, name.str(),
      builder.getTypeArrayAttr(llvm::to_vector(ValueRange(values).getTypes())),
      StringAttr(), StringAttr(), IntegerAttr(), IntegerAttr());
  insertAfterLast(getOperation(), *symbols, channel);
  return channel;
}

LogicalResult SplitBackwardPass::split(TaskOp task) {
  auto calls = llvm::to_vector(task.getBody().getOps<func::CallOp>());
  auto puts = llvm::to_vector(task.getBody().getOps<PutOp>());
  auto writes = llvm::to_vector(task.getBody().getOps<WriteOp>());
  if (calls.size() != 1 || puts.empty() || writes.empty())
    return success();
  func::CallOp call = calls.front();
  auto whole = symbols->lookup<func::FuncOp>(call.getCallee());
  if (!whole || whole.isDeclaration())
    return call.emitError()
           << "@" << call.getCallee() << " has no body that could be split";
  Operation *terminator = whole.front().getTerminator();

  // 1. Which results are input cotangents, which are gradients.
  Half input, weight;
  SmallVector<unsigned> inputResults, weightResults;
  for (OpResult result : call.getResults()) {
    bool isGradient = llvm::any_of(
        result.getUsers(), [](Operation *user) { return isa<WriteOp>(user); });
    Value value = terminator->getOperand(result.getResultNumber());
    (isGradient ? weight : input).results.push_back(value);
    (isGradient ? weightResults : inputResults)
        .push_back(result.getResultNumber());
  }
  if (input.results.empty())
    return success();

  // 2. The halves. The second takes from the first what both would compute.
  input.ops = slice(whole.front(), input.results);
  llvm::DenseSet<Operation *> first(input.ops.begin(), input.ops.end());
  for (Operation *op : slice(whole.front(), weight.results))
    if (!first.contains(op) || isCheap(op))
      weight.ops.push_back(op);
  // Without what only shared ops needed.
  llvm::DenseSet<Operation *> kept;
  for (Operation *op : llvm::reverse(weight.ops)) {
    bool isNeeded =
        !isCheap(op) || llvm::any_of(op->getUsers(), [&](Operation *user) {
          while (user->getBlock() != &whole.front())
            user = user->getParentOp();
          return kept.contains(user);
        });
    if (isNeeded)
      kept.insert(op);
  }
  llvm::erase_if(weight.ops, [&](Operation *op) { return !kept.contains(op); });
  StringRef stage = task.getStage();
  createFunction(weight, call, whole, stage + ".weight_grad");
  for (Value argument : weight.arguments)
    if (argument.getDefiningOp() &&
        !llvm::is_contained(input.results, argument))
      input.results.push_back(argument);
  createFunction(input, call, whole, stage + ".input_grad");
  for (auto [index, value] : llvm::enumerate(weight.arguments)) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument)
      continue;
    auto into =
        whole.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), kIntoAttr);
    if (!into)
      continue;
    unsigned position =
        llvm::find(weightResults, into.getInt()) - weightResults.begin();
    weight.function.setArgAttr(
        index, kIntoAttr,
        IntegerAttr::get(IntegerType::get(&getContext(), 64), position));
  }

  // 3. The first task: it takes all, and passes on what the second needs.
  auto operandOf = [&](Value value) {
    return call.getOperand(cast<BlockArgument>(value).getArgNumber());
  };
  TaskOp inputTask = createTask(task, TaskKind::InputGrad, "I");
  OpBuilder builder = OpBuilder::atBlockEnd(&inputTask.getBody().front());
  auto cloneOwn = [&](Value operand, TaskOp into, IRMapping &values) {
    if (auto read = operand.getDefiningOp<ReadOp>())
      builder.clone(*read, values);
    else if (isOwn(operand))
      values.map(operand, cloneScalar(builder, operand, into));
  };
  IRMapping mapping;
  for (auto take : task.getBody().getOps<TakeOp>())
    builder.clone(*take, mapping);
  for (Value value : input.arguments)
    cloneOwn(operandOf(value), inputTask, mapping);
  auto inputCall = func::CallOp::create(
      builder, call.getLoc(), input.function,
      llvm::map_to_vector(input.arguments, [&](Value value) {
        return mapping.lookup(operandOf(value));
      }));
  for (auto [index, result] : llvm::enumerate(inputResults))
    mapping.map(call.getResult(result), inputCall.getResult(index));
  for (PutOp put : puts)
    builder.clone(*put, mapping);
  SmallVector<Value> passed, passedOn;
  for (Value value : weight.arguments) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (isOwn(operandOf(value)))
        continue;
      passed.push_back(mapping.lookup(operandOf(value)));
    } else {
      passed.push_back(inputCall.getResult(llvm::find(input.results, value) -
                                           input.results.begin()));
    }
    passedOn.push_back(value);
  }

  // 4. The second task.
  ChannelOp channel;
  if (!passed.empty()) {
    channel = createChannel(stage + ".weight_residuals", passed, task.getLoc());
    PutOp::create(builder, task.getLoc(), passed,
                  FlatSymbolRefAttr::get(channel));
  }
  TaskOp weightTask = createTask(task, TaskKind::WeightGrad, "W");
  builder.setInsertionPointToEnd(&weightTask.getBody().front());
  IRMapping second;
  llvm::DenseMap<Value, Value> operands;
  if (channel) {
    auto take =
        TakeOp::create(builder, task.getLoc(), ValueRange(passed).getTypes(),
                       channel.getSymName());
    for (auto [value, taken] : llvm::zip(passedOn, take.getValues()))
      operands[value] = taken;
  }
  for (Value value : weight.arguments)
    if (!operands.contains(value)) {
      cloneOwn(operandOf(value), weightTask, second);
      operands[value] = second.lookup(operandOf(value));
    }
  auto weightCall = func::CallOp::create(
      builder, call.getLoc(), weight.function,
      llvm::map_to_vector(weight.arguments,
                          [&](Value value) { return operands.lookup(value); }));
  for (auto [index, result] : llvm::enumerate(weightResults))
    second.map(call.getResult(result), weightCall.getResult(index));
  for (WriteOp write : writes)
    builder.clone(*write, second);

  symbols->erase(task);
  if (SymbolTable::symbolKnownUseEmpty(whole, getOperation()))
    symbols->erase(whole);
  return success();
}
