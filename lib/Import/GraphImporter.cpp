//===- GraphImporter.cpp - ONNX nodes become onnx.node ops ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes are taken as they are; what they mean is the operator table's business.
// Functions of the model are inlined, since their bodies are nodes again.
//===----------------------------------------------------------------------===//

#include "GraphImporter.h"

#include "ModelFile.h"

#include "dialects/Onnx/Onnx.h"
#include "penstock/Import/OperatorRegistry.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace llvm;
using namespace mlir;
using namespace penstock::onnx;
using ::onnx::AttributeProto;
using ::onnx::FunctionProto;
using ::onnx::NodeProto;

static StringRef normalizeDomain(StringRef domain) {
  return domain == "ai.onnx" ? StringRef() : domain;
}

static std::string getFunctionKey(StringRef domain, StringRef name) {
  return (normalizeDomain(domain) + ":" + name).str();
}

GraphImporter::GraphImporter(OpBuilder &builder,
                             const ::onnx::ModelProto &model)
    : builder(builder), model(model) {}

InFlightDiagnostic GraphImporter::emitError() const {
  return mlir::emitError(builder.getUnknownLoc());
}

InFlightDiagnostic GraphImporter::emitNodeError(const NodeProto &node,
                                                StringRef name,
                                                const Scope &scope) const {
  return emitError() << "node '" << name << "' (" << node.op_type()
                     << ", since-version " << getSince(node, scope) << "): ";
}

int64_t GraphImporter::getSince(const NodeProto &node,
                                const Scope &scope) const {
  StringRef domain = normalizeDomain(node.domain());
  // A domain without a version in the imports is its first one.
  auto opset = scope.opsets.find(domain);
  int64_t version = opset == scope.opsets.end() ? 1 : opset->second;
  if (!domain.empty())
    return std::max<int64_t>(version, 1);
  int64_t since = getStandardSinceVersion(node.op_type(), version);
  return since ? since : std::max<int64_t>(version, 1);
}

//===----------------------------------------------------------------------===//
// Opsets and functions
//===----------------------------------------------------------------------===//

template <typename Proto>
LogicalResult GraphImporter::readOpsets(const Proto &proto, Scope &scope,
                                        StringRef what) {
  for (const auto &import : proto.opset_import())
    scope.opsets[normalizeDomain(import.domain())] = import.version();
  auto standard = scope.opsets.find("");
  if (standard == scope.opsets.end())
    return success();
  int64_t version = standard->second;
  if (version >= kOldestOpset && version <= kNewestOpset)
    return success();
  return emitError() << what << " uses opset " << version << ", but opsets "
                     << kOldestOpset << " to " << kNewestOpset
                     << " are supported; convert it with "
                        "onnx.version_converter or export it anew";
}

LogicalResult GraphImporter::prepare() {
  if (failed(readOpsets(model, graph, "the model")))
    return failure();
  bool usesStandard = any_of(model.graph().node(), [](const NodeProto &node) {
    return normalizeDomain(node.domain()).empty();
  });
  if (!graph.opsets.contains("") && usesStandard)
    return emitError() << "not a valid ONNX model: it does not say which opset "
                          "it uses";
  for (const FunctionProto &function : model.functions())
    if (!functions
             .try_emplace(getFunctionKey(function.domain(), function.name()),
                          &function)
             .second)
      return emitError() << "function '" << function.name() << "' of domain '"
                         << function.domain() << "' is defined twice";
  return success();
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

LogicalResult GraphImporter::define(StringRef name, Value value) {
  if (graph.values.try_emplace(name, value).second)
    return success();
  return emitError() << "value '" << name << "' is defined twice";
}

void GraphImporter::redefine(StringRef name, Value value) {
  graph.values[name] = value;
}

Value GraphImporter::lookup(StringRef name) const {
  return graph.values.lookup(name);
}

std::string GraphImporter::makeNodeName(const NodeProto &node,
                                        const Scope &scope) {
  std::string base =
      scope.prefix + (node.name().empty()
                          ? node.op_type() + "_" + std::to_string(nodeNumber)
                          : node.name());
  ++nodeNumber;
  // Names should be unique, but some exporters repeat them.
  std::string name = base;
  for (unsigned copy = 2; !nodeNames.insert(name).second; ++copy)
    name = base + "." + std::to_string(copy);
  return name;
}

Location GraphImporter::getLocation(const NodeProto &node,
                                    const std::string &name,
                                    const Scope &scope) {
  SmallVector<Location> outputs;
  for (const std::string &output : node.output())
    if (!output.empty())
      outputs.push_back(
          NameLoc::get(builder.getStringAttr(scope.prefix + output)));
  StringAttr attr = builder.getStringAttr(name);
  if (outputs.empty())
    return NameLoc::get(attr);
  Location child =
      outputs.size() == 1 ? outputs.front() : builder.getFusedLoc(outputs);
  return NameLoc::get(attr, child);
}

void GraphImporter::addNames(Operation *op, ArrayRef<std::string> names) {
  auto own = cast<NameLoc>(op->getLoc());
  SmallVector<Location> children;
  if (auto fused = dyn_cast<FusedLoc>(own.getChildLoc()))
    append_range(children, fused.getLocations());
  else
    children.push_back(own.getChildLoc());
  for (const std::string &name : names)
    if (Location loc = NameLoc::get(builder.getStringAttr(name));
        !is_contained(children, loc))
      children.push_back(loc);
  op->setLoc(NameLoc::get(own.getName(), builder.getFusedLoc(children)));
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

const AttributeProto *GraphImporter::resolve(const AttributeProto &attribute,
                                             const Scope &scope) const {
  if (attribute.ref_attr_name().empty())
    return &attribute;
  return scope.attributes.lookup(attribute.ref_attr_name());
}

/// Null for kinds that no supported operator has; the operator is then reported
/// as unsupported.
FailureOr<Attribute> GraphImporter::convert(const AttributeProto &attribute,
                                            StringRef node, StringRef name) {
  switch (attribute.type()) {
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
// Nodes
//===----------------------------------------------------------------------===//

LogicalResult GraphImporter::importNodes() {
  graph.nodes = &model.graph().node();
  return importNodes(graph);
}

LogicalResult GraphImporter::importNodes(Scope &scope) {
  for (const NodeProto &node : *scope.nodes) {
    std::string name = makeNodeName(node, scope);
    auto function =
        functions.find(getFunctionKey(node.domain(), node.op_type()));
    StringRef control =
        normalizeDomain(node.domain()).empty() ? node.op_type() : StringRef();
    LogicalResult result =
        control == "If"     ? importIf(node, name, scope)
        : control == "Loop" ? importLoop(node, name, scope)
        : control == "Scan" ? importScan(node, name, scope)
        : function == functions.end()
            ? importNode(node, name, scope)
            : importCall(node, name, *function->second, scope);
    if (failed(result))
      return failure();
  }
  return success();
}

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
    FailureOr<Attribute> value = convert(*meant, name, attribute.name());
    if (failed(value))
      return failure();
    if (attribute.name().empty() || params.get(attribute.name()))
      return emitNodeError(node, name, scope)
             << "attribute '" << attribute.name() << "' is given twice";
    // Another version may have it: axes, for example, that became an operand.
    if (normalizeDomain(node.domain()).empty() &&
        !isStandardAttribute(node.op_type(), getSince(node, scope),
                             attribute.name()))
      return emitNodeError(node, name, scope)
             << "attribute '" << attribute.name()
             << "' is not one of this operator in this version; export the "
                "model anew, or set the opset that it was written for";
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

LogicalResult GraphImporter::importCall(const NodeProto &node,
                                        const std::string &name,
                                        const FunctionProto &function,
                                        Scope &scope) {
  constexpr unsigned kMaxDepth = 64;
  if (scope.depth == kMaxDepth)
    return emitError() << "function '" << function.name()
                       << "' calls itself, or functions are nested more than "
                       << kMaxDepth << " deep";
  Scope body;
  body.prefix = name + "/";
  body.depth = scope.depth + 1;
  body.nodes = &function.node();
  if (failed(readOpsets(function, body, "function '" + function.name() + "'")))
    return failure();
  if (!body.opsets.contains(""))
    body.opsets[""] = scope.opsets.lookup("");

  // 1. Arguments. Those that the call leaves out are absent inside as well.
  SmallVector<Value> operands;
  if (failed(collectOperands(node, name, scope, operands)))
    return failure();
  if (int(operands.size()) > function.input_size())
    return emitNodeError(node, name, scope)
           << "it gives " << operands.size() << " inputs to a function of "
           << function.input_size();
  for (auto [index, input] : enumerate(function.input())) {
    Value value =
        index < operands.size()
            ? operands[index]
            : AbsentOp::create(builder, builder.getUnknownLoc()).getResult();
    if (!body.values.try_emplace(input, value).second)
      return emitError() << "function '" << function.name() << "': input '"
                         << input << "' is defined twice";
  }

  // 2. Attributes: the call's, or the defaults.
  google::protobuf::RepeatedPtrField<AttributeProto> defaults;
  if (std::string error = readAttributeDefaults(function, defaults);
      !error.empty())
    return emitError() << error;
  for (const AttributeProto &attribute : defaults)
    body.attributes[attribute.name()] = &attribute;
  for (const AttributeProto &attribute : node.attribute())
    if (const AttributeProto *meant = resolve(attribute, scope))
      body.attributes[attribute.name()] = meant;

  // 3. The body, and its outputs.
  if (failed(importNodes(body)))
    return failure();
  if (node.output_size() > function.output_size())
    return emitNodeError(node, name, scope)
           << "it takes " << node.output_size()
           << " outputs of a function that has " << function.output_size();
  SmallVector<Value> results;
  for (const std::string &output : function.output()) {
    Value value = body.values.lookup(output);
    if (!value)
      return emitError() << "function '" << function.name() << "': output '"
                         << output << "' is not computed";
    results.push_back(value);
  }
  results.resize(node.output_size());

  // 4. The names of the call and its outputs lead to the nodes inside that
  // compute them.
  for (auto [output, value] : zip(node.output(), results))
    if (auto inner = value.getDefiningOp<NodeOp>())
      addNames(inner, {name, scope.prefix + output});
  return defineOutputs(node, name, scope, results);
}
