//===- ClipGradients.cpp - Bounds the norm of the gradients ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A task of kind `norm` per stage sums the squares of each of its gradients and
// has zeros for those of other stages, so that a sum over stages is exact.
// Every update adds the squares up in the order in which the module lists the
// parameters: the norm does not depend on the cut.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/Replicas.h"
#include "dialects/Pipeline/Signatures.h"
#include "passes/Training/ForwardStage.h"
#include "passes/Training/GradientSum.h"
#include "passes/Training/Passes.h"
#include "penstock/Optimizers/Arithmetic.h"
#include "penstock/Support/Structured.h"

#include "llvm/ADT/MapVector.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINECLIPGRADIENTS
#include "passes/Training/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

/// The gradients of one parameter, of which the sum counts.
using Summands = SmallVector<VariableOp, 1>;

/// A stage that trains: its update task and the gradients that count here. Of a
/// parameter that several stages hold copies of, those of one stage count.
struct Member {
  StageOp stage;
  TaskOp update;
  SmallVector<Summands> gradients;
  /// Where each has its square.
  SmallVector<int64_t> positions;
  /// The squares of all stages that are clipped together.
  VariableOp squares;
};

struct ClipGradientsPass
    : penstock::impl::PipelineClipGradientsBase<ClipGradientsPass> {
  using PipelineClipGradientsBase::PipelineClipGradientsBase;
  void runOnOperation() override;

private:
  LogicalResult collect();
  void addNorms(ArrayRef<Member *> members);
  void addNorm(Member &member, int64_t count);
  func::FuncOp createFunction(const Twine &name, FunctionType type);
  VariableOp createScalar(StageOp stage, StringRef name, RankedTensorType type);
  Value emitSquares(OpBuilder &builder, Location loc, const Member &member,
                    ValueRange values);
  func::FuncOp getFactor(Type squares);
  LogicalResult scaleGradients(Member &member);
  LogicalResult addScale(func::FuncOp update, ArrayRef<unsigned> gradients);

  double maxNorm = 0;
  bool isGlobal = true; ///< Over all stages.
  SymbolTable *symbols = nullptr;
  SmallVector<Member> stages;
  llvm::DenseMap<Operation *, int64_t> places; ///< Of gradients in the module.
  llvm::DenseMap<Type, func::FuncOp> factors;
  llvm::DenseSet<Operation *> scaled;
};

} // namespace

void ClipGradientsPass::runOnOperation() {
  FailureOr<TrainingOp> training = requireTraining(getOperation());
  if (failed(training))
    return signalPassFailure();
  ClippingAttr clipping = training->getClippingAttr();
  if (!clipping)
    return;
  maxNorm = clipping.getNorm().getValueAsDouble();
  isGlobal = clipping.getScope() == ClipScope::Global;
  SymbolTable table(getOperation());
  symbols = &table;
  stages.clear();
  places.clear();
  scaled.clear();
  factors.clear();
  if (failed(collect()))
    return signalPassFailure();

  SmallVector<Member *> all;
  for (Member &member : stages)
    all.push_back(&member);
  if (isGlobal && !all.empty())
    addNorms(all);
  if (!isGlobal)
    for (Member *member : all)
      addNorms(member);
  for (Member &member : stages)
    if (failed(scaleGradients(member)))
      return signalPassFailure();
  signFunctions(getOperation());
}

LogicalResult ClipGradientsPass::collect() {
  // 1. The order of the sum: that of the parameters.
  llvm::DenseMap<Attribute, int64_t> parameters;
  for (auto variable : getOperation().getOps<VariableOp>())
    parameters[FlatSymbolRefAttr::get(variable)] = parameters.size();
  llvm::DenseSet<Attribute> copies;
  for (auto group : getOperation().getOps<GroupOp>())
    for (Attribute member : group.getMembers().getValue().drop_front())
      for (Attribute name : cast<ArrayAttr>(member))
        copies.insert(name);
  auto gradientsOf = collectGradients(getOperation());

  // 2. Stages and what they train.
  for (auto stage : getOperation().getOps<StageOp>()) {
    Member member{stage, {}, {}, {}, {}};
    for (auto task : getOperation().getOps<TaskOp>())
      if (task.getKind() == TaskKind::Update &&
          task.getStage() == stage.getSymName())
        member.update = task;
    if (!member.update)
      continue;
    for (auto read : member.update.getBody().getOps<ReadOp>()) {
      auto variable = symbols->lookup<VariableOp>(read.getVariable());
      if (!variable)
        return read.emitOpError("names no variable");
      if (variable.getRole() != Role::Gradient ||
          (isGlobal && copies.contains(read.getVariableAttr())))
        continue;
      auto name = variable->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr);
      auto place = parameters.find(name);
      if (!name || place == parameters.end())
        return variable.emitError() << "the gradient does not say by '"
                                    << kParameterAttr << "' whose it is";
      ArrayRef<VariableOp> summands = gradientsOf[name];
      if (summands.front() != variable)
        continue;
      places[variable] = place->second;
      member.gradients.push_back(Summands(summands));
    }
    stages.push_back(std::move(member));
  }
  return success();
}

func::FuncOp ClipGradientsPass::createFunction(const Twine &name,
                                               FunctionType type) {
  auto function =
      func::FuncOp::create(getOperation().getLoc(), name.str(), type);
  function.setPrivate();
  function.addEntryBlock();
  insertAfterLast(getOperation(), *symbols, function);
  return function;
}

/// The sums of squares, one element per parameter, in double precision. The
/// gradients of a parameter are added first, as its update does.
Value ClipGradientsPass::emitSquares(OpBuilder &builder, Location loc,
                                     const Member &member, ValueRange values) {
  Type f64 = builder.getF64Type();
  VariableOp squares = member.squares;
  Structured s(builder, loc);
  Value sums = s.filled(squares.getTensorType(), s.constant(f64, 0));
  for (auto [index, summands] :
       llvm::zip_equal(member.positions, member.gradients)) {
    // Long rows, which are one loop whatever the shape.
    VariableOp first = summands.front();
    RankedTensorType type = first.getTensorType();
    SmallVector<Value> rows(values.take_front(summands.size()));
    values = values.drop_front(summands.size());
    if (type.getRank() > 1) {
      ReassociationIndices dims =
          llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
      for (Value &row : rows)
        row = tensor::CollapseShapeOp::create(
            builder, loc, row, SmallVector<ReassociationIndices>{dims});
    }
    int64_t rank = std::min<int64_t>(type.getRank(), 1);
    auto number = [&](int64_t value) -> SmallVector<OpFoldResult> {
      return {builder.getIndexAttr(value)};
    };
    auto cell = RankedTensorType::get({}, f64);
    Value sum = tensor::ExtractSliceOp::create(
        builder, loc, cell, sums, number(index), number(1), number(1));
    SmallVector<AffineMap> maps(rows.size(),
                                builder.getMultiDimIdentityMap(rank));
    maps.push_back(AffineMap::get(rank, 0, builder.getContext()));
    Value square =
        s.generic(rows, sum, maps, Structured::reduction(rank),
                  [&](Scalars &s, ValueRange elements) {
                    Value gradient = elements.front();
                    for (Value summand : elements.drop_front().drop_back())
                      gradient = s.add(gradient, summand);
                    Value x = Arithmetic{s, f64}.from(gradient);
                    return s.add(elements.back(), s.mul(x, x));
                  });
    sums = tensor::InsertSliceOp::create(builder, loc, square, sums,
                                         number(index), number(1), number(1));
  }
  return sums;
}

/// min(1, max-norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_. In
/// memory, where all devices can read what they have computed.
func::FuncOp ClipGradientsPass::getFactor(Type squares) {
  func::FuncOp &function = factors[squares];
  if (function)
    return function;
  OpBuilder context(&getContext());
  auto type = RankedTensorType::get({}, context.getF32Type());
  function =
      createFunction("clip_factor", context.getFunctionType(squares, type));
  OpBuilder builder = OpBuilder::atBlockEnd(&function.front());
  Location loc = function.getLoc();
  Value factor =
      Structured(builder, loc)
          .elementwise(type, ValueRange(), [&](Scalars &s, ValueRange) {
            Arithmetic f{s, s.builder.getF64Type()};
            Value sum = f.constant(0);
            for (int64_t index :
                 llvm::seq(cast<RankedTensorType>(squares).getDimSize(0))) {
              Value at = s.integer(s.builder.getIndexType(), index);
              sum = f.add(
                  sum, s.make<tensor::ExtractOp>(function.getArgument(0), at));
            }
            Value bound = f.div(f.constant(maxNorm),
                                f.add(f.sqrt(sum), f.constant(1e-6)));
            return Arithmetic{s, type.getElementType()}.from(
                f.min(bound, f.constant(1)));
          });
  func::ReturnOp::create(builder, loc, factor);
  Attribute scalar = RoleAttr::get(&getContext(), Role::Scalar);
  setSignature(function, scalar, scalar);
  return function;
}

/// A variable of a stage that is computed anew for each update.
VariableOp ClipGradientsPass::createScalar(StageOp stage, StringRef name,
                                           RankedTensorType type) {
  OpBuilder builder(&getContext());
  auto variable = VariableOp::create(
      builder, stage.getLoc(), (stage.getSymName() + "." + name).str(), type,
      Role::Scalar, FlatSymbolRefAttr::get(stage), BytesAttr());
  insertAfterLast(getOperation(), *symbols, variable);
  return variable;
}

/// The task that squares, and where it writes to.
void ClipGradientsPass::addNorm(Member &member, int64_t count) {
  OpBuilder builder(&getContext());
  StageOp stage = member.stage;
  Location loc = stage.getLoc();
  auto type = RankedTensorType::get({count}, builder.getF64Type());
  member.squares = createScalar(stage, "squares", type);

  auto task = TaskOp::create(builder, loc, (stage.getSymName() + ".G").str(),
                             TaskKind::Norm, stage.getSymName(), ArrayAttr(),
                             ArrayAttr());
  symbols->insert(task, member.update->getIterator());
  builder.setInsertionPointToEnd(task.addBody());
  SmallVector<Value> operands;
  for (const Summands &summands : member.gradients)
    for (VariableOp gradient : summands)
      operands.push_back(ReadOp::create(builder, gradient.getLoc(), gradient));
  func::FuncOp function = createFunction(
      stage.getSymName() + ".norm",
      builder.getFunctionType(ValueRange(operands).getTypes(), type));
  OpBuilder body = OpBuilder::atBlockEnd(&function.front());
  func::ReturnOp::create(
      body, loc, emitSquares(body, loc, member, function.getArguments()));
  Value made =
      func::CallOp::create(builder, loc, function, operands).getResult(0);
  WriteOp::create(builder, loc, made, member.squares);
}

/// The norm tasks of the stages that are clipped together.
void ClipGradientsPass::addNorms(ArrayRef<Member *> members) {
  // 1. In the order of the parameters.
  struct Term {
    int64_t place;
    size_t member, index;
  };
  SmallVector<Term> terms;
  for (auto [index, member] : llvm::enumerate(members)) {
    member->positions.resize(member->gradients.size());
    for (auto [number, gradient] : llvm::enumerate(member->gradients))
      terms.push_back({places[gradient.front()], index, number});
  }
  llvm::sort(terms, [](const Term &a, const Term &b) {
    return std::tie(a.place, a.member) < std::tie(b.place, b.member);
  });
  for (auto [position, term] : llvm::enumerate(terms))
    members[term.member]->positions[term.index] =
        static_cast<int64_t>(position);

  // 2. Everybody has the squares of all.
  SmallVector<Attribute> squares;
  OpBuilder builder(&getContext());
  for (Member *member : members) {
    addNorm(*member, static_cast<int64_t>(terms.size()));
    squares.push_back(
        builder.getArrayAttr(FlatSymbolRefAttr::get(member->squares)));
  }
  if (members.size() == 1)
    return;
  auto group = GroupOp::create(builder, getOperation().getLoc(), "clip_squares",
                               builder.getArrayAttr(squares));
  group->setAttr(kOnceAttr, builder.getUnitAttr());
  group->remove();
  symbols->insert(group, std::next(members.back()->squares->getIterator()));
}

/// Returns the op with a further input, which is one element.
static linalg::GenericOp addInput(OpBuilder &builder, linalg::GenericOp op,
                                  Value input) {
  builder.setInsertionPoint(op);
  SmallVector<Value> inputs(op.getDpsInputs());
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps.insert(maps.begin() + static_cast<ptrdiff_t>(inputs.size()),
              AffineMap::get(op.getNumLoops(), 0, builder.getContext()));
  op.getBody()->insertArgument(
      inputs.size(), getElementTypeOrSelf(input.getType()), op.getLoc());
  inputs.push_back(input);
  auto result = linalg::GenericOp::create(
      builder, op.getLoc(), op.getResultTypes(), inputs, op.getDpsInits(), maps,
      op.getIteratorTypesArray());
  result.getRegion().takeBody(op.getRegion());
  op.replaceAllUsesWith(result.getResults());
  op.erase();
  return result;
}

/// Scalars come behind tensors.
static unsigned countTensors(TypeRange types) {
  return llvm::count_if(types, llvm::IsaPred<TensorType>);
}

/// The gradient arguments of an update function times a further argument.
LogicalResult ClipGradientsPass::addScale(func::FuncOp update,
                                          ArrayRef<unsigned> gradients) {
  OpBuilder builder(&getContext());
  unsigned last = countTensors(update.getArgumentTypes());
  auto type = RankedTensorType::get({}, builder.getF32Type());
  SignatureAttr signature = getSignature(update);
  if (failed(update.insertArgument(last, type, {}, update.getLoc())))
    return failure();
  if (signature) {
    SmallVector<Attribute> terms(signature.getInputs().getValue());
    terms.insert(terms.begin() + last,
                 RoleAttr::get(&getContext(), Role::Scalar));
    setSignature(update, terms, signature.getResults().getValue());
  }
  auto isGradient = [&](OpOperand &operand) {
    auto argument = dyn_cast<BlockArgument>(operand.get());
    return argument && argument.getOwner() == &update.front() &&
           llvm::is_contained(gradients, argument.getArgNumber());
  };
  SmallVector<linalg::GenericOp> ops;
  update.walk([&](linalg::GenericOp op) {
    if (llvm::any_of(op->getOpOperands(), isGradient))
      ops.push_back(op);
  });
  for (linalg::GenericOp op : ops) {
    op = addInput(builder, op, update.getArgument(last));
    Value factor = op.getBody()->getArgument(op.getNumDpsInputs() - 1);
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isGradient(operand))
        continue;
      BlockArgument element = op.getMatchingBlockArgument(&operand);
      builder.setInsertionPointToStart(op.getBody());
      Arithmetic f{builder, op.getLoc(), element.getType()};
      Value clipped = f.mul(element, f.from(factor));
      element.replaceAllUsesExcept(clipped, clipped.getDefiningOp());
    }
  }
  return success();
}

LogicalResult ClipGradientsPass::scaleGradients(Member &member) {
  OpBuilder builder(&getContext());
  Block &body = member.update.getBody().front();
  Location loc = member.update.getLoc();
  builder.setInsertionPointToStart(&body);

  // 1. The factor.
  Type type = member.squares.getTensorType();
  Value squares = ReadOp::create(builder, loc, member.squares);
  Value factor =
      func::CallOp::create(builder, loc, getFactor(type), squares).getResult(0);
  VariableOp variable = createScalar(member.stage, "clip_factor",
                                     cast<RankedTensorType>(factor.getType()));
  WriteOp::create(builder, loc, factor, variable);

  // 2. Every update takes it, after the sum of several gradients.
  llvm::DenseSet<Value> sums;
  auto isGradient = [&](Value value) {
    auto read = value.getDefiningOp<ReadOp>();
    auto variable =
        read ? symbols->lookup<VariableOp>(read.getVariable()) : VariableOp();
    return variable && variable.getRole() == Role::Gradient;
  };
  for (auto call : body.getOps<func::CallOp>()) {
    SmallVector<unsigned> gradients;
    for (auto [index, operand] : llvm::enumerate(call.getOperands()))
      if (isGradient(operand) || sums.contains(operand))
        gradients.push_back(index);
    if (gradients.empty())
      continue;
    if (gradients.size() > 1 && gradients.size() == call.getNumOperands()) {
      sums.insert(call.getResult(0));
      continue;
    }
    auto update = symbols->lookup<func::FuncOp>(call.getCallee());
    if (!update || update.isDeclaration())
      return call.emitOpError("updates by a function without a body");
    if (scaled.insert(update).second && failed(addScale(update, gradients)))
      return failure();
    call->insertOperands(countTensors(call.getOperandTypes()), factor);
  }
  return success();
}
