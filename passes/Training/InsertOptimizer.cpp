//===- InsertOptimizer.cpp - Adds the update tasks ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One task per stage with gradients, one function per type of parameter. The
// numbers that change with the update are computed once per task, in double
// precision, and rounded.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/ParameterGroups.h"
#include "dialects/Pipeline/Signatures.h"
#include "passes/Training/ForwardStage.h"
#include "passes/Training/GradientSum.h"
#include "passes/Training/Passes.h"
#include "penstock/Methods/Method.h"
#include "penstock/Optimizers/Optimizers.h"
#include "penstock/Optimizers/RateSchedule.h"
#include "penstock/Optimizers/UpdateFunction.h"
#include "penstock/Support/Structured.h"

#include <map>

namespace penstock {
#define GEN_PASS_DEF_PIPELINEINSERTOPTIMIZER
#include "passes/Training/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

/// Whose weights decay, if the optimizer has a decay, and whose do not.
enum Group : unsigned { kDecays, kDoesNotDecay };

class InsertOptimizerPass
    : public penstock::impl::PipelineInsertOptimizerBase<InsertOptimizerPass> {
  using PipelineInsertOptimizerBase::PipelineInsertOptimizerBase;
  void runOnOperation() override;

  LogicalResult addTask(StageOp stage, ArrayRef<VariableOp> gradients);
  func::FuncOp createFunction(StringRef name, FunctionType type);
  func::FuncOp getScheduleFunction(Location loc);
  func::FuncOp getRatesFunction(Group group, Location loc);
  SmallVector<Attribute> nameRates(Group group);
  func::FuncOp getScaleFunction(double scale, Location loc);
  func::FuncOp getUpdateFunction(RankedTensorType type, Group group,
                                 bool overwritten, Location loc);
  SmallVector<Value> computeNumbers(TaskOp task, OpBuilder &builder, Value rate,
                                    Group group);
  Optimizer &getOptimizer(Group group) {
    return group == kDecays ? *method : *withoutDecay;
  }
  func::FuncOp getSumFunction(RankedTensorType type, unsigned count);
  Value readSum(OpBuilder &builder, ArrayRef<VariableOp> gradients);
  VariableOp createState(VariableOp parameter, const OptimizerState &state,
                         Role role = Role::Optimizer);
  VariableOp createAverage(VariableOp parameter);

  std::shared_ptr<Optimizer> method; // shared, as passes are copied
  std::shared_ptr<Optimizer> withoutDecay;
  double averageDecay = 0; ///< 0: no averages.
  RateSchedule course;
  SymbolTable *symbols = nullptr;
  func::FuncOp schedule;
  func::FuncOp rates[2]; ///< By group.
  std::map<double, func::FuncOp> scales;
  /// Functions by type, and twice the group plus whether the gradient is
  /// overwritten.
  llvm::DenseMap<std::pair<Type, unsigned>, func::FuncOp> updates;
  llvm::DenseMap<std::pair<Type, unsigned>, func::FuncOp> sums;
  llvm::MapVector<Attribute, SmallVector<VariableOp>> gradientsOf;
  /// Gradients that a task writes without reading what was there.
  llvm::DenseSet<Attribute> overwritten;
};

} // namespace

void InsertOptimizerPass::runOnOperation() {
  FailureOr<TrainingOp> training = requireTraining(getOperation());
  if (failed(training))
    return signalPassFailure();
  if (training->getInfers())
    return;
  method =
      Optimizer::create(OptimizerSpec::fromAttr(training->getOptimizerAttr()));
  OptimizerSpec plain = method->getSpec();
  if (const SpecKey *decay = plain.getKind().findKey("weight-decay"))
    plain.set(*decay, 0);
  withoutDecay = Optimizer::create(plain);
  // Folds average the weights that several workers fold waves into.
  MethodSpec used = MethodSpec::fromAttr(training->getMethodAttr());
  averageDecay =
      used.getMethod().foldsWaves(used) ? 0 : plain.getAverageDecay();
  course = RateSchedule::fromAttr(training->getRateAttr());
  schedule = rates[kDecays] = rates[kDoesNotDecay] = nullptr;
  scales.clear();
  updates.clear();
  sums.clear();
  gradientsOf = collectGradients(getOperation());
  overwritten.clear();
  for (auto task : getOperation().getOps<TaskOp>()) {
    if (task.getKind() != TaskKind::Backward &&
        task.getKind() != TaskKind::WeightGrad)
      continue;
    for (auto write : task.getBody().getOps<WriteOp>())
      overwritten.insert(write.getVariableAttr());
    for (auto read : task.getBody().getOps<ReadOp>())
      overwritten.erase(read.getVariableAttr());
  }
  SymbolTable table(getOperation());
  symbols = &table;

  llvm::DenseMap<Attribute, SmallVector<VariableOp>> gradients;
  for (auto variable : getOperation().getOps<VariableOp>())
    if (variable.getRole() == Role::Gradient)
      gradients[variable.getStageAttr()].push_back(variable);
  for (auto stage : getOperation().getOps<StageOp>()) {
    auto found = gradients.find(FlatSymbolRefAttr::get(stage));
    if (found != gradients.end() && failed(addTask(stage, found->second)))
      return signalPassFailure();
  }
}

func::FuncOp InsertOptimizerPass::createFunction(StringRef name,
                                                 FunctionType type) {
  auto function = func::FuncOp::create(getOperation().getLoc(), name, type);
  function.setPrivate();
  function.addEntryBlock();
  insertAfterLast(getOperation(), *symbols, function);
  return function;
}

/// (base rate, number of updates done) -> the learning rate of the update.
func::FuncOp InsertOptimizerPass::getScheduleFunction(Location loc) {
  if (schedule)
    return schedule;
  OpBuilder builder(&getContext());
  Type f32 = builder.getF32Type();
  schedule = createFunction(
      "lr", builder.getFunctionType({f32, builder.getIndexType()}, {f32}));
  schedule->setAttr(kRateAttr, builder.getUnitAttr());
  builder.setInsertionPointToEnd(&schedule.front());
  Arithmetic f{builder, loc, builder.getF64Type()};
  Value rate = course.emit(f, f.from(schedule.getArgument(0)),
                           f.from(schedule.getArgument(1)));
  func::ReturnOp::create(builder, loc,
                         Arithmetic{builder, loc, f32}.from(rate));
  Attribute lr = builder.getStringAttr("lr");
  setSignature(schedule, {lr, builder.getStringAttr(kCounterName)}, lr);
  return schedule;
}

/// (learning rate, number of updates done) -> the optimizer's numbers.
func::FuncOp InsertOptimizerPass::getRatesFunction(Group group, Location loc) {
  func::FuncOp &rates = this->rates[group];
  if (rates)
    return rates;
  Optimizer *method = &getOptimizer(group);
  OpBuilder builder(&getContext());
  Type f32 = builder.getF32Type();
  rates = createFunction(
      (method->getSpec().getName() +
       (group == kDecays ? ".rates" : ".rates.no_decay"))
          .str(),
      builder.getFunctionType({f32, builder.getIndexType()}, {}));
  Block &body = rates.front();
  builder.setInsertionPointToEnd(&body);
  Arithmetic f{builder, loc, builder.getF64Type()};
  Value rate = f.from(body.getArgument(0)), done = f.from(body.getArgument(1));
  SmallVector<Value> results =
      method->emitRates(f, rate, f.add(done, f.constant(1)));
  for (Value &result : results)
    result = Arithmetic{builder, loc, f32}.from(result);
  func::ReturnOp::create(builder, loc, results);
  rates.setFunctionType(builder.getFunctionType(
      body.getArgumentTypes(), ValueRange(results).getTypes()));
  setSignature(
      rates, {builder.getStringAttr("lr"), builder.getStringAttr(kCounterName)},
      nameRates(group));
  return rates;
}

/// The numbers of an update.
SmallVector<Attribute> InsertOptimizerPass::nameRates(Group group) {
  Builder builder(&getContext());
  if (!getOptimizer(group).hasRates())
    return {builder.getStringAttr("lr")};
  SmallVector<Attribute> names;
  for (unsigned i : llvm::seq(rates[group].getNumResults()))
    names.push_back(builder.getStringAttr(
        method->getSpec().getName() +
        (group == kDecays ? " rate " : " rate without decay ") + Twine(i)));
  return names;
}

/// learning rate -> that of the parameters whose rate has this factor
func::FuncOp InsertOptimizerPass::getScaleFunction(double scale, Location loc) {
  func::FuncOp &function = scales[scale];
  if (function)
    return function;
  OpBuilder builder(&getContext());
  Type f32 = builder.getF32Type();
  function = createFunction("lr.scaled", builder.getFunctionType({f32}, {f32}));
  builder.setInsertionPointToEnd(&function.front());
  Arithmetic f{builder, loc, builder.getF64Type()};
  Value scaled = f.mul(f.constant(scale), f.from(function.getArgument(0)));
  func::ReturnOp::create(builder, loc,
                         Arithmetic{builder, loc, f32}.from(scaled));
  function->setAttr(kRateScaleAttr, builder.getF64FloatAttr(scale));
  // Groups of other factors share what takes it.
  Attribute lr = builder.getStringAttr("lr");
  setSignature(function, lr, lr);
  return function;
}

/// Computes the arguments of a group's update functions from its learning rate.
SmallVector<Value> InsertOptimizerPass::computeNumbers(TaskOp task,
                                                       OpBuilder &builder,
                                                       Value rate,
                                                       Group group) {
  if (!getOptimizer(group).hasRates())
    return {rate};
  return llvm::to_vector_of<Value>(
      func::CallOp::create(builder, task.getLoc(),
                           getRatesFunction(group, task.getLoc()),
                           ValueRange{rate, task.getCounter()})
          .getResults());
}

/// (weight, gradient, state..., rates...) -> (weight, zero, state...), without
/// the zero where the gradient is overwritten anyway. The last state is the
/// average, if there is one.
func::FuncOp InsertOptimizerPass::getUpdateFunction(RankedTensorType type,
                                                    Group group,
                                                    bool overwritten,
                                                    Location loc) {
  func::FuncOp &update = updates[{type, 2 * group + overwritten}];
  if (update)
    return update;
  Optimizer *method = &getOptimizer(group);
  OpBuilder builder(&getContext());
  SmallVector<Type> arguments = {type, type};
  for (const OptimizerState &state : method->listStates(type))
    arguments.push_back(state.type);
  unsigned states = arguments.size() - 2;
  if (averageDecay > 0)
    arguments.push_back(type);
  unsigned tensors = arguments.size();
  unsigned numRates =
      method->hasRates() ? getRatesFunction(group, loc).getNumResults() : 1;
  arguments.append(numRates, builder.getF32Type());
  // Inputs of the loop come first, then what it writes.
  unsigned inputs = overwritten ? 2 : 1;
  SmallVector<Type> results = {type};
  llvm::append_range(results,
                     ArrayRef(arguments).slice(inputs, tensors - inputs));
  update =
      createFunction((method->getSpec().getName() + "." + describeType(type) +
                      (group == kDecays ? "" : ".no_decay"))
                         .str(),
                     builder.getFunctionType(arguments, results));
  SmallVector<Attribute> terms, made;
  auto term = [&](Role role) { return RoleAttr::get(&getContext(), role); };
  terms = {term(Role::Parameter), term(Role::Gradient)};
  terms.append(states, term(Role::Optimizer));
  if (averageDecay > 0)
    terms.push_back(term(Role::Compensation));
  made = {term(Role::Parameter)};
  llvm::append_range(made, ArrayRef(terms).slice(inputs, tensors - inputs));
  llvm::append_range(terms, nameRates(group));
  setSignature(update, terms, made);
  for (unsigned i = inputs; i < tensors; ++i)
    update.setArgAttr(i, kIntoAttr, builder.getI64IntegerAttr(1 + i - inputs));

  builder.setInsertionPointToEnd(&update.front());
  Type element = type.getElementType();
  SmallVector<Value> numbers;
  for (Value rate : update.getArguments().drop_front(tensors))
    numbers.push_back(Arithmetic{builder, loc, element}.from(rate));
  // Where steps take more than one element of each, that is computed first.
  UpdateTensors first;
  bool isElementwise = method->isElementwise();
  if (!isElementwise)
    first = method->emitTensors(
        builder, loc, update.getArgument(0), update.getArgument(1),
        update.getArguments().slice(2, states), numbers);
  SmallVector<Value> read(update.getArguments().take_front(inputs));
  llvm::append_range(read, first.inputs);
  SmallVector<Value> written = {
      tensor::EmptyOp::create(builder, loc, type, ValueRange())};
  for (unsigned i = inputs; i < tensors; ++i)
    if (isElementwise || i < 2 || i >= 2 + states)
      written.push_back(update.getArgument(i));
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<AffineMap> maps(inputs, identity);
  llvm::append_range(maps, first.maps);
  maps.append(written.size(), identity);
  SmallVector<Value> returned =
      Structured(builder, loc)
          .generics(
              read, written, maps, Structured::parallel(type.getRank()),
              [&](Scalars &s, ValueRange elements) {
                Arithmetic f{s, element};
                // The new weight's place stands between inputs and what is
                // updated.
                ValueRange updated = elements.drop_front(read.size() + 1);
                Value weight = elements[0];
                Value gradient = overwritten ? elements[1] : updated[0];
                if (!overwritten)
                  updated = updated.drop_front();
                SmallVector<Value> state =
                    isElementwise
                        ? method->emitState(f, weight, gradient,
                                            updated.take_front(states), numbers)
                        : llvm::to_vector(
                              elements.slice(inputs, first.inputs.size()));
                Value step = method->emitStep(f, gradient, state, numbers);
                Value moved =
                    f.sub(method->emitDecay(f, weight, numbers), step);
                SmallVector<Value> yielded = {moved};
                if (!overwritten)
                  yielded.push_back(f.constant(0));
                if (isElementwise)
                  yielded.append(state);
                if (averageDecay > 0)
                  yielded.push_back(
                      f.lerp(elements.back(), moved, 1 - averageDecay));
                return yielded;
              });
  returned.insert(returned.begin() + 3 - inputs, first.states.begin(),
                  first.states.end());
  func::ReturnOp::create(builder, loc, returned);
  return update;
}

func::FuncOp InsertOptimizerPass::getSumFunction(RankedTensorType type,
                                                 unsigned count) {
  func::FuncOp &sum = sums[{type, count}];
  if (sum)
    return sum;
  SmallVector<Type> types(count, type);
  sum = createFunction(("sum." + Twine(count) + "." + describeType(type)).str(),
                       FunctionType::get(&getContext(), types, types));
  emitGradientSum(sum);
  SmallVector<Attribute> terms(count,
                               RoleAttr::get(&getContext(), Role::Gradient));
  setSignature(sum, terms, terms);
  return sum;
}

/// Reads the gradient of a parameter. Of several, the first holds their sum
/// afterwards, and the others zero.
Value InsertOptimizerPass::readSum(OpBuilder &builder,
                                   ArrayRef<VariableOp> gradients) {
  SmallVector<Value> values;
  for (VariableOp gradient : gradients)
    values.push_back(ReadOp::create(builder, gradient.getLoc(), gradient));
  if (values.size() == 1)
    return values.front();
  VariableOp first = gradients.front();
  auto call = func::CallOp::create(
      builder, first.getLoc(),
      getSumFunction(first.getTensorType(), values.size()), values);
  for (auto [index, zero] :
       llvm::drop_begin(llvm::enumerate(call.getResults()))) {
    VariableOp gradient = gradients[index];
    WriteOp::create(builder, gradient.getLoc(), zero, gradient);
  }
  return call.getResult(0);
}

VariableOp InsertOptimizerPass::createState(VariableOp parameter,
                                            const OptimizerState &state,
                                            Role role) {
  OpBuilder builder(&getContext());
  auto variable = VariableOp::create(
      builder, parameter.getLoc(),
      (parameter.getSymName() + "." + state.name).str(), state.type, role,
      parameter.getStageAttr(), BytesAttr());
  variable->setAttr(kParameterAttr, FlatSymbolRefAttr::get(parameter));
  variable->setAttr(kKindAttr, builder.getStringAttr(state.name));
  insertAfterLast(getOperation(), *symbols, variable);
  return variable;
}

/// Starts as the parameter does, so that it needs no correction of a bias, and
/// stands for all initializers that do.
VariableOp InsertOptimizerPass::createAverage(VariableOp parameter) {
  VariableOp average = createState(
      parameter, {kAverageKind, parameter.getTensorType()}, Role::Compensation);
  average.setInitAttr(parameter.getInitAttr());
  if (Attribute tied = parameter->getAttr(kTiedAttr))
    average->setAttr(kTiedAttr, tied);
  return average;
}

LogicalResult InsertOptimizerPass::addTask(StageOp stage,
                                           ArrayRef<VariableOp> gradients) {
  OpBuilder builder(&getContext());
  Location loc = stage.getLoc();
  auto task = TaskOp::create(builder, loc, (stage.getSymName() + ".U").str(),
                             TaskKind::Update, stage.getSymName(), ArrayAttr(),
                             ArrayAttr());
  insertAfterLast(getOperation(), *symbols, task);
  builder.setInsertionPointToEnd(task.addBody());

  // 1. The numbers of this update.
  const OptimizerSpec &spec = method->getSpec();
  Value rate = HyperparameterOp::create(
      builder, loc, builder.getF32Type(), builder.getStringAttr("lr"),
      builder.getF64FloatAttr(spec.getLearningRate()));
  if (!course.isConstant())
    rate = func::CallOp::create(builder, loc, getScheduleFunction(loc),
                                ValueRange{rate, task.getCounter()})
               .getResult(0);
  // Of the groups that the stage has, as they come.
  std::map<std::pair<double, Group>, SmallVector<Value>> numbersOf;
  auto getNumbers = [&](double scale, Group group) -> ArrayRef<Value> {
    SmallVector<Value> &numbers = numbersOf[{scale, group}];
    if (!numbers.empty())
      return numbers;
    Value own = rate;
    if (scale != 1)
      own = func::CallOp::create(builder, loc, getScaleFunction(scale, loc),
                                 ValueRange(rate))
                .getResult(0);
    numbers = computeNumbers(task, builder, own, group);
    return numbers;
  };
  // What methods take for the numbers of the stage.
  (void)getNumbers(1, kDecays);

  // 2. Each parameter with its state.
  for (VariableOp gradient : gradients) {
    auto name = gradient->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr);
    auto parameter =
        name ? symbols->lookup<VariableOp>(name.getAttr()) : VariableOp();
    if (!parameter)
      return gradient.emitError() << "the gradient does not say by '"
                                  << kParameterAttr << "' whose it is";
    ArrayRef<VariableOp> summed = gradientsOf[name];
    if (summed.front() != gradient)
      continue;
    SmallVector<VariableOp> variables = {parameter, gradient};
    for (const OptimizerState &state :
         method->listStates(parameter.getTensorType()))
      variables.push_back(createState(parameter, state));
    if (averageDecay > 0)
      variables.push_back(createAverage(parameter));
    SmallVector<Value> operands;
    for (VariableOp variable : variables)
      operands.push_back(
          variable == gradient
              ? readSum(builder, summed)
              : ReadOp::create(builder, parameter.getLoc(), variable)
                    .getValue());
    auto scale = parameter->getAttrOfType<FloatAttr>(kRateScaleAttr);
    Group group = parameter->hasAttr(kNoDecayAttr) ? kDoesNotDecay : kDecays;
    llvm::append_range(operands,
                       getNumbers(scale ? scale.getValueAsDouble() : 1, group));
    bool isOverwritten = overwritten.contains(FlatSymbolRefAttr::get(gradient));
    auto call = func::CallOp::create(
        builder, parameter.getLoc(),
        getUpdateFunction(parameter.getTensorType(), group, isOverwritten, loc),
        operands);
    if (isOverwritten)
      llvm::erase(variables, gradient);
    for (auto [variable, result] : llvm::zip(variables, call.getResults()))
      WriteOp::create(builder, parameter.getLoc(), result, variable);
  }
  return success();
}
