//===- OperandRoles.cpp - Initializers that are no weights ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names are followed from the arguments of a function to those of its call, and
// through nodes that change nothing.
// What is wrong with a model is said later, when its nodes are imported.
//===----------------------------------------------------------------------===//

#include "OperandRoles.h"

#include "Functions.h"

#include "llvm/ADT/StringMap.h"

using namespace llvm;
using namespace penstock::onnx;
using ::onnx::NodeProto;

namespace {

/// The main graph, a call of a function, or a branch.
struct Scope {
  /// The name in the main graph of what is known by a name here.
  StringMap<std::string> names;
  bool isMain = true;
  StringMap<int64_t> opsets;
  unsigned depth = 0;

  StringRef resolve(StringRef name) const {
    auto found = names.find(name);
    if (found != names.end())
      return found->second;
    return isMain ? name : StringRef();
  }
};

class Collector {
public:
  Collector(const ::onnx::ModelProto &model, OperandRoles &roles)
      : roles(roles) {
    for (const ::onnx::FunctionProto &function : model.functions())
      functions[getFunctionKey(function.domain(), function.name())] = &function;
  }

  template <typename Nodes> void visit(const Nodes &nodes, Scope &scope) {
    for (const NodeProto &node : nodes)
      visitNode(node, scope);
  }

  template <typename Proto>
  static void readOpsets(const Proto &proto, Scope &scope) {
    for (const auto &import : proto.opset_import())
      scope.opsets[normalizeDomain(import.domain())] = import.version();
  }

private:
  void visitNode(const NodeProto &node, Scope &scope);
  void visitCall(const NodeProto &node, const ::onnx::FunctionProto &function,
                 const Scope &scope);

  OperandRoles &roles;
  StringMap<const ::onnx::FunctionProto *> functions;
};

} // namespace

void Collector::visitCall(const NodeProto &node,
                          const ::onnx::FunctionProto &function,
                          const Scope &scope) {
  Scope body;
  body.isMain = false;
  body.opsets[""] = scope.opsets.lookup("");
  readOpsets(function, body);
  body.depth = scope.depth + 1;
  for (int i = 0; i < std::min(node.input_size(), function.input_size()); ++i)
    if (StringRef name = scope.resolve(node.input(i)); !name.empty())
      body.names[function.input(i)] = name.str();
  visit(function.node(), body);
}

void Collector::visitNode(const NodeProto &node, Scope &scope) {
  // Deeper is rejected by the import.
  if (scope.depth > kMaxDepth)
    return;
  auto function = functions.find(getFunctionKey(node.domain(), node.op_type()));
  if (function != functions.end())
    return visitCall(node, *function->second, scope);
  for (const ::onnx::AttributeProto &attribute : node.attribute())
    if (attribute.has_g()) {
      Scope branch = scope;
      ++branch.depth;
      visit(attribute.g().node(), branch);
    }
  StringRef domain = normalizeDomain(node.domain());
  const Operator *entry =
      lookupOperator(domain, node.op_type(), scope.opsets.lookup(domain));
  if (entry && entry->elements == Operator::Same && node.input_size() == 1 &&
      node.output_size() == 1) {
    scope.names[node.output(0)] = scope.resolve(node.input(0)).str();
    return;
  }
  for (int i = 0; i < node.input_size(); ++i) {
    StringRef name = scope.resolve(node.input(i));
    if (name.empty())
      continue;
    bool statistic = entry && entry->statistics.contains(i);
    (statistic ? roles.statistics : roles.others).insert(name);
    if (entry && entry->extents.contains(i))
      roles.extents.insert(name);
  }
}

OperandRoles::OperandRoles(const ::onnx::ModelProto &model) {
  Scope main;
  Collector::readOpsets(model, main);
  Collector(model, *this).visit(model.graph().node(), main);
}
