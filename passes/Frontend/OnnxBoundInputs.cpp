//===- OnnxBoundInputs.cpp - Which integers inputs may hold ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Follows every input of integers through nodes that only move elements to the
// operands that the table of operators gives a range. A program can then reject
// data before it computes with them.
//===----------------------------------------------------------------------===//

#include "passes/Frontend/Passes.h"

#include "dialects/Onnx/Onnx.h"
#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Import/OperatorRegistry.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace penstock {
#define GEN_PASS_DEF_ONNXBOUNDINPUTS
#include "passes/Frontend/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

static bool contains(const Operator::Range &range, int64_t value) {
  return (value >= range.low && value < range.high) || range.ignored == value;
}

/// Returns the intersection of two ranges; nothing where that is no range or
/// not known.
static std::optional<Operator::Range> intersect(const Operator::Range &a,
                                                const Operator::Range &b) {
  Operator::Range both{std::max(a.low, b.low), std::min(a.high, b.high)};
  for (std::optional<int64_t> ignored : {a.ignored, b.ignored}) {
    if (!ignored || !contains(a, *ignored) || !contains(b, *ignored) ||
        contains(both, *ignored))
      continue;
    if (both.ignored)
      return std::nullopt;
    both.ignored = ignored;
  }
  return both.low < both.high ? std::optional(both) : std::nullopt;
}

/// Returns true if the first result of a node holds the integers of its first
/// operand.
static bool keepsIntegers(NodeOp node, const Operator &entry) {
  if (entry.elements == Operator::Computed)
    return false;
  auto getWidth = [](Value value) -> unsigned {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    bool isInteger = type && type.getElementType().isInteger();
    return isInteger ? type.getElementTypeBitWidth() : 0;
  };
  unsigned from = getWidth(node.getInputs()[0]);
  auto isUnsigned = [](Value value) {
    return cast<RankedTensorType>(value.getType())
        .getElementType()
        .isUnsignedInteger();
  };
  return from && getWidth(node.getOutputs()[0]) >= from &&
         isUnsigned(node.getInputs()[0]) == isUnsigned(node.getOutputs()[0]);
}

/// Returns the range that all nodes allow that an argument reaches.
static std::optional<Operator::Range> findRange(BlockArgument argument) {
  std::optional<Operator::Range> range;
  SmallVector<Value> values{argument};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!values.empty()) {
    for (OpOperand &use : values.pop_back_val().getUses()) {
      auto node = dyn_cast<NodeOp>(use.getOwner());
      const Operator *entry = node ? lookupOperator(node) : nullptr;
      if (!entry)
        continue;
      if (auto here = getOperandRange(node, use.getOperandNumber())) {
        range = range ? intersect(*range, *here) : here;
        if (!range)
          return std::nullopt;
      }
      if (use.getOperandNumber() == 0 && keepsIntegers(node, *entry) &&
          seen.insert(node).second)
        values.push_back(node.getOutputs()[0]);
    }
  }
  return range;
}

namespace {

struct OnnxBoundInputsPass
    : penstock::impl::OnnxBoundInputsBase<OnnxBoundInputsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto task : module.getOps<pipeline::TaskOp>())
      if (task.getKind() == pipeline::TaskKind::Forward && !task.isBodyless())
        for (auto call : task.getBody().getOps<func::CallOp>())
          bound(module, call);
  }

  void bound(ModuleOp module, func::CallOp call) {
    auto function = module.lookupSymbol<func::FuncOp>(call.getCallee());
    if (!function || function.isDeclaration())
      return;
    for (auto [operand, argument] :
         llvm::zip_equal(call.getOperands(), function.getArguments())) {
      auto take = operand.getDefiningOp<pipeline::TakeOp>();
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!take || !type || !type.getElementType().isInteger())
        continue;
      auto channel =
          module.lookupSymbol<pipeline::ChannelOp>(take.getChannelAttr());
      if (!channel || !channel.getSource())
        continue;
      if (std::optional<Operator::Range> range = findRange(argument))
        channel->setAttr(pipeline::kRangeAttr,
                         pipeline::RangeAttr::get(&getContext(), range->low,
                                                  range->high, range->ignored));
    }
  }
};

} // namespace
