//===- LowerPrecision.cpp - Tensors and weights in bf16 -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions keep computing in f32, and round what they make: between two ops a
// rounded tensor stands in bf16, which fusion keeps in registers, and messages,
// residuals and weights are stored in it. Products of rounded factors are exact
// in f32, so a library may as well be given the factors in bf16.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/Signatures.h"
#include "passes/Training/ForwardStage.h"
#include "passes/Training/Passes.h"
#include "passes/Training/RoundedValues.h"
#include "penstock/Optimizers/UpdateFunction.h"
#include "penstock/Support/Structured.h"

#include <map>

namespace penstock {
#define GEN_PASS_DEF_PIPELINELOWERPRECISION
#include "passes/Training/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

RankedTensorType withElement(Type type, Type element) {
  return cast<RankedTensorType>(type).clone(element);
}

bool isF32(Value value) {
  return cast<ShapedType>(value.getType()).getElementType().isF32();
}

/// Rounds a tensor to bf16, or takes a rounded one as f32.
Value convert(OpBuilder &builder, Location loc, Value value, Type element) {
  return Structured(builder, loc)
      .elementwise(withElement(value.getType(), element), value,
                   [&](Scalars &s, ValueRange elements) {
                     return Arithmetic{s, element}.from(elements.front());
                   });
}

/// Rounds the values of one function.
class FunctionRounder {
public:
  FunctionRounder(func::FuncOp function, const RoundedValues &values)
      : function(function), values(values), builder(function.getContext()),
        f32(builder.getF32Type()), bf16(builder.getBF16Type()) {}

  /// Arguments are of these types from now on.
  void setArguments(TypeRange types);
  void run();
  /// Returns these values instead.
  void finish(ValueRange returned);
  /// Returns true if all users see the value rounded.
  bool isRounded(Value value) const { return rounded.contains(value); }
  /// The value in f32, and in bf16, for whoever it is returned to.
  Value getWide(Value value);
  Value getRounded(Value value);

private:
  void round(Operation *op);
  void move(Operation *op);
  void insertBehind(Value value);

  func::FuncOp function;
  const RoundedValues &values;
  OpBuilder builder;
  Type f32, bf16;
  /// The value that all users see, and the value that only products see.
  llvm::DenseMap<Value, Value> rounded, factors;
  /// Replaced values of f32, until nobody uses them.
  SmallVector<Operation *> replaced;
};

class LowerPrecisionPass
    : public penstock::impl::PipelineLowerPrecisionBase<LowerPrecisionPass> {
  void runOnOperation() override;

  void setType(VariableOp parameter);
  void roundCall(TaskCall &call, const RoundedValues &values);
  bool wantsRounded(TaskOp task, OpOperand &use, bool isRounded);
  LogicalResult addMaster(TaskOp update, WriteOp write, VariableOp parameter);

  SymbolTable *symbols = nullptr;
  /// Fields of channels that tasks have put already.
  llvm::DenseSet<std::pair<Attribute, unsigned>> settled;
  llvm::DenseMap<Operation *, func::FuncOp> updates;
};

} // namespace

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

void FunctionRounder::setArguments(TypeRange types) {
  for (auto [argument, type] : llvm::zip(function.getArguments(), types)) {
    if (argument.getType() == type)
      continue;
    argument.setType(type);
    rounded[argument] = argument;
  }
}

void FunctionRounder::insertBehind(Value value) {
  if (Operation *op = value.getDefiningOp())
    builder.setInsertionPointAfter(op);
  else
    builder.setInsertionPointToStart(&function.front());
}

Value FunctionRounder::getRounded(Value value) {
  if (Value known = rounded.lookup(value))
    return known;
  Value &factor = factors[value];
  if (!factor) {
    insertBehind(value);
    factor = convert(builder, value.getLoc(), value, bf16);
  }
  return factor;
}

Value FunctionRounder::getWide(Value value) {
  Value known = rounded.lookup(value);
  if (!known)
    return value;
  builder.setInsertionPoint(function.front().getTerminator());
  return convert(builder, value.getLoc(), known, f32);
}

/// The same movement of bf16.
void FunctionRounder::move(Operation *op) {
  replaced.push_back(op);
  builder.setInsertionPoint(op);
  auto source = op->getOperand(0);
  Value result = op->getResult(0);
  IRMapping mapping;
  mapping.map(source, rounded.lookup(source));
  if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
    Structured s(builder, op->getLoc());
    Value moved = s.generic(
        rounded.lookup(source), s.empty(withElement(result.getType(), bf16)),
        generic.getIndexingMapsArray(), generic.getIteratorTypesArray(),
        [](Scalars &, ValueRange elements) { return elements.front(); });
    moved.getDefiningOp()->setDiscardableAttrs(
        op->getDiscardableAttrDictionary());
    rounded[result] = moved;
    return;
  }
  Operation *moved = builder.clone(*op, mapping);
  moved->getResult(0).setType(withElement(result.getType(), bf16));
  rounded[result] = moved->getResult(0);
}

void FunctionRounder::round(Operation *op) {
  if (isMovement(op) && rounded.contains(op->getOperand(0)))
    return move(op);

  // 1. What it reads.
  llvm::SmallDenseMap<Value, Value> wide;
  op->walk([&](Operation *inner) {
    for (OpOperand &operand : inner->getOpOperands()) {
      Value value = operand.get();
      if (!rounded.contains(value) && !(isFactor(operand) && isF32(value)))
        continue;
      Value &known = wide[value];
      if (!known) {
        Value narrow = getRounded(value);
        builder.setInsertionPoint(op);
        known = convert(builder, op->getLoc(), narrow, f32);
      }
      operand.set(known);
    }
  });

  // 2. What it makes.
  for (Value value : op->getResults())
    if (values.contains(value)) {
      builder.setInsertionPointAfter(op);
      rounded[value] = convert(builder, value.getLoc(), value, bf16);
    }
}

void FunctionRounder::run() {
  SmallVector<Operation *> ops;
  for (Operation &op : function.front().without_terminator())
    ops.push_back(&op);
  for (Operation *op : ops)
    round(op);
}

void FunctionRounder::finish(ValueRange returned) {
  function.front().getTerminator()->setOperands(returned);
  function.setFunctionType(builder.getFunctionType(
      function.front().getArgumentTypes(), returned.getTypes()));
  for (Operation *op : llvm::reverse(replaced))
    op->erase();
}

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

void LowerPrecisionPass::setType(VariableOp parameter) {
  parameter.setType(
      withElement(parameter.getType(), BFloat16Type::get(&getContext())));
}

/// Returns true if a result of a task's function is used rounded.
bool LowerPrecisionPass::wantsRounded(TaskOp task, OpOperand &use,
                                      bool isRounded) {
  if (isa<WriteOp>(use.getOwner()))
    return false;
  auto put = dyn_cast<PutOp>(use.getOwner());
  if (!put)
    return isRounded;
  auto channel = symbols->lookup<ChannelOp>(put.getChannel());
  unsigned index = use.getOperandNumber();
  if (channel.getSink())
    return false;
  // Evaluation sends what the forward does.
  if (settled.contains({put.getChannelAttr(), index}))
    return channel.getTensorType(index).getElementType().isBF16();
  return isRounded;
}

void LowerPrecisionPass::roundCall(TaskCall &call,
                                   const RoundedValues &values) {
  // 1. What the function is given.
  FunctionRounder rounder(call.function, values);
  rounder.setArguments(call.call.getOperandTypes());
  rounder.run();

  // 2. What it returns: in f32 where it was, or rounded, or both.
  Operation *end = call.function.front().getTerminator();
  SmallVector<Value> returned(end->getOperands()), further;
  SmallVector<std::pair<OpOperand *, unsigned>> uses;
  for (auto [index, value] : llvm::enumerate(end->getOperands())) {
    SmallVector<OpOperand *> wide, rounded;
    for (OpOperand &use : call.call.getResult(index).getUses())
      (wantsRounded(call.task, use, rounder.isRounded(value)) ? rounded : wide)
          .push_back(&use);
    bool isBoth = !rounded.empty() && !wide.empty();
    returned[index] = rounded.empty() || isBoth ? rounder.getWide(value)
                                                : rounder.getRounded(value);
    for (OpOperand *use : rounded)
      uses.push_back({use, isBoth ? returned.size() + further.size() : index});
    for (OpOperand *use : wide)
      uses.push_back({use, index});
    if (isBoth)
      further.push_back(rounder.getRounded(value));
  }
  llvm::append_range(returned, further);
  rounder.finish(returned);

  // 3. The call.
  OpBuilder builder(call.call);
  auto made = func::CallOp::create(builder, call.call.getLoc(), call.function,
                                   call.call.getOperands());
  for (auto [use, index] : uses)
    use->set(made.getResult(index));
  call.call.erase();
  call.call = made;
}

/// The arguments that stood for the weights stand for the master, and the new
/// ones for the weights.
static void signMaster(func::FuncOp update, unsigned weight) {
  SignatureAttr signature = getSignature(update);
  if (!signature)
    return;
  MLIRContext *context = update.getContext();
  Attribute parameter = RoleAttr::get(context, Role::Parameter);
  Attribute master = RoleAttr::get(context, Role::Master);
  SmallVector<Attribute> inputs(signature.getInputs().getValue());
  SmallVector<Attribute> results(signature.getResults().getValue());
  llvm::replace(inputs, parameter, master);
  results[weight] = master;
  results.back() = parameter;
  setSignature(update, inputs, results);
}

/// The update computes new weights of those that the master holds, and what
/// they are rounded to beside them.
LogicalResult LowerPrecisionPass::addMaster(TaskOp update, WriteOp write,
                                            VariableOp parameter) {
  auto call = write.getValue().getDefiningOp<func::CallOp>();
  ReadOp read;
  if (call)
    for (Value operand : call.getOperands())
      if (auto op = operand.getDefiningOp<ReadOp>();
          op && op.getVariableAttr() == write.getVariableAttr())
        read = op;
  if (!read)
    return update.emitError()
           << "does not write " << FlatSymbolRefAttr::get(parameter)
           << " as a function of it";

  // 1. The variable.
  OpBuilder builder(&getContext());
  Location loc = parameter.getLoc();
  auto master = VariableOp::create(
      builder, loc, (parameter.getSymName() + ".master").str(),
      withElement(parameter.getType(), builder.getF32Type()), Role::Master,
      parameter.getStageAttr(), parameter.getInitAttr());
  master->setAttr(kParameterAttr, FlatSymbolRefAttr::get(parameter));
  master->setAttr(kKindAttr, builder.getStringAttr("master"));
  if (Attribute tied = parameter->getAttr(kTiedAttr))
    master->setAttr(kTiedAttr, tied);
  symbols->insert(master, std::next(parameter->getIterator()));

  // 2. The update, which makes one more tensor.
  unsigned weight = cast<OpResult>(write.getValue()).getResultNumber();
  auto callee = symbols->lookup<func::FuncOp>(call.getCallee());
  func::FuncOp &extended = updates[callee];
  if (!extended) {
    FailureOr<func::FuncOp> made =
        extendUpdate(*symbols, callee, (callee.getSymName() + ".bf16").str(),
                     {.results = {builder.getBF16Type()}},
                     [&](Arithmetic, const UpdateElements &elements) {
                       return SmallVector<Value>{elements.results[weight]};
                     });
    if (failed(made))
      return failure();
    extended = *made;
    signMaster(extended, weight);
  }
  read.setVariableAttr(FlatSymbolRefAttr::get(master));
  func::CallOp made =
      replaceUpdateCall(call, extended, ValueRange(), ValueRange());
  write.setVariableAttr(FlatSymbolRefAttr::get(master));
  builder.setInsertionPointAfter(write);
  WriteOp::create(builder, write.getLoc(), made.getResults().back(), parameter);
  return success();
}

void LowerPrecisionPass::runOnOperation() {
  ModuleOp module = getOperation();
  FailureOr<TrainingOp> training = requireTraining(module);
  if (failed(training))
    return signalPassFailure();
  if (training->getPrecision() != Precision::BF16)
    return;
  SymbolTable table(module);
  symbols = &table;
  settled.clear();
  updates.clear();

  // 1. Decide, of all functions.
  FailureOr<SmallVector<TaskCall>> calls = collectTaskCalls(module, table);
  if (failed(calls))
    return signalPassFailure();
  FailureOr<RoundedValues> values =
      RoundedValues::compute(module, table, *calls);
  if (failed(values))
    return signalPassFailure();

  // 2. Weights, and what updates them.
  for (Operation *op : values->getParameters())
    setType(cast<VariableOp>(op));
  for (auto task : module.getOps<TaskOp>()) {
    if (task.getKind() != TaskKind::Update)
      continue;
    for (auto write :
         llvm::make_early_inc_range(task.getBody().getOps<WriteOp>()))
      if (Operation *parameter = table.lookup(write.getVariable());
          values->getParameters().contains(parameter) &&
          failed(addMaster(task, write, cast<VariableOp>(parameter))))
        return signalPassFailure();
  }
  for (auto &[former, extended] : updates)
    if (SymbolTable::symbolKnownUseEmpty(former, module))
      table.erase(former);

  // 3. Tasks, along the flow: each takes what those before it put.
  for (auto [index, call] : llvm::enumerate(*calls)) {
    auto &body = call.task.getBody();
    bool isFirst = index == 0 || (*calls)[index - 1].task != call.task;
    bool isLast =
        index + 1 == calls->size() || (*calls)[index + 1].task != call.task;
    if (isFirst) {
      for (auto read : body.getOps<ReadOp>())
        read.getValue().setType(
            table.lookup<VariableOp>(read.getVariable()).getTensorType());
      for (auto take : body.getOps<TakeOp>()) {
        auto channel = table.lookup<ChannelOp>(take.getChannel());
        for (auto [field, value] : llvm::enumerate(take.getValues()))
          value.setType(channel.getTensorType(field));
      }
    }
    roundCall(call, *values);
    if (!isLast)
      continue;
    for (auto put : body.getOps<PutOp>()) {
      auto channel = table.lookup<ChannelOp>(put.getChannel());
      channel.setTypesAttr(
          Builder(&getContext())
              .getTypeArrayAttr(llvm::to_vector(put.getValues().getTypes())));
      for (unsigned field = 0; field < put.getValues().size(); ++field)
        settled.insert({put.getChannelAttr(), field});
    }
  }
  signFunctions(module);
}
