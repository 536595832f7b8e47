//===- RoundedValues.cpp - What is rounded to bf16 ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See RoundedValues.h. Two walks over the functions of all tasks: against the
// flow of data, for what follows a value, and along it, for what it is.
//===----------------------------------------------------------------------===//

#include "passes/Training/RoundedValues.h"

#include "dialects/Nn/Convolution.h"
#include "penstock/Support/NodeName.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

#include <map>

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

//===----------------------------------------------------------------------===//
// Questions about ops
//===----------------------------------------------------------------------===//

static bool isProduct(Operation *op) {
  return isa<linalg::ContractOp>(op) || nn::Convolution::match(op);
}

bool penstock::isFactor(OpOperand &operand) {
  Operation *op = operand.getOwner();
  return isProduct(op) &&
         cast<DestinationStyleOpInterface>(op).isDpsInput(&operand);
}

bool penstock::isMovement(Operation *op) {
  if (isa<tensor::ExtractSliceOp, tensor::ExpandShapeOp,
          tensor::CollapseShapeOp, nn::GatherOp>(op))
    return true;
  // A transpose, a broadcast or a copy.
  auto generic = dyn_cast<linalg::GenericOp>(op);
  return generic && generic.getNumReductionLoops() == 0 &&
         generic.getNumDpsInputs() == 1 && generic.getNumResults() == 1 &&
         generic.getBody()->getTerminator()->getOperand(0) ==
             generic.getBody()->getArgument(0);
}

bool penstock::isRoundable(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() >= 2 && tensor.getElementType().isF32();
}

/// Returns true if a result is a sum over elements, but of no products.
static bool isSum(OpResult result) {
  Operation *op = result.getOwner();
  if (isa<nn::NormalizeOp, nn::RmsNormalizeOp>(op))
    return result.getResultNumber() > 0;
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  return isa<nn::LogSumExpOp>(op) || (structured && !isProduct(op) &&
                                      structured.getNumReductionLoops() > 0);
}

/// Finite in f32, and infinite in bf16.
static bool isOutOfRange(Attribute value) {
  auto number = dyn_cast_or_null<FloatAttr>(value);
  if (!number || !number.getType().isF32() || !number.getValue().isFinite())
    return false;
  bool losesInfo;
  APFloat rounded = number.getValue();
  rounded.convert(APFloat::BFloat(), APFloat::rmNearestTiesToEven, &losesInfo);
  return rounded.isInfinity();
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<TaskCall>>
penstock::collectTaskCalls(ModuleOp module, SymbolTable &symbols) {
  llvm::DenseMap<Attribute, int64_t> stages;
  for (auto stage : module.getOps<StageOp>())
    stages.try_emplace(FlatSymbolRefAttr::get(stage),
                       static_cast<int64_t>(stages.size()));
  // Forwards go down the stages, and backwards up. Weight gradients take what
  // input gradients put.
  using Rank = std::tuple<int, int64_t, size_t>;
  auto getRank = [&](TaskOp task, size_t position) -> Rank {
    int64_t stage = stages.lookup(task.getStageAttr());
    switch (task.getKind()) {
    case TaskKind::Forward:
      return {0, stage, position};
    case TaskKind::WeightGrad:
      return {2, stage, position};
    case TaskKind::Evaluate:
      return {3, stage, position};
    default:
      return {1, -stage, position};
    }
  };
  std::map<Rank, TaskOp> tasks;
  for (auto task : module.getOps<TaskOp>())
    if (task.countsMicrobatches() && !task.isBodyless())
      tasks[getRank(task, tasks.size())] = task;
  SmallVector<TaskCall> calls;
  llvm::DenseSet<Operation *> known;
  for (auto &[rank, task] : tasks)
    for (auto call : task.getBody().getOps<func::CallOp>()) {
      auto function = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!function || !function.getBody().hasOneBlock())
        return call.emitError() << "@" << call.getCallee()
                                << " is not a function with a body of one "
                                   "block";
      if (!known.insert(function).second) {
        function = function.clone();
        symbols.insert(function, std::next(Block::iterator(
                                     symbols.lookup(call.getCallee()))));
        call.setCallee(function.getSymName());
        known.insert(function);
      }
      calls.push_back({task, call, function});
    }
  return calls;
}

//===----------------------------------------------------------------------===//
// The analysis
//===----------------------------------------------------------------------===//

namespace penstock {

class RoundingAnalysis {
public:
  RoundingAnalysis(SymbolTable &symbols, RoundedValues &result)
      : symbols(symbols), result(result) {}

  LogicalResult run(ModuleOp module, ArrayRef<TaskCall> calls);

private:
  /// The known facts of a value.
  struct Facts {
    bool onData = false, onWeights = false;
    /// A sum over elements, or a function of such sums only.
    bool isStatistic = false;
    /// The parameter whose elements these are.
    VariableOp parameter;
    /// The value of the stage's forward function that is the same number.
    Value origin;

    bool isActive() const { return onData && onWeights; }
  };

  void findLast(TaskCall call);
  bool isLast(OpOperand &use, ArrayRef<bool> areResultsLast);
  bool isUsedLast(TaskOp task, Value value);

  LogicalResult findFacts(TaskCall call);
  LogicalResult findTaskFacts(TaskOp task);
  LogicalResult addOp(TaskCall call, Operation *op);
  bool isRounded(OpResult value);
  bool keepsRange(linalg::GenericOp op);
  Operation *findForward(Operation *op, Attribute stage);
  void addCopies(ModuleOp module);

  using ForwardKey = std::pair<const void *, size_t>;
  ForwardKey getKey(Operation *op, Attribute stage);

  SymbolTable &symbols;
  RoundedValues &result;
  llvm::DenseMap<Operation *, func::FuncOp> callees;
  llvm::DenseMap<Value, Facts> facts;
  std::map<ChannelField, Facts> factsOfField;
  std::map<ChannelField, TaskOp> takenBy;
  /// Values, and fields of channels, of which no factor of a product is
  /// computed: they lead to the loss, to outputs or to gradients only.
  llvm::DenseSet<Value> last;
  std::map<ChannelField, bool> isFieldLast;
  /// Ops of each stage's forward function by their computation, and the reads
  /// of a variable.
  std::multimap<ForwardKey, Operation *> forwardOps;
  llvm::DenseMap<std::pair<Attribute, Attribute>, Value> forwardReads;
};

} // namespace penstock

/// Returns true if nothing but what is last follows from a use in a function.
bool RoundingAnalysis::isLast(OpOperand &use, ArrayRef<bool> areResultsLast) {
  Operation *user = use.getOwner();
  if (isa<func::ReturnOp>(user))
    return areResultsLast[use.getOperandNumber()];
  if (isFactor(use))
    return false;
  while (!isa<func::FuncOp>(user->getParentOp()))
    user = user->getParentOp();
  return llvm::all_of(user->getResults(),
                      [&](Value value) { return last.contains(value); });
}

/// The same of a result of a call in a task. What a backward takes of a forward
/// is used there as it was in the forward.
bool RoundingAnalysis::isUsedLast(TaskOp task, Value value) {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    if (auto call = dyn_cast<func::CallOp>(use.getOwner())) {
      func::FuncOp callee = callees.lookup(call);
      return callee &&
             last.contains(callee.getArgument(use.getOperandNumber()));
    }
    auto put = dyn_cast<PutOp>(use.getOwner());
    if (!put)
      return true;
    ChannelField field(task, put.getChannelAttr(), use.getOperandNumber());
    auto taker = takenBy.find(field);
    if (taker == takenBy.end() || (task.getKind() == TaskKind::Forward &&
                                   taker->second.getKind() != task.getKind()))
      return true;
    auto known = isFieldLast.find(field);
    return known == isFieldLast.end() || known->second;
  });
}

void RoundingAnalysis::findLast(TaskCall call) {
  SmallVector<bool> areResultsLast;
  for (Value value : call.call.getResults())
    areResultsLast.push_back(isUsedLast(call.task, value));
  func::FuncOp function = call.function;
  auto visit = [&](Value value) {
    if (llvm::all_of(value.getUses(), [&](OpOperand &use) {
          return isLast(use, areResultsLast);
        }))
      last.insert(value);
  };
  for (Operation &op : llvm::reverse(function.front()))
    for (Value value : op.getResults())
      visit(value);
  for (auto [argument, operand] :
       llvm::zip(function.getArguments(), call.call.getOperands())) {
    visit(argument);
    auto take = operand.getDefiningOp<TakeOp>();
    if (!take)
      continue;
    ChannelField field(call.task, take.getChannelAttr(),
                       cast<OpResult>(operand).getResultNumber());
    bool &isLastOfAll = isFieldLast.try_emplace(field, true).first->second;
    isLastOfAll &= last.contains(argument);
  }
}

//===----------------------------------------------------------------------===//
// Along the flow
//===----------------------------------------------------------------------===//

RoundingAnalysis::ForwardKey RoundingAnalysis::getKey(Operation *op,
                                                      Attribute stage) {
  auto hash = OperationEquivalence::computeHash(
      op,
      [&](Value value) {
        return llvm::hash_value(
            facts.lookup(value).origin.getAsOpaquePointer());
      },
      OperationEquivalence::ignoreHashValue,
      OperationEquivalence::IgnoreLocations);
  return {stage.getAsOpaquePointer(), static_cast<size_t>(hash)};
}

/// The op of the stage's forward function that computes the same; null if there
/// is none.
Operation *RoundingAnalysis::findForward(Operation *op, Attribute stage) {
  for (Value operand : op->getOperands())
    if (!facts.lookup(operand).origin)
      return nullptr;
  auto [begin, end] = forwardOps.equal_range(getKey(op, stage));
  for (auto it = begin; it != end; ++it) {
    llvm::DenseMap<Value, Value> inside;
    bool isSame = OperationEquivalence::isEquivalentTo(
        op, it->second,
        [&](Value value, Value other) {
          auto known = inside.find(value);
          if (known != inside.end())
            return success(known->second == other);
          Value origin = facts.lookup(value).origin;
          return success(origin && origin == facts.lookup(other).origin);
        },
        [&](Value value, Value other) { inside[value] = other; },
        OperationEquivalence::IgnoreLocations);
    if (isSame)
      return it->second;
  }
  return nullptr;
}

/// Returns true if the result may be a number that is out of the range of bf16:
/// a mask that is added to scores is the lowest number of f32 where a score
/// does not count. It must not become infinite, because a row of nothing else
/// has no softmax.
bool RoundingAnalysis::keepsRange(linalg::GenericOp op) {
  WalkResult constants = op.getBody()->walk([](arith::ConstantOp constant) {
    return isOutOfRange(constant.getValue()) ? WalkResult::interrupt()
                                             : WalkResult::advance();
  });
  if (constants.wasInterrupted())
    return true;
  for (OpOperand *input : op.getDpsInputOperands()) {
    Value value = input->get();
    if (auto fill = value.getDefiningOp<linalg::FillOp>()) {
      Attribute number;
      if (matchPattern(fill.getInputs().front(), m_Constant(&number)) &&
          isOutOfRange(number))
        return true;
      continue;
    }
    DenseElementsAttr elements;
    if (matchPattern(value, m_Constant(&elements)) && elements.isSplat()) {
      if (isOutOfRange(elements.getSplatValue<Attribute>()))
        return true;
      continue;
    }
    if (!isRoundable(value.getType()) || facts.lookup(value).onWeights)
      continue;
    for (Operation *user : op.getMatchingBlockArgument(input).getUsers())
      if (isa<arith::AddFOp, arith::SubFOp, arith::SelectOp, arith::MaximumFOp,
              arith::MinimumFOp>(user))
        return true;
  }
  return false;
}

bool RoundingAnalysis::isRounded(OpResult value) {
  Operation *op = value.getOwner();
  const Facts &known = facts[value];
  if (!isRoundable(value.getType()) || !known.isActive() || known.isStatistic ||
      last.contains(value))
    return false;
  // What moves elements leaves them as they are, but for rows of a parameter.
  if (isMovement(op) && !isa<nn::GatherOp>(op))
    return false;
  if (isa<nn::CrossEntropyOp, nn::LogSoftmaxOp, nn::CumulativeSumOp>(op))
    return false;
  auto generic = dyn_cast<linalg::GenericOp>(op);
  return !generic || !keepsRange(generic);
}

static LogicalResult rejectF64(Location loc, StringRef what, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.getElementType().isF64())
    return success();
  return emitError(loc) << what << " is " << tensor
                        << ", which --precision=bf16 does not round: convert "
                           "the model to f32, or leave --precision out";
}

LogicalResult RoundingAnalysis::addOp(TaskCall call, Operation *op) {
  Attribute stage = call.task.getStageAttr();
  bool isForward = call.task.getKind() == TaskKind::Forward;

  // 1. What it depends on.
  Facts all;
  bool isOfSums = true, hasActive = false;
  auto addOperand = [&](Value value) {
    const Facts known = facts.lookup(value);
    all.onData |= known.onData;
    all.onWeights |= known.onWeights;
    hasActive |= known.isActive();
    isOfSums &= known.isStatistic || !known.isActive();
  };
  op->walk([&](Operation *inner) {
    for (Value value : inner->getOperands())
      addOperand(value);
  });
  all.isStatistic = hasActive && isOfSums && !isProduct(op);
  if (isMovement(op) && !isa<nn::GatherOp>(op))
    all.parameter = facts.lookup(op->getOperand(0)).parameter;

  // 2. What the forward has decided, of what runs again, or what is decided.
  Operation *forward =
      isForward && all.isActive() ? nullptr : findForward(op, stage);
  for (OpResult value : op->getResults()) {
    Facts &known = facts[value] = all;
    known.isStatistic |= isSum(value);
    if (forward) {
      OpResult same = forward->getResult(value.getResultNumber());
      known.origin = facts.lookup(same).origin;
      if (result.rounded.contains(same))
        result.rounded.insert(value);
      continue;
    }
    if (isForward)
      known.origin = value;
    if (isRounded(value))
      result.rounded.insert(value);
    if (!all.onData && !all.onWeights)
      continue;
    if (isForward || call.task.getKind() == TaskKind::Evaluate)
      if (failed(rejectF64(op->getLoc(),
                           "node '" + getNodeName(op->getLoc()).str() + "'",
                           value.getType())))
        return failure();
  }
  if (isForward && !forward)
    forwardOps.insert({getKey(op, stage), op});

  // 3. The parameters that it multiplies by.
  for (OpOperand &operand : op->getOpOperands())
    if (isFactor(operand))
      if (VariableOp parameter = facts.lookup(operand.get()).parameter)
        if (isRoundable(parameter.getType()))
          result.parameters.insert(parameter);
  return success();
}

/// Finds the facts of the values that a task takes and reads.
LogicalResult RoundingAnalysis::findTaskFacts(TaskOp task) {
  for (auto read : task.getBody().getOps<ReadOp>()) {
    auto variable = symbols.lookup<VariableOp>(read.getVariable());
    if (failed(rejectF64(variable.getLoc(),
                         "initializer '" + variable.getSymName().str() + "'",
                         variable.getType())))
      return failure();
    Facts &known = facts[read.getValue()];
    known.onWeights = true;
    known.onData = variable.getRole() == Role::Gradient;
    if (variable.getRole() == Role::Parameter)
      known.parameter = variable;
    known.origin =
        forwardReads.lookup({task.getStageAttr(), read.getVariableAttr()});
  }
  for (auto take : task.getBody().getOps<TakeOp>()) {
    auto channel = symbols.lookup<ChannelOp>(take.getChannel());
    for (auto [index, value] : llvm::enumerate(take.getValues())) {
      if (!channel.getSource()) {
        facts[value] =
            factsOfField[ChannelField(task, take.getChannelAttr(), index)];
        continue;
      }
      if (failed(rejectF64(channel.getLoc(),
                           "input '" + channel.getSymName().str() + "'",
                           value.getType())))
        return failure();
      facts[value].onData = true;
    }
  }
  return success();
}

LogicalResult RoundingAnalysis::findFacts(TaskCall call) {
  if (failed(findTaskFacts(call.task)))
    return failure();
  func::FuncOp function = call.function;
  for (auto [argument, operand] :
       llvm::zip(function.getArguments(), call.call.getOperands())) {
    Facts known = facts.lookup(operand);
    if (call.task.getKind() == TaskKind::Forward) {
      known.origin = argument;
      facts[operand] = known;
      if (auto read = operand.getDefiningOp<ReadOp>())
        forwardReads[{call.task.getStageAttr(), read.getVariableAttr()}] =
            argument;
    }
    facts[argument] = known;
  }
  for (Operation &op : function.front().without_terminator())
    if (failed(addOp(call, &op)))
      return failure();
  for (auto [value, returned] :
       llvm::zip(call.call.getResults(),
                 function.front().getTerminator()->getOperands()))
    facts[value] = facts.lookup(returned);
  for (auto put : call.task.getBody().getOps<PutOp>())
    for (auto [index, value] : llvm::enumerate(put.getValues()))
      factsOfField[ChannelField(call.task, put.getChannelAttr(), index)] =
          facts.lookup(value);
  return success();
}

/// A copy on another stage has the numbers that the first has.
void RoundingAnalysis::addCopies(ModuleOp module) {
  auto getFirst = [](VariableOp variable) -> Attribute {
    if (auto whose = variable->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr))
      return whose;
    return FlatSymbolRefAttr::get(variable);
  };
  llvm::DenseSet<Attribute> firsts;
  for (Operation *parameter : result.parameters)
    firsts.insert(getFirst(cast<VariableOp>(parameter)));
  for (auto variable : module.getOps<VariableOp>())
    if (variable.getRole() == Role::Parameter &&
        firsts.contains(getFirst(variable)))
      result.parameters.insert(variable);
}

LogicalResult RoundingAnalysis::run(ModuleOp module, ArrayRef<TaskCall> calls) {
  for (TaskCall call : calls) {
    callees[call.call] = call.function;
    for (auto take : call.task.getBody().getOps<TakeOp>())
      for (unsigned i = 0; i < take.getNumResults(); ++i)
        takenBy.try_emplace(ChannelField(call.task, take.getChannelAttr(), i),
                            call.task);
  }
  for (TaskCall call : llvm::reverse(calls))
    findLast(call);
  for (TaskCall call : calls)
    if (failed(findFacts(call)))
      return failure();
  addCopies(module);
  return success();
}

FailureOr<RoundedValues> RoundedValues::compute(ModuleOp module,
                                                SymbolTable &symbols,
                                                ArrayRef<TaskCall> calls) {
  RoundedValues values;
  if (failed(RoundingAnalysis(symbols, values).run(module, calls)))
    return failure();
  return values;
}
