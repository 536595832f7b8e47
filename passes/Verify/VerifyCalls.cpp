//===- VerifyCalls.cpp - Calls give functions what they stand for ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rule C38: a task calls a function with what its signature says
// by position, and its results go where that says.
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include "dialects/Pipeline/Signatures.h"
#include "penstock/Optimizers/Optimizers.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

static std::string print(Attribute term) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  printTerm(stream, term);
  return text;
}

static ArrayRef<Attribute> getAlternatives(const Attribute &term) {
  if (auto several = dyn_cast<ArrayAttr>(term))
    return several.getValue();
  return ArrayRef<Attribute>(term);
}

/// Returns how many calls a function stands for: each has a term for every
/// argument or, where there is none, for every result.
static size_t countCalls(SignatureAttr signature) {
  size_t count = 1;
  for (Attribute term : signature.getInputs().empty() ? signature.getResults()
                                                      : signature.getInputs())
    count = std::max(count, getAlternatives(term).size());
  return count;
}

namespace {

/// Calls of one module.
class CallRules {
public:
  CallRules(Subject &subject) : subject(subject), terms(subject.module) {}
  LogicalResult verify(TaskOp task);

private:
  /// The meaning of a value to a function that stands for roles.
  struct Described {
    std::optional<Role> role;
    /// The parameter or statistic, if the role has one.
    Attribute whose;
    VariableOp variable;
    int64_t lag = 0;
  };

  LogicalResult verifyExact(func::CallOp call, SignatureAttr signature);
  LogicalResult verifyRoles(func::CallOp call, func::FuncOp callee,
                            SignatureAttr signature);
  LogicalResult verifyOrder(func::CallOp call, ArrayRef<Described> values);
  LogicalResult verifyTargets(func::CallOp call, SignatureAttr signature);
  LogicalResult verifyAdjusted(Operation *op);
  bool isState(Value value);
  bool isDirection(Value value);
  LogicalResult verifyMessage(PutOp put);
  Described describe(Value value);
  Described describe(VariableOp variable);
  InFlightDiagnostic report(func::CallOp call, unsigned argument,
                            Attribute stands);
  std::string nameValue(Value value);

  Subject &subject;
  ValueTerms terms;
  /// The parameter that a call which stands for roles is of.
  llvm::DenseMap<Operation *, Attribute> owners;
  /// The alternatives of each function that a call takes.
  llvm::DenseMap<Operation *, llvm::DenseMap<unsigned, func::CallOp>> taken;
  /// The position of each variable in a group.
  llvm::DenseMap<Attribute, std::pair<Attribute, unsigned>> places;
};

} // namespace

CallRules::Described CallRules::describe(VariableOp variable) {
  if (!variable)
    return {};
  Attribute whose = variable->getAttr(kParameterAttr);
  if (variable.getRole() == Role::Parameter ||
      variable.getRole() == Role::Statistic)
    whose = FlatSymbolRefAttr::get(variable);
  return {variable.getRole(), whose, variable};
}

CallRules::Described CallRules::describe(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto read = dyn_cast_or_null<ReadOp>(op)) {
    Described result =
        describe(subject.symbols.lookup<VariableOp>(read.getVariable()));
    result.lag = static_cast<int64_t>(read.getLag().value_or(0));
    return result;
  }
  if (auto take = dyn_cast_or_null<TakeOp>(op)) {
    // A message about a variable counts as one of its role.
    auto channel = subject.symbols.lookup<ChannelOp>(take.getChannel());
    auto whose = channel
                     ? channel->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr)
                     : FlatSymbolRefAttr();
    // A wave; C31 says which one.
    if (channel && channel.getOwnQueue())
      return {Role::Compensation, {}, VariableOp()};
    if (!whose)
      return {};
    Described result =
        describe(subject.symbols.lookup<VariableOp>(whose.getValue()));
    result.variable = nullptr;
    return result;
  }
  if (auto call = dyn_cast_or_null<func::CallOp>(op)) {
    auto callee = subject.symbols.lookup<func::FuncOp>(call.getCallee());
    SignatureAttr signature = callee ? getSignature(callee) : SignatureAttr();
    unsigned index = cast<OpResult>(value).getResultNumber();
    auto role = signature && index < signature.getResults().size()
                    ? dyn_cast<RoleAttr>(signature.getResults()[index])
                    : RoleAttr();
    if (!role)
      return {};
    Described result = {role.getValue(), owners.lookup(call), VariableOp()};
    // A parameter may have several states: the new one is of the variable whose
    // place it takes.
    if (result.role == Role::Optimizer)
      for (unsigned i : llvm::seq(callee.getNumArguments()))
        if (auto into = callee.getArgAttrOfType<IntegerAttr>(i, kIntoAttr);
            into && into.getInt() == index)
          result.variable = describe(call.getOperand(i)).variable;
    return result;
  }
  return {};
}

/// Names a value as the IR does: `@fc1 of role parameter`.
std::string CallRules::nameValue(Value value) {
  Described known = describe(value);
  std::string text = print(terms.getTerm(value));
  if (!known.role || !isa<TensorType>(value.getType()))
    return text;
  return text + " of role " + stringifyRole(*known.role).str();
}

InFlightDiagnostic CallRules::report(func::CallOp call, unsigned argument,
                                     Attribute stands) {
  InFlightDiagnostic diagnostic = call.emitOpError("C38: gives ");
  diagnostic << call.getCalleeAttr() << " as argument " << argument << " "
             << nameValue(call.getOperand(argument)) << ", which stands for "
             << print(stands);
  return diagnostic;
}

/// All that a function of one task, or of equal tasks, is called with.
LogicalResult CallRules::verifyExact(func::CallOp call,
                                     SignatureAttr signature) {
  ArrayRef<Attribute> inputs = signature.getInputs().getValue();
  size_t count = countCalls(signature);
  // The alternative that fits best says what is wrong.
  Operation *callee = subject.symbols.lookup(call.getCallee());
  llvm::DenseMap<unsigned, func::CallOp> &known = taken[callee];
  size_t best = 0, fitting = 0;
  std::optional<unsigned> wrong;
  for (size_t alternative : llvm::seq(count)) {
    size_t fits = 0;
    std::optional<unsigned> first;
    for (auto [i, term] : llvm::enumerate(inputs)) {
      ArrayRef<Attribute> several = getAlternatives(term);
      Attribute stands =
          several[several.size() == count ? alternative : size_t(0)];
      if (isa<UnitAttr>(stands) || terms.getTerm(call.getOperand(i)) == stands)
        ++fits;
      else if (!first)
        first = i;
    }
    // Of equal alternatives, each call takes one.
    bool isNext = fits == fitting && known.contains(best);
    if (alternative == 0 || fits > fitting || isNext) {
      best = alternative;
      fitting = fits;
      wrong = first;
    }
  }
  if (wrong) {
    ArrayRef<Attribute> several = getAlternatives(inputs[*wrong]);
    InFlightDiagnostic diagnostic = report(
        call, *wrong, several[several.size() == count ? best : size_t(0)]);
    Operation *origin = terms.getOrigin(call.getOperand(*wrong));
    if (origin && origin->getBlock() != call->getBlock())
      diagnostic.attachNote(origin->getLoc()) << "put here";
    return diagnostic;
  }
  auto [other, isFirst] = known.try_emplace(best, call);
  if (isFirst)
    return success();
  InFlightDiagnostic diagnostic = call.emitOpError("C38: calls ");
  diagnostic << call.getCalleeAttr()
             << " again, which stands for values of one call";
  diagnostic.attachNote(other->second.getLoc()) << "the other call";
  return diagnostic;
}

/// Several values of a role are different, in the order of the group that sums
/// them or of their declarations; the newest version of one variable comes
/// first.
LogicalResult CallRules::verifyOrder(func::CallOp call,
                                     ArrayRef<Described> values) {
  llvm::DenseMap<unsigned, VariableOp> last;
  llvm::DenseMap<unsigned, int64_t> lags;
  for (const Described &value : values) {
    if (!value.role || !value.variable)
      continue;
    VariableOp &former = last[static_cast<unsigned>(*value.role)];
    VariableOp own = value.variable;
    int64_t &formerLag = lags[static_cast<unsigned>(*value.role)];
    bool isLater = former == own && value.lag > formerLag;
    formerLag = value.lag;
    if (former && !isLater) {
      auto a = places.lookup(former.getSymNameAttr());
      auto b = places.lookup(own.getSymNameAttr());
      bool inOrder = a.first && a.first == b.first
                         ? a.second < b.second
                         : former->isBeforeInBlock(own);
      if (!inOrder)
        return call.emitOpError("C38: gives ")
               << call.getCalleeAttr() << " @" << former.getSymName()
               << " before @" << own.getSymName() << ", which comes first";
    }
    former = own;
  }
  return success();
}

LogicalResult CallRules::verifyRoles(func::CallOp call, func::FuncOp callee,
                                     SignatureAttr signature) {
  // 1. What it gets, all of one parameter.
  Attribute owner;
  SmallVector<Described> values;
  // What only reads weights may read those that are rounded later.
  Attribute weights = RoleAttr::get(call.getContext(), Role::Parameter);
  bool makesNoWeights =
      !llvm::is_contained(signature.getResults().getValue(), weights);
  for (auto [i, term] : llvm::enumerate(signature.getInputs())) {
    Value operand = call.getOperand(i);
    auto role = dyn_cast<RoleAttr>(term);
    if (!role) {
      values.push_back({});
      if (!isa<UnitAttr>(term) && terms.getTerm(operand) != term)
        return report(call, i, term);
      continue;
    }
    Described value = describe(operand);
    values.push_back(value);
    bool isMaster = value.role == Role::Master && makesNoWeights &&
                    role.getValue() == Role::Parameter;
    if (value.role != role.getValue() && !isMaster)
      return report(call, i, term);
    if (!value.whose)
      continue;
    if (owner && value.whose != owner)
      return call.emitOpError("C38: gives ")
             << call.getCalleeAttr() << " as argument " << i << " "
             << nameValue(operand) << ", which belongs to " << value.whose
             << ", and others that belong to " << owner;
    owner = value.whose;
  }
  owners[call] = owner;
  // C31 says in which order a fold adds waves.
  bool folds = call->getParentOfType<TaskOp>().getKind() == TaskKind::Fold;
  if (!folds && failed(verifyOrder(call, values)))
    return failure();

  // 2. What becomes of the results.
  llvm::DenseMap<unsigned, unsigned> into;
  for (unsigned i : llvm::seq(callee.getNumArguments()))
    if (auto result = callee.getArgAttrOfType<IntegerAttr>(i, kIntoAttr))
      into[result.getInt()] = i;
  for (auto [index, term] : llvm::enumerate(signature.getResults())) {
    auto role = dyn_cast<RoleAttr>(term);
    if (!role)
      continue;
    Value result = call.getResult(index);
    if (result.use_empty())
      return call.emitOpError("C38: drops result ")
             << index << " of " << call.getCalleeAttr() << ", a new "
             << print(term);
    for (Operation *user : result.getUsers()) {
      auto write = dyn_cast<WriteOp>(user);
      if (!write)
        continue;
      Described target =
          describe(subject.symbols.lookup<VariableOp>(write.getVariable()));
      auto place = into.find(index);
      VariableOp inPlace =
          place == into.end() ? VariableOp() : values[place->second].variable;
      if (target.role == role.getValue() &&
          (!target.whose || !owner || target.whose == owner) &&
          (!inPlace || inPlace == target.variable))
        continue;
      InFlightDiagnostic diagnostic = write.emitOpError("C38: writes result ");
      diagnostic << index << " of " << call.getCalleeAttr() << ", a new "
                 << print(term);
      if (inPlace)
        diagnostic << " of @" << inPlace.getSymName();
      else if (owner)
        diagnostic << " of " << owner;
      return diagnostic << ", to " << write.getVariableAttr();
    }
  }
  return success();
}

/// Results of a function of one task go exactly where it says.
LogicalResult CallRules::verifyTargets(func::CallOp call,
                                       SignatureAttr signature) {
  bool isOne = countCalls(signature) == 1;
  for (auto [index, term] : llvm::enumerate(signature.getResults())) {
    if (isa<StringAttr>(term))
      continue;
    SmallVector<FlatSymbolRefAttr> targets =
        terms.getTargets(call.getResult(index));
    ArrayRef<Attribute> stated =
        isa<UnitAttr>(term) ? ArrayRef<Attribute>() : getAlternatives(term);
    for (FlatSymbolRefAttr target : targets)
      if (!llvm::is_contained(stated, Attribute(target)))
        return call.emitOpError("C38: has result ")
               << index << " of " << call.getCalleeAttr() << " go to " << target
               << ", which stands for "
               << (stated.empty() ? "a message" : print(term));
    for (Attribute one : stated)
      if (isOne && !llvm::is_contained(targets, one))
        return call.emitOpError("C38: has result ")
               << index << " of " << call.getCalleeAttr() << " not go to "
               << one << ", which it stands for";
  }
  return success();
}

/// Returns true of optimizer state, as it is read or as an update makes it.
bool CallRules::isState(Value value) {
  if (value.getDefiningOp<ReadOp>())
    return true;
  auto call = value.getDefiningOp<func::CallOp>();
  auto callee = call ? subject.symbols.lookup<func::FuncOp>(call.getCallee())
                     : func::FuncOp();
  SignatureAttr signature = callee ? getSignature(callee) : SignatureAttr();
  return signature &&
         llvm::is_contained(
             signature.getResults().getValue(),
             Attribute(RoleAttr::get(value.getContext(), Role::Parameter)));
}

/// Returns true of the state that the optimizer says to be its direction, as it
/// is read or as it is written.
bool CallRules::isDirection(Value value) {
  TrainingOp training = getTraining(subject.module);
  if (!training || !training.getOptimizerAttr())
    return false;
  std::unique_ptr<Optimizer> optimizer =
      Optimizer::create(OptimizerSpec::fromAttr(training.getOptimizerAttr()));
  std::optional<unsigned> direction = optimizer->getDirectionState();
  if (!direction)
    return false;
  StringRef wanted = optimizer->getStates()[*direction];
  auto hasKind = [&](FlatSymbolRefAttr name) {
    auto variable = subject.symbols.lookup<VariableOp>(name.getValue());
    auto kind = variable ? variable->getAttrOfType<StringAttr>(kKindAttr)
                         : StringAttr();
    return kind && kind.getValue() == wanted;
  };
  if (auto read = value.getDefiningOp<ReadOp>())
    return hasKind(read.getVariableAttr());
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    auto write = dyn_cast<WriteOp>(user);
    return write && write.getValue() == value &&
           hasKind(write.getVariableAttr());
  });
}

/// Adjusted weights are of one parameter, and a prediction moves by the rate of
/// its own steps.
LogicalResult CallRules::verifyAdjusted(Operation *op) {
  Attribute owner;
  auto check = [&](Described value) -> LogicalResult {
    if (!value.whose || !owner || value.whose == owner) {
      owner = value.whose ? value.whose : owner;
      return success();
    }
    return op->emitOpError("C38: mixes what belongs to ")
           << owner << " and to " << value.whose;
  };
  Described weight = describe(op->getOperand(0));
  if (weight.role && *weight.role != Role::Parameter &&
      *weight.role != Role::Master)
    return op->emitOpError("C38: adjusts ")
           << nameValue(op->getOperand(0)) << ", which is no weight";
  if (failed(check(weight)) || failed(check(describe(op->getOperand(1)))))
    return failure();
  for (Operation *user : op->getResult(0).getUsers())
    if (auto write = dyn_cast<WriteOp>(user))
      if (failed(check(describe(
              subject.symbols.lookup<VariableOp>(write.getVariable())))))
        return failure();
  auto predict = dyn_cast<PredictOp>(op);
  if (!predict)
    return success();
  // Of several states the momentum is the direction, or a function makes one of
  // them.
  auto states = llvm::count_if(
      subject.module.getOps<VariableOp>(), [&](VariableOp variable) {
        return variable.getRole() == Role::Optimizer && owner &&
               variable->getAttr(kParameterAttr) == owner;
      });
  if (states > 1 && isState(predict.getVelocity()) &&
      !isDirection(predict.getVelocity()))
    return op->emitOpError("C38: moves along ")
           << nameValue(predict.getVelocity()) << ", one of " << states
           << " states of " << owner;
  auto name = dyn_cast<StringAttr>(terms.getTerm(predict.getRate()));
  std::string expected = getRateName(predict.getSteps().convertToDouble());
  bool isNamed = predict.getRate().getDefiningOp<func::CallOp>() != nullptr;
  if (!name || !isNamed || name.getValue() == expected)
    return success();
  return op->emitOpError("C38: moves by the number ")
         << name << " instead of the " << expected;
}

/// Checks that a message about a variable is not of another one.
LogicalResult CallRules::verifyMessage(PutOp put) {
  auto channel = subject.symbols.lookup<ChannelOp>(put.getChannel());
  Attribute whose = channel ? channel->getAttr(kParameterAttr) : Attribute();
  if (!whose || channel.getOwnQueue())
    return success();
  for (Value value : put.getValues()) {
    Described known = describe(value);
    if (known.whose && known.whose != whose)
      return put.emitOpError("C38: puts ")
             << nameValue(value) << " into " << put.getChannelAttr()
             << ", a message about " << whose;
  }
  return success();
}

LogicalResult CallRules::verify(TaskOp task) {
  if (places.empty())
    for (auto group : subject.module.getOps<GroupOp>())
      for (auto member : group.getMembers().getAsRange<ArrayAttr>())
        for (auto [index, name] :
             llvm::enumerate(member.getAsRange<FlatSymbolRefAttr>()))
          places[name.getAttr()] = {member, static_cast<unsigned>(index)};
  for (Operation &op : task.getBody().front()) {
    if (isa<PredictOp, CompensateOp, BlendOp>(op)) {
      if (failed(verifyAdjusted(&op)))
        return failure();
      continue;
    }
    if (auto put = dyn_cast<PutOp>(op)) {
      if (failed(verifyMessage(put)))
        return failure();
      continue;
    }
    auto call = dyn_cast<func::CallOp>(op);
    auto callee = call ? subject.symbols.lookup<func::FuncOp>(call.getCallee())
                       : func::FuncOp();
    SignatureAttr signature = callee ? getSignature(callee) : SignatureAttr();
    if (!signature || signature.getInputs().size() != call.getNumOperands() ||
        signature.getResults().size() != call.getNumResults())
      continue;
    if (failed(standsForRoles(signature)
                   ? verifyRoles(call, callee, signature)
                   : LogicalResult(
                         success(succeeded(verifyExact(call, signature)) &&
                                 succeeded(verifyTargets(call, signature))))))
      return failure();
  }
  return success();
}

LogicalResult penstock::verifyCalls(Subject &subject) {
  if (subject.isFrom(Level::Program))
    return success();
  CallRules rules(subject);
  for (TaskOp task : subject.module.getOps<TaskOp>())
    if (!task.isBodyless() && failed(rules.verify(task)))
      return failure();
  return success();
}
