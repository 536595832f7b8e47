//===- Nodes.cpp - One ONNX node becomes an onnx.node op ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes, operands and outputs are taken as they are.
//===----------------------------------------------------------------------===//

#include "GraphImporter.h"
#include "ModelFile.h"
#include "Proto.h"

#include "dialects/Onnx/Onnx.h"
#include "penstock/Import/OperatorRegistry.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace llvm;
using namespace mlir;
using namespace penstock::onnx;
using ::onnx::AttributeProto;
using ::onnx::NodeProto;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

const AttributeProto *GraphImporter::resolve(const AttributeProto &attribute,
                                             const Scope &scope) const {
  if (attribute.ref_attr_name().empty())
    return &attribute;
  return scope.attributes.lookup(attribute.ref_attr_name());
}

/// Returns the types of which `attribute` has a value.
static SmallVector<AttributeProto::AttributeType>
getTypesOfValues(const AttributeProto &attribute) {
  SmallVector<AttributeProto::AttributeType> types;
  auto add = [&](bool isSet, AttributeProto::AttributeType type) {
    if (isSet)
      types.push_back(type);
  };
  add(attribute.has_f(), AttributeProto::FLOAT);
  add(attribute.has_i(), AttributeProto::INT);
  add(attribute.has_s(), AttributeProto::STRING);
  add(attribute.has_t(), AttributeProto::TENSOR);
  add(attribute.has_g(), AttributeProto::GRAPH);
  add(attribute.has_sparse_tensor(), AttributeProto::SPARSE_TENSOR);
  add(attribute.has_tp(), AttributeProto::TYPE_PROTO);
  add(attribute.floats_size(), AttributeProto::FLOATS);
  add(attribute.ints_size(), AttributeProto::INTS);
  add(attribute.strings_size(), AttributeProto::STRINGS);
  add(attribute.tensors_size(), AttributeProto::TENSORS);
  add(attribute.graphs_size(), AttributeProto::GRAPHS);
  add(attribute.sparse_tensors_size(), AttributeProto::SPARSE_TENSORS);
  add(attribute.type_protos_size(), AttributeProto::TYPE_PROTOS);
  return types;
}

/// Returns the type of `attribute`, or UNDEFINED and a reason. Files of IR
/// version 1 have no types: the only value says it. Zeros and empty lists may
/// be left out of a file.
static AttributeProto::AttributeType getType(const AttributeProto &attribute,
                                             std::string &reason) {
  SmallVector<AttributeProto::AttributeType> values =
      getTypesOfValues(attribute);
  AttributeProto::AttributeType type = attribute.type();
  if (type == AttributeProto::UNDEFINED && values.size() == 1)
    return values.front();
  auto nameOf = [](AttributeProto::AttributeType type) {
    return AttributeProto::AttributeType_Name(type);
  };
  if (type == AttributeProto::UNDEFINED) {
    reason = values.empty() ? "has neither a type nor a value"
                            : "has no type, and more than one value";
    return AttributeProto::UNDEFINED;
  }
  for (AttributeProto::AttributeType value : values)
    if (value != type) {
      reason = "is of type " + nameOf(type) + ", but has a value of type " +
               nameOf(value);
      return AttributeProto::UNDEFINED;
    }
  return type;
}

/// Null for kinds that no supported operator has; the operator is then reported
/// as unsupported.
FailureOr<Attribute> GraphImporter::convert(const AttributeProto &attribute,
                                            AttributeProto::AttributeType type,
                                            StringRef node, StringRef name) {
  switch (type) {
  case AttributeProto::FLOAT:
    return Attribute(builder.getF32FloatAttr(attribute.f()));
  case AttributeProto::INT:
    return Attribute(builder.getI64IntegerAttr(attribute.i()));
  case AttributeProto::STRING:
    return Attribute(builder.getStringAttr(attribute.s()));
  case AttributeProto::FLOATS:
    return Attribute(builder.getDenseF32ArrayAttr(SmallVector<float>(
        attribute.floats().begin(), attribute.floats().end())));
  case AttributeProto::INTS:
    return Attribute(builder.getDenseI64ArrayAttr(SmallVector<int64_t>(
        attribute.ints().begin(), attribute.ints().end())));
  case AttributeProto::STRINGS:
    return Attribute(builder.getStrArrayAttr(SmallVector<StringRef>(
        attribute.strings().begin(), attribute.strings().end())));
  case AttributeProto::TENSOR: {
    Expected<DenseElementsAttr> elements =
        getElements(builder.getContext(), attribute.t());
    if (elements)
      return Attribute(*elements);
    return emitError() << "node '" << node << "', attribute '" << name
                       << "': " << toString(elements.takeError());
  }
  default:
    return Attribute();
  }
}

//===----------------------------------------------------------------------===//
// Operands and outputs
//===----------------------------------------------------------------------===//

LogicalResult GraphImporter::collectOperands(const NodeProto &node,
                                             const std::string &name,
                                             Scope &scope,
                                             SmallVectorImpl<Value> &operands) {
  for (const std::string &input : node.input()) {
    if (input.empty()) {
      operands.push_back(
          AbsentOp::create(builder, builder.getUnknownLoc()).getResult());
      continue;
    }
    if (Value value = scope.values.lookup(input)) {
      operands.push_back(value);
      continue;
    }
    bool later = any_of(*scope.nodes, [&](const NodeProto &other) {
      return is_contained(other.output(), input);
    });
    InFlightDiagnostic diagnostic = emitNodeError(node, name, scope);
    if (later)
      return diagnostic << "it reads '" << input
                        << "', which no earlier node computes: the nodes are "
                           "in a cycle, or not sorted";
    return diagnostic << "it reads '" << input
                      << "', which is no input, initializer, or output of a "
                         "node";
  }
  return success();
}

LogicalResult GraphImporter::defineOutputs(const NodeProto &node,
                                           const std::string &name,
                                           Scope &scope, ValueRange values) {
  for (auto [output, value] : zip(node.output(), values))
    if (!output.empty() && !scope.values.try_emplace(output, value).second)
      return emitNodeError(node, name, scope)
             << "its output '" << output << "' is defined twice";
  return success();
}

/// The values of a Constant node whose attribute is not a tensor yet.
static DenseElementsAttr getConstantValue(Builder &builder,
                                          DictionaryAttr params) {
  if (params.size() != 1)
    return nullptr;
  NamedAttribute param = *params.begin();
  StringRef name = param.getName();
  Attribute value = param.getValue();
  auto vectorOf = [&](Type element, int64_t size) {
    return RankedTensorType::get({size}, element);
  };
  if (name == "value")
    return dyn_cast<DenseElementsAttr>(value);
  if (auto number = dyn_cast<FloatAttr>(value); number && name == "value_float")
    return DenseElementsAttr::get(RankedTensorType::get({}, number.getType()),
                                  Attribute(number));
  if (auto number = dyn_cast<IntegerAttr>(value); number && name == "value_int")
    return DenseElementsAttr::get(RankedTensorType::get({}, number.getType()),
                                  Attribute(number));
  if (auto list = dyn_cast<DenseF32ArrayAttr>(value);
      list && name == "value_floats")
    return DenseElementsAttr::get(vectorOf(builder.getF32Type(), list.size()),
                                  list.asArrayRef());
  if (auto list = dyn_cast<DenseI64ArrayAttr>(value);
      list && name == "value_ints")
    return DenseElementsAttr::get(vectorOf(builder.getI64Type(), list.size()),
                                  list.asArrayRef());
  return nullptr;
}

void GraphImporter::collectCaptures(const ::onnx::GraphProto &subgraph,
                                    const Scope &scope,
                                    SmallVectorImpl<Value> &captures) const {
  auto capture = [&](const std::string &name) {
    Value value = scope.values.lookup(name);
    if (value && !is_contained(captures, value))
      captures.push_back(value);
  };
  for (const NodeProto &node : subgraph.node()) {
    for_each(node.input(), capture);
    for (const AttributeProto &attribute : node.attribute())
      if (attribute.has_g())
        collectCaptures(attribute.g(), scope, captures);
  }
  for (const auto &output : subgraph.output())
    capture(output.name());
}

LogicalResult GraphImporter::importNode(const NodeProto &node,
                                        const std::string &name, Scope &scope) {
  if (node.op_type().empty())
    return emitError() << "node '" << name << "' has no operator";
  if (node.output().empty())
    return emitNodeError(node, name, scope) << "it has no output";
  NamedAttrList params;
  for (const AttributeProto &attribute : node.attribute()) {
    const AttributeProto *meant = resolve(attribute, scope);
    if (!meant)
      continue;
    std::string reason;
    AttributeProto::AttributeType type = getType(*meant, reason);
    if (type == AttributeProto::UNDEFINED)
      return emitNodeError(node, name, scope)
             << "attribute '" << attribute.name() << "' " << reason
             << "; write the file anew";
    FailureOr<Attribute> value = convert(*meant, type, name, attribute.name());
    if (failed(value))
      return failure();
    if (attribute.name().empty() || params.get(attribute.name()))
      return emitNodeError(node, name, scope)
             << "attribute '" << attribute.name() << "' is given twice";
    // Another version may have it: axes, for example, that became an operand.
    if (!isKnownAttribute(normalizeDomain(node.domain()).str(), node.op_type(),
                          getSince(node, scope), attribute.name()))
      return emitNodeError(node, name, scope)
             << "attribute '" << attribute.name()
             << "' is not one of this operator in this version; export the "
                "model anew, or set the opset that it was written for";
    if (normalizeDomain(node.domain()).empty())
      if (auto expected = getStandardAttributeType(
              node.op_type(), getSince(node, scope), attribute.name());
          expected != AttributeProto::UNDEFINED && expected != type)
        return emitNodeError(node, name, scope)
               << "attribute '" << attribute.name() << "' is of type "
               << AttributeProto::AttributeType_Name(type)
               << ", this operator takes "
               << AttributeProto::AttributeType_Name(expected);
    if (!*value && lookupOperator(normalizeDomain(node.domain()),
                                  node.op_type(), getSince(node, scope)))
      return emitNodeError(node, name, scope)
             << "attribute '" << attribute.name() << "' is of type "
             << AttributeProto::AttributeType_Name(type)
             << ", which no attribute of this operator is";
    if (*value)
      params.append(attribute.name(), *value);
  }
  DictionaryAttr dictionary = params.getDictionary(builder.getContext());
  Location loc = getLocation(node, name, scope);

  StringRef domain = normalizeDomain(node.domain());
  if (node.op_type() == "Constant" && domain.empty() &&
      node.output_size() == 1) {
    DenseElementsAttr value = getConstantValue(builder, dictionary);
    // `arith` has no unsigned integers.
    if (value && !value.getElementType().isUnsignedInteger())
      return defineOutputs(
          node, name, scope,
          arith::ConstantOp::create(builder, loc, value).getResult());
  }

  SmallVector<Value> operands;
  if (failed(collectOperands(node, name, scope, operands)))
    return failure();
  // What subgraphs read is an operand as well: no supported operator has any,
  // but the nodes before this one are not dead.
  for (const AttributeProto &attribute : node.attribute())
    if (attribute.has_g())
      collectCaptures(attribute.g(), scope, operands);
  // What the results are is found by the pass onnx-resolve-shapes.
  SmallVector<Type> types(node.output_size(),
                          UnrankedTensorType::get(builder.getF32Type()));
  auto op = NodeOp::create(
      builder, loc, types, builder.getStringAttr(node.op_type()), operands,
      builder.getI64IntegerAttr(getSince(node, scope)),
      domain.empty() ? StringAttr() : builder.getStringAttr(domain),
      dictionary.empty() ? DictionaryAttr() : dictionary);
  if (scope.isBranch)
    op->setAttr(kBranchAttr, builder.getUnitAttr());
  return defineOutputs(node, name, scope, op.getOutputs());
}
