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

#include "dialects/Pipeline/Signatures.h"
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
};

/// Splits one backward task.
class Splitter {
public:
  Splitter(TaskOp task, SymbolTable &symbols)
      : task(task), symbols(symbols), builder(task.getContext()) {}

  LogicalResult run();

private:
  bool divideResults();
  void divideOps();
  void createFunctions();
  void createFunction(Half &half, const Twine &name);
  void moveInto();
  TaskOp createTask(TaskKind kind, StringRef letter);
  ChannelOp createChannel(const Twine &name, ArrayRef<Value> values);
  void createInputTask();
  void createWeightTask();
  void cloneOwn(Value operand, TaskOp into, IRMapping &values);

  /// Returns the operand of the whole's call for an argument.
  Value findOperand(Value argument) {
    return call.getOperand(cast<BlockArgument>(argument).getArgNumber());
  }

  TaskOp task;
  SymbolTable &symbols;
  OpBuilder builder;
  func::CallOp call;
  func::FuncOp whole;
  Half input, weight;
  /// The results of the whole that each half has.
  SmallVector<unsigned> inputResults, weightResults;
  /// The values that the first task passes on to the second, and the
  /// corresponding values of the whole.
  SmallVector<Value> passed, passedOn;
  /// Null where it passes on nothing.
  ChannelOp channel;
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
  SymbolTable symbols(getOperation());
  SmallVector<TaskOp> backwards;
  for (auto task : getOperation().getOps<TaskOp>())
    if (task.getKind() == TaskKind::Backward && !task.isBodyless())
      backwards.push_back(task);
  for (TaskOp task : backwards)
    if (failed(Splitter(task, symbols).run()))
      return signalPassFailure();
  signFunctions(getOperation());
}

/// A function of the half's ops, whose arguments are, in this order, what is
/// taken, what the other half computed, and what is read.
void Splitter::createFunction(Half &half, const Twine &name) {
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
  symbols.insert(half.function, whole->getIterator());
}

TaskOp Splitter::createTask(TaskKind kind, StringRef letter) {
  // The table inserts it.
  OpBuilder detached(task.getContext());
  auto half = TaskOp::create(detached, task.getLoc(),
                             (task.getStage() + "." + letter).str(), kind,
                             task.getStage(), ArrayAttr(), ArrayAttr());
  symbols.insert(half, task->getIterator());
  half->setDiscardableAttrs(task->getDiscardableAttrDictionary());
  half.addBody();
  return half;
}

ChannelOp Splitter::createChannel(const Twine &name, ArrayRef<Value> values) {
  OpBuilder detached(task.getContext());
  auto created = ChannelOp::create(
      detached, task.getLoc(), name.str(),
      builder.getTypeArrayAttr(llvm::to_vector(ValueRange(values).getTypes())),
      SourceAttr(), SinkAttr(), IntegerAttr(), IntegerAttr());
  insertAfterLast(task->getParentOfType<ModuleOp>(), symbols, created);
  return created;
}

/// Which results are input cotangents, which are gradients. Whether there are
/// both.
bool Splitter::divideResults() {
  Operation *terminator = whole.front().getTerminator();
  for (OpResult result : call.getResults()) {
    bool isGradient = llvm::any_of(
        result.getUsers(), [](Operation *user) { return isa<WriteOp>(user); });
    Value value = terminator->getOperand(result.getResultNumber());
    (isGradient ? weight : input).results.push_back(value);
    (isGradient ? weightResults : inputResults)
        .push_back(result.getResultNumber());
  }
  return !input.results.empty();
}

/// The second half takes from the first what both would compute.
void Splitter::divideOps() {
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
}

/// The first half also returns what the second takes from it.
void Splitter::createFunctions() {
  StringRef stage = task.getStage();
  createFunction(weight, stage + ".weight_grad");
  for (Value argument : weight.arguments)
    if (argument.getDefiningOp() &&
        !llvm::is_contained(input.results, argument))
      input.results.push_back(argument);
  createFunction(input, stage + ".input_grad");
  moveInto();
}

/// Accumulators name the result that goes into them, which has another number.
void Splitter::moveInto() {
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
    weight.function.setArgAttr(index, kIntoAttr,
                               builder.getI64IntegerAttr(position));
  }
}

void Splitter::cloneOwn(Value operand, TaskOp into, IRMapping &values) {
  if (auto read = operand.getDefiningOp<ReadOp>())
    builder.clone(*read, values);
  else if (isOwn(operand))
    values.map(operand, cloneScalar(builder, operand, into));
}

/// It takes all, and passes on what the second needs.
void Splitter::createInputTask() {
  TaskOp inputTask = createTask(TaskKind::InputGrad, "I");
  builder.setInsertionPointToEnd(&inputTask.getBody().front());
  IRMapping mapping;
  for (auto take : task.getBody().getOps<TakeOp>())
    builder.clone(*take, mapping);
  for (Value value : input.arguments)
    cloneOwn(findOperand(value), inputTask, mapping);
  auto inputCall = func::CallOp::create(
      builder, call.getLoc(), input.function,
      llvm::map_to_vector(input.arguments, [&](Value value) {
        return mapping.lookup(findOperand(value));
      }));
  for (auto [index, result] : llvm::enumerate(inputResults))
    mapping.map(call.getResult(result), inputCall.getResult(index));
  for (auto put : task.getBody().getOps<PutOp>())
    builder.clone(*put, mapping);
  for (Value value : weight.arguments) {
    if (isa<BlockArgument>(value)) {
      if (isOwn(findOperand(value)))
        continue;
      passed.push_back(mapping.lookup(findOperand(value)));
    } else {
      passed.push_back(inputCall.getResult(llvm::find(input.results, value) -
                                           input.results.begin()));
    }
    passedOn.push_back(value);
  }
  if (passed.empty())
    return;
  channel = createChannel(task.getStage() + ".weight_residuals", passed);
  PutOp::create(builder, task.getLoc(), passed,
                FlatSymbolRefAttr::get(channel));
}

void Splitter::createWeightTask() {
  TaskOp weightTask = createTask(TaskKind::WeightGrad, "W");
  builder.setInsertionPointToEnd(&weightTask.getBody().front());
  IRMapping mapping;
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
      cloneOwn(findOperand(value), weightTask, mapping);
      operands[value] = mapping.lookup(findOperand(value));
    }
  auto weightCall = func::CallOp::create(
      builder, call.getLoc(), weight.function,
      llvm::map_to_vector(weight.arguments,
                          [&](Value value) { return operands.lookup(value); }));
  for (auto [index, result] : llvm::enumerate(weightResults))
    mapping.map(call.getResult(result), weightCall.getResult(index));
  for (auto write : task.getBody().getOps<WriteOp>())
    builder.clone(*write, mapping);
}

LogicalResult Splitter::run() {
  // 1. What there is to split: one call that makes cotangents and gradients.
  auto calls = llvm::to_vector(task.getBody().getOps<func::CallOp>());
  if (calls.size() != 1 || task.getBody().getOps<PutOp>().empty() ||
      task.getBody().getOps<WriteOp>().empty())
    return success();
  call = calls.front();
  whole = symbols.lookup<func::FuncOp>(call.getCallee());
  if (!whole || whole.isDeclaration())
    return call.emitError()
           << "@" << call.getCallee() << " has no body that could be split";
  if (!divideResults())
    return success();

  // 2. The halves, and their tasks.
  divideOps();
  createFunctions();
  createInputTask();
  createWeightTask();

  // 3. The whole goes.
  symbols.erase(task);
  if (SymbolTable::symbolKnownUseEmpty(whole, symbols.getOp()))
    symbols.erase(whole);
  return success();
}
