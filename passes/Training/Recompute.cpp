//===- Recompute.cpp - Backward tasks that run the forward again ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Takes residuals out of the channel from a stage's forward to its backward,
// and puts the ops that made them into the backward function. They see what the
// forward saw: stored data, the same microbatch number, and the version of the
// weights that the method grants (pipeline-assign-versions refuses where there
// is none).
//===----------------------------------------------------------------------===//

#include "passes/Training/ForwardStage.h"
#include "passes/Training/Passes.h"
#include "passes/Training/RecomputePlan.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

namespace penstock {
#define GEN_PASS_DEF_PIPELINERECOMPUTE
#include "passes/Training/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

/// The two tasks of a stage, and the channel between them.
struct RecomputeStage {
  StageOp stage;
  TaskOp forward, backward;
  func::CallOp forwardCall, backwardCall;
  func::FuncOp forwardFunction, backwardFunction;
  ChannelOp channel;
  PutOp put;
  TakeOp take;
  RecomputeProblem problem;
  /// Per field of the channel: the value of the forward function; null for one
  /// that the task only passes on.
  SmallVector<Value> fields;
};

class RecomputePass
    : public penstock::impl::PipelineRecomputeBase<RecomputePass> {
  using PipelineRecomputeBase::PipelineRecomputeBase;
  void runOnOperation() override;

  std::optional<RecomputeStage> find(StageOp stage);
  void describe(RecomputeStage &stage);
  RecomputePlan plan(const RecomputeStage &stage, unsigned number);
  void apply(RecomputeStage &stage, const RecomputePlan &plan);
  void report(RecomputeStage &stage, const RecomputePlan &plan);

  SymbolTable *symbols = nullptr;
};

/// The one op of a kind in a task's body, or null.
template <typename Op> Op findOne(TaskOp task) {
  auto ops = llvm::to_vector(task.getBody().getOps<Op>());
  return ops.size() == 1 ? ops.front() : Op();
}

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

void RecomputePass::runOnOperation() {
  if (policy == "none")
    return;
  std::string problem;
  if (policy != "full" && policy != "budget" &&
      !llvm::Regex(policy).isValid(problem)) {
    getOperation().emitError() << "--recompute=" << policy << ": " << problem;
    return signalPassFailure();
  }
  SymbolTable table(getOperation());
  symbols = &table;
  bool matched = false;
  for (auto [number, stageOp] :
       llvm::enumerate(llvm::to_vector(getOperation().getOps<StageOp>()))) {
    std::optional<RecomputeStage> stage = find(stageOp);
    if (!stage)
      continue;
    describe(*stage);
    RecomputePlan chosen = plan(*stage, number);
    report(*stage, chosen);
    if (chosen.dropped.empty())
      continue;
    matched = true;
    apply(*stage, chosen);
  }
  if (!matched && policy != "full" && policy != "budget")
    emitWarning(getOperation().getLoc())
        << "--recompute=" << policy
        << ": no node of this name keeps anything for the backward that could "
           "be computed again";
}

std::optional<RecomputeStage> RecomputePass::find(StageOp stageOp) {
  RecomputeStage found;
  found.stage = stageOp;
  for (TaskOp task : getOperation().getOps<TaskOp>()) {
    if (task.isBodyless() || task.getStage() != stageOp.getSymName())
      continue;
    if (task.getKind() == TaskKind::Forward)
      found.forward = task;
    else if (task.getKind() == TaskKind::Backward)
      found.backward = task;
  }
  if (!found.forward || !found.backward)
    return std::nullopt;
  found.forwardCall = findOne<func::CallOp>(found.forward);
  found.backwardCall = findOne<func::CallOp>(found.backward);
  for (auto put : found.forward.getBody().getOps<PutOp>())
    for (auto take : found.backward.getBody().getOps<TakeOp>())
      if (put.getChannel() == take.getChannel()) {
        found.put = put;
        found.take = take;
      }
  if (!found.forwardCall || !found.backwardCall || !found.put)
    return std::nullopt;
  found.channel = symbols->lookup<ChannelOp>(found.put.getChannel());
  found.forwardFunction =
      symbols->lookup<func::FuncOp>(found.forwardCall.getCallee());
  found.backwardFunction =
      symbols->lookup<func::FuncOp>(found.backwardCall.getCallee());
  if (!found.channel || !found.forwardFunction || !found.backwardFunction)
    return std::nullopt;
  return found;
}

void RecomputePass::describe(RecomputeStage &stage) {
  Block &block = stage.forwardFunction.front();
  RecomputeProblem &problem = stage.problem;
  problem.block = &block;
  llvm::DenseSet<StringRef> written;
  for (auto write : stage.forward.getBody().getOps<WriteOp>())
    written.insert(write.getVariable());
  for (auto [argument, operand] :
       llvm::zip(block.getArguments(), stage.forwardCall.getOperands())) {
    if (auto read = operand.getDefiningOp<ReadOp>()) {
      if (written.contains(read.getVariable()))
        problem.unstable.insert(argument);
    } else if (isa<RankedTensorType>(operand.getType())) {
      problem.data.insert(argument);
    }
  }
  for (Value value : stage.put.getValues()) {
    Value field;
    if (value.getDefiningOp() == stage.forwardCall) {
      field = block.getTerminator()->getOperand(
          cast<OpResult>(value).getResultNumber());
    } else {
      auto operands = stage.forwardCall.getOperands();
      auto place = llvm::find(operands, value);
      if (place != operands.end())
        field = block.getArgument(place - operands.begin());
    }
    stage.fields.push_back(field);
    if (field)
      problem.residuals.insert(field);
  }
}

RecomputePlan RecomputePass::plan(const RecomputeStage &stage,
                                  unsigned number) {
  if (policy == "full")
    return planFullRecompute(stage.problem);
  if (policy == "budget") {
    int64_t bytes = number < budgets.size() && budgets[number] >= 0
                        ? budgets[number]
                        : std::numeric_limits<int64_t>::max();
    return planRecomputeWithin(stage.problem, bytes);
  }
  return planMatchingRecompute(stage.problem, llvm::Regex(policy));
}

void RecomputePass::report(RecomputeStage &stage, const RecomputePlan &plan) {
  // Where the cheapest plan is looked for, and not proved to be found.
  std::string least;
  if (policy == "budget" && plan.leastSeconds < plan.seconds)
    least = llvm::formatv("; at least {0:F2} us are needed",
                          plan.leastSeconds * 1e6);
  emitRemark(stage.backward.getLoc())
      << llvm::formatv(
             "stage @{0} keeps {1} of {2} bytes of residuals per microbatch "
             "and runs {3} ops of the forward again ({4:F2} us{5})",
             stage.stage.getSymName(),
             getStoredBytes(plan.stored.getArrayRef()),
             getStoredBytes(stage.problem.residuals.getArrayRef()),
             plan.ops.size(), plan.seconds * 1e6, least)
             .str();
}

/// The forward function returns what is stored and what leaves the stage.
static void changeForward(RecomputeStage &stage, const RecomputePlan &plan,
                          llvm::MapVector<Value, Value> &valueOf) {
  func::FuncOp function = stage.forwardFunction;
  func::CallOp call = stage.forwardCall;
  Operation *terminator = function.front().getTerminator();
  SmallVector<Value> results;
  SmallVector<std::pair<Value, unsigned>> moved; // Of the old call.
  for (auto [result, value] :
       llvm::zip(call.getResults(), terminator->getOperands())) {
    if (result.use_empty() && !plan.stored.contains(value))
      continue;
    moved.push_back({result, results.size()});
    results.push_back(value);
  }
  for (Value value : plan.stored)
    if (value.getDefiningOp() && !llvm::is_contained(results, value))
      results.push_back(value);
  terminator->setOperands(results);
  OpBuilder builder(call);
  function.setFunctionType(builder.getFunctionType(
      function.getArgumentTypes(), ValueRange(results).getTypes()));
  auto renewed = func::CallOp::create(builder, call.getLoc(), function,
                                      call.getOperands());
  for (unsigned argument = 0; argument < function.getNumArguments(); ++argument)
    if (auto into = function.getArgAttrOfType<IntegerAttr>(argument, kIntoAttr))
      for (auto [old, index] : moved)
        if (cast<OpResult>(old).getResultNumber() == into.getInt())
          function.setArgAttr(argument, kIntoAttr,
                              builder.getI64IntegerAttr(index));
  for (auto [old, index] : moved)
    old.replaceAllUsesWith(renewed.getResult(index));
  for (auto [index, value] : llvm::enumerate(results))
    valueOf[value] = renewed.getResult(index);
  for (auto [argument, operand] :
       llvm::zip(function.getArguments(), call.getOperands()))
    valueOf[argument] = operand;
  call.erase();
  stage.forwardCall = renewed;
}

void RecomputePass::apply(RecomputeStage &stage, const RecomputePlan &plan) {
  OpBuilder builder(&getContext());
  Location loc = stage.take.getLoc();

  // 1. What the backward function was given, by the value of the forward.
  IRMapping mapping;
  func::CallOp call = stage.backwardCall;
  func::FuncOp function = stage.backwardFunction;
  Block &body = function.front();
  for (auto [field, taken] : llvm::zip(stage.fields, stage.take.getValues()))
    for (auto [index, operand] : llvm::enumerate(call.getOperands()))
      if (field && operand == taken)
        mapping.map(field, function.getArgument(index));
  llvm::StringMap<unsigned> readAs;
  for (auto [index, operand] : llvm::enumerate(call.getOperands()))
    if (auto read = operand.getDefiningOp<ReadOp>())
      readAs[read.getVariable()] = index;

  // 2. The forward task puts less; what it only passes on stays.
  SmallVector<Value> kept; // Values of the forward function, in order.
  SmallVector<Value> puts, forwarded;
  for (auto [field, value] : llvm::zip(stage.fields, stage.put.getValues()))
    if (!field)
      forwarded.push_back(value);
  SmallVector<Value> oldTaken;
  for (auto [field, taken] : llvm::zip(stage.fields, stage.take.getValues()))
    if (!field)
      oldTaken.push_back(taken);
  llvm::append_range(kept, plan.stored);
  stage.put.erase();
  llvm::MapVector<Value, Value> valueOf;
  changeForward(stage, plan, valueOf);
  for (Value value : kept)
    puts.push_back(valueOf.lookup(value));
  llvm::append_range(puts, forwarded);
  builder.setInsertionPointToEnd(&stage.forward.getBody().front());
  if (!puts.empty())
    PutOp::create(builder, loc, puts, FlatSymbolRefAttr::get(stage.channel));
  stage.channel.setTypesAttr(
      builder.getTypeArrayAttr(llvm::to_vector(ValueRange(puts).getTypes())));

  // 3. The ops that run again, at first in front of the others, with arguments
  //    for what they need.
  SmallVector<Value> operands(call.getOperands());
  auto addArgument = [&](Value value, Value operand) {
    mapping.map(value, body.addArgument(value.getType(), value.getLoc()));
    operands.push_back(operand);
  };
  builder.setInsertionPoint(call);
  TakeOp take;
  if (!puts.empty())
    take = TakeOp::create(builder, loc, ValueRange(puts).getTypes(),
                          stage.channel.getSymName());
  for (auto [index, value] : llvm::enumerate(kept)) {
    if (!mapping.contains(value)) {
      addArgument(value, take.getValues()[index]);
      continue;
    }
    unsigned argument =
        cast<BlockArgument>(mapping.lookup(value)).getArgNumber();
    operands[argument] = take.getValues()[index];
  }
  for (auto [index, old] : llvm::enumerate(oldTaken))
    old.replaceAllUsesWith(take.getValues()[kept.size() + index]);
  bool readsParameters = false;
  for (Operation *op : plan.ops) {
    op->walk([&](Operation *nested) {
      for (Value value : nested->getOperands()) {
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
        addArgument(value, read
                               ? builder.clone(*read)->getResult(0)
                               : cloneScalar(builder, operand, stage.backward));
      }
    });
  }
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

  // 4. Arguments in their usual order: taken, read, accumulators, scalars.
  auto rank = [&](unsigned index) {
    Value operand = operands[index];
    if (auto read = operand.getDefiningOp<ReadOp>()) {
      auto variable = symbols->lookup<VariableOp>(read.getVariable());
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
  SmallVector<Attribute> attributes;
  for (unsigned index : order)
    attributes.push_back(index < call.getNumOperands()
                             ? Attribute(function.getArgAttrDict(index))
                             : Attribute());
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
  for (auto [index, attribute] : llvm::enumerate(attributes))
    if (attribute)
      function.setArgAttrs(index, cast<DictionaryAttr>(attribute));
  auto renewed =
      func::CallOp::create(builder, call.getLoc(), function, ordered);
  call.replaceAllUsesWith(renewed.getResults());
  call.erase();
  stage.take.erase();
  if (puts.empty())
    symbols->erase(stage.channel);
  if (readsParameters)
    stage.backward->setDiscardableAttr(kRecomputesAttr, builder.getUnitAttr());
}
