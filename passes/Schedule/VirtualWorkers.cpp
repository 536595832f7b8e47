//===- VirtualWorkers.cpp - A line of stages for every worker -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// HetPipe's workers differ in where they are and where they are cut, not in
// what they compute: clones call the functions of the first, and so does a line
// that is cut elsewhere, where it has the same ones. Between workers go waves,
// what N updates have changed: with the global weights G that each worker
// keeps,
//
//   push   d = w - (w as the wave before left it)
//   fold   G = G + d of each worker, in their order
//          w = G + own d of later waves, the oldest first
//
// Without later waves, w is G after a fold, and what a wave begins with. A
// moving average of the weights (--ema) is one of G, and moves with each fold.
// Weights in bf16 have masters in f32, which are w, and are rounded from them
// anew.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Passes.h"

#include "dialects/Pipeline/Pipeline.h"
#include "dialects/Pipeline/Signatures.h"
#include "penstock/Methods/Method.h"
#include "penstock/Optimizers/UpdateFunction.h"
#include "penstock/Support/Structured.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace penstock {
#define GEN_PASS_DEF_PIPELINEVIRTUALWORKERS
#include "passes/Schedule/Passes.h.inc"
} // namespace penstock

namespace {

/// A parameter that is updated, of one worker.
struct Weight {
  VariableOp parameter, master, global, wave;
  /// The average of the global weights, the same on all workers.
  VariableOp average;

  /// Returns what an update moves: the master of a parameter that is rounded.
  VariableOp getTrained() const { return master ? master : parameter; }
};

/// A stage of a worker that updates, and what it exchanges, as the first worker
/// calls it.
struct Exchange {
  StageOp stage;
  SmallVector<StringAttr> parameters;
};

/// The ops of a line of stages.
struct Line {
  SmallVector<StageOp> stages;
  SmallVector<VariableOp> variables;
  SmallVector<ChannelOp> channels;
  SmallVector<TaskOp> tasks;
  /// Callees before their callers.
  llvm::SetVector<func::FuncOp> functions;
};

class VirtualWorkersPass
    : public penstock::impl::PipelineVirtualWorkersBase<VirtualWorkersPass> {
  using PipelineVirtualWorkersBase::PipelineVirtualWorkersBase;
  void runOnOperation() override;

  LogicalResult check();
  LogicalResult collectLines();
  void collectSeconds();
  Line collectLine(ModuleOp from);
  void cloneLine(int64_t worker);
  void addFunctions(const Line &line, int64_t worker);
  void shareMicrobatches(TaskOp task, int64_t worker);
  void countWaves(TaskOp update);
  LogicalResult collectExchanges();
  LogicalResult addWeight(Weight &weight);
  void addChannels();
  void addPush(const Exchange &exchange, int64_t worker);
  void addFold(const Exchange &exchange, int64_t worker);
  func::FuncOp getFunction(StringRef name, FunctionType type);
  func::FuncOp getPushFunction(const Weight &weight);
  func::FuncOp getFoldFunction(const Weight &weight, Attribute later);
  func::FuncOp getAverageFunction(const Weight &weight);
  template <typename Op> Op insert(Op op);
  VariableOp addVariable(const Weight &weight, StringRef name, bool isWeight);
  std::string nameOf(StringRef name, int64_t worker) const {
    return worker == 0 ? name.str() : ("vw" + Twine(worker) + "." + name).str();
  }
  /// The channel that brings the waves of a parameter from one to another.
  std::string getChannelName(StringRef parameter, int64_t from,
                             int64_t to) const {
    return (parameter + ".wave." + Twine(from) + "." + Twine(to)).str();
  }

  Waves waves;
  double averageDecay = 0; ///< 0: no averages.
  SymbolTable *symbols = nullptr;
  /// The modules of workers behind the first that have cuts of their own.
  SmallVector<ModuleOp> lines;
  /// A list per worker, with an entry per stage.
  SmallVector<SmallVector<Exchange>> exchanges;
  /// Keyed by the first worker's parameter, with an entry per worker.
  llvm::MapVector<StringAttr, SmallVector<Weight>> weights;
  /// Names of the ops of each worker, by the name in their line.
  SmallVector<llvm::DenseMap<StringAttr, StringAttr>> clones;
};

} // namespace

void VirtualWorkersPass::runOnOperation() {
  ModuleOp module = getOperation();
  TrainingOp training = getTraining(module);
  MethodSpec method =
      MethodSpec::fromAttr(training ? training.getMethodAttr() : MethodAttr());
  auto found = method.getMethod().getWaves(method);
  if (!found || training.getInfers())
    return;
  waves = *found;
  averageDecay =
      OptimizerSpec::fromAttr(training.getOptimizerAttr()).getAverageDecay();
  SymbolTable table(module);
  symbols = &table;
  exchanges.clear();
  weights.clear();
  clones.clear();
  if (failed(collectLines()))
    return signalPassFailure();

  // 1. A wave is as long as the longest line, unless said.
  if (waves.wave == 0) {
    auto count = [](ModuleOp line) {
      auto stages = line.getOps<StageOp>();
      return static_cast<int64_t>(std::distance(stages.begin(), stages.end()));
    };
    waves.wave = count(module);
    for (ModuleOp line : lines)
      waves.wave = std::max(waves.wave, count(line));
    method.set(*method.getKind().findKey("wave"),
               static_cast<double>(waves.wave));
    training.setMethodAttr(method.toAttr(&getContext()));
  }
  if (waves.workers > 1 && failed(check()))
    return signalPassFailure();

  // 2. The lines, and what each does of the microbatches.
  collectSeconds();
  clones.resize(waves.workers);
  for (int64_t worker : llvm::seq<int64_t>(1, waves.workers))
    cloneLine(worker);
  for (auto task : module.getOps<TaskOp>()) {
    auto stage = symbols->lookup<StageOp>(task.getStage());
    if (task.getKind() == TaskKind::Update)
      countWaves(task);
    if (waves.workers > 1 && task.countsMicrobatches() &&
        task.getKind() != TaskKind::Evaluate)
      shareMicrobatches(task, static_cast<int64_t>(stage.getWorker()));
  }
  if (waves.workers == 1)
    return;

  // 3. What they exchange.
  if (failed(collectExchanges()))
    return signalPassFailure();
  addChannels();
  for (auto [worker, own] : llvm::enumerate(exchanges))
    for (const Exchange &exchange : own) {
      addPush(exchange, static_cast<int64_t>(worker));
      addFold(exchange, static_cast<int64_t>(worker));
    }

  // 4. Workers call the functions of the first.
  signFunctions(module);
}

/// Lines that are cut for themselves stand in modules of their own.
LogicalResult VirtualWorkersPass::collectLines() {
  lines = llvm::to_vector(getOperation().getOps<ModuleOp>());
  auto others = static_cast<size_t>(waves.workers - 1);
  if (lines.empty() || lines.size() == others)
    return success();
  return getOperation().emitError("has lines of stages for ")
         << lines.size() + 1 << " workers, and the method has "
         << waves.workers;
}

/// Joins the measured times of the stages of all lines.
void VirtualWorkersPass::collectSeconds() {
  ModuleOp module = getOperation();
  auto own = module->getAttrOfType<DenseF64ArrayAttr>(kStageSecondsAttr);
  if (!own)
    return;
  SmallVector<double> all(own.asArrayRef());
  for (int64_t worker : llvm::seq<int64_t>(1, waves.workers)) {
    auto line = lines.empty()
                    ? own
                    : lines[worker - 1]->getAttrOfType<DenseF64ArrayAttr>(
                          kStageSecondsAttr);
    if (line)
      llvm::append_range(all, line.asArrayRef());
  }
  module->setAttr(kStageSecondsAttr,
                  DenseF64ArrayAttr::get(&getContext(), all));
}

/// Checks that workers agree where they have to.
LogicalResult VirtualWorkersPass::check() {
  ModuleOp module = getOperation();
  for (auto group : module.getOps<GroupOp>())
    return group.emitError("hetpipe does not sum over stages");
  for (ModuleOp line : lines)
    for (auto group : line.getOps<GroupOp>())
      return group.emitError("hetpipe does not sum over stages");
  return success();
}

/// Behind the last op of its kind.
template <typename Op> Op VirtualWorkersPass::insert(Op op) {
  Operation *last = nullptr;
  for (Op other : getOperation().getOps<Op>())
    last = other;
  symbols->insert(op, last ? std::next(last->getIterator())
                           : getOperation().getBody()->end());
  return op;
}

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

/// That of the first worker of a module.
Line VirtualWorkersPass::collectLine(ModuleOp from) {
  Line line;
  SymbolTable own(from);
  auto isFirst = [&](FlatSymbolRefAttr stage) {
    return own.lookup<StageOp>(stage.getValue()).getWorker() == 0;
  };
  for (auto stage : from.getOps<StageOp>())
    if (stage.getWorker() == 0)
      line.stages.push_back(stage);
  for (auto variable : from.getOps<VariableOp>())
    if (isFirst(variable.getStageAttr()))
      line.variables.push_back(variable);

  // What its tasks use.
  llvm::SetVector<StringRef> used;
  auto addFunction = [&](auto &add, func::FuncOp function) -> void {
    if (!function || line.functions.contains(function))
      return;
    function.walk([&](func::CallOp call) {
      add(add, own.lookup<func::FuncOp>(call.getCallee()));
    });
    line.functions.insert(function);
  };
  for (auto task : from.getOps<TaskOp>()) {
    if (task.getKind() == TaskKind::Evaluate || !isFirst(task.getStageAttr()))
      continue;
    line.tasks.push_back(task);
    for (Operation &op : task.getBody().front())
      if (auto take = dyn_cast<TakeOp>(op))
        used.insert(take.getChannel());
      else if (auto put = dyn_cast<PutOp>(op))
        used.insert(put.getChannel());
      else if (auto call = dyn_cast<func::CallOp>(op))
        addFunction(addFunction, own.lookup<func::FuncOp>(call.getCallee()));
  }
  for (auto channel : from.getOps<ChannelOp>())
    if (used.contains(channel.getSymName()))
      line.channels.push_back(channel);
  return line;
}

/// Replaces names that these have otherwise here.
static void replaceNames(Operation *op,
                         const llvm::DenseMap<StringAttr, StringAttr> &names) {
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [&](FlatSymbolRefAttr name) -> std::optional<Attribute> {
        auto own = names.find(name.getAttr());
        if (own == names.end())
          return std::nullopt;
        return FlatSymbolRefAttr::get(own->second);
      });
  replacer.recursivelyReplaceElementsIn(op);
}

/// Functions that are there need no copies.
void VirtualWorkersPass::addFunctions(const Line &line, int64_t worker) {
  auto &names = clones[worker];
  for (func::FuncOp function : line.functions) {
    auto copy = cast<func::FuncOp>(function->clone());
    replaceNames(copy, names);
    auto known = symbols->lookup<func::FuncOp>(function.getSymName());
    if (known && OperationEquivalence::isEquivalentTo(
                     known, copy, OperationEquivalence::IgnoreLocations)) {
      copy->destroy();
      continue;
    }
    copy.setSymName(("vw" + Twine(worker) + "." + function.getSymName()).str());
    insert(copy);
    names[function.getSymNameAttr()] = copy.getSymNameAttr();
  }
}

void VirtualWorkersPass::cloneLine(int64_t worker) {
  ModuleOp module = getOperation();
  bool isOwn = !lines.empty();
  Line line = collectLine(isOwn ? lines[worker - 1] : module);
  if (isOwn)
    addFunctions(line, worker);

  // 1. Names, then the clones themselves.
  auto &names = clones[worker];
  auto rename = [&](auto ops) {
    for (auto op : ops)
      names[op.getSymNameAttr()] =
          StringAttr::get(&getContext(), nameOf(op.getSymName(), worker));
  };
  rename(line.stages);
  rename(line.variables);
  rename(line.channels);
  rename(line.tasks);
  auto clone = [&]<typename Op>(Op op) {
    auto copy = cast<Op>(op->clone());
    replaceNames(copy, names);
    copy.setSymNameAttr(names.lookup(op.getSymNameAttr()));
    insert(copy);
    // The name may be taken, by an initializer of the model.
    names[op.getSymNameAttr()] = copy.getSymNameAttr();
    return copy;
  };
  for (StageOp stage : line.stages)
    clone(stage).setWorker(worker);
  for (VariableOp variable : line.variables)
    // The first worker's are saved, whatever other names they have.
    clone(variable)->removeAttr(kTiedAttr);
  Builder builder(&getContext());
  auto share = [&](ChannelOp channel, int64_t own) {
    if (channel.getSource() || channel.getSink())
      channel->setAttr(kTurnAttr,
                       builder.getDenseI64ArrayAttr({own, waves.workers}));
  };
  for (ChannelOp channel : line.channels)
    share(clone(channel), worker);
  for (TaskOp task : line.tasks)
    clone(task);

  // 2. What the first one has to itself no longer.
  if (worker == 1)
    for (ChannelOp channel : collectLine(module).channels)
      share(channel, 0);
  if (isOwn)
    lines[worker - 1].erase();
}

/// A task's own microbatch k is microbatch k * V + v of all.
void VirtualWorkersPass::shareMicrobatches(TaskOp task, int64_t worker) {
  Value counter = task.getCounter();
  if (counter.use_empty())
    return;
  OpBuilder builder = OpBuilder::atBlockBegin(&task.getBody().front());
  Location loc = task.getLoc();
  Value workers = arith::ConstantIndexOp::create(builder, loc, waves.workers);
  Value own = arith::ConstantIndexOp::create(builder, loc, worker);
  Value turn = arith::MulIOp::create(builder, loc, counter, workers);
  Value number = arith::AddIOp::create(builder, loc, turn, own);
  counter.replaceAllUsesExcept(number, turn.getDefiningOp());
}

/// Learning rates go by waves; what an optimizer counts is its own updates.
void VirtualWorkersPass::countWaves(TaskOp update) {
  if (waves.wave == 1)
    return;
  Value counter = update.getCounter();
  for (OpOperand &use : llvm::make_early_inc_range(counter.getUses())) {
    auto call = dyn_cast<func::CallOp>(use.getOwner());
    auto callee =
        call ? symbols->lookup<func::FuncOp>(call.getCallee()) : func::FuncOp();
    if (!callee || !callee->hasAttr(kRateAttr))
      continue;
    OpBuilder builder(call);
    Location loc = call.getLoc();
    use.set(arith::DivUIOp::create(
        builder, loc, counter,
        arith::ConstantIndexOp::create(builder, loc, waves.wave)));
    SignatureAttr signature = getSignature(callee);
    if (!signature)
      continue;
    SmallVector<Attribute> inputs(signature.getInputs().getValue());
    inputs[use.getOperandNumber()] =
        ValueTerms(getOperation()).getTerm(use.get());
    setSignature(callee, inputs, signature.getResults().getValue());
  }
}

//===----------------------------------------------------------------------===//
// Exchange
//===----------------------------------------------------------------------===//

VariableOp VirtualWorkersPass::addVariable(const Weight &weight, StringRef name,
                                           bool isWeight) {
  OpBuilder builder(&getContext());
  VariableOp parameter = weight.parameter, trained = weight.getTrained();
  auto variable = VariableOp::create(
      builder, parameter.getLoc(), (parameter.getSymName() + "." + name).str(),
      trained.getTensorType(), Role::Compensation, parameter.getStageAttr(),
      isWeight ? parameter.getInitAttr() : BytesAttr());
  variable->setAttr(kParameterAttr, FlatSymbolRefAttr::get(parameter));
  // What is equal to the weight between segments has its name in checkpoints.
  if (!isWeight)
    variable->setAttr(kKindAttr, builder.getStringAttr(name));
  else if (Attribute kind = trained->getAttr(kKindAttr))
    variable->setAttr(kKindAttr, kind);
  symbols->insert(variable, std::next(trained->getIterator()));
  return variable;
}

LogicalResult VirtualWorkersPass::addWeight(Weight &weight) {
  VariableOp trained = weight.getTrained();
  if (!trained.getTensorType().getElementType().isF32())
    return trained.emitError("hetpipe trains f32 parameters, this is ")
           << trained.getType();
  weight.wave = addVariable(weight, "wave", /*isWeight=*/false);
  weight.global = addVariable(weight, "global", /*isWeight=*/true);
  if (averageDecay > 0) {
    weight.average = addVariable(weight, kAverageKind, /*isWeight=*/true);
    weight.average->setAttr(kKindAttr,
                            StringAttr::get(&getContext(), kAverageKind));
    if (Attribute tied = weight.parameter->getAttr(kTiedAttr))
      weight.average->setAttr(kTiedAttr, tied);
  }
  if (waves.distance == 0)
    return success();
  OpBuilder builder(&getContext());
  builder.setInsertionPointAfter(weight.wave);
  WeightStashOp::create(builder, trained.getLoc(),
                        FlatSymbolRefAttr::get(weight.wave),
                        builder.getI64IntegerAttr(waves.distance + 1));
  return success();
}

LogicalResult VirtualWorkersPass::collectExchanges() {
  ModuleOp module = getOperation();
  // 1. What the stages of each worker train, as its line calls it.
  SmallVector<llvm::DenseMap<StringAttr, StringAttr>> original(waves.workers);
  for (auto [names, back] : llvm::zip_equal(clones, original))
    for (auto [name, own] : names)
      back[own] = name;
  exchanges.resize(waves.workers);
  for (auto task : module.getOps<TaskOp>()) {
    if (task.getKind() != TaskKind::Update)
      continue;
    auto stage = symbols->lookup<StageOp>(task.getStage());
    auto worker = static_cast<int64_t>(stage.getWorker());
    Exchange exchange{stage, {}};
    for (auto write : task.getBody().getOps<WriteOp>()) {
      auto variable = symbols->lookup<VariableOp>(write.getVariable());
      bool isMaster = variable && variable.getRole() == Role::Master;
      if (!variable || (!isMaster && variable.getRole() != Role::Parameter))
        continue;
      StringAttr name =
          isMaster ? variable->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr)
                         .getAttr()
                   : variable.getSymNameAttr();
      if (worker > 0)
        name = original[worker].lookup(name);
      SmallVector<Weight> &all = weights[name];
      all.resize(waves.workers);
      (isMaster ? all[worker].master : all[worker].parameter) = variable;
      if (!isMaster)
        exchange.parameters.push_back(name);
    }
    if (!exchange.parameters.empty())
      exchanges[worker].push_back(std::move(exchange));
  }

  // 2. All train the same.
  for (auto &[name, all] : weights)
    for (auto [worker, weight] : llvm::enumerate(all)) {
      if (!weight.parameter ||
          weight.parameter.getType() != all.front().parameter.getType() ||
          !weight.master != !all.front().master)
        return module.emitError("worker ")
               << worker << " does not train " << name << " as the others do";
      if (failed(addWeight(weight)))
        return failure();
    }
  return success();
}

void VirtualWorkersPass::addChannels() {
  OpBuilder builder(&getContext());
  for (auto &[name, all] : weights)
    for (int64_t from : llvm::seq<int64_t>(0, waves.workers))
      for (int64_t to : llvm::seq<int64_t>(0, waves.workers)) {
        if (from == to)
          continue;
        VariableOp trained = all.front().getTrained();
        builder.clearInsertionPoint();
        auto channel = ChannelOp::create(
            builder, trained.getLoc(), getChannelName(name, from, to),
            builder.getTypeArrayAttr(trained.getTensorType()), SourceAttr(),
            SinkAttr(), IntegerAttr(), IntegerAttr());
        channel.setOwnQueue(true);
        insert(channel);
      }
}

func::FuncOp VirtualWorkersPass::getFunction(StringRef name,
                                             FunctionType type) {
  auto function = func::FuncOp::create(getOperation().getLoc(), name, type);
  function.setPrivate();
  function.addEntryBlock();
  return insert(function);
}

/// (weight, base) -> weight - base.
func::FuncOp VirtualWorkersPass::getPushFunction(const Weight &weight) {
  VariableOp trained = weight.getTrained();
  RankedTensorType type = trained.getTensorType();
  std::string name =
      (weight.master ? "push.master." : "push.") + describeType(type);
  if (auto known = symbols->lookup<func::FuncOp>(name))
    return known;
  OpBuilder builder(&getContext());
  Location loc = getOperation().getLoc();
  func::FuncOp function =
      getFunction(name, builder.getFunctionType({type, type}, {type}));
  builder.setInsertionPointToEnd(&function.front());
  Value moved = Structured(builder, loc)
                    .elementwise(type, function.getArguments(),
                                 [](Scalars &s, ValueRange elements) {
                                   return s.sub(elements[0], elements[1]);
                                 });
  func::ReturnOp::create(builder, loc, moved);
  auto term = [&](Role role) { return RoleAttr::get(&getContext(), role); };
  setSignature(
      function,
      {term(trained.getRole()),
       term(waves.distance == 0 ? Role::Compensation : trained.getRole())},
      {term(Role::Compensation)});
  return function;
}

/// (waves of all workers..., own later waves..., global, how many of the later
/// ones there are) -> (weight, global, rounded weight if there is one). `later`
/// is the term of that number.
func::FuncOp VirtualWorkersPass::getFoldFunction(const Weight &weight,
                                                 Attribute later) {
  VariableOp trained = weight.getTrained(), rounded = weight.parameter;
  RankedTensorType type = trained.getTensorType();
  std::string name =
      (weight.master ? "fold.master." : "fold.") + describeType(type);
  if (auto known = symbols->lookup<func::FuncOp>(name))
    return known;
  OpBuilder builder(&getContext());
  Location loc = getOperation().getLoc();
  int64_t inputs = waves.workers + waves.distance;
  SmallVector<Type> arguments(inputs + 1, type);
  if (waves.distance > 0)
    arguments.push_back(builder.getF32Type());
  SmallVector<Type> made{type, type};
  if (weight.master)
    made.push_back(rounded.getTensorType());
  func::FuncOp function =
      getFunction(name, builder.getFunctionType(arguments, made));
  function.setArgAttr(inputs, kIntoAttr, builder.getI64IntegerAttr(1));
  builder.setInsertionPointToEnd(&function.front());
  Structured s(builder, loc);
  ValueRange values = function.getArguments();
  SmallVector<Value> into{s.empty(type), values[inputs]};
  if (weight.master)
    into.push_back(s.empty(rounded.getTensorType()));
  SmallVector<Value> folded = s.generics(
      values.take_front(inputs), into,
      SmallVector<AffineMap>(inputs + into.size(), s.identity(type.getRank())),
      Structured::parallel(type.getRank()),
      [&](Scalars &s, ValueRange elements) {
        Arithmetic f{s, type.getElementType()};
        Value global = elements[inputs + 1];
        for (Value wave : elements.take_front(waves.workers))
          global = f.add(global, wave);
        Value next = global;
        for (int64_t later : llvm::seq<int64_t>(0, waves.distance))
          next = f.add(
              next, f.selectLess(f.constant(static_cast<double>(later) + 0.5),
                                 values.back(), elements[waves.workers + later],
                                 f.constant(0)));
        SmallVector<Value> results{next, global};
        if (weight.master)
          results.push_back(
              Arithmetic{s, rounded.getTensorType().getElementType()}.from(
                  next));
        return results;
      });
  func::ReturnOp::create(builder, loc, folded);
  auto term = [&](Role role) { return RoleAttr::get(&getContext(), role); };
  SmallVector<Attribute> terms(inputs + 1, term(Role::Compensation));
  if (later)
    terms.push_back(later);
  SmallVector<Attribute> results{term(trained.getRole()),
                                 term(Role::Compensation)};
  if (weight.master)
    results.push_back(term(Role::Parameter));
  setSignature(function, terms, results);
  return function;
}

/// (average, global) -> average.
func::FuncOp VirtualWorkersPass::getAverageFunction(const Weight &weight) {
  VariableOp global = weight.global;
  RankedTensorType type = global.getTensorType();
  std::string name = "average." + describeType(type);
  if (auto known = symbols->lookup<func::FuncOp>(name))
    return known;
  OpBuilder builder(&getContext());
  Location loc = getOperation().getLoc();
  func::FuncOp function =
      getFunction(name, builder.getFunctionType({type, type}, {type}));
  function.setArgAttr(0, kIntoAttr, builder.getI64IntegerAttr(0));
  builder.setInsertionPointToEnd(&function.front());
  Structured s(builder, loc);
  Value moved = s.generic(function.getArgument(1), function.getArgument(0),
                          SmallVector<AffineMap>(2, s.identity(type.getRank())),
                          Structured::parallel(type.getRank()),
                          [&](Scalars &s, ValueRange elements) {
                            return Arithmetic{s, type.getElementType()}.lerp(
                                elements[1], elements[0], 1 - averageDecay);
                          });
  func::ReturnOp::create(builder, loc, moved);
  SmallVector<Attribute> terms(
      2, RoleAttr::get(&getContext(), Role::Compensation));
  setSignature(function, terms, ArrayRef(terms).drop_front());
  return function;
}

static Value read(OpBuilder &builder, VariableOp variable,
                  std::optional<int64_t> lag = std::nullopt) {
  return ReadOp::create(builder, variable.getLoc(), variable.getTensorType(),
                        FlatSymbolRefAttr::get(variable),
                        lag ? builder.getI64IntegerAttr(*lag) : IntegerAttr());
}

void VirtualWorkersPass::addPush(const Exchange &exchange, int64_t worker) {
  OpBuilder builder(&getContext());
  StageOp stage = exchange.stage;
  auto task = insert(TaskOp::create(
      builder, stage.getLoc(), (stage.getSymName() + ".P").str(),
      TaskKind::Push, stage.getSymName(), ArrayAttr(), ArrayAttr()));
  builder.setInsertionPointToEnd(task.addBody());
  for (StringAttr name : exchange.parameters) {
    const Weight &weight = weights.find(name)->second[worker];
    VariableOp trained = weight.getTrained();
    Location loc = trained.getLoc();
    Value now = read(builder, trained);
    Value before = waves.distance == 0 ? read(builder, weight.global)
                                       : read(builder, trained, waves.wave);
    func::FuncOp push = getPushFunction(weight);
    // A value is in one place: that which is kept, and that which is sent.
    auto make = [&] {
      return func::CallOp::create(builder, loc, push, ValueRange{now, before})
          .getResult(0);
    };
    Value kept = make(), sent = make();
    WriteOp::create(builder, loc, kept, FlatSymbolRefAttr::get(weight.wave));
    for (int64_t other : llvm::seq<int64_t>(0, waves.workers))
      if (other != worker)
        PutOp::create(builder, loc, sent,
                      FlatSymbolRefAttr::get(
                          &getContext(), getChannelName(name, worker, other)));
  }
}

void VirtualWorkersPass::addFold(const Exchange &exchange, int64_t worker) {
  OpBuilder builder(&getContext());
  StageOp stage = exchange.stage;
  Location loc = stage.getLoc();
  auto task = insert(TaskOp::create(
      builder, loc, (stage.getSymName() + ".S").str(), TaskKind::Fold,
      stage.getSymName(), ArrayAttr(), ArrayAttr()));
  builder.setInsertionPointToEnd(task.addBody());
  Value later;
  Attribute laterTerm;
  if (waves.distance > 0) {
    later = LaterWavesOp::create(builder, loc, waves.distance);
    later =
        arith::IndexCastOp::create(builder, loc, builder.getI64Type(), later);
    later = arith::SIToFPOp::create(builder, loc, builder.getF32Type(), later);
    laterTerm = ValueTerms(getOperation()).getTerm(later);
  }
  for (StringAttr name : exchange.parameters) {
    const Weight &weight = weights.find(name)->second[worker];
    VariableOp trained = weight.getTrained();
    RankedTensorType type = trained.getTensorType();
    Location at = trained.getLoc();
    SmallVector<Value> operands;
    for (int64_t other : llvm::seq<int64_t>(0, waves.workers))
      operands.push_back(
          other == worker ? read(builder, weight.wave, waves.distance)
                          : TakeOp::create(builder, at, TypeRange(type),
                                           getChannelName(name, other, worker))
                                .getResult(0));
    for (int64_t lag = waves.distance - 1; lag >= 0; --lag)
      operands.push_back(read(builder, weight.wave, lag));
    operands.push_back(read(builder, weight.global));
    if (later)
      operands.push_back(later);
    auto call = func::CallOp::create(
        builder, at, getFoldFunction(weight, laterTerm), operands);
    WriteOp::create(builder, at, call.getResult(0),
                    FlatSymbolRefAttr::get(trained));
    WriteOp::create(builder, at, call.getResult(1),
                    FlatSymbolRefAttr::get(weight.global));
    if (weight.master)
      WriteOp::create(builder, at, call.getResult(2),
                      FlatSymbolRefAttr::get(weight.parameter));
    if (!weight.average)
      continue;
    auto moved = func::CallOp::create(
        builder, at, getAverageFunction(weight),
        ValueRange{read(builder, weight.average), call.getResult(1)});
    WriteOp::create(builder, at, moved.getResult(0),
                    FlatSymbolRefAttr::get(weight.average));
  }
}
