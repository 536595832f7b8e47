//===- LossNodes.cpp - The losses as nodes --------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each loss is written in operators of the standard, which have derivatives. A
// Softmax or Sigmoid at the end that a loss contains is skipped.
//===----------------------------------------------------------------------===//

#include "LossNodes.h"

#include "dialects/Onnx/Onnx.h"
#include "penstock/Import/OperatorRegistry.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

namespace {

class LossBuilder {
public:
  LossBuilder(func::FuncOp function, Value output, const LossOptions &options,
              llvm::function_ref<Value(RankedTensorType)> addLabels)
      : function(function), value(output), options(options),
        addLabels(addLabels) {}

  LogicalResult append();
  /// The loss, in single precision.
  Value getLoss() { return castToSingle(value); }

private:
  LogicalResult appendOutput();
  LogicalResult appendCrossEntropy();
  LogicalResult appendMeanSquaredError();
  LogicalResult appendBinaryCrossEntropy();
  Value skipFinalSoftmax(Value input, int64_t classAxis);
  Value skipFinalSigmoid(Value input);
  void remarkSkipped(NodeOp node);
  Value castToSingle(Value operand);
  /// The operand in single precision, if it has less.
  Value widen(Value operand);
  Value createReshape(Value operand, ArrayRef<int64_t> shape);
  Value createNode(StringRef type, int64_t since, ValueRange operands,
                   RankedTensorType result, ArrayRef<NamedAttribute> params);

  InFlightDiagnostic error() { return emitError(function.getLoc()); }

  func::FuncOp function;
  /// The output of the model that enters the loss, then the loss.
  Value value;
  const LossOptions &options;
  llvm::function_ref<Value(RankedTensorType)> addLabels;
};

} // namespace

Value LossBuilder::createNode(StringRef type, int64_t since,
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

Value LossBuilder::createReshape(Value operand, ArrayRef<int64_t> shape) {
  OpBuilder builder(function.getBody().front().getTerminator());
  Value target = arith::ConstantOp::create(builder, function.getLoc(),
                                           builder.getI64TensorAttr(shape));
  Type element = cast<RankedTensorType>(operand.getType()).getElementType();
  return createNode("Reshape", 14, {operand, target},
                    RankedTensorType::get(shape, element), {});
}

Value LossBuilder::castToSingle(Value operand) {
  auto type = cast<RankedTensorType>(operand.getType());
  Builder builder(function.getContext());
  if (type.getElementType().isF32())
    return operand;
  constexpr int64_t kFloat = 1; // TensorProto.DataType
  return createNode(
      "Cast", 13, operand, type.clone(builder.getF32Type()),
      builder.getNamedAttr("to", builder.getI64IntegerAttr(kFloat)));
}

Value LossBuilder::widen(Value operand) {
  constexpr unsigned kSingle = 32;
  Type element = cast<RankedTensorType>(operand.getType()).getElementType();
  return element.getIntOrFloatBitWidth() < kSingle ? castToSingle(operand)
                                                   : operand;
}

LogicalResult LossBuilder::appendOutput() {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getNumElements() != 1)
    return error()
           << "output '" << options.output << "' is " << type
           << " and cannot be the loss, which is one float; choose "
              "--loss=softmax-cross-entropy, bce-with-logits or mse, or name a "
              "scalar output with --loss-input";
  if (type.getRank())
    value = createNode("Squeeze", 13, value,
                       RankedTensorType::get({}, type.getElementType()), {});
  return success();
}

/// The axis of the classes that a Softmax node normalizes over, or nothing if
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

void LossBuilder::remarkSkipped(NodeOp node) {
  emitRemark(node.getLoc())
      << "node '" << getNodeName(node) << "' (" << node.getOpType()
      << "), the last one, is part of --loss=" << options.loss
      << ": it is not applied twice; saved models keep it";
}

Value LossBuilder::skipFinalSoftmax(Value input, int64_t classAxis) {
  int64_t rank = cast<RankedTensorType>(input.getType()).getRank();
  NodeOp node = findProducer(input);
  if (!node ||
      (node.getOpType() != "Softmax" && node.getOpType() != "LogSoftmax") ||
      getSoftmaxAxis(node, rank) != classAxis)
    return input;
  remarkSkipped(node);
  return node.getInputs()[0];
}

Value LossBuilder::skipFinalSigmoid(Value input) {
  NodeOp node = findProducer(input);
  if (!node || node.getOpType() != "Sigmoid")
    return input;
  remarkSkipped(node);
  return node.getInputs()[0];
}

LogicalResult LossBuilder::appendCrossEntropy() {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t rank = type.getRank();
  if (rank < 2)
    return error() << "--loss=" << options.loss << ": output '"
                   << options.output << "' is " << type
                   << ", but needs an axis of samples and one of "
                      "classes";
  int64_t given = options.classAxis;
  int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank)
    return error() << "--class-axis=" << given << ": output '" << options.output
                   << "' is " << type << " and has axes 0 to " << rank - 1;
  if (axis == 0)
    return error() << "--class-axis=" << given
                   << ": axis 0 is that of the samples";
  std::optional<int64_t> ignored;
  if (!options.ignoreLabel.empty()) {
    int64_t number;
    if (options.ignoreLabel.getAsInteger(10, number))
      return error() << "--ignore-label=" << options.ignoreLabel
                     << " is not an integer";
    ignored = number;
  }

  if (!(options.labelSmoothing >= 0 && options.labelSmoothing < 1))
    return error() << "label-smoothing=" << options.labelSmoothing
                   << ": it is at least 0 and below 1";
  if (!options.classWeights.empty() &&
      static_cast<int64_t>(options.classWeights.size()) !=
          type.getDimSize(axis))
    return error() << "class-weights: there are " << options.classWeights.size()
                   << ", but output '" << options.output << "' has "
                   << type.getDimSize(axis) << " classes";

  // 1. The labels have the shape of the logits without the classes.
  value = widen(skipFinalSoftmax(value, axis));
  type = cast<RankedTensorType>(value.getType());
  Builder builder(function.getContext());
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

  // 3. The loss: the mean over the labels that are not left out. The standard
  // knows weights as an operand and no smoothing; both stay whole here.
  SmallVector<NamedAttribute> params;
  if (ignored)
    params.push_back(builder.getNamedAttr("ignore_index",
                                          builder.getI64IntegerAttr(*ignored)));
  params.push_back(
      builder.getNamedAttr("reduction", builder.getStringAttr("mean")));
  if (options.labelSmoothing != 0)
    params.push_back(builder.getNamedAttr(
        "label_smoothing", builder.getF64FloatAttr(options.labelSmoothing)));
  if (!options.classWeights.empty())
    params.push_back(builder.getNamedAttr(
        "class_weights", builder.getDenseF64ArrayAttr(options.classWeights)));
  value = createNode("SoftmaxCrossEntropyLoss", 13, {value, argument},
                     RankedTensorType::get({}, type.getElementType()), params);
  return success();
}

LogicalResult LossBuilder::appendMeanSquaredError() {
  value = widen(value);
  auto type = cast<RankedTensorType>(value.getType());
  Value argument = addLabels(type);
  if (!argument)
    return failure();
  Builder builder(function.getContext());
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
LogicalResult LossBuilder::appendBinaryCrossEntropy() {
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

LogicalResult LossBuilder::append() {
  if (options.loss == "output")
    return appendOutput();
  if (options.loss == "softmax-cross-entropy")
    return appendCrossEntropy();
  if (options.loss == "mse")
    return appendMeanSquaredError();
  if (options.loss == "bce-with-logits")
    return appendBinaryCrossEntropy();
  return error()
         << "--loss=" << options.loss
         << ": unknown; it is softmax-cross-entropy, bce-with-logits, mse or "
            "output";
}

FailureOr<Value>
penstock::appendLoss(func::FuncOp function, Value output,
                     const LossOptions &options,
                     llvm::function_ref<Value(RankedTensorType)> addLabels) {
  LossBuilder builder(function, output, options, addLabels);
  if (failed(builder.append()))
    return failure();
  return builder.getLoss();
}
