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
#include "penstock/Support/NodeName.h"

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

/// Drops ops on no elements: these need no computing, and the result of a
/// reduction over nothing is its initial value.
static void dropEmptyWork(ModuleOp module) {
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) {
    if (op->getNumRegions() == 0 || isa<linalg::LinalgOp>(op))
      ops.push_back(op);
  });
  auto isEmpty = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape() && tensor.getNumElements() == 0;
  };
  for (Operation *op : ops) {
    OpBuilder builder(op);
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
        linalgOp && linalgOp.hasPureTensorSemantics() &&
        llvm::is_contained(linalgOp.getStaticLoopRanges(), 0)) {
      op->replaceAllUsesWith(ValueRange(linalgOp.getDpsInits()));
      op->erase();
      continue;
    }
    if (!isPure(op) || isa<tensor::EmptyOp>(op))
      continue;
    for (OpResult result : op->getResults())
      if (isEmpty(result.getType()) && !result.use_empty())
        result.replaceAllUsesWith(tensor::EmptyOp::create(
            builder, op->getLoc(),
            cast<RankedTensorType>(result.getType()).getShape(),
            getElementTypeOrSelf(result.getType())));
  }
}

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
    NamedAttrList passedOn;
    for (onnx::NodeOp node : nodes) {
      OpBuilder builder(node);
      SmallVector<Value> values;
      Operation *before = node->getPrevNode();
      if (failed(onnx::lowerNode(node, builder, values))) {
        signalPassFailure();
        values = placeholders(node);
        if (values.empty())
          return;
      }
      notePassedOn(node, before, passedOn);
      node.replaceAllUsesWith(values);
      node.erase();
    }
    if (!passedOn.empty())
      getOperation()->setAttr(onnx::kPassedOnAttr,
                              passedOn.getDictionary(&getContext()));

    // 3. Without elements there is nothing to do.
    dropEmptyWork(getOperation());

    // 4. What stood for absent operands is no longer used.
    getOperation().walk([](onnx::AbsentOp absent) {
      if (absent.use_empty())
        absent.erase();
    });
  }

  /// A node that only gives its operand another shape may be gone when the
  /// model is cut: its names stand for what made the operand.
  static void notePassedOn(onnx::NodeOp node, Operation *before,
                           NamedAttrList &passedOn) {
    if (node->getNumOperands() == 0 || node->getNumResults() != 1)
      return;
    Operation *made =
        before ? before->getNextNode() : &node->getBlock()->front();
    for (; made != node; made = made->getNextNode())
      if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp,
               arith::ConstantOp>(made))
        return;
    Operation *source = node->getOperand(0).getDefiningOp();
    StringRef target = source ? getNodeName(source->getLoc()) : StringRef();
    if (target.empty())
      return;
    for (StringRef name : getAllNames(node.getLoc()))
      if (name != target && !passedOn.get(name))
        passedOn.set(name, StringAttr::get(node.getContext(), target));
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
