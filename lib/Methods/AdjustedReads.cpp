//===- AdjustedReads.cpp - Weights that methods adjust --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See AdjustedReads.h.
//===----------------------------------------------------------------------===//

#include "AdjustedReads.h"

#include "dialects/Pipeline/Signatures.h"
#include "penstock/Optimizers/UpdateFunction.h"
#include "penstock/Support/Structured.h"

#include <cmath>

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

SmallVector<WeightUpdate> StageAdjuster::getUpdates(TaskOp reader) {
  llvm::DenseSet<StringRef> read;
  if (reader)
    for (auto op : reader.getBody().getOps<ReadOp>())
      read.insert(op.getVariable());
  SmallVector<WeightUpdate> updates;
  if (!stage.update)
    return updates;
  for (auto write : stage.update.getBody().getOps<WriteOp>()) {
    auto written = symbols.lookup<VariableOp>(write.getVariable());
    auto call = write.getValue().getDefiningOp<func::CallOp>();
    if (!written || !call)
      continue;
    // Weights that are rounded are those of the master.
    VariableOp parameter = written;
    auto whose = written->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr);
    if (written.getRole() == Role::Master && whose)
      parameter = symbols.lookup<VariableOp>(whose.getValue());
    if (parameter.getRole() != Role::Parameter ||
        !read.contains(parameter.getSymName()))
      continue;
    WeightUpdate update{parameter, call, Value(), write.getValue(), {}};
    for (Value operand : call.getOperands())
      if (auto op = operand.getDefiningOp<ReadOp>();
          op && op.getVariable() == write.getVariable())
        update.before = operand;
    // The rounded weights are no function of themselves.
    if (!update.before)
      continue;
    for (Value result : call.getResults())
      for (Operation *user : result.getUsers())
        if (auto state = dyn_cast<WriteOp>(user))
          if (auto variable = symbols.lookup<VariableOp>(state.getVariable());
              variable && variable.getRole() == Role::Optimizer)
            update.state.push_back(result);
    updates.push_back(std::move(update));
  }
  return updates;
}

SmallVector<WeightUpdate>
StageAdjuster::getUpdatesOfAll(ArrayRef<TaskOp> readers) {
  SmallVector<WeightUpdate> updates;
  for (TaskOp reader : readers)
    for (WeightUpdate &update : getUpdates(reader))
      if (llvm::none_of(updates, [&](const WeightUpdate &known) {
            return known.parameter == update.parameter;
          }))
        updates.push_back(std::move(update));
  return updates;
}

/// Returns true of the state of an optimizer that averages weights.
static bool isAverage(VariableOp variable) {
  auto kind = variable->getAttrOfType<StringAttr>(kKindAttr);
  return variable.getRole() == Role::Compensation && kind &&
         kind.getValue() == kAverageKind;
}

/// Beside the parameter. A weight starts as the parameter does, and has its
/// type; what is added up has that of the weights that are updated.
VariableOp StageAdjuster::addVariable(const WeightUpdate &update,
                                      StringRef suffix, bool isWeight) {
  VariableOp parameter = update.parameter;
  OpBuilder builder(module.getContext());
  auto type = cast<RankedTensorType>(isWeight ? parameter.getType()
                                              : update.after.getType());
  auto variable =
      VariableOp::create(builder, parameter.getLoc(),
                         (parameter.getSymName() + "." + suffix).str(), type,
                         Role::Compensation, parameter.getStageAttr(),
                         isWeight ? parameter.getInitAttr() : BytesAttr());
  variable->setAttr(kParameterAttr, FlatSymbolRefAttr::get(parameter));
  variable->setAttr(kKindAttr, builder.getStringAttr(suffix));
  // In the order in which the update has them: averages are its own.
  Operation *before = parameter;
  for (auto other : module.getOps<VariableOp>())
    if (isAverage(other) &&
        other->getAttr(kParameterAttr) == variable->getAttr(kParameterAttr))
      before = other;
  symbols.insert(variable, std::next(before->getIterator()));
  return variable;
}

void StageAdjuster::redirect(ArrayRef<TaskOp> readers, VariableOp from,
                             VariableOp to) {
  for (TaskOp reader : readers)
    for (auto read : reader.getBody().getOps<ReadOp>())
      if (read.getVariable() == from.getSymName())
        read.setVariableAttr(FlatSymbolRefAttr::get(to));
}

func::FuncOp StageAdjuster::createFunction(const Twine &name,
                                           FunctionType type) {
  auto function = func::FuncOp::create(module.getLoc(), name.str(), type);
  function.setPrivate();
  function.addEntryBlock();
  symbols.insert(function);
  return function;
}

Value StageAdjuster::getBaseRate() {
  for (auto op : stage.update.getBody().getOps<HyperparameterOp>())
    if (op.getName() == "lr")
      return op;
  return {};
}

Value StageAdjuster::getRate() {
  for (auto call : stage.update.getBody().getOps<func::CallOp>()) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (callee && callee->hasAttr(kRateAttr))
      return call.getResult(0);
  }
  return getBaseRate();
}

//===----------------------------------------------------------------------===//
// Prediction
//===----------------------------------------------------------------------===//

/// (weight, state..., rates...) -> direction, elementwise.
func::FuncOp StageAdjuster::getDirectionFunction(RankedTensorType type,
                                                 const Optimizer &optimizer,
                                                 unsigned rates) {
  size_t tensors = 1 + optimizer.getStates().size();
  OpBuilder builder(module.getContext());
  Location loc = module.getLoc();
  SmallVector<Type> arguments(tensors, type);
  arguments.append(rates, builder.getF32Type());
  std::string name =
      (optimizer.getSpec().getName() + ".direction." + describeType(type))
          .str();
  FunctionType signature = builder.getFunctionType(arguments, type);
  if (auto known = symbols.lookup<func::FuncOp>(name);
      known && known.getFunctionType() == signature)
    return known;
  func::FuncOp function = createFunction(name, signature);
  builder.setInsertionPointToEnd(&function.front());
  ValueRange values = function.getArguments();
  Arithmetic f{builder, loc, type.getElementType()};
  SmallVector<Value> numbers;
  for (Value rate : values.drop_front(tensors))
    numbers.push_back(f.from(rate));
  Value direction =
      Structured(builder, loc)
          .elementwise(type, values.take_front(tensors),
                       [&](Scalars &s, ValueRange elements) {
                         return optimizer.emitDirection(
                             {s, type.getElementType()}, elements[0],
                             elements.slice(1, tensors - 1), numbers);
                       });
  func::ReturnOp::create(builder, loc, direction);
  auto term = [&](Role role) {
    return RoleAttr::get(module.getContext(), role);
  };
  SmallVector<Attribute> terms = {term(Role::Parameter)};
  terms.append(tensors - 1, term(Role::Optimizer));
  for (unsigned i : llvm::seq(rates))
    terms.push_back(builder.getStringAttr("direction rate " + Twine(i)));
  setSignature(function, terms, {term(Role::Optimizer)});
  return function;
}

LogicalResult StageAdjuster::predict(ArrayRef<TaskOp> readers, double steps,
                                     const Optimizer &optimizer,
                                     const RateSchedule &rates, StringRef name,
                                     bool keeps) {
  SmallVector<WeightUpdate> updates = getUpdatesOfAll(readers);
  if (steps <= 0 || updates.empty())
    return success();

  // 1. Scalars: the mean of the rates to come, and what the direction needs,
  //    with this update done.
  MLIRContext *context = module.getContext();
  Location loc = stage.update.getLoc();
  Type f32 = Float32Type::get(context), index = IndexType::get(context);
  func::FuncOp function =
      createFunction(stage.stage.getSymName() + "." + name + "_rates",
                     FunctionType::get(context, {f32, index}, {}));
  OpBuilder body = OpBuilder::atBlockEnd(&function.front());
  Arithmetic f{body, loc, body.getF64Type()};
  Value base = f.from(function.getArgument(0));
  Value done = f.add(f.from(function.getArgument(1)), f.constant(1));
  SmallVector<Value> numbers = {base};
  if (!rates.isConstant())
    numbers[0] = f.div(rates.emitSum(f, base, done, steps), f.constant(steps));
  llvm::append_range(numbers, optimizer.emitDirectionRates(f, done));
  for (Value &number : numbers)
    number = Arithmetic{body, loc, f32}.from(number);
  func::ReturnOp::create(body, loc, numbers);
  function.setFunctionType(FunctionType::get(
      context, {f32, index}, SmallVector<Type>(numbers.size(), f32)));
  SmallVector<Attribute> names = {StringAttr::get(context, getRateName(steps))};
  for (size_t i : llvm::seq(numbers.size() - 1))
    names.push_back(StringAttr::get(context, "direction rate " + Twine(i)));
  Attribute lr = StringAttr::get(context, "lr");
  setSignature(function, {lr, StringAttr::get(context, kCounterName)}, names);
  Value rate = getBaseRate();
  if (!rate)
    return stage.update.emitOpError("has no learning rate to predict with");
  OpBuilder builder(context);
  builder.setInsertionPointAfterValue(rate);
  SmallVector<Value> scalars = llvm::to_vector_of<Value>(
      func::CallOp::create(builder, loc, function,
                           ValueRange{rate, stage.update.getCounter()})
          .getResults());

  // 2. Each weight along its direction.
  builder.setInsertionPointToEnd(&stage.update.getBody().front());
  for (WeightUpdate &update : updates) {
    Location at = update.call.getLoc();
    if (update.state.size() != optimizer.getStates().size())
      return stage.update.emitOpError("has not the state of ")
             << optimizer.getSpec().getName() << " for "
             << FlatSymbolRefAttr::get(update.parameter);
    Value direction;
    if (std::optional<unsigned> state = optimizer.getDirectionState()) {
      direction = update.state[*state];
    } else {
      SmallVector<Value> operands = {update.after};
      llvm::append_range(operands, update.state);
      llvm::append_range(operands, ArrayRef(scalars).drop_front());
      direction = func::CallOp::create(
                      builder, at,
                      getDirectionFunction(
                          cast<RankedTensorType>(update.after.getType()),
                          optimizer, scalars.size() - 1),
                      operands)
                      .getResult(0);
    }
    VariableOp variable = addVariable(update, name, /*isWeight=*/true);
    Value moved = PredictOp::create(builder, at, variable.getType(),
                                    update.after, direction, scalars[0],
                                    builder.getF64FloatAttr(steps));
    WriteOp::create(builder, at, moved, variable);
    redirect(readers, update.parameter, variable);
    if (!keeps)
      continue;
    OpBuilder behind(context);
    behind.setInsertionPointAfter(variable);
    WeightStashOp::create(behind, at, FlatSymbolRefAttr::get(variable),
                          behind.getI64IntegerAttr(2));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// PipeMare
//===----------------------------------------------------------------------===//

LogicalResult StageAdjuster::compensate(ArrayRef<TaskOp> readers, double tau,
                                        double gamma, int64_t from) {
  OpBuilder builder(module.getContext());
  llvm::DenseMap<Operation *, func::FuncOp> withDelta;
  for (TaskOp reader : readers)
    for (WeightUpdate &update : getUpdates(reader)) {
      Location loc = update.call.getLoc();
      VariableOp delta = addVariable(update, "delta", /*isWeight=*/false);
      VariableOp adjusted =
          addVariable(update, "compensated", /*isWeight=*/true);

      // 1. The update keeps the average of its own steps.
      builder.setInsertionPoint(update.call);
      Value old = ReadOp::create(builder, loc, delta);
      auto callee = symbols.lookup<func::FuncOp>(update.call.getCallee());
      unsigned before = llvm::find(update.call.getOperands(), update.before) -
                        update.call.getOperands().begin();
      unsigned after = cast<OpResult>(update.after).getResultNumber();
      func::FuncOp &extended = withDelta[callee];
      if (!extended) {
        FailureOr<func::FuncOp> made = extendUpdate(
            symbols, callee, (callee.getSymName() + ".delta").str(),
            {.states = 1}, [&](Arithmetic f, const UpdateElements &elements) {
              Value change =
                  f.sub(elements.results[after], elements.arguments[before]);
              Value kept = f.mul(f.constant(gamma), elements.states[0]);
              return SmallVector<Value>{
                  f.add(kept, f.mul(f.constant(1 - gamma), change))};
            });
        if (failed(made))
          return failure();
        extended = *made;
      }
      func::CallOp call =
          replaceUpdateCall(update.call, extended, old, ValueRange());

      // 2. What the backward sees.
      Value newDelta = call.getResults().back();
      builder.setInsertionPointToEnd(&stage.update.getBody().front());
      WriteOp::create(builder, loc, newDelta, delta);
      Value seen = CompensateOp::create(builder, loc, adjusted.getType(),
                                        call.getResult(after), newDelta,
                                        builder.getF64FloatAttr(tau));
      if (from > 0)
        seen.getDefiningOp()->setDiscardableAttr(
            kCompensatesFromAttr, builder.getI64IntegerAttr(from));
      WriteOp::create(builder, loc, seen, adjusted);
      redirect(readers, update.parameter, adjusted);
    }
  return success();
}

//===----------------------------------------------------------------------===//
// I-TiMePReSt
//===----------------------------------------------------------------------===//

/// d -> e^(-decay * d) for d from 1 to `most`, rounded to f32; 0 for none.
func::FuncOp StageAdjuster::getSignificance(int64_t most, double decay) {
  OpBuilder builder(module.getContext());
  func::FuncOp function = createFunction(
      stage.stage.getSymName() + ".significance",
      builder.getFunctionType(builder.getIndexType(), builder.getF32Type()));
  OpBuilder body = OpBuilder::atBlockEnd(&function.front());
  Location loc = stage.update.getLoc();
  Arithmetic f{body, loc, body.getF32Type()};
  Value result = f.constant(0);
  for (int64_t d = 1; d <= most; ++d) {
    auto significance =
        static_cast<float>(std::exp(-decay * static_cast<double>(d)));
    Value here = arith::CmpIOp::create(
        body, loc, arith::CmpIPredicate::eq, function.getArgument(0),
        arith::ConstantIndexOp::create(body, loc, d));
    result = arith::SelectOp::create(body, loc, here, f.constant(significance),
                                     result);
  }
  func::ReturnOp::create(body, loc, result);
  return function;
}

LogicalResult StageAdjuster::blend(ArrayRef<TaskOp> readers, int64_t lag,
                                   double decay) {
  SmallVector<WeightUpdate> updates = getUpdatesOfAll(readers);
  if (updates.empty())
    return success();

  // 1. How much the older version counts, by how old it is.
  Location loc = stage.update.getLoc();
  Block *block = &stage.update.getBody().front();
  OpBuilder builder = OpBuilder::atBlockBegin(block);
  Value staleness =
      StalenessOp::create(builder, loc, builder.getI64IntegerAttr(lag));
  Value significance =
      func::CallOp::create(builder, loc, getSignificance(lag, decay), staleness)
          .getResult(0);

  // 2. Each weight with what it was.
  for (WeightUpdate &update : updates) {
    Location at = update.call.getLoc();
    builder.setInsertionPoint(update.call);
    Value older = ReadOp::create(builder, at, update.parameter,
                                 builder.getI64IntegerAttr(lag));
    builder.setInsertionPointToEnd(block);
    Value blended =
        BlendOp::create(builder, at, update.after, older, significance);
    VariableOp variable = addVariable(update, "blended", /*isWeight=*/true);
    WriteOp::create(builder, at, blended, variable);
    redirect(readers, update.parameter, variable);
  }
  return success();
}

void StageAdjuster::annealRate(double divisor, int64_t steps, int64_t from) {
  Value rate = stage.update ? getRate() : Value();
  if (!rate)
    return;
  Location loc = stage.update.getLoc();
  OpBuilder builder(module.getContext());
  Type f32 = builder.getF32Type();
  func::FuncOp function = createFunction(
      stage.stage.getSymName() + ".rate",
      builder.getFunctionType({f32, builder.getIndexType()}, f32));
  OpBuilder body = OpBuilder::atBlockEnd(&function.front());
  Arithmetic f{body, loc, body.getF64Type()};
  Value undivided = f.from(function.getArgument(0));
  Value done = f.from(function.getArgument(1));
  Value left = f.max(
      f.sub(f.constant(1), f.div(done, f.constant(static_cast<double>(steps)))),
      f.constant(0));
  Value divided = f.div(undivided, f.pow(f.constant(divisor), left));
  if (from > 0)
    divided = f.selectLess(done, f.constant(static_cast<double>(from)),
                           undivided, divided);
  func::ReturnOp::create(body, loc, Arithmetic{body, loc, f32}.from(divided));
  Attribute lr = builder.getStringAttr("lr");
  setSignature(function, {lr, builder.getStringAttr(kCounterName)}, lr);
  function->setAttr(kRateOfAttr, FlatSymbolRefAttr::get(stage.stage));

  builder.setInsertionPointAfterValue(rate);
  auto call = func::CallOp::create(builder, loc, function,
                                   ValueRange{rate, stage.update.getCounter()});
  rate.replaceAllUsesExcept(call.getResult(0), call);
}
