//===- OutlineStages.cpp - A function, a task and channels per stage ------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Works on the sequence of ops between boundaries. First it finds what each
// stage computes, takes and gives; then it builds channels, functions and tasks
// from that and drops the single-stage program.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/Signatures.h"
#include "passes/Partition/Passes.h"

#include "penstock/Partition/ForwardProgram.h"
#include "penstock/Support/NodeName.h"
#include "penstock/Support/Structured.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

#include <vector>

namespace penstock {
#define GEN_PASS_DEF_PIPELINEOUTLINESTAGES
#include "passes/Partition/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {
/// The ops of one stage, and its inputs and outputs.
struct StagePart {
  SmallVector<Operation *> ops;
  llvm::DenseSet<Operation *> cloned; ///< Recomputable ops that it needs.
  llvm::SetVector<Value> crossing;    ///< Defined by earlier stages.
  llvm::SetVector<unsigned> inputs;   ///< Function arguments, not parameters.
  llvm::SetVector<unsigned> reads;    ///< Function arguments, parameters.
  llvm::SetVector<Value> results;     ///< In order of definition.

  StageOp stage;
  func::FuncOp function;
};

class Outliner {
public:
  Outliner(ModuleOp module, ForwardProgram &program)
      : module(module), program(program), symbols(module),
        builder(module.getContext()) {}

  LogicalResult run();

private:
  LogicalResult copyOutputs();
  LogicalResult assignOps();
  void need(StagePart &part, Value value);
  LogicalResult checkVariables();
  void findResults();
  void createStages();
  void createFunction(StagePart &part, StringRef name);
  void createTask(StagePart &part, unsigned index);
  ChannelOp getInputChannel(unsigned argument, StringRef stageName);
  VariableOp getVariable(unsigned argument, StageOp stage);
  std::string getValueName(Value value);
  void eraseOriginal();

  ModuleOp module;
  ForwardProgram &program;
  SymbolTable symbols;
  OpBuilder builder;
  std::vector<StagePart> parts;
  llvm::DenseMap<Value, unsigned> definedBy;
  llvm::SmallDenseSet<unsigned> usedInputs;
  /// Variables that a stage holds already, and the one of each stage.
  llvm::DenseSet<Operation *> held;
  llvm::DenseMap<std::pair<Operation *, Operation *>, VariableOp> variables;
  /// The channels that carry a value, one for each stage that takes it.
  llvm::MapVector<std::pair<Value, unsigned>, ChannelOp> channels;
};
} // namespace

/// An output that no stage computes, as it is an input or depends on parameters
/// only, becomes a copy that the last stage makes.
LogicalResult Outliner::copyOutputs() {
  Operation *terminator = program.function.getBody().front().getTerminator();
  auto isComputed = [&](Value value) {
    Operation *producer = value.getDefiningOp();
    return producer && !program.isRecomputable(producer);
  };
  if (llvm::none_of(terminator->getOperands(), isComputed))
    return program.function.emitError(
        "an output depends on no input: there is nothing to compute for it "
        "in the pipeline; drop it from the model's outputs");
  OpBuilder inside(terminator);
  for (OpOperand &output : terminator->getOpOperands()) {
    if (isComputed(output.get()))
      continue;
    output.set(Structured(inside, output.get().getLoc()).copy(output.get()));
  }
  return success();
}

/// Distributes the ops over the stages and finds what each one needs.
LogicalResult Outliner::assignOps() {
  parts.emplace_back();
  for (Operation &op :
       program.function.getBody().front().without_terminator()) {
    if (auto boundary = dyn_cast<BoundaryOp>(op)) {
      if (boundary.getIndex() != parts.size())
        return boundary.emitError() << "expected boundary " << parts.size()
                                    << ": boundaries rise by one";
      parts.emplace_back();
    } else if (!program.isRecomputable(&op)) {
      parts.back().ops.push_back(&op);
      for (Value value : op.getResults())
        definedBy[value] = parts.size() - 1;
    }
  }
  for (auto [index, part] : llvm::enumerate(parts)) {
    if (part.ops.empty() && parts.size() > 1)
      return program.function.emitError()
             << "stage " << index << " would have nothing to compute";
    for (Operation *op : part.ops)
      for (Value value : getUsedValues(op))
        need(part, value);
  }
  return success();
}

/// Makes `value` available in `part`: by taking it, reading it, or evaluating
/// the ops that make it again.
void Outliner::need(StagePart &part, Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() != &program.function.getBody().front())
      return;
    auto &kind =
        program.getRead(argument.getArgNumber()) ? part.reads : part.inputs;
    kind.insert(argument.getArgNumber());
    return;
  }
  Operation *producer = value.getDefiningOp();
  if (program.isRecomputable(producer)) {
    if (part.cloned.insert(producer).second)
      for (Value operand : getUsedValues(producer))
        need(part, operand);
    return;
  }
  unsigned index = &part - parts.data();
  if (definedBy.lookup(value) == index)
    return;
  part.crossing.insert(value);
}

/// A parameter may have copies, as their gradients can be added. A statistic is
/// what one node has seen so far.
LogicalResult Outliner::checkVariables() {
  llvm::DenseMap<Operation *, unsigned> firstReader;
  for (auto [index, part] : llvm::enumerate(parts)) {
    for (unsigned argument : part.reads) {
      auto variable =
          symbols.lookup<VariableOp>(program.getRead(argument).getVariable());
      if (!variable)
        return program.getRead(argument).emitError("reads no known variable");
      unsigned first = firstReader.try_emplace(variable, index).first->second;
      if (first != index && variable.getRole() == Role::Statistic &&
          !variable.getFrozen())
        return variable.emitError()
               << "statistic '" << variable.getSymName()
               << "' is updated on stages " << first << " and " << index
               << ": cut elsewhere with --split-at so that one stage has all "
                  "nodes that share it, or use --batch-norm=frozen";
    }
  }
  return success();
}

/// A stage gives what later stages take and what leaves the program.
void Outliner::findResults() {
  for (auto [index, part] : llvm::enumerate(parts))
    for (Value value : part.crossing)
      parts[definedBy.lookup(value)].results.insert(value);
  for (Value value :
       program.function.getBody().front().getTerminator()->getOperands()) {
    parts[definedBy.at(value)].results.insert(value);
  }
  // In order of definition, whatever asked first; results of one op by number.
  for (StagePart &part : parts) {
    SmallVector<Value> ordered = part.results.takeVector();
    llvm::sort(ordered, [](Value a, Value b) {
      Operation *left = a.getDefiningOp(), *right = b.getDefiningOp();
      if (left == right)
        return cast<OpResult>(a).getResultNumber() <
               cast<OpResult>(b).getResultNumber();
      return left->isBeforeInBlock(right);
    });
    part.results.insert(ordered.begin(), ordered.end());
  }
}

/// The last name in the location: that of the value where the importer gives
/// one, else of the node.
std::string Outliner::getValueName(Value value) {
  SmallVector<StringRef> names = getAllNames(value.getLoc());
  if (names.empty())
    return "activation";
  unsigned result = cast<OpResult>(value).getResultNumber();
  return result == 0 ? names.back().str()
                     : names.back().str() + "." + std::to_string(result);
}

/// The stage's copy of the source channel of an input: a channel has one taker.
ChannelOp Outliner::getInputChannel(unsigned argument, StringRef stageName) {
  auto take = program.call.getOperand(argument).getDefiningOp<TakeOp>();
  auto channel = symbols.lookup<ChannelOp>(take.getChannel());
  if (usedInputs.insert(argument).second)
    return channel;
  ChannelOp copy = channel.clone();
  copy.setSymName((channel.getSymName() + "." + stageName).str());
  symbols.insert(copy, std::next(channel->getIterator()));
  return copy;
}

/// The stage's variable: the model's own, or a copy of one that an earlier
/// stage holds. The copy of a trained one says whose it is.
VariableOp Outliner::getVariable(unsigned argument, StageOp stage) {
  auto variable =
      symbols.lookup<VariableOp>(program.getRead(argument).getVariable());
  VariableOp &own = variables[{variable, stage}];
  if (own)
    return own;
  own = variable;
  if (!held.insert(variable).second) {
    own = variable.clone();
    own.setSymName((variable.getSymName() + "." + stage.getSymName()).str());
    if (!variable.getFrozen())
      own->setAttr(kParameterAttr, FlatSymbolRefAttr::get(variable));
    symbols.insert(own, std::next(variable->getIterator()));
  }
  own.setStageAttr(FlatSymbolRefAttr::get(stage));
  return own;
}

void Outliner::createStages() {
  builder.setInsertionPoint(program.stage);
  for (auto [index, part] : llvm::enumerate(parts)) {
    part.stage = StageOp::create(builder, program.stage.getLoc(),
                                 "s" + std::to_string(index), nullptr);
    symbols.insert(part.stage);
    part.stage->moveBefore(program.stage);
  }
  Operation *last = program.stage;
  for (auto [index, part] : llvm::enumerate(parts)) {
    for (Value value : part.crossing) {
      auto channel =
          ChannelOp::create(builder, value.getLoc(), getValueName(value),
                            builder.getTypeArrayAttr(value.getType()), nullptr,
                            nullptr, nullptr, nullptr);
      if (Operation *copy = value.getDefiningOp())
        if (Attribute parameter = copy->getAttr(kSentAttr))
          channel->setAttr(kParameterAttr, parameter);
      symbols.insert(channel);
      channel->moveAfter(last);
      last = channel;
      channels[{value, static_cast<unsigned>(index)}] = channel;
    }
  }
}

/// Clones the ops of the stage into a function of what it takes and reads.
void Outliner::createFunction(StagePart &part, StringRef name) {
  SmallVector<Value> arguments(part.crossing.begin(), part.crossing.end());
  for (unsigned argument : llvm::concat<const unsigned>(
           part.inputs.getArrayRef(), part.reads.getArrayRef()))
    arguments.push_back(program.function.getArgument(argument));
  auto type = builder.getFunctionType(
      TypeRange(ValueRange(arguments)),
      TypeRange(ValueRange(part.results.getArrayRef())));
  part.function =
      func::FuncOp::create(builder, program.function.getLoc(), name, type);
  part.function.setPrivate();
  symbols.insert(part.function);
  part.function->moveBefore(program.function);

  Block *block = part.function.addEntryBlock();
  IRMapping mapping;
  mapping.map(ValueRange(arguments), block->getArguments());
  auto inside = OpBuilder::atBlockEnd(block);
  llvm::DenseSet<Operation *> own(part.ops.begin(), part.ops.end());
  for (Operation &op : program.function.getBody().front().without_terminator())
    if (own.contains(&op) || part.cloned.contains(&op))
      inside.clone(op, mapping);
  SmallVector<Value> results;
  for (Value value : part.results)
    results.push_back(mapping.lookup(value));
  func::ReturnOp::create(inside, program.function.getLoc(), results);
}

void Outliner::createTask(StagePart &part, unsigned index) {
  Location loc = program.task.getLoc();
  StringRef stageName = part.stage.getSymName();
  auto task =
      TaskOp::create(builder, loc, (stageName + ".F").str(), TaskKind::Forward,
                     part.stage.getSymName(), ArrayAttr(), ArrayAttr());
  symbols.insert(task);
  task->moveBefore(program.task);
  auto body = OpBuilder::atBlockEnd(task.addBody());

  SmallVector<Value> operands;
  auto take = [&](ChannelOp channel) {
    auto op = TakeOp::create(body, loc, TypeRange(channel.getTensorType(0)),
                             FlatSymbolRefAttr::get(channel));
    operands.push_back(op.getValues().front());
  };
  for (Value value : part.crossing)
    take(channels.lookup({value, index}));
  for (unsigned argument : part.inputs)
    take(getInputChannel(argument, stageName));
  llvm::DenseMap<Operation *, Value> reads;
  for (unsigned argument : part.reads) {
    VariableOp variable = getVariable(argument, part.stage);
    Value &read = reads[variable];
    if (!read)
      read = ReadOp::create(body, program.getRead(argument).getLoc(), variable);
    operands.push_back(read);
  }
  auto call = func::CallOp::create(body, loc, part.function, operands);

  // A value goes to every stage that takes it, and to the original puts.
  for (auto [value, result] : llvm::zip(part.results, call.getResults())) {
    for (auto &[key, channel] : channels)
      if (key.first == value)
        PutOp::create(body, loc, ValueRange(result),
                      FlatSymbolRefAttr::get(channel));
    for (auto [position, returned] : llvm::enumerate(
             program.function.getBody().front().getTerminator()->getOperands()))
      if (returned == value)
        for (Operation *user : program.call.getResult(position).getUsers())
          if (auto put = dyn_cast<PutOp>(user))
            PutOp::create(body, put.getLoc(), ValueRange(result),
                          put.getChannelAttr());
  }
}

void Outliner::eraseOriginal() {
  symbols.erase(program.task);
  symbols.erase(program.function);
  symbols.erase(program.stage);
  // What no stage reads or takes is not part of the program that trains.
  SymbolTableCollection tables;
  SymbolUserMap users(tables, module);
  for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
    if (isa<VariableOp, ChannelOp>(op) && users.useEmpty(&op))
      symbols.erase(&op);
}

LogicalResult Outliner::run() {
  if (failed(copyOutputs()) || failed(assignOps()))
    return failure();
  if (failed(checkVariables()))
    return failure();
  findResults();
  createStages();
  for (auto [index, part] : llvm::enumerate(parts)) {
    createFunction(part, (part.stage.getSymName() + ".forward").str());
    createTask(part, index);
  }
  eraseOriginal();
  return success();
}

namespace {
class OutlineStagesPass
    : public penstock::impl::PipelineOutlineStagesBase<OutlineStagesPass> {
public:
  void runOnOperation() override {
    FailureOr<ForwardProgram> program = ForwardProgram::find(getOperation());
    if (failed(program) || failed(Outliner(getOperation(), *program).run()))
      return signalPassFailure();
    signFunctions(getOperation());
  }
};
} // namespace
