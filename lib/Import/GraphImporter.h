//===- GraphImporter.h - ONNX nodes become onnx.node ops --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fills a block with the nodes of a graph, functions inlined.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_GRAPHIMPORTER_H
#define PENSTOCK_LIB_IMPORT_GRAPHIMPORTER_H

#include "ModelFile.h"

#include "dialects/Onnx/Onnx.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace penstock::onnx {

/// Emits errors at no location: the messages say where.
class GraphImporter {
public:
  GraphImporter(mlir::OpBuilder &builder, const ::onnx::ModelProto &model);

  /// Checks the opset imports and collects the functions.
  llvm::LogicalResult prepare();

  /// Makes `value` known as `name` in the main graph; an error if there is one
  /// of that name already.
  llvm::LogicalResult define(llvm::StringRef name, mlir::Value value);
  /// Makes a known name another value's.
  void redefine(llvm::StringRef name, mlir::Value value);
  /// The value `name` of the main graph, or null.
  mlir::Value lookup(llvm::StringRef name) const;

  /// Appends the nodes of the main graph at the builder's position.
  llvm::LogicalResult importNodes();

private:
  using Nodes = google::protobuf::RepeatedPtrField<::onnx::NodeProto>;
  using Attributes = llvm::StringMap<const ::onnx::AttributeProto *>;

  /// The graph, or one call of a function.
  struct Scope {
    llvm::StringMap<mlir::Value> values;
    /// Opset versions by domain.
    llvm::StringMap<int64_t> opsets;
    /// The attributes that a function's nodes may refer to.
    Attributes attributes;
    /// The prefix of the names in it: "" or "call/".
    std::string prefix;
    unsigned depth = 0;
    const Nodes *nodes = nullptr;
    /// True if this is, or is in, a branch of an If.
    bool isBranch = false;
  };

  using ImportFn = llvm::LogicalResult (GraphImporter::*)(
      const ::onnx::NodeProto &node, const std::string &name, Scope &scope);
  /// Returns the importer of a node of the standard that has subgraphs; null
  /// for others.
  static ImportFn getControlFlow(const ::onnx::NodeProto &node);

  template <typename Proto>
  llvm::LogicalResult readOpsets(const Proto &proto, Scope &scope,
                                 llvm::StringRef what);
  llvm::LogicalResult importNodes(Scope &scope);
  llvm::LogicalResult importNode(const ::onnx::NodeProto &node,
                                 const std::string &name, Scope &scope);
  /// Both branches become nodes before the If, whose operands are the condition
  /// and what either branch gives.
  llvm::LogicalResult importIf(const ::onnx::NodeProto &node,
                               const std::string &name, Scope &scope);
  /// The nodes of a subgraph at the builder's position, and what they give.
  llvm::LogicalResult importBody(const ::onnx::GraphProto &body,
                                 const std::string &prefix, Scope &scope,
                                 llvm::SmallVectorImpl<mlir::Value> &results);
  LoopOp createLoop(const ::onnx::NodeProto &node, const std::string &name,
                    const Scope &scope, mlir::ValueRange inputs,
                    llvm::ArrayRef<int64_t> axes,
                    llvm::ArrayRef<bool> reversed);
  llvm::LogicalResult importLoop(const ::onnx::NodeProto &node,
                                 const std::string &name, Scope &scope);
  llvm::LogicalResult importScan(const ::onnx::NodeProto &node,
                                 const std::string &name, Scope &scope);
  llvm::LogicalResult importBranch(const ::onnx::NodeProto &node,
                                   const ::onnx::GraphProto &branch,
                                   const std::string &prefix,
                                   const Scope &scope,
                                   llvm::SmallVectorImpl<mlir::Value> &results);
  llvm::LogicalResult importCall(const ::onnx::NodeProto &node,
                                 const std::string &name,
                                 const ::onnx::FunctionProto &function,
                                 Scope &scope);
  llvm::LogicalResult collectOperands(const ::onnx::NodeProto &node,
                                      const std::string &name, Scope &scope,
                                      llvm::SmallVectorImpl<mlir::Value> &out);
  llvm::LogicalResult defineOutputs(const ::onnx::NodeProto &node,
                                    const std::string &name, Scope &scope,
                                    mlir::ValueRange values);
  void collectCaptures(const ::onnx::GraphProto &subgraph, const Scope &scope,
                       llvm::SmallVectorImpl<mlir::Value> &captures) const;
  /// The attribute that is meant: itself, or the one it refers to; null when
  /// the caller of the function does not give it.
  const ::onnx::AttributeProto *resolve(const ::onnx::AttributeProto &attribute,
                                        const Scope &scope) const;
  llvm::FailureOr<mlir::Attribute>
  convert(const ::onnx::AttributeProto &attribute,
          ::onnx::AttributeProto::AttributeType type, llvm::StringRef node,
          llvm::StringRef name);
  std::string makeNodeName(const ::onnx::NodeProto &node, const Scope &scope);
  mlir::Location getLocation(const ::onnx::NodeProto &node,
                             const std::string &name, const Scope &scope);
  /// Adds to the children of the op's location.
  void addNames(mlir::Operation *op, llvm::ArrayRef<std::string> names);
  int64_t getSince(const ::onnx::NodeProto &node, const Scope &scope) const;
  mlir::InFlightDiagnostic emitError() const;
  mlir::InFlightDiagnostic emitNodeError(const ::onnx::NodeProto &node,
                                         llvm::StringRef name,
                                         const Scope &scope) const;

  mlir::OpBuilder &builder;
  const ::onnx::ModelProto &model;
  Scope graph;
  llvm::StringMap<const ::onnx::FunctionProto *> functions;
  llvm::StringSet<> nodeNames;
  unsigned nodeNumber = 0;
};

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_GRAPHIMPORTER_H
