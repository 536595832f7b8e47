//===- VerifyFacts.cpp - Facts that stand in two places agree -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules C39 to C42: what is frozen, whose a variable is, where it
// starts, which method there is, and that the replay is the same program.
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include "dialects/Pipeline/Replicas.h"
#include "penstock/Methods/Method.h"
#include "penstock/Optimizers/Optimizers.h"
#include "penstock/Support/ByteSize.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

//===----------------------------------------------------------------------===//
// C39: frozen variables, and whose variables are
//===----------------------------------------------------------------------===//

static LogicalResult verifyFrozen(Subject &subject) {
  for (TaskOp task : subject.module.getOps<TaskOp>())
    for (const VariableUse &use : getUses(subject, task)) {
      VariableOp variable = use.variable;
      if (!use.writes || !variable.getFrozen())
        continue;
      InFlightDiagnostic diagnostic = use.op->emitOpError("C39: of task @");
      diagnostic << task.getSymName() << " writes @" << variable.getSymName()
                 << ", which is frozen";
      diagnostic.attachNote(variable.getLoc()) << "frozen here";
      return diagnostic;
    }
  for (auto variable : subject.module.getOps<VariableOp>()) {
    auto name = variable->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr);
    if (!name)
      continue;
    auto whose = subject.symbols.lookup<VariableOp>(name.getValue());
    if (!whose)
      return variable.emitOpError("C39: belongs to ")
             << name << ", which is no variable of this module";
    // Adjusted weights are packed like others.
    bool fits = whose.getRole() == Role::Parameter ||
                (whose.getRole() == Role::Statistic &&
                 variable.getRole() == Role::Gradient) ||
                (whose.getRole() == Role::Compensation &&
                 variable.getRole() == Role::Prepacked);
    if (!fits)
      return variable.emitOpError("C39: is ")
             << stringifyRole(variable.getRole()) << " of " << name
             << ", which is " << stringifyRole(whose.getRole());
    bool isOfTraining = variable.getRole() != Role::Prepacked &&
                        variable.getRole() != Role::Parameter;
    if (isOfTraining && whose.getFrozen()) {
      InFlightDiagnostic diagnostic = variable.emitOpError("C39: is ");
      diagnostic << stringifyRole(variable.getRole()) << " of " << name
                 << ", which is frozen";
      diagnostic.attachNote(whose.getLoc()) << "frozen here";
      return diagnostic;
    }
    if (isOfTraining && whose.getStageAttr() != variable.getStageAttr())
      return variable.emitOpError("C39: belongs to ")
             << name << ", which is of stage " << whose.getStageAttr();
  }
  return success();
}

/// Kinds tell apart what a run saves of one parameter, under which name, and
/// what it evaluates.
static LogicalResult verifyKinds(Subject &subject) {
  TrainingOp training = getTraining(subject.module);
  if (!subject.isFrom(Level::Schedule) || !training ||
      !training.getOptimizerAttr())
    return success();
  std::unique_ptr<Optimizer> optimizer =
      Optimizer::create(OptimizerSpec::fromAttr(training.getOptimizerAttr()));
  SmallVector<StringRef> kept = {kAverageKind};
  if (training.getMethodAttr())
    llvm::append_range(kept, MethodSpec::fromAttr(training.getMethodAttr())
                                 .getMethod()
                                 .getStateKinds());
  // Global weights of hetpipe have the kind of what the optimizer moves.
  llvm::DenseSet<Attribute> folded, masters;
  for (auto variable : subject.module.getOps<VariableOp>())
    if (variable.getRole() == Role::Master)
      masters.insert(variable->getAttr(kParameterAttr));
  for (TaskOp task : subject.module.getOps<TaskOp>())
    if (task.getKind() == TaskKind::Fold)
      for (const VariableUse &use : getUses(subject, task))
        if (use.writes)
          folded.insert(VariableOp(use.variable).getSymNameAttr());
  llvm::DenseMap<std::tuple<Attribute, Attribute, unsigned>, VariableOp> known;
  for (auto variable : subject.module.getOps<VariableOp>()) {
    auto whose = variable->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr);
    auto parameter = whose
                         ? subject.symbols.lookup<VariableOp>(whose.getValue())
                         : VariableOp();
    if (!parameter)
      continue;
    SmallVector<StringRef> words;
    if (variable.getRole() == Role::Optimizer)
      for (const OptimizerState &state :
           optimizer->listStates(parameter.getTensorType()))
        words.push_back(state.name);
    else if (variable.getRole() == Role::Master)
      words = {"master"};
    else if (variable.getRole() == Role::Compensation)
      words = kept;
    else
      continue;
    auto kind = variable->getAttrOfType<StringAttr>(kKindAttr);
    bool isGlobal =
        variable.getRole() == Role::Compensation &&
        folded.contains(variable.getSymNameAttr()) &&
        (masters.contains(whose) ? kind && kind.getValue() == "master" : !kind);
    bool isKnown = kind && llvm::is_contained(words, kind.getValue());
    if (!isGlobal && !isKnown) {
      InFlightDiagnostic diagnostic = variable.emitOpError("C39: ");
      if (kind)
        diagnostic << "has the kind " << kind;
      else
        diagnostic << "has no kind";
      diagnostic << ", " << stringifyRole(variable.getRole()) << " of " << whose
                 << " has one of ";
      llvm::interleaveComma(words, diagnostic);
      return diagnostic;
    }
    auto [other, isNew] = known.try_emplace(
        {whose, kind, static_cast<unsigned>(variable.getRole())}, variable);
    if (isNew)
      continue;
    InFlightDiagnostic diagnostic = variable.emitOpError("C39: is of ");
    diagnostic << whose << ", of which there is another of the same kind";
    diagnostic.attachNote(other->second.getLoc()) << "the other";
    return diagnostic;
  }
  return success();
}

/// A variable that nobody uses is in no arena. Before `program`, tasks use it;
/// at it, functions of devices.
static LogicalResult verifyUsed(Subject &subject) {
  if (!subject.isFrom(Level::Schedule))
    return success();
  llvm::DenseSet<Attribute> used;
  bool isComplete = !subject.isFrom(Level::Program);
  for (TaskOp task : subject.module.getOps<TaskOp>())
    for (const VariableUse &use : getUses(subject, task))
      used.insert(VariableOp(use.variable).getSymNameAttr());
  if (!isComplete)
    used.clear();
  for (auto function : subject.module.getOps<func::FuncOp>()) {
    if (!function->hasAttr(kDeviceAttr))
      continue;
    isComplete = true;
    function.walk(
        [&](SlotOp slot) { used.insert(slot.getSymbolAttr().getAttr()); });
  }
  for (auto variable : subject.module.getOps<VariableOp>())
    if (isComplete && !used.contains(variable.getSymNameAttr()))
      return variable.emitOpError(
          subject.isFrom(Level::Program)
              ? "C39: has no slot in the function of any device"
              : "C39: is used by no task");
  return success();
}

/// Returns the parameter or statistic that a variable is, or belongs to by way
/// of adjusted weights that are packed.
static Attribute getOwner(Subject &subject, VariableOp variable) {
  Role role = variable.getRole();
  if (role == Role::Parameter || role == Role::Statistic)
    return FlatSymbolRefAttr::get(variable);
  auto name = variable->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr);
  auto whose =
      name ? subject.symbols.lookup<VariableOp>(name.getValue()) : VariableOp();
  if (whose && whose.getRole() == Role::Compensation)
    return whose->getAttr(kParameterAttr);
  return name;
}

/// At level program, C12 by what tasks state: who writes what. And C38: what
/// one call of an update has is of one parameter.
static LogicalResult verifyStated(Subject &subject, TaskOp task) {
  auto reject = [&](CallAttr call, OperandAttr operand) {
    return task.emitOpError("C12: states that ")
           << call.getCallee() << " writes " << operand.getSymbol();
  };
  for (auto call : task.getCallsAttr().getAsRange<CallAttr>()) {
    Attribute owner;
    for (Attribute term : call.getOperands()) {
      auto operand = dyn_cast<OperandAttr>(term);
      if (!operand)
        continue;
      auto variable =
          subject.symbols.lookup<VariableOp>(operand.getSymbol().getValue());
      if (!variable) {
        if (!subject.resolve<ChannelOp>(task, operand.getSymbol()))
          return failure();
        continue;
      }
      Role role = variable.getRole();
      TaskKind kind = task.getKind();
      bool makesWeights = kind == TaskKind::Update || kind == TaskKind::Push ||
                          kind == TaskKind::Fold;
      if (operand.getAccess() != AccessKind::Read && kind != TaskKind::Update) {
        bool allowed = role == Role::Gradient ? kind == TaskKind::Backward ||
                                                    kind == TaskKind::WeightGrad
                       : role == Role::Statistic    ? kind == TaskKind::Forward
                       : role == Role::Scalar       ? kind == TaskKind::Norm
                       : role == Role::Compensation ? makesWeights
                       : role == Role::Parameter || role == Role::Prepacked ||
                               role == Role::Master
                           ? kind == TaskKind::Fold
                           : false;
        if (!allowed)
          return reject(call, operand)
                 << " of role " << stringifyRole(role) << " in a "
                 << stringifyTaskKind(kind) << " task";
      }
      if (!makesWeights)
        continue;
      Attribute whose = getOwner(subject, variable);
      if (owner && whose && whose != owner)
        return task.emitOpError("C38: states that ")
               << call.getCallee() << " uses " << operand.getSymbol()
               << ", which belongs to " << whose << ", with what belongs to "
               << owner;
      owner = whose ? whose : owner;
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// C40: the method and the lags
//===----------------------------------------------------------------------===//

/// Compensation is for the delay of the stage in updates, and for none while
/// the method runs every update alone.
static LogicalResult verifyCompensation(Subject &subject) {
  TrainingOp training = getTraining(subject.module);
  if (!training || !training.getMethodAttr())
    return success();
  MethodSpec method = MethodSpec::fromAttr(training.getMethodAttr());
  int64_t alone = method.getMethod().getFlushedUpdates(method);
  WalkResult result = subject.module.walk([&](CompensateOp op) {
    auto attribute = op->getAttrOfType<IntegerAttr>(kCompensatesFromAttr);
    int64_t from = attribute ? attribute.getInt() : 0;
    if (from != alone) {
      op.emitOpError("C40: compensates from version ")
          << from << " on, the method of pipeline.training from " << alone;
      return WalkResult::interrupt();
    }
    auto stage = subject.symbols.lookup<StageOp>(
        op->getParentOfType<TaskOp>().getStage());
    auto lags = stage ? stage->getAttrOfType<DenseI64ArrayAttr>(kLagsAttr)
                      : DenseI64ArrayAttr();
    if (!lags || lags.size() < 2)
      return WalkResult::advance();
    double delay = static_cast<double>(lags[0] - lags[1]) /
                   static_cast<double>(training.getMicrobatches());
    double tau = op.getTau().convertToDouble();
    if (tau == delay)
      return WalkResult::advance();
    op.emitOpError("C40: makes up for a delay of ")
        << tau << " updates, that of its stage is " << delay;
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

static LogicalResult verifyMethod(Subject &subject) {
  TrainingOp training = getTraining(subject.module);
  if (!subject.isFrom(Level::Schedule) || !training || training.getInfers() ||
      subject.module->getParentOp())
    return success();
  if (llvm::none_of(subject.module.getOps<ScheduleOp>(), [](ScheduleOp op) {
        return op.getRole() == ScheduleRole::Train;
      }))
    return training.emitOpError(
        "C40: trains, but there is no schedule to train");
  StageOp with, without;
  for (auto stage : subject.module.getOps<StageOp>())
    (stage->hasAttr(kLagsAttr) ? with : without) = stage;
  if (with && without)
    return without.emitOpError("C40: has no lags, stage @")
           << with.getSymName() << " has";
  for (Operation &op : subject.module.getBody()->getOperations())
    if (auto storage = dyn_cast<VersionStorageOpInterface>(op);
        storage && !with && !training.getMethodAttr())
      return op.emitOpError(
          "C40: keeps versions, but neither pipeline.training "
          "says the method nor stages their lags");
  // What was compiled in is what the optimizer says.
  auto rate =
      training.getOptimizerAttr()
          ? training.getOptimizerAttr().getParameters().getAs<FloatAttr>("lr")
          : FloatAttr();
  if (!rate)
    return success();
  WalkResult result = subject.module.walk([&](HyperparameterOp op) {
    if (op.getName() != "lr" || !op.getDefaultValue() ||
        op.getDefaultValue()->convertToDouble() == rate.getValueAsDouble())
      return WalkResult::advance();
    op.emitOpError("C40: has another default than the learning rate of "
                   "pipeline.training");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// C41: where variables start
//===----------------------------------------------------------------------===//

static LogicalResult verifyBytes(VariableOp variable, BytesAttr bytes,
                                 BytesAttr model, StringRef what) {
  int64_t size = getByteSize(variable.getTensorType());
  // What is rounded may lie there as it was.
  bool isRounded = variable.getTensorType().getElementType().isBF16() &&
                   bytes.getLength() == 2 * size;
  if (bytes.getLength() != size && !isRounded)
    return variable.emitOpError("C41: ")
           << what << " has " << bytes.getLength() << " bytes, "
           << variable.getTensorType() << " takes " << size;
  if (!model || bytes.getFile() != model.getFile() ||
      (bytes.getOffset() <= model.getLength() &&
       bytes.getLength() <= model.getLength() - bytes.getOffset()))
    return success();
  return variable.emitOpError("C41: ")
         << what << " has bytes " << bytes.getOffset() << " to "
         << bytes.getOffset() + bytes.getLength() << " of '" << bytes.getFile()
         << "', which has " << model.getLength();
}

/// Checks that what stands for a weight starts as that, a difference at zero.
static LogicalResult verifyStart(Subject &subject, VariableOp variable) {
  auto name = variable->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr);
  auto parameter =
      name ? subject.symbols.lookup<VariableOp>(name.getValue()) : VariableOp();
  if (!parameter)
    return success();
  auto kind = variable->getAttrOfType<StringAttr>(kKindAttr);
  bool isDifference =
      kind && (kind.getValue() == "delta" || kind.getValue() == "wave");
  BytesAttr due = isDifference ? BytesAttr() : parameter.getInitAttr();
  if (variable.getInitAttr() == due)
    return success();
  InFlightDiagnostic diagnostic = variable.emitOpError("C41: ");
  if (isDifference)
    return diagnostic << "of kind " << kind
                      << " starts at zero, not as an init says";
  diagnostic << "stands for " << name << ", but does not start as that";
  diagnostic.attachNote(parameter.getLoc()) << "the parameter";
  return diagnostic;
}

static LogicalResult verifyInit(Subject &subject) {
  ModuleOp root = subject.module;
  while (auto parent = root->getParentOfType<ModuleOp>())
    root = parent;
  auto model = root->getAttrOfType<BytesAttr>(kModelAttr);
  for (auto variable : subject.module.getOps<VariableOp>()) {
    Role role = variable.getRole();
    if (variable.getInitAttr() &&
        (role == Role::Gradient || role == Role::Optimizer ||
         role == Role::Scalar))
      return variable.emitOpError("C41: of role ")
             << stringifyRole(role) << " starts at zero, not as an init says";
    if (model && !variable.getInitAttr() &&
        (role == Role::Parameter || role == Role::Statistic))
      return variable.emitOpError("C41: of role ")
             << stringifyRole(role) << " has no init, where it starts";
    if (model && (role == Role::Compensation || role == Role::Master) &&
        failed(verifyStart(subject, variable)))
      return failure();
    if (BytesAttr init = variable.getInitAttr())
      if (failed(verifyBytes(variable, init, model, "init")))
        return failure();
    if (auto tied = variable->getAttrOfType<DictionaryAttr>(kTiedAttr))
      for (NamedAttribute other : tied)
        if (failed(verifyBytes(variable, getBytes(other.getValue()), model,
                               other.getName())))
          return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// C42: the replay
//===----------------------------------------------------------------------===//

/// The ops of two bodies, which differ in lags alone.
static Operation *findDifference(TaskOp own, TaskOp other) {
  llvm::DenseMap<Value, Value> known;
  known[own.getCounter()] = other.getCounter();
  Block &a = own.getBody().front(), &b = other.getBody().front();
  auto first = a.begin(), second = b.begin();
  for (; first != a.end() && second != b.end(); ++first, ++second) {
    if (first->getName() != second->getName() ||
        first->getNumOperands() != second->getNumOperands() ||
        first->getResultTypes() != second->getResultTypes())
      return &*first;
    NamedAttrList mine(first->getAttrDictionary());
    NamedAttrList theirs(second->getAttrDictionary());
    if (isa<ReadOp>(*first)) {
      mine.erase("lag");
      theirs.erase("lag");
    }
    if (mine.getDictionary(own.getContext()) !=
        theirs.getDictionary(own.getContext()))
      return &*first;
    for (auto [x, y] : llvm::zip(first->getOperands(), second->getOperands()))
      if (known.lookup(x) != y)
        return &*first;
    for (auto [x, y] : llvm::zip(first->getResults(), second->getResults()))
      known[x] = y;
  }
  if (first != a.end())
    return &*first;
  return second != b.end() ? own.getOperation() : nullptr;
}

static LogicalResult reportReplay(Operation *own, Operation *other,
                                  StringRef what) {
  InFlightDiagnostic diagnostic = own->emitOpError("C42: of the replay ");
  diagnostic << what;
  diagnostic.attachNote(other->getLoc()) << "in the program";
  return diagnostic;
}

static LogicalResult verifyReplay(Subject &subject) {
  auto program = subject.module->getParentOfType<ModuleOp>();
  // Before there is a schedule, nested modules are lines of other workers.
  if (!program || program.getOps<ScheduleOp>().empty())
    return success();
  SymbolTable symbols(program);
  for (auto own : subject.module.getOps<VariableOp>()) {
    // Which orders the target packs in is up to the program.
    if (own.getRole() == Role::Prepacked)
      continue;
    auto other = symbols.lookup<VariableOp>(own.getSymName());
    if (!other)
      return own.emitOpError("C42: of the replay is none of the program");
    if (own.getType() != other.getType() || own.getRole() != other.getRole() ||
        own.getInitAttr() != other.getInitAttr() ||
        own.getFrozen() != other.getFrozen() ||
        own.getStageAttr() != other.getStageAttr() ||
        own->getAttr(kParameterAttr) != other->getAttr(kParameterAttr) ||
        own->getAttr(kTiedAttr) != other->getAttr(kTiedAttr))
      return reportReplay(own, other, "differs from that of the program");
  }
  for (auto own : subject.module.getOps<ChannelOp>()) {
    if (!own.getSource())
      continue;
    auto other = symbols.lookup<ChannelOp>(own.getSymName());
    if (!other)
      return own.emitOpError("C42: of the replay is none of the program");
    if (own.getTypes() != other.getTypes() ||
        own.getSourceAttr() != other.getSourceAttr() ||
        own->getAttr(kRangeAttr) != other->getAttr(kRangeAttr))
      return reportReplay(own, other, "differs from that of the program");
  }
  for (auto own : subject.module.getOps<TaskOp>()) {
    auto other = symbols.lookup<TaskOp>(own.getSymName());
    if (!other)
      return own.emitOpError("C42: of the replay is none of the program");
    if (own.getKind() != other.getKind() ||
        own.getStage() != other.getStage() ||
        own.isBodyless() != other.isBodyless())
      return reportReplay(own, other, "differs from that of the program");
    if (!own.isBodyless())
      if (Operation *op = findDifference(own, other))
        return reportReplay(op, other, "differs from the task of the program");
    if (!own.getCallsAttr() || !other.getCallsAttr())
      continue;
    auto calls = own.getCallsAttr().getAsRange<CallAttr>();
    auto others = other.getCallsAttr().getAsRange<CallAttr>();
    if (!llvm::equal(calls, others, [](CallAttr a, CallAttr b) {
          return a.getCallee() == b.getCallee();
        }))
      return reportReplay(own, other, "makes other calls than the program");
  }
  for (auto other : program.getOps<TaskOp>())
    if (other.getKind() != TaskKind::Evaluate &&
        !subject.symbols.lookup<TaskOp>(other.getSymName()))
      return other.emitOpError("C42: is missing in the replay");
  for (auto own : subject.module.getOps<ScheduleOp>())
    for (auto other : program.getOps<ScheduleOp>())
      if (own.getRole() == other.getRole() &&
          own.getMicrobatches() != other.getMicrobatches())
        return reportReplay(own, other, "has another number of microbatches");
  return success();
}

LogicalResult penstock::verifyFacts(Subject &subject) {
  if (failed(verifyFrozen(subject)) || failed(verifyInit(subject)) ||
      failed(verifyMethod(subject)) || failed(verifyCompensation(subject)))
    return failure();
  if (subject.isFrom(Level::Program))
    for (TaskOp task : subject.module.getOps<TaskOp>())
      if (task.getCallsAttr() && failed(verifyStated(subject, task)))
        return failure();
  return success(succeeded(verifyReplay(subject)) &&
                 succeeded(verifyKinds(subject)) &&
                 succeeded(verifyUsed(subject)));
}
