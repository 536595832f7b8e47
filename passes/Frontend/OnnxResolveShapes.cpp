//===- OnnxResolveShapes.cpp - Types of nodes, and constants --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One walk in order: a node's types follow from its operands', and a node that
// folds is a constant for the nodes after it. The operator table does the rest.
//===----------------------------------------------------------------------===//

#include "Sequences.h"
#include "dialects/Onnx/Onnx.h"
#include "dialects/Pipeline/Pipeline.h"
#include "passes/Frontend/Passes.h"
#include "penstock/Import/OperatorRegistry.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/CheckedArithmetic.h"

namespace penstock {
#define GEN_PASS_DEF_ONNXRESOLVESHAPES
#include "passes/Frontend/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

// A run is a copy of the body in which the number of the run is a constant, so
// that a condition which counts folds before the next run is copied.

namespace {

class Unroller {
public:
  Unroller(LoopOp loop,
           llvm::function_ref<LogicalResult(Operation *)> resolveOp,
           ResolveNodeFn resolveNode)
      : loop(loop), resolveOp(resolveOp), resolveNode(resolveNode),
        builder(loop), name(nameOf(loop.getLoc()).str()),
        condition(loop.getInputs()[1]), carried(loop.getInputs().drop_front(2)),
        scanned(loop.getScanAxes().size()) {}

  LogicalResult unroll();

private:
  static StringRef nameOf(Location loc) {
    auto named = dyn_cast<NameLoc>(loc);
    return named ? named.getName().getValue() : StringRef("?");
  }
  InFlightDiagnostic emitError() {
    return mlir::emitError(loop.getLoc()) << "node '" << name << "' (Loop): ";
  }
  template <typename T> Value emitScalar(T value) {
    auto type =
        RankedTensorType::get({}, builder.getIntegerType(8 * sizeof(T)));
    return arith::ConstantOp::create(builder, loop.getLoc(),
                                     DenseElementsAttr::get(type, value));
  }
  /// The number of runs, or nothing where it is left open.
  LogicalResult findTripCount();
  /// Returns true if the condition lets another run begin.
  FailureOr<bool> goesOn();
  LogicalResult copyRun(int64_t run);
  /// Names of the body's ops say in which run they are.
  Location rename(Location loc, int64_t run);
  /// Returns scan output `i` of all runs as one tensor; null after an error.
  Value join(unsigned i);

  LoopOp loop;
  llvm::function_ref<LogicalResult(Operation *)> resolveOp;
  ResolveNodeFn resolveNode;
  OpBuilder builder;
  std::string name;
  std::optional<int64_t> tripCount;
  Value condition;
  SmallVector<Value> carried;
  /// Per scan output, what each run gave.
  SmallVector<SmallVector<Value>> scanned;
};

} // namespace

LogicalResult Unroller::findTripCount() {
  Value count = loop.getInputs()[0];
  if (isa<NoneType>(count.getType()))
    return success();
  DenseElementsAttr constant = getConstant(count);
  if (!constant || constant.getNumElements() != 1 ||
      !constant.getElementType().isSignlessInteger(64))
    return emitError()
           << "the number of its runs must be a constant when the model is "
              "compiled; bind every symbolic dimension that it is computed "
              "from, or export the model with the loop unrolled";
  tripCount = (*constant.getValues<APInt>().begin()).getSExtValue();
  return success();
}

FailureOr<bool> Unroller::goesOn() {
  // Without a first condition, those of the body do not count.
  if (isa<NoneType>(loop.getInputs()[1].getType()))
    return true;
  DenseElementsAttr constant = getConstant(condition);
  if (!constant || constant.getNumElements() != 1 ||
      !constant.getElementType().isInteger(1))
    return emitError() << "whether it goes on is computed from data; the "
                          "number of its runs "
                          "must be known when the model is compiled";
  return *constant.getValues<bool>().begin();
}

Location Unroller::rename(Location loc, int64_t run) {
  if (auto named = dyn_cast<NameLoc>(loc)) {
    StringRef rest = named.getName().getValue();
    std::string text = rest.consume_front(name + "/")
                           ? (name + "/" + Twine(run) + "/" + rest).str()
                           : (rest + "/" + Twine(run)).str();
    return NameLoc::get(builder.getStringAttr(text),
                        rename(named.getChildLoc(), run));
  }
  if (auto fused = dyn_cast<FusedLoc>(loc))
    return builder.getFusedLoc(
        llvm::map_to_vector(fused.getLocations(),
                            [&](Location part) { return rename(part, run); }));
  return loc;
}

LogicalResult Unroller::copyRun(int64_t run) {
  // 1. The copies. The terminator keeps hold of what the run gives.
  Block &body = loop.getBody().front();
  IRMapping mapping;
  mapping.map(body.getArgument(0), emitScalar<int64_t>(run));
  if (isa<NoneType>(condition.getType())) {
    auto type = RankedTensorType::get({}, builder.getI1Type());
    condition = arith::ConstantOp::create(builder, loop.getLoc(),
                                          DenseElementsAttr::get(type, true));
  }
  mapping.map(body.getArgument(1), condition);
  mapping.map(body.getArguments().drop_front(2), carried);
  SmallVector<Operation *> copies;
  for (Operation &op : body) {
    copies.push_back(builder.clone(op, mapping));
    copies.back()->walk(
        [&](Operation *inner) { inner->setLoc(rename(inner->getLoc(), run)); });
  }
  Operation *yield = copies.pop_back_val();

  // 2. Their types and constants. An op may be gone afterwards.
  for (Operation *op : copies)
    if (failed(resolveOp(op)))
      return failure();
  ValueRange values = yield->getOperands();
  condition = values.front();
  carried.assign(values.begin() + 1, values.begin() + 1 + carried.size());
  for (auto [all, value] :
       llvm::zip_equal(scanned, values.take_back(scanned.size())))
    all.push_back(value);
  yield->erase();
  return success();
}

Value Unroller::join(unsigned i) {
  bool reversed = loop.getScanReversed()[i];
  int64_t axis = loop.getScanAxes()[i];
  if (scanned[i].empty()) {
    emitError() << "it never runs, and what it would give has no shape";
    return nullptr;
  }
  SmallVector<Value> parts;
  Value axes = emitIntegers(builder, loop.getLoc(), axis);
  for (Value part : scanned[i]) {
    parts.push_back(emitResolved(builder, loop.getLoc(), "Unsqueeze",
                                 {part, axes}, DictionaryAttr(), resolveNode));
    if (!parts.back())
      return nullptr;
  }
  if (reversed)
    std::reverse(parts.begin(), parts.end());
  NamedAttribute param =
      builder.getNamedAttr("axis", builder.getI64IntegerAttr(axis));
  return emitResolved(builder, loop.getLoc(), "Concat", parts,
                      builder.getDictionaryAttr(param), resolveNode);
}

LogicalResult Unroller::unroll() {
  // More are a program that no one wants to compile.
  constexpr int64_t kMostRuns = 4096;
  if (failed(findTripCount()))
    return failure();
  if (!tripCount && isa<NoneType>(condition.getType()))
    return emitError() << "it has neither a number of runs nor a condition";
  for (int64_t run = 0; !tripCount || run < *tripCount; ++run) {
    FailureOr<bool> more = goesOn();
    if (failed(more))
      return failure();
    if (!*more)
      break;
    if (run == kMostRuns)
      return emitError() << "it runs more than " << kMostRuns
                         << " times, and would be unrolled; bind smaller "
                            "dimensions";
    if (failed(copyRun(run)))
      return failure();
  }
  for (auto [i, output] : llvm::enumerate(loop.getOutputs())) {
    Value value;
    if (i < carried.size())
      value = carried[i];
    else if (output.use_empty())
      continue;
    else
      value = join(i - carried.size());
    if (!value)
      return failure();
    output.replaceAllUsesWith(value);
  }
  loop.erase();
  return success();
}

/// Replaces a loop by the ops of its runs. `resolveOp` is given each op of a
/// run in order, `resolveNode` each node that joins what the runs give. The
/// operands of the loop have their types.
static LogicalResult
unrollLoop(LoopOp loop,
           llvm::function_ref<LogicalResult(Operation *)> resolveOp,
           ResolveNodeFn resolveNode) {
  return Unroller(loop, resolveOp, resolveNode).unroll();
}

namespace {
struct OnnxResolveShapes
    : public penstock::impl::OnnxResolveShapesBase<OnnxResolveShapes> {
  void runOnOperation() override;
};
} // namespace

/// Inferred shapes are products of what the model says: they may be absurd.
static LogicalResult checkSize(NodeOp node) {
  constexpr int64_t kLimit = int64_t(1) << 48;
  for (Type type : node.getResultTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      continue;
    int64_t count = 1;
    for (int64_t dim : tensor.getShape()) {
      std::optional<int64_t> product =
          llvm::checkedMul(count, std::max<int64_t>(dim, 1));
      if (!product || *product > kLimit)
        return emitNodeError(node) << "its result " << tensor
                                   << " is too large; bind smaller dimensions";
      count = *product;
    }
  }
  return success();
}

static FailureOr<SmallVector<Value>> resolveNode(NodeOp node) {
  if (failed(inferResultTypes(node)) || failed(checkSize(node)))
    return failure();
  SmallVector<DenseElementsAttr> values;
  if (failed(foldNode(node, values)))
    return failure();
  // `arith` has no unsigned integers.
  if (values.empty() || llvm::any_of(values, [](DenseElementsAttr value) {
        return value.getElementType().isUnsignedInteger();
      }))
    return SmallVector<Value>(node.getOutputs());
  OpBuilder builder(node);
  SmallVector<Value> constants;
  for (auto [result, value] : llvm::zip_equal(node.getOutputs(), values)) {
    constants.push_back(
        arith::ConstantOp::create(builder, node.getLoc(), value));
    result.replaceAllUsesWith(constants.back());
  }
  node.erase();
  return constants;
}

/// Constants are operands of folded nodes only, afterwards.
static void dropDeadOps(func::FuncOp function) {
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
    if (op.use_empty() && isa<NodeOp, LoopOp, AbsentOp, arith::ConstantOp>(op))
      op.erase();
}

/// A model with a fixed batch of 1 was given another: its results must follow.
static LogicalResult checkReboundBatch(func::FuncOp function) {
  auto batch = function->getAttrOfType<IntegerAttr>(kReboundBatchAttr);
  if (!batch)
    return success();
  for (auto [index, type] : llvm::enumerate(function.getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || tensor.getRank() == 0 ||
        tensor.getDimSize(0) == batch.getInt())
      continue;
    auto name =
        function.getResultAttrOfType<StringAttr>(index, kOutputNameAttr);
    return emitError(function.getLoc())
           << "--microbatch-size=" << batch.getInt()
           << ": the model has a fixed batch of 1, and its output '"
           << (name ? name.getValue() : StringRef("?")) << "' would be "
           << tensor << "; export the model with an open batch dimension";
  }
  function->removeAttr(kReboundBatchAttr);
  return success();
}

//===--- Branches ---===//

static LogicalResult resolveOperand(OpOperand &operand);

/// An If whose condition is known is the branch that it takes. The nodes of the
/// other one are never looked at: their shapes need not fit.
static LogicalResult resolveIf(NodeOp node) {
  if (failed(resolveOperand(node->getOpOperand(0))))
    return failure();
  DenseElementsAttr condition = getConstant(node.getInputs()[0]);
  if (!condition || condition.getNumElements() != 1 ||
      !condition.getElementType().isInteger(1))
    return emitNodeError(node)
           << "operand 'cond' must be a constant truth value when the model is "
              "compiled; bind every symbolic dimension that it is computed "
              "from, or export the model without the If";
  unsigned count = node.getNumResults();
  unsigned first = 1 + (*condition.getValues<bool>().begin() ? 0 : count);
  for (unsigned i = 0; i < count; ++i) {
    if (failed(resolveOperand(node->getOpOperand(first + i))))
      return failure();
    node.getOutputs()[i].replaceAllUsesWith(node.getInputs()[first + i]);
  }
  node.erase();
  return success();
}

/// Resolves what an op of no branch is; other ops than ours are left alone.
static LogicalResult resolveAny(Operation *op) {
  if (op->hasAttr(kBranchAttr))
    return success();
  if (auto loop = dyn_cast<LoopOp>(op))
    return unrollLoop(loop, resolveAny, resolveNode);
  auto node = dyn_cast<NodeOp>(op);
  if (!node)
    return success();
  if (node.isIf())
    return resolveIf(node);
  return isSequenceNode(node) ? resolveSequenceNode(node, resolveNode)
                              : LogicalResult(resolveNode(node));
}

/// Resolves the op behind an operand if it is one of a branch.
static LogicalResult resolveOperand(OpOperand &operand) {
  Operation *op = operand.get().getDefiningOp();
  if (!op || !op->hasAttr(kBranchAttr))
    return success();
  op->removeAttr(kBranchAttr);
  auto node = dyn_cast<NodeOp>(op);
  if (!node || !node.isIf()) {
    // The body of a loop reads values from outside, too.
    WalkResult resolved = op->walk([&](Operation *inner) {
      for (OpOperand &read : inner->getOpOperands()) {
        Operation *maker = read.get().getDefiningOp();
        if (maker && !op->isProperAncestor(maker) &&
            failed(resolveOperand(read)))
          return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    if (resolved.wasInterrupted())
      return failure();
  }
  return resolveAny(op);
}

static LogicalResult resolveFunction(func::FuncOp function) {
  // Nodes of branches wait for their If.
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front()))
    if (failed(resolveAny(&op)))
      return failure();
  dropDeadOps(function);
  if (failed(checkSequencesRead(function)))
    return failure();
  Block &block = function.getBody().front();
  function.setFunctionType(
      FunctionType::get(function.getContext(), block.getArgumentTypes(),
                        block.getTerminator()->getOperandTypes()));
  return checkReboundBatch(function);
}

void OnnxResolveShapes::runOnOperation() {
  ModuleOp module = getOperation();

  // 1. What the operator table does not know, all of it at once.
  UnsupportedNodes unsupported;
  module.walk([&](NodeOp node) {
    if (!isSequenceNode(node) && !node.isIf() && !node->hasAttr(kBranchAttr))
      unsupported.addIfUnknown(node);
  });
  if (!unsupported.empty()) {
    (void)unsupported.report(module.getLoc());
    return signalPassFailure();
  }

  // 2. Functions, then the calls of them.
  SymbolTable symbols(module);
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    if (!function.isDeclaration() &&
        (!function.getOps<NodeOp>().empty() ||
         !function.getOps<LoopOp>().empty()) &&
        failed(resolveFunction(function)))
      return signalPassFailure();
  module.walk([&](func::CallOp call) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (!callee || callee.getNumResults() != call.getNumResults())
      return;
    for (auto [result, type] :
         llvm::zip(call.getResults(), callee.getResultTypes()))
      result.setType(type);
  });
}
