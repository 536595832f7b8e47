//===- GraphImporter.cpp - ONNX nodes become onnx.node ops ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes are taken as they are (Nodes.cpp); what they mean is the operator
// table's business. Functions of the model are inlined, since their bodies are
// nodes again.
//===----------------------------------------------------------------------===//

#include "GraphImporter.h"

#include "Functions.h"

#include "dialects/Onnx/Onnx.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace mlir;
using namespace penstock::onnx;
using ::onnx::AttributeProto;
using ::onnx::FunctionProto;
using ::onnx::NodeProto;

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
// Nodes
//===----------------------------------------------------------------------===//

LogicalResult GraphImporter::importNodes() {
  graph.nodes = &model.graph().node();
  return importNodes(graph);
}

GraphImporter::ImportFn GraphImporter::getControlFlow(const NodeProto &node) {
  if (!normalizeDomain(node.domain()).empty())
    return nullptr;
  return llvm::StringSwitch<ImportFn>(node.op_type())
      .Case("If", &GraphImporter::importIf)
      .Case("Loop", &GraphImporter::importLoop)
      .Case("Scan", &GraphImporter::importScan)
      .Default(nullptr);
}

LogicalResult GraphImporter::importNodes(Scope &scope) {
  for (const NodeProto &node : *scope.nodes) {
    std::string name = makeNodeName(node, scope);
    auto function =
        functions.find(getFunctionKey(node.domain(), node.op_type()));
    auto importControlFlow = getControlFlow(node);
    LogicalResult result =
        importControlFlow ? (this->*importControlFlow)(node, name, scope)
        : function == functions.end()
            ? importNode(node, name, scope)
            : importCall(node, name, *function->second, scope);
    if (failed(result))
      return failure();
  }
  return success();
}

LogicalResult GraphImporter::importCall(const NodeProto &node,
                                        const std::string &name,
                                        const FunctionProto &function,
                                        Scope &scope) {
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
