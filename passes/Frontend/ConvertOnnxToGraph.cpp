//===- ConvertOnnxToGraph.cpp - Lowers ONNX nodes to linalg ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goes through the nodes in order and has the operator table lower each. Values
// keep their types, so that a node is simply replaced. Everything emitted for a
// node has the node's location: cuts, reports and diagnostics name it.
//===----------------------------------------------------------------------===//

#include "passes/Frontend/Passes.h"

#include "dialects/Nn/Nn.h"
#include "dialects/Onnx/Onnx.h"
#include "penstock/Import/OperatorRegistry.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace penstock {
#define GEN_PASS_DEF_CONVERTONNXTOGRAPH
#include "passes/Frontend/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {
struct ConvertOnnxToGraph
    : penstock::impl::ConvertOnnxToGraphBase<ConvertOnnxToGraph> {
  void runOnOperation() override {
    // 1. All nodes that no entry lowers, in one error.
    onnx::UnsupportedNodes unsupported;
    SmallVector<onnx::NodeOp> nodes;
    getOperation().walk([&](onnx::NodeOp node) {
      nodes.push_back(node);
      unsupported.addIfUnknown(node);
    });
    if (failed(unsupported.report(getOperation().getLoc())))
      return signalPassFailure();

    // 2. Lower in order. After a failure go on, to report every other one: the
    //    results are then placeholders that nobody sees.
    for (onnx::NodeOp node : nodes) {
      OpBuilder builder(node);
      SmallVector<Value> values;
      if (failed(onnx::lowerNode(node, builder, values))) {
        signalPassFailure();
        values = placeholders(node);
        if (values.empty())
          return;
      }
      node.replaceAllUsesWith(values);
      node.erase();
    }

    // 3. What stood for absent operands is no longer used.
    getOperation().walk([](onnx::AbsentOp absent) {
      if (absent.use_empty())
        absent.erase();
    });
  }

  static SmallVector<Value> placeholders(onnx::NodeOp node) {
    OpBuilder builder(node);
    SmallVector<Value> values;
    for (Type type : node.getResultTypes()) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || !tensor.hasStaticShape())
        return {};
      values.push_back(tensor::EmptyOp::create(
          builder, node.getLoc(), tensor.getShape(), tensor.getElementType()));
    }
    return values;
  }
};
} // namespace
