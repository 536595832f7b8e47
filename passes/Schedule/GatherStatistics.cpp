//===- GatherStatistics.cpp - Statistics that replicas see parts of -------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A running statistic moves with every microbatch in turn, and a replica sees
// but some. So forward tasks send what they would move it by to the backward of
// the microbatch, which notes it in a row of its own; rows are summed over the
// replicas like gradients, which is exact as all but one have zeros there; and
// every update moves the statistic by one row after the other. Forwards of
// later updates may run before it, backwards never do: it moves by its
// microbatches alone. Training itself does not read running statistics. A stage
// where nothing is trained gets a backward and an update for this.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/Pipeline.h"
#include "dialects/Pipeline/Signatures.h"
#include "passes/Schedule/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace penstock::pipeline;

namespace penstock {
#define GEN_PASS_DEF_PIPELINEGATHERSTATISTICS
#include "passes/Schedule/Passes.h.inc"
} // namespace penstock

namespace {

/// How a forward function moves one statistic: by these values in turn, each by
/// the same formula.
struct Moves {
  /// Numbers of the function's argument and result.
  unsigned argument = 0, result = 0;
  SmallVector<Value> values;
  /// The formula; its operands are old and new.
  linalg::GenericOp formula;
};

struct GatherStatisticsPass
    : penstock::impl::PipelineGatherStatisticsBase<GatherStatisticsPass> {
  using PipelineGatherStatisticsBase::PipelineGatherStatisticsBase;

  void runOnOperation() override {
    SymbolTable table(getOperation());
    symbols = &table;
    SmallVector<WriteOp> writes;
    getOperation().walk([&](WriteOp write) {
      auto task = write->getParentOfType<TaskOp>();
      auto stage = table.lookup<StageOp>(task.getStage());
      auto variable = table.lookup<VariableOp>(write.getVariable());
      if (task.getKind() == TaskKind::Forward && stage && stage.getDevices() &&
          stage.getDevices()->size() > 1 && variable &&
          variable.getRole() == Role::Statistic)
        writes.push_back(write);
    });
    FailureOr<TrainingOp> training = requireTraining(getOperation());
    if (failed(training))
      return signalPassFailure();
    microbatches = static_cast<int64_t>(training->getMicrobatches());
    for (WriteOp write : writes)
      if (failed(gather(write)))
        return signalPassFailure();
    if (!writes.empty())
      sign();
  }

private:
  int64_t microbatches = 1; ///< Per update.

  LogicalResult gather(WriteOp write);
  void sign();
  TaskOp getTask(TaskOp forward, ArrayRef<TaskKind> kinds, StringRef letter);
  FailureOr<Moves> findMoves(func::FuncOp function, unsigned argument,
                             unsigned result);
  ChannelOp sendFromForward(WriteOp write, func::FuncOp function,
                            const Moves &moves);
  func::FuncOp getNote(Location loc, TypeRange values, RankedTensorType type);
  func::FuncOp createFold(VariableOp variable, const Moves &moves,
                          RankedTensorType type);

  SymbolTable *symbols = nullptr;
  /// Functions by their type: values, rows, number of the microbatch.
  llvm::DenseMap<Type, func::FuncOp> notes;
};

} // namespace

/// All notes of a type have one row for each microbatch of an update.
void GatherStatisticsPass::sign() {
  ValueTerms terms(getOperation());
  getOperation().walk([&](func::CallOp call) {
    auto note = symbols->lookup<func::FuncOp>(call.getCallee());
    if (!note || notes.lookup(note.getFunctionType()) != note)
      return;
    SignatureAttr signature = getSignature(note);
    SmallVector<Attribute> inputs(signature.getInputs().getValue());
    inputs.back() = terms.getTerm(call.getOperands().back());
    setSignature(note, inputs, signature.getResults().getValue());
  });
  signFunctions(getOperation());
}

/// old, new -> next, element by element.
static bool isFormula(linalg::GenericOp op) {
  return op && op.getNumDpsInputs() == 2 && op.getNumResults() == 1 &&
         op.getNumParallelLoops() == op.getNumLoops() &&
         llvm::all_of(op.getIndexingMapsArray(),
                      [](AffineMap map) { return map.isIdentity(); }) &&
         op.getMatchingBlockArgument(op.getDpsInitOperand(0)).use_empty();
}

/// From the returned value back to the argument.
FailureOr<Moves> GatherStatisticsPass::findMoves(func::FuncOp function,
                                                 unsigned argument,
                                                 unsigned result) {
  Moves moves{argument, result, {}, {}};
  Value old = function.getArgument(argument);
  Value next = function.front().getTerminator()->getOperand(result);
  while (next != old) {
    auto op = next.getDefiningOp<linalg::GenericOp>();
    if (!isFormula(op) || !next.hasOneUse() ||
        isa<BlockArgument>(op.getDpsInputs()[1]) ||
        (moves.formula && !OperationEquivalence::isRegionEquivalentTo(
                              &op.getRegion(), &moves.formula.getRegion(),
                              OperationEquivalence::IgnoreLocations)))
      return failure();
    moves.formula = op;
    moves.values.insert(moves.values.begin(), op.getDpsInputs()[1]);
    next = op.getDpsInputs()[0];
  }
  if (!moves.formula || !old.hasOneUse())
    return failure();
  return moves;
}

/// The function returns the values instead of the statistic, and the task puts
/// them into a channel.
ChannelOp GatherStatisticsPass::sendFromForward(WriteOp write,
                                                func::FuncOp function,
                                                const Moves &moves) {
  // 1. The formula goes, with the argument and the result that it had.
  Operation *terminator = function.front().getTerminator();
  BlockArgument old = function.getArgument(moves.argument);
  Value dead = terminator->getOperand(moves.result);
  terminator->eraseOperand(moves.result);
  while (dead != old) {
    auto op = dead.getDefiningOp<linalg::GenericOp>();
    dead = op.getDpsInputs()[0];
    op.erase();
  }
  Builder attributes(&getContext());
  for (BlockArgument argument : function.getArguments()) {
    unsigned number = argument.getArgNumber();
    auto into = function.getArgAttrOfType<IntegerAttr>(number, kIntoAttr);
    if (into && into.getInt() > int64_t(moves.result))
      function.setArgAttr(number, kIntoAttr,
                          attributes.getI64IntegerAttr(into.getInt() - 1));
  }
  (void)function.eraseArgument(moves.argument);
  (void)function.eraseResult(moves.result);

  // 2. What the backward wants, too, is returned already.
  SmallVector<unsigned> results;
  for (Value value : moves.values) {
    auto place = llvm::find(terminator->getOperands(), value);
    results.push_back(place - terminator->operand_begin());
    if (place != terminator->operand_end())
      continue;
    terminator->insertOperands(terminator->getNumOperands(), value);
    (void)function.insertResult(results.back(), value.getType(), {});
  }

  // 3. The call, and the channel behind it.
  auto call = write.getValue().getDefiningOp<func::CallOp>();
  OpBuilder builder(call);
  SmallVector<Value> operands(call.getOperands());
  operands.erase(operands.begin() + moves.argument);
  auto next = func::CallOp::create(builder, call.getLoc(), function, operands);
  for (auto [index, result] : llvm::enumerate(call.getResults()))
    if (index != moves.result)
      result.replaceAllUsesWith(next.getResult(index - (index > moves.result)));
  auto variable = symbols->lookup<VariableOp>(write.getVariable());
  SmallVector<Value> seen;
  for (unsigned result : results)
    seen.push_back(next.getResult(result));
  auto channel = ChannelOp::create(
      builder, write.getLoc(),
      builder.getStringAttr(variable.getSymName() + ".seen"),
      builder.getTypeArrayAttr(llvm::to_vector(TypeRange(seen))), SourceAttr(),
      SinkAttr(), IntegerAttr(), IntegerAttr());
  channel->setAttr(kParameterAttr, FlatSymbolRefAttr::get(variable));
  channel->remove();
  symbols->insert(channel, Block::iterator(variable));
  builder.setInsertionPoint(write);
  PutOp::create(builder, write.getLoc(), seen, FlatSymbolRefAttr::get(channel));
  write.erase();
  call.erase();
  return channel;
}

/// (values, rows, number of the microbatch among those of the update) -> rows
/// with these values in those of the microbatch.
func::FuncOp GatherStatisticsPass::getNote(Location loc, TypeRange values,
                                           RankedTensorType type) {
  OpBuilder builder(&getContext());
  SmallVector<Type> inputs(values);
  llvm::append_values(inputs, Type(type), Type(builder.getIndexType()));
  FunctionType signature = builder.getFunctionType(inputs, Type(type));
  func::FuncOp &function = notes[signature];
  if (function)
    return function;
  unsigned count = values.size();
  function = func::FuncOp::create(loc, "note", signature);
  function.setPrivate();
  function.addEntryBlock();
  function.setArgAttr(count, kIntoAttr, builder.getI64IntegerAttr(0));
  symbols->insert(function);
  auto term = [&](Role role) { return RoleAttr::get(&getContext(), role); };
  SmallVector<Attribute> terms(count, term(Role::Statistic));
  llvm::append_values(terms, Attribute(term(Role::Gradient)),
                      Attribute(builder.getUnitAttr()));
  setSignature(function, terms, {term(Role::Gradient)});

  builder.setInsertionPointToEnd(&function.front());
  Value filled = function.getArgument(count);
  Value row = function.getArgument(count + 1);
  if (count > 1)
    row = arith::MulIOp::create(
        builder, loc, row, arith::ConstantIndexOp::create(builder, loc, count));
  for (BlockArgument value : function.getArguments().take_front(count)) {
    Value at = row;
    if (unsigned index = value.getArgNumber())
      at = arith::AddIOp::create(
          builder, loc, row,
          arith::ConstantIndexOp::create(builder, loc, index));
    SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(type.getRank(), builder.getIndexAttr(1));
    SmallVector<OpFoldResult> sizes;
    for (int64_t size : type.getShape())
      sizes.push_back(builder.getIndexAttr(size));
    offsets[0] = at;
    sizes[0] = builder.getIndexAttr(1);
    filled = tensor::InsertSliceOp::create(builder, loc, value, filled, offsets,
                                           sizes, strides);
  }
  func::ReturnOp::create(builder, loc, filled);
  return function;
}

/// (statistic, rows) -> (statistic moved by one row after the other, zeros).
func::FuncOp GatherStatisticsPass::createFold(VariableOp variable,
                                              const Moves &moves,
                                              RankedTensorType type) {
  linalg::GenericOp formula = moves.formula;
  Location loc = formula.getLoc();
  OpBuilder context(&getContext());
  Type whole = variable.getTensorType();
  auto function = func::FuncOp::create(
      loc, (variable.getSymName() + ".move").str(),
      context.getFunctionType({whole, type}, {whole, type}));
  function.setPrivate();
  function.addEntryBlock();
  for (unsigned i : {0u, 1u})
    function.setArgAttr(i, kIntoAttr, context.getI64IntegerAttr(i));
  symbols->insert(function);

  OpBuilder builder = OpBuilder::atBlockEnd(&function.front());
  Value old = function.getArgument(0), rows = function.getArgument(1);
  unsigned rank = type.getRank();
  AffineMap all = builder.getMultiDimIdentityMap(rank);
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  iterators[0] = utils::IteratorType::reduction;
  auto moved = linalg::GenericOp::create(
      builder, loc, TypeRange(whole), rows, ValueRange(old),
      ArrayRef<AffineMap>{all, all.dropResult(0)}, iterators,
      [&](OpBuilder &body, Location, ValueRange elements) {
        IRMapping mapping;
        for (auto [from, to] : llvm::zip(formula.getBody()->getArguments(),
                                         ValueRange{elements[1], elements[0]}))
          mapping.map(from, to);
        for (Operation &op : *formula.getBody())
          body.clone(op, mapping);
      });
  Value zero = arith::ConstantOp::create(
      builder, loc, builder.getZeroAttr(type.getElementType()));
  Value empty = linalg::FillOp::create(builder, loc, zero, rows).getResult(0);
  func::ReturnOp::create(builder, loc, {moved.getResult(0), empty});
  return function;
}

/// The stage's task of one of these kinds, or a new one of the first.
TaskOp GatherStatisticsPass::getTask(TaskOp forward, ArrayRef<TaskKind> kinds,
                                     StringRef letter) {
  Operation *last = nullptr;
  for (auto other : getOperation().getOps<TaskOp>()) {
    last = other;
    if (other.getStage() == forward.getStage() &&
        llvm::is_contained(kinds, other.getKind()))
      return other;
  }
  OpBuilder builder(&getContext());
  StringRef stage = forward.getStage();
  auto task =
      TaskOp::create(builder, forward.getLoc(), (stage + "." + letter).str(),
                     kinds.front(), stage, ArrayAttr(), ArrayAttr());
  symbols->insert(task, std::next(last->getIterator()));
  task.addBody();
  return task;
}

LogicalResult GatherStatisticsPass::gather(WriteOp write) {
  auto variable = symbols->lookup<VariableOp>(write.getVariable());
  auto task = write->getParentOfType<TaskOp>();
  auto reject = [&] {
    return variable.emitError("statistic '")
           << variable.getSymName() << "' follows all microbatches, and stage @"
           << *variable.getStage()
           << " has replicas, which see but some each: use one replica there, "
              "or --batch-norm=frozen";
  };

  // 1. What the forward does with it.
  auto call = write.getValue().getDefiningOp<func::CallOp>();
  auto function =
      call ? symbols->lookup<func::FuncOp>(call.getCallee()) : func::FuncOp();
  ReadOp read;
  for (auto other : task.getBody().getOps<ReadOp>())
    if (other.getVariable() == write.getVariable())
      read = other;
  if (!read || !read->hasOneUse() || !function || function.isDeclaration() ||
      !isCalledOnce(function))
    return reject();
  unsigned argument = read->use_begin()->getOperandNumber();
  if (*read->user_begin() != call)
    return reject();
  FailureOr<Moves> moves = findMoves(
      function, argument, cast<OpResult>(write.getValue()).getResultNumber());
  if (failed(moves))
    return reject();

  // 2. Rows for an update, and who moves the statistic.
  RankedTensorType whole = variable.getTensorType();
  SmallVector<int64_t> shape = {microbatches *
                                static_cast<int64_t>(moves->values.size())};
  llvm::append_range(shape, whole.getShape());
  auto type = RankedTensorType::get(shape, whole.getElementType());
  // Of a backward in halves, the one that makes gradients.
  TaskOp backward =
      getTask(task, {TaskKind::Backward, TaskKind::WeightGrad}, "B");
  TaskOp update = getTask(task, TaskKind::Update, "U");
  OpBuilder builder(&getContext());
  Location loc = variable.getLoc();
  auto rows = VariableOp::create(
      builder, loc, (variable.getSymName() + ".rows").str(), type,
      Role::Gradient, variable.getStageAttr(), BytesAttr());
  rows->setAttr(kParameterAttr, FlatSymbolRefAttr::get(variable));
  symbols->insert(rows, std::next(variable->getIterator()));
  func::FuncOp fold = createFold(variable, *moves, type);
  builder.setInsertionPointToEnd(&update.getBody().front());
  SmallVector<VariableOp> both = {variable, rows};
  SmallVector<Value> operands;
  for (VariableOp each : both)
    operands.push_back(ReadOp::create(builder, loc, each));
  auto folded = func::CallOp::create(builder, loc, fold, operands);
  for (auto [each, value] : llvm::zip_equal(both, folded.getResults()))
    WriteOp::create(builder, loc, value, each);

  // 3. The backward fills the rows of its microbatch.
  ChannelOp channel = sendFromForward(write, function, *moves);
  read.erase();
  builder.setInsertionPointToEnd(&backward.getBody().front());
  auto take = TakeOp::create(
      builder, loc,
      llvm::to_vector(channel.getTypes().getAsValueRange<TypeAttr>()),
      FlatSymbolRefAttr::get(channel));
  operands.assign(take.getValues().begin(), take.getValues().end());
  operands.push_back(ReadOp::create(builder, loc, rows));
  operands.push_back(arith::RemUIOp::create(
      builder, loc, backward.getCounter(),
      arith::ConstantIndexOp::create(builder, loc, microbatches)));
  auto noted = func::CallOp::create(
      builder, loc, getNote(loc, take.getResultTypes(), type), operands);
  WriteOp::create(builder, loc, noted.getResult(0), rows);
  return success();
}
