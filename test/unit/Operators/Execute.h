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

#include "OnnxFile.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <set>

namespace penstock::test {

/// A context with everything that is needed here.
mlir::MLIRContext &context();

/// The constant of a tensor; null for an element type that we have not.
mlir::DenseElementsAttr toAttribute(const HostTensor &tensor);
/// And back; `dataType` says how the elements are written.
HostTensor toHost(mlir::DenseElementsAttr attribute, int64_t dataType);

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

/// "" when equal: integers exactly, floats to `relative` and NaN where NaN is.
std::string compare(const HostTensor &expected, const HostTensor &actual,
                    double relative);

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_OPERATORS_EXECUTE_H
