//===- OnnxAttachLoss.cpp - The loss as nodes -----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Appends the loss to the model's function, and to its task the labels that go
// in and the loss that comes out.
//===----------------------------------------------------------------------===//

#include "passes/Frontend/Passes.h"

#include "dialects/Onnx/Onnx.h"
#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Import/OperatorRegistry.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"

namespace penstock {
#define GEN_PASS_DEF_ONNXATTACHLOSS
#include "passes/Frontend/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

namespace {

struct OnnxAttachLoss
    : public penstock::impl::OnnxAttachLossBase<OnnxAttachLoss> {
  using OnnxAttachLossBase::OnnxAttachLossBase;

  void runOnOperation() override;

private:
  LogicalResult findProgram();
  FailureOr<unsigned> selectOutput();
  LogicalResult appendOutput();
  LogicalResult appendCrossEntropy();
  LogicalResult appendMeanSquaredError();
  LogicalResult appendBinaryCrossEntropy();
  Value skipFinalSoftmax(Value input, int64_t classAxis);
  Value skipFinalSigmoid(Value input);
  void remarkSkipped(NodeOp node);
  Value addLabels(RankedTensorType type);
  Value castToSingle(Value operand);
  /// The operand in single precision, if it has less.
  Value widen(Value operand);
  Value createReshape(Value operand, ArrayRef<int64_t> shape);
  Value createNode(StringRef type, int64_t since, ValueRange operands,
                   RankedTensorType result, ArrayRef<NamedAttribute> params);
  void dropWhatIsNotUsed();
  void rebuildTask();
  StringAttr makeSymbol(StringRef name);

  InFlightDiagnostic error() { return emitError(function.getLoc()); }

  pipeline::TaskOp task;
  func::CallOp call;
  func::FuncOp function;
  /// The output of the model that enters the loss, then the loss.
  Value value;
  std::string name;
  /// The channel of the labels, and their argument; null without labels.
  pipeline::ChannelOp labels;
};

} // namespace

/// Behind the last op of a kind in `block`, or before `otherwise`.
template <typename OpTy>
static void setAfterLast(OpBuilder &builder, Block &block,
                         Operation *otherwise) {
  builder.setInsertionPoint(otherwise);
  for (OpTy op : block.getOps<OpTy>())
    builder.setInsertionPointAfter(op);
}

LogicalResult OnnxAttachLoss::findProgram() {
  ModuleOp module = getOperation();
  for (auto candidate : module.getOps<pipeline::TaskOp>()) {
    if (candidate.getKind() != pipeline::TaskKind::Forward ||
        candidate.isBodyless())
      continue;
    if (task)
      return emitError(module.getLoc())
             << "a loss is attached to a program of one forward task";
    task = candidate;
  }
  if (!task)
    return emitError(module.getLoc()) << "the program has no forward task";
  for (auto candidate : task.getBody().getOps<func::CallOp>()) {
    if (call)
      return emitError(module.getLoc())
             << "a loss is attached to a task with one call";
    call = candidate;
  }
  if (call)
    function = module.lookupSymbol<func::FuncOp>(call.getCallee());
  if (!function || function.isDeclaration())
    return emitError(module.getLoc())
           << "the forward task calls no function of the program";
  return success();
}

FailureOr<unsigned> OnnxAttachLoss::selectOutput() {
  SmallVector<StringRef> names;
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    auto attr = function.getResultAttrOfType<StringAttr>(i, kOutputNameAttr);
    names.push_back(attr ? attr.getValue() : StringRef());
  }
  if (names.empty())
    return error() << "the model has no output";
  const auto *found =
      lossInput.empty() ? names.begin() : llvm::find(names, lossInput);
  if (found == names.end())
    return error() << "--loss-input=" << lossInput
                   << ": the model has no such output; it has: "
                   << llvm::join(names, ", ");
  unsigned index = found - names.begin();
  name = names[index].str();
  value = function.getBody().front().getTerminator()->getOperand(index);
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.hasStaticShape())
    return error() << "output '" << name << "' has no static shape";
  if (!isa<FloatType>(type.getElementType()))
    return error() << "output '" << name << "' is " << type
                   << ", and a loss needs floats";
  return index;
}

Value OnnxAttachLoss::createNode(StringRef type, int64_t since,
                                 ValueRange operands, RankedTensorType result,
                                 ArrayRef<NamedAttribute> params) {
  OpBuilder builder(function.getBody().front().getTerminator());
  Location loc = NameLoc::get(builder.getStringAttr("loss/" + type));
  return NodeOp::create(builder, loc, TypeRange(result),
                        builder.getStringAttr(type), operands,
                        builder.getI64IntegerAttr(since), StringAttr(),
                        params.empty() ? DictionaryAttr()
                                       : builder.getDictionaryAttr(params))
      .getResult(0);
}

Value OnnxAttachLoss::createReshape(Value operand, ArrayRef<int64_t> shape) {
  OpBuilder builder(function.getBody().front().getTerminator());
  Value target = arith::ConstantOp::create(builder, function.getLoc(),
                                           builder.getI64TensorAttr(shape));
  Type element = cast<RankedTensorType>(operand.getType()).getElementType();
  return createNode("Reshape", 14, {operand, target},
                    RankedTensorType::get(shape, element), {});
}

Value OnnxAttachLoss::castToSingle(Value operand) {
  auto type = cast<RankedTensorType>(operand.getType());
  Builder builder(&getContext());
  if (type.getElementType().isF32())
    return operand;
  constexpr int64_t kFloat = 1; // TensorProto.DataType
  return createNode(
      "Cast", 13, operand, type.clone(builder.getF32Type()),
      builder.getNamedAttr("to", builder.getI64IntegerAttr(kFloat)));
}

Value OnnxAttachLoss::widen(Value operand) {
  constexpr unsigned kSingle = 32;
  Type element = cast<RankedTensorType>(operand.getType()).getElementType();
  return element.getIntOrFloatBitWidth() < kSingle ? castToSingle(operand)
                                                   : operand;
}

StringAttr OnnxAttachLoss::makeSymbol(StringRef wanted) {
  std::string symbol = wanted.str();
  for (unsigned copy = 1; getOperation().lookupSymbol(symbol); ++copy)
    symbol = (wanted + "." + Twine(copy)).str();
  return StringAttr::get(&getContext(), symbol);
}

Value OnnxAttachLoss::addLabels(RankedTensorType type) {
  ModuleOp module = getOperation();
  for (auto channel : module.getOps<pipeline::ChannelOp>())
    if (channel.getSource() == "labels") {
      error() << "--loss=" << loss << ": the model has an input named "
              << "'labels', which the labels of the loss need; rename it";
      return nullptr;
    }
  OpBuilder builder(&getContext());
  setAfterLast<pipeline::ChannelOp>(builder, *module.getBody(), task);
  labels = pipeline::ChannelOp::create(
      builder, module.getLoc(), makeSymbol("labels"),
      builder.getTypeArrayAttr(Type(type)), builder.getStringAttr("labels"),
      StringAttr(), IntegerAttr(), IntegerAttr());
  // Taken values come before the variables read.
  unsigned taken = 0;
  for (Value operand : call.getOperands())
    taken += isa_and_nonnull<pipeline::TakeOp>(operand.getDefiningOp());
  setAfterLast<pipeline::TakeOp>(builder, task.getBody().front(), call);
  auto take =
      pipeline::TakeOp::create(builder, task.getLoc(), TypeRange(type),
                               FlatSymbolRefAttr::get(labels.getSymNameAttr()));
  call->insertOperands(taken, take.getResult(0));
  return function.getBody().front().insertArgument(taken, type,
                                                   function.getLoc());
}

//===----------------------------------------------------------------------===//
// The losses
//===----------------------------------------------------------------------===//

LogicalResult OnnxAttachLoss::appendOutput() {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getNumElements() != 1)
    return error()
           << "output '" << name << "' is " << type
           << " and cannot be the loss, which is one float; choose "
              "--loss=softmax-cross-entropy, bce-with-logits or mse, or name a "
              "scalar output with --loss-input";
  if (type.getRank())
    value = createNode("Squeeze", 13, value,
                       RankedTensorType::get({}, type.getElementType()), {});
  return success();
}

/// The axis of the classes that a Softmax node normalises over, or nothing if
/// it does so over several.
static std::optional<int64_t> getSoftmaxAxis(NodeOp node, int64_t rank) {
  constexpr int64_t kOneAxisSince = 13;
  auto attr = dyn_cast_or_null<IntegerAttr>(node.getParam("axis"));
  bool oneAxis = int64_t(node.getSince()) >= kOneAxisSince;
  int64_t axis = attr ? attr.getInt() : (oneAxis ? -1 : 1);
  if (axis < 0)
    axis += rank;
  // Before opset 13 all axes from this one on were taken together.
  if (!oneAxis && axis != rank - 1)
    return std::nullopt;
  return axis;
}

/// The node of the default domain that a value comes from, behind identities.
static NodeOp findProducer(Value value) {
  auto node = value.getDefiningOp<NodeOp>();
  for (const Operator *entry = node ? lookupOperator(node) : nullptr;
       entry && entry->elements == Operator::Same;
       entry = node ? lookupOperator(node) : nullptr)
    node = node.getInputs()[0].getDefiningOp<NodeOp>();
  return node && node.getDomainName().empty() ? node : NodeOp();
}

void OnnxAttachLoss::remarkSkipped(NodeOp node) {
  emitRemark(node.getLoc())
      << "node '" << getNodeName(node) << "' (" << node.getOpType()
      << "), the last one, is part of --loss=" << loss
      << ": it is not applied twice; saved models keep it";
}

Value OnnxAttachLoss::skipFinalSoftmax(Value input, int64_t classAxis) {
  int64_t rank = cast<RankedTensorType>(input.getType()).getRank();
  NodeOp node = findProducer(input);
  if (!node ||
      (node.getOpType() != "Softmax" && node.getOpType() != "LogSoftmax") ||
      getSoftmaxAxis(node, rank) != classAxis)
    return input;
  remarkSkipped(node);
  return node.getInputs()[0];
}

Value OnnxAttachLoss::skipFinalSigmoid(Value input) {
  NodeOp node = findProducer(input);
  if (!node || node.getOpType() != "Sigmoid")
    return input;
  remarkSkipped(node);
  return node.getInputs()[0];
}

LogicalResult OnnxAttachLoss::appendCrossEntropy() {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t rank = type.getRank();
  if (rank < 2)
    return error() << "--loss=" << loss << ": output '" << name << "' is "
                   << type
                   << ", but needs an axis of samples and one of "
                      "classes";
  int64_t given = classAxis;
  int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank)
    return error() << "--class-axis=" << given << ": output '" << name
                   << "' is " << type << " and has axes 0 to " << rank - 1;
  if (axis == 0)
    return error() << "--class-axis=" << given
                   << ": axis 0 is that of the samples";
  std::optional<int64_t> ignored;
  if (!ignoreLabel.empty()) {
    int64_t number;
    if (StringRef(ignoreLabel).getAsInteger(10, number))
      return error() << "--ignore-label=" << ignoreLabel
                     << " is not an integer";
    ignored = number;
  }

  // 1. The labels have the shape of the logits without the classes.
  value = widen(skipFinalSoftmax(value, axis));
  type = cast<RankedTensorType>(value.getType());
  Builder builder(&getContext());
  SmallVector<int64_t> shape(type.getShape());
  int64_t classes = shape[axis];
  shape.erase(shape.begin() + axis);
  Value argument =
      addLabels(RankedTensorType::get(shape, builder.getI64Type()));
  if (!argument)
    return failure();

  // 2. The node wants the classes in axis 1. Behind all others they get there
  // by joining the others, which moves no data.
  if (axis == rank - 1 && rank > 2) {
    int64_t samples = ShapedType::getNumElements(shape);
    value = createReshape(value, {samples, classes});
    argument = createReshape(argument, {samples});
  } else if (axis != 1) {
    SmallVector<int64_t> permutation{0, axis};
    SmallVector<int64_t> permuted{type.getDimSize(0), classes};
    for (int64_t i = 1; i < rank; ++i)
      if (i != axis) {
        permutation.push_back(i);
        permuted.push_back(type.getDimSize(i));
      }
    value = createNode("Transpose", 13, value,
                       RankedTensorType::get(permuted, type.getElementType()),
                       builder.getNamedAttr(
                           "perm", builder.getDenseI64ArrayAttr(permutation)));
  }

  // 3. The loss: the mean over the labels that are not left out.
  SmallVector<NamedAttribute> params;
  if (ignored)
    params.push_back(builder.getNamedAttr("ignore_index",
                                          builder.getI64IntegerAttr(*ignored)));
  params.push_back(
      builder.getNamedAttr("reduction", builder.getStringAttr("mean")));
  value = createNode("SoftmaxCrossEntropyLoss", 13, {value, argument},
                     RankedTensorType::get({}, type.getElementType()), params);
  return success();
}

LogicalResult OnnxAttachLoss::appendMeanSquaredError() {
  value = widen(value);
  auto type = cast<RankedTensorType>(value.getType());
  Value argument = addLabels(type);
  if (!argument)
    return failure();
  Builder builder(&getContext());
  Value difference = createNode("Sub", 14, {value, argument}, type, {});
  Value square = createNode("Mul", 14, {difference, difference}, type, {});
  value = createNode(
      "ReduceMean", 18, square,
      RankedTensorType::get({}, type.getElementType()),
      builder.getNamedAttr("keepdims", builder.getI64IntegerAttr(0)));
  return success();
}

/// The mean of y softplus(-z) + (1 - y) softplus(z): no term is a difference of
/// large numbers, and its derivative is sigmoid(z) - y everywhere, at 0 as
/// well.
LogicalResult OnnxAttachLoss::appendBinaryCrossEntropy() {
  Value logits = widen(skipFinalSigmoid(value));
  auto type = cast<RankedTensorType>(logits.getType());
  Value argument = addLabels(type);
  if (!argument)
    return failure();
  OpBuilder builder(function.getBody().front().getTerminator());
  Type element = type.getElementType();
  Value one = arith::ConstantOp::create(
      builder, function.getLoc(),
      DenseElementsAttr::get(RankedTensorType::get({}, element),
                             builder.getFloatAttr(element, 1)));
  auto create = [&](StringRef op, int64_t since, ValueRange operands) {
    return createNode(op, since, operands, type, {});
  };
  Value negative = create("Neg", 13, logits);
  Value whenOne =
      create("Mul", 14, {argument, create("Softplus", 1, negative)});
  Value rest = create("Sub", 14, {one, argument});
  Value whenZero = create("Mul", 14, {rest, create("Softplus", 1, logits)});
  value = createNode(
      "ReduceMean", 18, create("Add", 14, {whenOne, whenZero}),
      RankedTensorType::get({}, element),
      builder.getNamedAttr("keepdims", builder.getI64IntegerAttr(0)));
  return success();
}

//===----------------------------------------------------------------------===//
// The program around it
//===----------------------------------------------------------------------===//

void OnnxAttachLoss::dropWhatIsNotUsed() {
  ModuleOp module = getOperation();
  Block &block = function.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
  llvm::BitVector dead(block.getNumArguments());
  for (BlockArgument argument : block.getArguments())
    if (argument.use_empty())
      dead.set(argument.getArgNumber());
  block.eraseArguments(dead);

  // Their takes and reads go, and with them the channels and variables.
  SmallVector<Attribute> unusedInputs;
  if (auto known = module->getAttrOfType<ArrayAttr>(kUnusedInputsAttr))
    unusedInputs.append(known.begin(), known.end());
  SmallVector<Operation *> producers;
  for (int i = dead.find_first(); i >= 0; i = dead.find_next(i))
    producers.push_back(call.getOperand(i).getDefiningOp());
  call->eraseOperands(dead);
  for (Operation *producer : producers) {
    if (!producer || !producer->use_empty())
      continue;
    FlatSymbolRefAttr symbol;
    if (auto take = dyn_cast<pipeline::TakeOp>(producer))
      symbol = take.getChannelAttr();
    else if (auto read = dyn_cast<pipeline::ReadOp>(producer))
      symbol = read.getVariableAttr();
    producer->erase();
    if (!symbol)
      continue;
    Operation *definition = module.lookupSymbol(symbol.getValue());
    if (!definition)
      continue;
    if (auto channel = dyn_cast<pipeline::ChannelOp>(definition);
        channel && channel.getSource())
      unusedInputs.push_back(channel.getSourceAttr());
    definition->erase();
  }
  if (!unusedInputs.empty())
    module->setAttr(kUnusedInputsAttr,
                    ArrayAttr::get(&getContext(), unusedInputs));
}

void OnnxAttachLoss::rebuildTask() {
  ModuleOp module = getOperation();
  Block &block = function.getBody().front();
  function.setResAttrsAttr(nullptr);
  function.setFunctionType(
      FunctionType::get(&getContext(), block.getArgumentTypes(),
                        block.getTerminator()->getOperandTypes()));
  OpBuilder builder(&getContext());
  setAfterLast<pipeline::ChannelOp>(builder, *module.getBody(), task);
  StringAttr symbol = makeSymbol("loss");
  pipeline::ChannelOp::create(builder, module.getLoc(), symbol,
                              builder.getTypeArrayAttr(value.getType()),
                              StringAttr(), builder.getStringAttr("loss"),
                              IntegerAttr(), IntegerAttr());
  builder.setInsertionPoint(call);
  auto newCall = func::CallOp::create(builder, call.getLoc(), function,
                                      call.getOperands());
  pipeline::PutOp::create(builder, call.getLoc(), newCall.getResults(),
                          FlatSymbolRefAttr::get(symbol));
  call.erase();
}

void OnnxAttachLoss::runOnOperation() {
  // 1. Once is enough.
  task = nullptr;
  call = nullptr;
  function = nullptr;
  labels = nullptr;
  for (auto channel : getOperation().getOps<pipeline::ChannelOp>())
    if (channel.getSink() == "loss")
      return markAllAnalysesPreserved();

  // 2. The output that enters, and the loss of it.
  if (failed(findProgram()) || failed(selectOutput()))
    return signalPassFailure();
  LogicalResult result = failure();
  if (loss == "output")
    result = appendOutput();
  else if (loss == "softmax-cross-entropy")
    result = appendCrossEntropy();
  else if (loss == "mse")
    result = appendMeanSquaredError();
  else if (loss == "bce-with-logits")
    result = appendBinaryCrossEntropy();
  else
    error()
        << "--loss=" << loss
        << ": unknown; it is softmax-cross-entropy, bce-with-logits, mse or "
           "output";
  if (failed(result))
    return signalPassFailure();

  // 3. The loss is the only result, and in single precision, as it is logged;
  // what it does not need goes.
  value = castToSingle(value);
  function.getBody().front().getTerminator()->setOperands(value);
  dropWhatIsNotUsed();
  rebuildTask();
}
