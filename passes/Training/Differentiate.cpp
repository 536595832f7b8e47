//===- Differentiate.cpp - Adds the backward tasks ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decides which values between stages need cotangents (forwards), then
// differentiates each stage's function (backwards) and wraps the result in a
// task with its channels and variables.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/ArgumentAttributes.h"
#include "dialects/Pipeline/Signatures.h"
#include "passes/Training/ForwardStage.h"
#include "passes/Training/Passes.h"
#include "penstock/Autodiff/Autodiff.h"
#include "penstock/Support/ByteSize.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEDIFFERENTIATE
#include "passes/Training/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

/// A value that leaves a stage: the stage's number and the result's.
using Produced = std::pair<unsigned, unsigned>;

class DifferentiatePass
    : public penstock::impl::PipelineDifferentiateBase<DifferentiatePass> {
  using PipelineDifferentiateBase::PipelineDifferentiateBase;
  void runOnOperation() override;

  LogicalResult checkVariables();
  void findActiveChannels();
  FailureOr<DifferentiationRequest> makeRequest(unsigned number);
  LogicalResult differentiateStage(unsigned number);
  void addResiduals(ForwardStage &stage, const Differentiation &backward);
  void addTask(ForwardStage &stage, unsigned number, Differentiation &backward);
  ChannelOp createChannel(const Twine &name, ArrayRef<Type> types,
                          Location loc);
  VariableOp createGradient(VariableOp parameter);
  void groupGradients();
  void report(ForwardStage &stage, const Differentiation &backward);

  double microbatches = 1; ///< Per update.
  SymbolTable *symbols = nullptr;
  SmallVector<ForwardStage> stages;
  llvm::DenseMap<Operation *, Produced> producers;
  /// Channels whose value depends on a trained parameter.
  llvm::DenseSet<Operation *> active;
  /// The channel that holds the cotangent summed so far of a value: it has been
  /// put by one stage and is still to be taken by another.
  llvm::DenseMap<Produced, ChannelOp> pending;
  ChannelOp residualChannel;
  /// Gradients by parameter: one for each node that reads it, in their order.
  llvm::DenseMap<Operation *, SmallVector<VariableOp>> gradientsOf;
};

bool isTrained(VariableOp variable) {
  return variable && variable.getRole() == Role::Parameter &&
         !variable.getFrozen() &&
         isa<FloatType>(variable.getTensorType().getElementType());
}

} // namespace

void DifferentiatePass::runOnOperation() {
  FailureOr<TrainingOp> training = requireTraining(getOperation());
  if (failed(training))
    return signalPassFailure();
  if (training->getInfers())
    return;
  microbatches = static_cast<double>(training->getMicrobatches());
  SymbolTable table(getOperation());
  symbols = &table;
  FailureOr<SmallVector<ForwardStage>> collected =
      collectForwardStages(getOperation(), table);
  if (failed(collected))
    return signalPassFailure();
  stages = std::move(*collected);
  for (auto [number, stage] : llvm::enumerate(stages))
    for (unsigned result = 0; result < stage.sinks.size(); ++result)
      for (ChannelOp channel : stage.getSinks(result))
        producers[channel] = {number, result};
  if (failed(checkVariables()))
    return signalPassFailure();

  // 1. Forwards: where gradients have to flow. 2. Backwards: the functions.
  findActiveChannels();
  for (unsigned number = stages.size(); number-- > 0;)
    if (failed(differentiateStage(number)))
      return signalPassFailure();
  // 3. What is summed over stages.
  groupGradients();
  signFunctions(getOperation());
}

/// A group of copies of a parameter becomes one of their gradients. Each member
/// has a gradient for every node that reads any of the copies, in the order of
/// the nodes: of those on other stages it starts at zero and receives the sum.
void DifferentiatePass::groupGradients() {
  Builder builder(&getContext());
  for (auto group :
       llvm::make_early_inc_range(getOperation().getOps<GroupOp>())) {
    SmallVector<VariableOp> copies;
    unsigned count = 0;
    for (auto member : group.getMembers().getAsRange<ArrayAttr>()) {
      copies.push_back(symbols->lookup<VariableOp>(
          cast<FlatSymbolRefAttr>(member[0]).getAttr()));
      count += gradientsOf[copies.back()].size();
    }
    if (!isTrained(copies.front()))
      continue;
    if (count == 0) {
      symbols->erase(group);
      continue;
    }
    SmallVector<Attribute> members;
    unsigned before = 0;
    for (VariableOp copy : copies) {
      SmallVector<VariableOp> own = gradientsOf[copy];
      SmallVector<Attribute> member;
      for (unsigned i = 0; i < count; ++i) {
        bool isOwn = i >= before && i < before + own.size();
        VariableOp gradient = isOwn ? own[i - before] : createGradient(copy);
        member.push_back(FlatSymbolRefAttr::get(gradient));
      }
      before += own.size();
      members.push_back(builder.getArrayAttr(member));
    }
    group.setMembersAttr(builder.getArrayAttr(members));
    // Groups stand behind what they name.
    group->moveAfter(
        symbols->lookup(cast<FlatSymbolRefAttr>(
                            cast<ArrayAttr>(members.back()).getValue().back())
                            .getAttr()));
  }
}

/// A parameter that two stages read has a gradient on each.
LogicalResult DifferentiatePass::checkVariables() {
  llvm::DenseMap<Operation *, StageOp> readers;
  for (ForwardStage &stage : stages)
    for (VariableOp variable : stage.variables) {
      if (!isTrained(variable))
        continue;
      StageOp &reader = readers[variable];
      if (reader && reader != stage.stage)
        return variable.emitError()
               << "parameter @" << variable.getSymName()
               << " is read on stages @" << reader.getSymName() << " and @"
               << stage.stage.getSymName()
               << ": each needs a copy of its own, which "
                  "pipeline-outline-stages makes";
      reader = stage.stage;
    }
  return success();
}

/// Per argument of the stage's function: whether a gradient is wanted.
static SmallVector<bool> findWanted(const ForwardStage &stage,
                                    const llvm::DenseSet<Operation *> &active) {
  SmallVector<bool> wanted;
  for (unsigned i = 0; i < stage.getNumArguments(); ++i)
    wanted.push_back(
        isTrained(stage.getVariable(i)) ||
        (stage.getChannel(i) && active.contains(stage.getChannel(i))));
  return wanted;
}

void DifferentiatePass::findActiveChannels() {
  for (ForwardStage &stage : stages) {
    SmallVector<bool> results =
        findActiveResults(stage.function, findWanted(stage, active));
    for (auto [index, isActive] : llvm::enumerate(results))
      if (isActive)
        for (ChannelOp channel : stage.getSinks(index))
          active.insert(channel);
  }
}

FailureOr<DifferentiationRequest>
DifferentiatePass::makeRequest(unsigned number) {
  ForwardStage &stage = stages[number];
  DifferentiationRequest request;
  request.isWanted = findWanted(stage, active);
  for (unsigned i = 0; i < stage.getNumArguments(); ++i) {
    // A statistic that the forward has moved on is not what it read.
    VariableOp variable = stage.getVariable(i);
    bool isWritten = stage.function.getArgAttr(i, kIntoAttr) != nullptr;
    request.isParameter.push_back(variable && !isWritten);
    request.hasPriorCotangent.push_back(
        stage.getChannel(i) && producers.contains(stage.getChannel(i)) &&
        pending.contains(producers[stage.getChannel(i)]));
  }
  for (unsigned result = 0; result < stage.sinks.size(); ++result) {
    Seed seed;
    if (pending.contains({number, result}))
      seed.kind = Seed::Argument;
    for (ChannelOp channel : stage.getSinks(result)) {
      if (!channel.isLoss())
        continue;
      if (seed.kind == Seed::Argument)
        return channel.emitError()
               << "the loss is also an input of a later stage";
      seed = {Seed::Constant, 1.0 / microbatches};
    }
    request.seeds.push_back(seed);
  }
  return request;
}

LogicalResult DifferentiatePass::differentiateStage(unsigned number) {
  ForwardStage &stage = stages[number];
  FailureOr<DifferentiationRequest> request = makeRequest(number);
  if (failed(request))
    return failure();
  std::string name = (stage.stage.getSymName() + ".backward").str();
  FailureOr<Differentiation> backward =
      differentiate(stage.function, *request, name);
  if (failed(backward))
    return failure();
  report(stage, *backward);
  if (backward->cotangents.empty() && backward->inputGradients.empty() &&
      !backward->function)
    return success();
  if (backward->function) {
    // The table learns of the function, and renames it on a clash.
    backward->function->remove();
    symbols->insert(backward->function,
                    std::next(stage.function->getIterator()));
    addResiduals(stage, *backward);
  }
  addTask(stage, number, *backward);
  return success();
}

void DifferentiatePass::report(ForwardStage &stage,
                               const Differentiation &backward) {
  int64_t bytes = 0;
  for (Value residual : backward.residuals)
    bytes += getByteSize(cast<ShapedType>(residual.getType()));
  emitRemark(stage.task.getLoc())
      << "stage @" << stage.stage.getSymName() << " keeps " << bytes
      << " bytes of residuals per microbatch";
  for (unsigned i = 0; i < stage.getNumArguments(); ++i)
    if (isTrained(stage.getVariable(i)) &&
        !llvm::is_contained(backward.accumulators, i))
      emitRemark(stage.getVariable(i).getLoc())
          << "no gradient reaches parameter @"
          << stage.getVariable(i).getSymName() << ": it is not trained";
}

ChannelOp DifferentiatePass::createChannel(const Twine &name,
                                           ArrayRef<Type> types, Location loc) {
  OpBuilder builder(&getContext());
  SmallString<32> storage;
  auto channel = ChannelOp::create(
      builder, loc, name.toStringRef(storage), builder.getTypeArrayAttr(types),
      SourceAttr(), SinkAttr(), IntegerAttr(), IntegerAttr());
  insertAfterLast(getOperation(), *symbols, channel);
  return channel;
}

VariableOp DifferentiatePass::createGradient(VariableOp parameter) {
  OpBuilder builder(&getContext());
  auto gradient = VariableOp::create(builder, parameter.getLoc(),
                                     (parameter.getSymName() + ".grad").str(),
                                     parameter.getTensorType(), Role::Gradient,
                                     parameter.getStageAttr(), BytesAttr());
  gradient->setAttr(kParameterAttr, FlatSymbolRefAttr::get(parameter));
  insertAfterLast(getOperation(), *symbols, gradient);
  return gradient;
}

/// Makes the forward return what the backward needs, and the task put it.
void DifferentiatePass::addResiduals(ForwardStage &stage,
                                     const Differentiation &backward) {
  residualChannel = nullptr;
  if (backward.residuals.empty())
    return;
  func::FuncOp function = stage.function;
  Operation *terminator = function.front().getTerminator();
  SmallVector<Value> results(terminator->getOperands());
  llvm::DenseMap<Value, unsigned> numbers;
  for (auto [number, result] : llvm::enumerate(results))
    numbers.try_emplace(result, number);
  for (Value residual : backward.residuals)
    if (!isa<BlockArgument>(residual) &&
        numbers.try_emplace(residual, results.size()).second)
      results.push_back(residual);
  terminator->setOperands(results);
  OpBuilder builder(stage.call);
  function.setFunctionType(builder.getFunctionType(
      function.getArgumentTypes(), ValueRange(results).getTypes()));
  auto call = func::CallOp::create(builder, stage.call.getLoc(), function,
                                   stage.call.getOperands());
  stage.call.replaceAllUsesWith(
      call.getResults().take_front(stage.call.getNumResults()));
  stage.call.erase();
  stage.call = call;

  SmallVector<Value> values;
  SmallVector<Type> types;
  for (Value residual : backward.residuals) {
    if (auto argument = dyn_cast<BlockArgument>(residual))
      values.push_back(call.getOperand(argument.getArgNumber()));
    else
      values.push_back(call.getResult(numbers.lookup(residual)));
    types.push_back(residual.getType());
  }
  residualChannel = createChannel(stage.stage.getSymName() + ".residuals",
                                  types, stage.task.getLoc());
  builder.setInsertionPointToEnd(&stage.task.getBody().front());
  PutOp::create(builder, stage.task.getLoc(), values,
                FlatSymbolRefAttr::get(residualChannel));
}

void DifferentiatePass::addTask(ForwardStage &stage, unsigned number,
                                Differentiation &backward) {
  OpBuilder builder(&getContext());
  Location loc = stage.task.getLoc();
  auto task = TaskOp::create(
      builder, loc, (stage.stage.getSymName() + ".B").str(), TaskKind::Backward,
      stage.stage.getSymName(), ArrayAttr(), ArrayAttr());
  symbols->insert(task, std::next(stage.task->getIterator()));
  builder.setInsertionPointToEnd(task.addBody());
  auto take = [&](ChannelOp channel) {
    auto types =
        llvm::map_to_vector(channel.getTypes().getAsValueRange<TypeAttr>(),
                            [](Type type) { return type; });
    return TakeOp::create(builder, loc, types, channel.getSymName())
        .getValues();
  };
  auto read = [&](VariableOp variable) {
    return ReadOp::create(builder, loc, variable);
  };

  // 1. What comes in.
  SmallVector<Value> operands;
  for (unsigned result : backward.cotangents) {
    Produced value{number, result};
    llvm::append_range(operands, take(pending[value]));
    pending.erase(value);
  }
  for (unsigned argument : backward.priorCotangents) {
    Produced value = producers[stage.getChannel(argument)];
    llvm::append_range(operands, take(pending[value]));
    pending.erase(value);
  }
  if (backward.function && residualChannel)
    llvm::append_range(operands, take(residualChannel));
  for (unsigned argument : backward.parameters)
    operands.push_back(read(stage.getVariable(argument)));
  SmallVector<VariableOp> gradients;
  size_t first = operands.size(), count = backward.accumulators.size();
  for (unsigned argument : backward.accumulators) {
    gradients.push_back(createGradient(stage.getVariable(argument)));
    gradientsOf[stage.getVariable(argument)].push_back(gradients.back());
    operands.push_back(read(gradients.back()));
  }
  if (count > 0)
    changeArgAttrs(backward.function, [&](unsigned index,
                                          NamedAttrList &attributes) {
      if (index >= first && index < first + count)
        attributes.set(kIntoAttr,
                       builder.getI64IntegerAttr(
                           backward.firstAccumulatorResult + index - first));
    });

  for (unsigned argument : backward.scalars)
    operands.push_back(
        cloneScalar(builder, stage.call.getOperand(argument), task));

  // 2. The call, 3. what goes out.
  func::CallOp call;
  if (backward.function)
    call = func::CallOp::create(builder, loc, backward.function, operands);
  for (const InputGradient &gradient : backward.inputGradients) {
    ChannelOp source = stage.getChannel(gradient.argument);
    Value value = gradient.isResult ? call.getResult(gradient.index)
                                    : operands[gradient.index];
    ChannelOp channel =
        createChannel("d" + source.getSymName(), value.getType(), loc);
    if (Attribute parameter = source->getAttr(kParameterAttr))
      channel->setAttr(kParameterAttr, parameter);
    PutOp::create(builder, loc, value, FlatSymbolRefAttr::get(channel));
    pending[producers[source]] = channel;
  }
  for (auto [index, gradient] : llvm::enumerate(gradients))
    WriteOp::create(builder, loc,
                    call.getResult(backward.firstAccumulatorResult + index),
                    gradient);
}
