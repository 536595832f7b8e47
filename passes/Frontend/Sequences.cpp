//===- Sequences.cpp - Nodes over sequences of tensors --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An element of a split is a Slice (and a Squeeze); an element of a constructed
// sequence is the operand itself; a concatenation is a Concat. A sequence that
// another one becomes by an insertion or a removal is a constructed one.
//===----------------------------------------------------------------------===//

#include "Sequences.h"

#include "penstock/Import/OperatorRegistry.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

namespace {

enum class Kind { None, Split, Construct, Insert, Erase, At, Length, Concat };

Kind getKind(NodeOp node) {
  if (!node || !node.getDomainName().empty())
    return Kind::None;
  return llvm::StringSwitch<Kind>(node.getOpType())
      .Case("SplitToSequence", Kind::Split)
      .Cases({"SequenceConstruct", "SequenceEmpty"}, Kind::Construct)
      .Case("SequenceInsert", Kind::Insert)
      .Case("SequenceErase", Kind::Erase)
      .Case("SequenceAt", Kind::At)
      .Case("SequenceLength", Kind::Length)
      .Case("ConcatFromSequence", Kind::Concat)
      .Default(Kind::None);
}

int64_t getInteger(NodeOp node, StringRef param, int64_t otherwise) {
  auto value = dyn_cast_if_present<IntegerAttr>(node.getParam(param));
  return value ? value.getInt() : otherwise;
}

std::optional<SmallVector<int64_t>> getIntegers(Value value) {
  DenseElementsAttr constant = getConstant(value);
  if (!constant || !constant.getElementType().isSignlessInteger())
    return std::nullopt;
  return llvm::map_to_vector(
      constant.getValues<APInt>(),
      [](const APInt &number) { return number.getSExtValue(); });
}

/// Emits the nodes that take the place of `reader`, which reads `maker`.
class Reader {
public:
  Reader(NodeOp reader, NodeOp maker, ResolveNodeFn resolve)
      : reader(reader), maker(maker), resolve(resolve), builder(reader) {}

  LogicalResult findElements();
  int64_t size() const { return starts.size(); }
  /// Null after an error.
  Value getElement(int64_t index);
  Value emit(StringRef type, ValueRange operands, DictionaryAttr params = {});
  Value emitConstant(ArrayRef<int64_t> values) {
    return emitIntegers(builder, reader.getLoc(), values);
  }
  OpBuilder &getBuilder() { return builder; }

private:
  LogicalResult findPieces();

  NodeOp reader, maker;
  ResolveNodeFn resolve;
  OpBuilder builder;
  int64_t axis = 0;
  bool squeeze = false;
  /// Where the pieces of a split begin and how long they are. For a constructed
  /// sequence only their number counts.
  SmallVector<int64_t> starts, sizes;
};

} // namespace

LogicalResult Reader::findElements() {
  if (getKind(maker) == Kind::Split)
    return findPieces();
  starts.resize(maker.getInputs().size());
  return success();
}

LogicalResult Reader::findPieces() {
  auto type = dyn_cast<RankedTensorType>(maker.getInputs().front().getType());
  if (!type)
    return emitNodeError(maker) << "it splits what is no tensor";
  axis = getInteger(maker, "axis", 0);
  if (axis < -type.getRank() || axis >= type.getRank())
    return emitNodeError(maker) << "axis " << axis << " is none of " << type;
  axis += axis < 0 ? type.getRank() : 0;
  int64_t extent = type.getDimSize(axis);

  bool given = maker.getInputs().size() > 1 &&
               !maker.getInputs()[1].getDefiningOp<AbsentOp>();
  squeeze = !given && getInteger(maker, "keepdims", 1) == 0;
  int64_t step = 1;
  if (given) {
    std::optional<SmallVector<int64_t>> split =
        getIntegers(maker.getInputs()[1]);
    if (!split)
      return emitNodeError(maker)
             << "'split' must be constant; export the model with fixed sizes";
    bool isScalar =
        cast<ShapedType>(maker.getInputs()[1].getType()).getRank() == 0;
    if (!isScalar) {
      int64_t start = 0;
      for (int64_t size : *split) {
        if (size < 0 || size > extent - start)
          return emitNodeError(maker) << "'split' does not divide " << extent
                                      << " elements of axis " << axis;
        starts.push_back(start);
        sizes.push_back(size);
        start += size;
      }
      if (start != extent)
        return emitNodeError(maker)
               << "'split' adds up to " << start << ", but axis " << axis
               << " has " << extent << " elements";
      return success();
    }
    step = split->front();
    if (step < 1)
      return emitNodeError(maker) << "'split' is " << step;
  }
  for (int64_t start = 0; start < extent; start += step) {
    starts.push_back(start);
    sizes.push_back(std::min(step, extent - start));
  }
  return success();
}

Value Reader::emit(StringRef type, ValueRange operands, DictionaryAttr params) {
  return emitResolved(builder, reader.getLoc(), type, operands, params,
                      resolve);
}

Value Reader::getElement(int64_t index) {
  if (getKind(maker) == Kind::Construct)
    return maker.getInputs()[index];
  Value start = emitConstant(starts[index]);
  Value end = emitConstant(starts[index] + sizes[index]);
  Value axes = emitConstant(axis);
  Value piece = emit("Slice", {maker.getInputs().front(), start, end, axes});
  if (!piece || !squeeze)
    return piece;
  return emit("Squeeze", {piece, axes});
}

/// The position that operand `number` gives in a sequence of `size`, `last`
/// without one. Only an insertion can be behind all elements.
static FailureOr<int64_t> getPosition(NodeOp node, unsigned number,
                                      int64_t size, int64_t last) {
  if (node.getInputs().size() <= number ||
      node.getInputs()[number].getDefiningOp<AbsentOp>())
    return last;
  std::optional<SmallVector<int64_t>> position =
      getIntegers(node.getInputs()[number]);
  if (!position || position->size() != 1)
    return emitNodeError(node) << "'position' must be a constant number";
  int64_t index = position->front();
  index += index < 0 ? size : 0;
  if (index < 0 || index > last)
    return emitNodeError(node)
           << "position " << position->front() << " of a sequence of " << size;
  return index;
}

/// The sequence with one element more or less.
static Value emitChanged(NodeOp node, Reader &reader) {
  bool inserts = getKind(node) == Kind::Insert;
  if (inserts && node.getInputs().size() < 2) {
    emitNodeError(node) << "it has no tensor to insert";
    return nullptr;
  }
  int64_t size = reader.size(), last = inserts ? size : size - 1;
  if (last < 0) {
    emitNodeError(node) << "the sequence is empty";
    return nullptr;
  }
  FailureOr<int64_t> position = getPosition(node, inserts ? 2 : 1, size, last);
  if (failed(position))
    return nullptr;
  SmallVector<Value> elements;
  for (int64_t i = 0; i < size; ++i) {
    if (!inserts && i == *position)
      continue;
    elements.push_back(reader.getElement(i));
    if (!elements.back())
      return nullptr;
  }
  if (inserts)
    elements.insert(elements.begin() + *position, node.getInputs()[1]);
  OpBuilder &builder = reader.getBuilder();
  return NodeOp::create(
             builder, node.getLoc(),
             TypeRange(UnrankedTensorType::get(builder.getF32Type())),
             builder.getStringAttr("SequenceConstruct"), elements,
             builder.getI64IntegerAttr(11), StringAttr(), DictionaryAttr())
      .getResult(0);
}

static LogicalResult replaceReader(NodeOp node, Reader &reader) {
  OpBuilder &builder = reader.getBuilder();
  Value result;
  if (getKind(node) == Kind::Length) {
    auto type = RankedTensorType::get({}, builder.getI64Type());
    result = arith::ConstantOp::create(
        builder, node.getLoc(), DenseElementsAttr::get(type, reader.size()));
  } else if (getKind(node) == Kind::At) {
    if (node.getInputs().size() != 2)
      return emitNodeError(node) << "it has no 'position'";
    FailureOr<int64_t> position =
        getPosition(node, 1, reader.size(), reader.size() - 1);
    if (failed(position))
      return failure();
    result = reader.getElement(*position);
  } else if (getKind(node) == Kind::Insert || getKind(node) == Kind::Erase) {
    result = emitChanged(node, reader);
  } else {
    if (!node.getParam("axis"))
      return emitNodeError(node) << "it has no attribute 'axis'";
    int64_t axis = getInteger(node, "axis", 0);
    SmallVector<Value> elements;
    for (int64_t i = 0; i < reader.size(); ++i) {
      Value element = reader.getElement(i);
      if (element && getInteger(node, "new_axis", 0) != 0)
        element =
            reader.emit("Unsqueeze", {element, reader.emitConstant(axis)});
      if (!element)
        return failure();
      elements.push_back(element);
    }
    NamedAttrList params;
    params.set("axis", builder.getI64IntegerAttr(axis));
    result = reader.emit("Concat", elements,
                         params.getDictionary(builder.getContext()));
  }
  if (!result)
    return failure();
  node.getOutputs().front().replaceAllUsesWith(result);
  node.erase();
  return success();
}

Value penstock::emitResolved(OpBuilder &builder, Location loc, StringRef type,
                             ValueRange operands, DictionaryAttr params,
                             ResolveNodeFn resolve) {
  auto node = NodeOp::create(
      builder, loc, TypeRange(UnrankedTensorType::get(builder.getF32Type())),
      builder.getStringAttr(type), operands, builder.getI64IntegerAttr(13),
      StringAttr(), params);
  FailureOr<SmallVector<Value>> values = resolve(node);
  return succeeded(values) ? values->front() : Value();
}

Value penstock::emitIntegers(OpBuilder &builder, Location loc,
                             ArrayRef<int64_t> values) {
  auto type =
      RankedTensorType::get({int64_t(values.size())}, builder.getI64Type());
  return arith::ConstantOp::create(builder, loc,
                                   DenseElementsAttr::get(type, values));
}

bool penstock::isSequenceNode(NodeOp node) {
  return getKind(node) != Kind::None;
}

static LogicalResult emitEscape(NodeOp node) {
  return emitNodeError(node) << "its result is a sequence, which only nodes "
                                "over sequences can read here";
}

LogicalResult penstock::resolveSequenceNode(NodeOp node,
                                            ResolveNodeFn resolve) {
  Kind kind = getKind(node);
  if (node.getOutputs().size() != 1 ||
      (node.getInputs().empty() && kind != Kind::Construct))
    return emitNodeError(node)
           << "it has " << node.getInputs().size() << " inputs and "
           << node.getOutputs().size() << " outputs";
  if (kind == Kind::Split || kind == Kind::Construct) {
    // Loops and Ifs go when they are resolved.
    for (Operation *user : node->getUsers())
      if (auto reader = dyn_cast<NodeOp>(user);
          reader && !reader.isIf() && !isSequenceNode(reader))
        return emitEscape(node);
    return success();
  }
  auto maker = node.getInputs().front().getDefiningOp<NodeOp>();
  if (getKind(maker) != Kind::Split && getKind(maker) != Kind::Construct)
    return emitNodeError(node)
           << "it reads a sequence that no SplitToSequence, SequenceConstruct, "
              "SequenceEmpty, SequenceInsert or SequenceErase makes";
  Reader reader(node, maker, resolve);
  if (failed(reader.findElements()))
    return failure();
  return replaceReader(node, reader);
}

LogicalResult penstock::checkSequencesRead(func::FuncOp function) {
  for (NodeOp node : function.getOps<NodeOp>())
    if (isSequenceNode(node))
      return emitEscape(node);
  return success();
}
