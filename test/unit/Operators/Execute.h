//===- Execute.h - Runs a function of ONNX nodes ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds a function of onnx.node ops from a model, lowers it with our frontend
// and upstream's loops, and runs it in this process.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_OPERATORS_EXECUTE_H
#define PENSTOCK_TEST_UNIT_OPERATORS_EXECUTE_H

#include "HostTensor.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <set>
#include <variant>

namespace penstock::test {

using NodeAttribute =
    std::variant<int64_t, float, std::string, std::vector<int64_t>,
                 std::vector<float>, HostTensor>;

struct ModelNode {
  std::string name, domain, type;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, NodeAttribute> attributes;
};

struct Model {
  int64_t opset = 0;
  std::vector<ModelNode> nodes;
  std::vector<HostTensor> initializers;
  std::vector<std::string> inputs, outputs;
};

/// A context with everything that is needed here.
mlir::MLIRContext &context();

/// The constant of a tensor; null for an element type that we have not.
mlir::DenseElementsAttr toAttribute(const HostTensor &tensor);
struct Build {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// The inputs that became arguments, in order.
  std::vector<HostTensor> arguments;
  /// Not empty: a node has no entry in the table.
  std::string unknown;
  /// Not empty: what was said to the user.
  std::string error;
};

/// @main with the model's nodes. Inputs named in `constants` are constants,
/// the others arguments. Nodes that fold are constants, as onnx-resolve-shapes
/// has them.
Build buildModule(const Model &model, const std::vector<HostTensor> &inputs,
                  const std::set<std::string> &constants);

/// Runs the passes on the module; the errors said on the way, "" if none.
std::string runPasses(mlir::ModuleOp module, llvm::StringRef pipeline);

/// The frontend's lowering.
extern const char *const lowerToGraph;

/// Lowers a module at level graph to machine code and calls @main. The results
/// have the element types and shapes of `results` beforehand.
std::string execute(mlir::ModuleOp module,
                    const std::vector<HostTensor> &arguments,
                    std::vector<HostTensor> &results);

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_OPERATORS_EXECUTE_H
