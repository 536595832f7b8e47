//===- FuseAdjustedWeights.cpp - Updates make adjusted weights ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A predicted or compensated weight costs one more stream of the update that
// makes its weight, instead of an op that reads all of it again.
//===----------------------------------------------------------------------===//

#include "passes/Program/Passes.h"
#include "penstock/Optimizers/UpdateFunction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEFUSEADJUSTEDWEIGHTS
#include "passes/Program/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

/// One adjusted weight, in terms of the results of an update.
struct Adjustment {
  Operation *op;
  unsigned weight = 0;
  double factor = 0; ///< tau, or steps.
  /// Delta, or the state that is the direction.
  unsigned other = 0;
  /// Else the function that makes the direction, and the result that each of
  /// its tensor arguments is.
  func::FuncOp direction;
  SmallVector<unsigned> inputs;
  /// An older version of the weight, to blend with.
  Value older;
  /// The rate, whether to compensate, or the significance; then those of the
  /// direction.
  SmallVector<Value> scalars;
};

struct FuseAdjustedWeightsPass
    : penstock::impl::PipelineFuseAdjustedWeightsBase<FuseAdjustedWeightsPass> {
  void runOnOperation() override;

private:
  LogicalResult fuse(ModuleOp module, TaskOp task);
  FailureOr<Adjustment> describe(Operation *op, func::CallOp update);
  LogicalResult replace(ModuleOp module, func::CallOp update,
                        MutableArrayRef<Adjustment> adjustments);
  FailureOr<func::FuncOp> getFunction(func::FuncOp update,
                                      ArrayRef<Adjustment> adjustments);
  static Value emit(Arithmetic f, const UpdateElements &elements,
                    const Adjustment &adjustment, Value older,
                    ArrayRef<Value> scalars);

  SymbolTable *symbols = nullptr;
  /// Functions by all that they do: the replay calls those of the program.
  llvm::StringMap<func::FuncOp> known;
};

} // namespace

void FuseAdjustedWeightsPass::runOnOperation() {
  ModuleOp root = getOperation();
  SymbolTable table(root);
  symbols = &table;
  known.clear();
  SmallVector<ModuleOp> modules{root};
  llvm::append_range(modules, root.getOps<ModuleOp>());
  for (ModuleOp module : modules)
    for (auto task : module.getOps<TaskOp>())
      if (!task.isBodyless() && failed(fuse(module, task)))
        return signalPassFailure();
}

LogicalResult FuseAdjustedWeightsPass::fuse(ModuleOp module, TaskOp task) {
  // 1. By the update that makes the weight.
  llvm::MapVector<Operation *, SmallVector<Adjustment>> updates;
  for (Operation &op : task.getBody().front()) {
    if (!isa<PredictOp, CompensateOp, BlendOp>(op))
      continue;
    auto update = op.getOperand(0).getDefiningOp<func::CallOp>();
    if (!update)
      return op.emitOpError("of a weight that a task reads has no storage: let "
                            "the update adjust what it writes");
    FailureOr<Adjustment> adjustment = describe(&op, update);
    if (failed(adjustment))
      return failure();
    updates[update].push_back(std::move(*adjustment));
  }

  // 2. Directions have no users then.
  llvm::SmallPtrSet<Operation *, 8> directions;
  for (auto &[update, adjustments] : updates) {
    for (Adjustment &adjustment : adjustments)
      if (adjustment.direction)
        directions.insert(
            cast<PredictOp>(adjustment.op).getVelocity().getDefiningOp());
    if (failed(replace(module, cast<func::CallOp>(update), adjustments)))
      return failure();
  }
  for (Operation *direction : directions)
    if (direction->use_empty())
      direction->erase();
  return success();
}

/// 1 if the update makes version `from` or a later one, else 0.
static Value isDueFrom(func::CallOp update, int64_t from) {
  OpBuilder builder(update);
  Location loc = update.getLoc();
  Value done = update->getParentOfType<TaskOp>().getCounter();
  Value last = arith::ConstantIndexOp::create(builder, loc, from - 1);
  Value isDue = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge,
                                      done, last);
  Arithmetic f{builder, loc, builder.getF32Type()};
  return arith::SelectOp::create(builder, loc, isDue, f.constant(1),
                                 f.constant(0));
}

FailureOr<Adjustment> FuseAdjustedWeightsPass::describe(Operation *op,
                                                        func::CallOp update) {
  auto findResult = [&](Value value) -> std::optional<unsigned> {
    if (value.getDefiningOp() != update)
      return std::nullopt;
    return cast<OpResult>(value).getResultNumber();
  };
  auto fail = [&]() -> LogicalResult {
    return op->emitOpError("is not an elementwise function of what one update "
                           "makes");
  };
  Adjustment result;
  result.op = op;
  result.weight = *findResult(op->getOperand(0));
  if (auto blend = dyn_cast<BlendOp>(op)) {
    result.older = blend.getOlder();
    result.scalars.push_back(blend.getSignificance());
    return result;
  }
  Value other = op->getOperand(1);
  if (auto compensate = dyn_cast<CompensateOp>(op)) {
    result.factor = compensate.getTau().convertToDouble();
    if (auto from = op->getAttrOfType<IntegerAttr>(kCompensatesFromAttr))
      result.scalars.push_back(isDueFrom(update, from.getInt()));
  } else {
    auto predict = cast<PredictOp>(op);
    result.factor = predict.getSteps().convertToDouble();
    result.scalars.push_back(predict.getRate());
  }
  if (std::optional<unsigned> number = findResult(other)) {
    result.other = *number;
    return result;
  }
  auto call = other.getDefiningOp<func::CallOp>();
  if (!call || isa<CompensateOp>(op))
    return fail();
  result.direction = symbols->lookup<func::FuncOp>(call.getCallee());
  linalg::GenericOp body = getElementwiseOp(result.direction);
  if (!body || body.getNumResults() != 1)
    return fail();
  for (Value operand : call.getOperands()) {
    if (!isa<TensorType>(operand.getType())) {
      result.scalars.push_back(operand);
      continue;
    }
    std::optional<unsigned> number = findResult(operand);
    if (!number || operand.getType() != update.getResult(*number).getType())
      return fail();
    result.inputs.push_back(*number);
  }
  return result;
}

LogicalResult
FuseAdjustedWeightsPass::replace(ModuleOp module, func::CallOp update,
                                 MutableArrayRef<Adjustment> adjustments) {
  auto callee = symbols->lookup<func::FuncOp>(update.getCallee());
  if (!callee)
    return update.emitError()
           << "calls " << update.getCalleeAttr() << ", which is no function";
  FailureOr<func::FuncOp> function = getFunction(callee, adjustments);
  if (failed(function))
    return failure();
  // The scalars stand before the update already: they do not depend on it.
  SmallVector<Value> scalars, olders;
  for (const Adjustment &adjustment : adjustments) {
    llvm::append_range(scalars, adjustment.scalars);
    if (adjustment.older)
      olders.push_back(adjustment.older);
  }
  unsigned former = update.getNumResults();
  func::CallOp call = replaceUpdateCall(update, *function, olders, scalars);
  for (auto [index, adjustment] : llvm::enumerate(adjustments)) {
    adjustment.op->getResult(0).replaceAllUsesWith(
        call.getResult(former + index));
    adjustment.op->erase();
  }
  // The replay has declarations.
  if (module != getOperation() &&
      !module.lookupSymbol(function->getSymName())) {
    Operation *declaration = (*function)->cloneWithoutRegions();
    module.push_back(declaration);
    SymbolTable::setSymbolVisibility(declaration,
                                     SymbolTable::Visibility::Private);
  }
  return success();
}

FailureOr<func::FuncOp>
FuseAdjustedWeightsPass::getFunction(func::FuncOp update,
                                     ArrayRef<Adjustment> adjustments) {
  std::string key;
  llvm::raw_string_ostream stream(key);
  UpdateExtension extension;
  stream << update.getSymName();
  for (Adjustment adjustment : adjustments) {
    stream << ";" << adjustment.op->getName() << "," << adjustment.weight << ","
           << llvm::bit_cast<uint64_t>(adjustment.factor) << ","
           << adjustment.other << "," << adjustment.scalars.size();
    if (adjustment.direction)
      stream << "," << adjustment.direction.getSymName();
    for (unsigned input : adjustment.inputs)
      stream << "," << input;
    Type result = adjustment.op->getResult(0).getType();
    stream << "," << result;
    extension.scalars += adjustment.scalars.size();
    extension.inputs += adjustment.older != nullptr;
    extension.results.push_back(
        cast<RankedTensorType>(result).getElementType());
  }
  func::FuncOp &function = known[key];
  if (function)
    return function;
  FailureOr<func::FuncOp> made = extendUpdate(
      *symbols, update, (update.getSymName() + ".adjusted").str(), extension,
      [&](Arithmetic f, const UpdateElements &elements) {
        SmallVector<Value> yields;
        ArrayRef<Value> scalars = elements.scalars, olders = elements.inputs;
        for (const Adjustment &adjustment : adjustments) {
          size_t count = adjustment.scalars.size();
          Value older;
          if (adjustment.older) {
            older = olders.front();
            olders = olders.drop_front();
          }
          yields.push_back(
              emit(f, elements, adjustment, older, scalars.take_front(count)));
          scalars = scalars.drop_front(count);
        }
        return yields;
      });
  if (failed(made))
    return failure();
  return function = *made;
}

/// w - tau * delta (if it is due), w - (steps * rate) * direction, or
/// older * s + w * (1 - s) (or w, where s is 0).
Value FuseAdjustedWeightsPass::emit(Arithmetic f,
                                    const UpdateElements &elements,
                                    const Adjustment &adjustment, Value older,
                                    ArrayRef<Value> scalars) {
  Value weight = elements.results[adjustment.weight];
  if (older) {
    Value s = f.from(scalars[0]);
    Value blended =
        f.add(f.mul(older, s), f.mul(weight, f.sub(f.constant(1), s)));
    return f.selectLess(f.constant(0), s, blended, weight);
  }
  Value factor = f.constant(adjustment.factor);
  if (!scalars.empty())
    factor = f.mul(factor, f.from(scalars[0]));
  Value direction = elements.results[adjustment.other];
  if (func::FuncOp function = adjustment.direction) {
    // Its scalar body, on the elements that the update has.
    IRMapping mapping;
    linalg::GenericOp body = getElementwiseOp(function);
    ArrayRef<Value> numbers = scalars.drop_front();
    ArrayRef<unsigned> inputs = adjustment.inputs;
    for (BlockArgument argument : function.getArguments()) {
      if (!isa<TensorType>(argument.getType())) {
        mapping.map(argument, numbers.front());
        numbers = numbers.drop_front();
        continue;
      }
      for (OpOperand &operand : body->getOpOperands())
        if (operand.get() == argument)
          mapping.map(body.getMatchingBlockArgument(&operand),
                      elements.results[inputs.front()]);
      inputs = inputs.drop_front();
    }
    for (Operation &op : function.front().without_terminator()) {
      if (&op == body || isa<tensor::EmptyOp>(op))
        continue;
      f.builder.clone(op, mapping);
    }
    for (Operation &op : body.getBody()->without_terminator())
      f.builder.clone(op, mapping);
    direction =
        mapping.lookupOrDefault(body.getBody()->getTerminator()->getOperand(0));
  }
  return f.sub(weight, f.mul(factor, direction));
}
