//===- Branches.cpp - The subgraphs of an If ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which branch runs is known when shapes are: PyTorch writes a squeeze that
// way. So the nodes of both are imported, and onnx-resolve-shapes takes one.
//===----------------------------------------------------------------------===//

#include "Functions.h"
#include "GraphImporter.h"
#include "ModelFile.h"

#include "dialects/Onnx/Onnx.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace llvm;
using namespace mlir;
using namespace penstock::onnx;
using ::onnx::AttributeProto;
using ::onnx::NodeProto;

LogicalResult GraphImporter::importBody(const ::onnx::GraphProto &graph,
                                        const std::string &prefix, Scope &scope,
                                        SmallVectorImpl<Value> &results) {
  scope.prefix = prefix;
  scope.nodes = &graph.node();
  if (++scope.depth > kMaxDepth)
    return emitError() << "nodes '" << prefix << "' are nested too deep";
  for (const ::onnx::TensorProto &tensor : graph.initializer()) {
    Expected<DenseElementsAttr> value =
        getElements(builder.getContext(), tensor);
    if (!value)
      return emitError() << "initializer '" << tensor.name() << "' of '"
                         << prefix << "': " << toString(value.takeError());
    scope.values[tensor.name()] = arith::ConstantOp::create(
        builder, NameLoc::get(builder.getStringAttr(prefix + tensor.name())),
        *value);
  }
  if (failed(importNodes(scope)))
    return failure();
  for (const auto &output : graph.output()) {
    Value value = scope.values.lookup(output.name());
    if (!value)
      return emitError() << "node '" << prefix << "': output '" << output.name()
                         << "' is not computed";
    results.push_back(value);
  }
  return success();
}

LogicalResult GraphImporter::importBranch(const NodeProto &node,
                                          const ::onnx::GraphProto &branch,
                                          const std::string &prefix,
                                          const Scope &scope,
                                          SmallVectorImpl<Value> &results) {
  // It sees what the graph around it has, and its own names go before.
  Scope body = scope;
  body.isBranch = true;
  if (branch.output_size() != node.output_size())
    return emitError() << "node '" << prefix << "' gives "
                       << branch.output_size() << " outputs, the If has "
                       << node.output_size();
  return importBody(branch, prefix, body, results);
}

LogicalResult GraphImporter::importIf(const NodeProto &node,
                                      const std::string &name, Scope &scope) {
  SmallVector<Value> operands;
  if (failed(collectOperands(node, name, scope, operands)))
    return failure();
  if (operands.size() != 1)
    return emitNodeError(node, name, scope)
           << "has " << operands.size() << " operands, it must have one";
  for (StringRef branch : {"then_branch", "else_branch"}) {
    const AttributeProto *graph = nullptr;
    for (const AttributeProto &attribute : node.attribute())
      if (attribute.name() == branch && attribute.has_g())
        graph = &attribute;
    if (!graph)
      return emitNodeError(node, name, scope)
             << "attribute '" << branch << "' is missing";
    std::string prefix = name + "/" + branch.drop_back(7).str() + "/";
    if (failed(importBranch(node, graph->g(), prefix, scope, operands)))
      return failure();
  }
  SmallVector<Type> types(node.output_size(),
                          UnrankedTensorType::get(builder.getF32Type()));
  auto op = NodeOp::create(builder, getLocation(node, name, scope), types,
                           builder.getStringAttr("If"), operands,
                           builder.getI64IntegerAttr(getSince(node, scope)),
                           StringAttr(), DictionaryAttr());
  if (scope.isBranch)
    op->setAttr(kBranchAttr, builder.getUnitAttr());
  return defineOutputs(node, name, scope, op.getOutputs());
}
