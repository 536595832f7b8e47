//===- RaiseComposites.cpp - Finds what exporters took apart --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Normalizations and activations written out node by node become the one
// operator that they are, before differentiation: its derivative is stabler,
// and the backward keeps one value instead of each node's. Only what means
// exactly the operator is raised; the rest stays as it is.
//===----------------------------------------------------------------------===//

#include "passes/Frontend/Passes.h"

#include "dialects/Onnx/Onnx.h"
#include "penstock/Import/OperatorRegistry.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cmath>

namespace penstock {
#define GEN_PASS_DEF_RAISECOMPOSITES
#include "passes/Frontend/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

namespace {

/// The node of this type (default domain) that computes a value, or null.
NodeOp producer(Value value, StringRef type) {
  auto node = value.getDefiningOp<NodeOp>();
  return node && node.getDomainName().empty() && node.getOpType() == type
             ? node
             : NodeOp();
}

/// The number that every element of a constant is.
std::optional<double> splat(Value value) {
  DenseElementsAttr constant = getConstant(value);
  if (!constant || !constant.isSplat() ||
      !isa<FloatType>(constant.getElementType()))
    return std::nullopt;
  return constant.getSplatValue<APFloat>().convertToDouble();
}

/// Returns true if `value` is a constant that f32 cannot tell from `number`. It
/// must not broadcast anything to more elements.
bool isNumber(Value value, double number) {
  std::optional<double> found = splat(value);
  return found && std::fabs(*found - number) <= 1e-6 * std::fabs(number) &&
         cast<RankedTensorType>(value.getType()).getNumElements() == 1;
}

/// The other operand of a node of two when one is `operand`; null if none is.
Value other(NodeOp node, Value operand) {
  if (!node || node.getInputs().size() != 2)
    return {};
  if (node.getInputs()[0] == operand)
    return node.getInputs()[1];
  return node.getInputs()[1] == operand ? node.getInputs()[0] : Value();
}

/// The operand of a node of two whose other one is the number.
Value besides(NodeOp node, double number) {
  if (!node || node.getInputs().size() != 2)
    return {};
  for (unsigned i : {0u, 1u})
    if (isNumber(node.getInputs()[i], number))
      return node.getInputs()[1 - i];
  return {};
}

/// x where `value` is x * x.
Value squared(Value value) {
  if (NodeOp power = producer(value, "Pow"))
    return isNumber(power.getInputs()[1], 2) ? power.getInputs()[0] : Value();
  NodeOp product = producer(value, "Mul");
  return product && product.getInputs()[0] == product.getInputs()[1]
             ? product.getInputs()[0]
             : Value();
}

/// The first of the trailing axes that `value` is the mean over, kept as axes
/// of one; with what it is the mean of.
std::optional<std::pair<Value, int64_t>> trailingMean(Value value) {
  NodeOp node = producer(value, "ReduceMean");
  if (!node)
    return std::nullopt;
  Value operand = node.getInputs()[0];
  auto keep = dyn_cast_if_present<IntegerAttr>(node.getParam("keepdims"));
  auto type = dyn_cast<RankedTensorType>(operand.getType());
  if ((keep && keep.getInt() == 0) || !type)
    return std::nullopt;
  SmallVector<int64_t> axes;
  if (auto list =
          dyn_cast_if_present<DenseI64ArrayAttr>(node.getParam("axes"))) {
    llvm::append_range(axes, list.asArrayRef());
  } else if (node.getInputs().size() == 2) {
    DenseElementsAttr constant = getConstant(node.getInputs()[1]);
    if (!constant || !constant.getElementType().isSignlessInteger())
      return std::nullopt;
    for (const APInt &axis : constant.getValues<APInt>())
      axes.push_back(axis.getSExtValue());
  }
  int64_t rank = type.getRank();
  for (int64_t &axis : axes)
    axis += axis < 0 ? rank : 0;
  llvm::sort(axes);
  int64_t first = rank - static_cast<int64_t>(axes.size());
  if (axes.empty() || !llvm::equal(axes, llvm::seq<int64_t>(first, rank)))
    return std::nullopt;
  return std::pair(operand, first);
}

/// A root of mean(squares) + epsilon.
struct Root {
  Value squares;
  int64_t axis;
  double epsilon;
};

std::optional<Root> matchRoot(Value value) {
  NodeOp root = producer(value, "Sqrt");
  NodeOp sum = root ? producer(root.getInputs()[0], "Add") : NodeOp();
  if (!sum)
    return std::nullopt;
  for (unsigned i : {0u, 1u}) {
    std::optional<double> epsilon = splat(sum.getInputs()[i]);
    auto mean = trailingMean(sum.getInputs()[1 - i]);
    if (!epsilon || *epsilon < 0 || !mean ||
        sum.getInputs()[1 - i].getType() != sum.getResult(0).getType())
      continue;
    return Root{mean->first, mean->second, *epsilon};
  }
  return std::nullopt;
}

/// The numerator and the root where a node is numerator / root, or numerator
/// times its reciprocal.
std::optional<std::pair<Value, Root>> matchOverRoot(NodeOp node) {
  if (NodeOp quotient = producer(node.getResult(0), "Div")) {
    if (auto root = matchRoot(quotient.getInputs()[1]))
      return std::pair(quotient.getInputs()[0], *root);
    return std::nullopt;
  }
  if (!producer(node.getResult(0), "Mul"))
    return std::nullopt;
  for (unsigned i : {0u, 1u}) {
    Value factor = node.getInputs()[i];
    std::optional<Root> root;
    if (NodeOp reciprocal = producer(factor, "Reciprocal"))
      root = matchRoot(reciprocal.getInputs()[0]);
    else if (NodeOp one = producer(factor, "Div"))
      if (isNumber(one.getInputs()[0], 1))
        root = matchRoot(one.getInputs()[1]);
    if (root)
      return std::pair(node.getInputs()[1 - i], *root);
  }
  return std::nullopt;
}

/// Creates the operator that takes the place of a node.
Value create(NodeOp node, StringRef type, int64_t since, StringRef domain,
             ValueRange operands, ArrayRef<NamedAttribute> params) {
  OpBuilder builder(node);
  return NodeOp::create(builder, node.getLoc(), node.getResultTypes(),
                        builder.getStringAttr(type), operands,
                        builder.getI64IntegerAttr(since),
                        domain.empty() ? StringAttr()
                                       : builder.getStringAttr(domain),
                        builder.getDictionaryAttr(params))
      .getResult(0);
}

/// Layer norm without scale and bias, or its root mean square form: those
/// follow as nodes of their own, which is what the operators become as well.
Value raiseNorm(NodeOp node) {
  auto found = matchOverRoot(node);
  if (!found)
    return {};
  auto [numerator, root] = *found;
  Value base = squared(root.squares);
  if (!base)
    return {};
  auto sameDifference = [](Value a, Value b) {
    NodeOp x = producer(a, "Sub"), y = producer(b, "Sub");
    return a == b || (x && y && x.getInputs() == y.getInputs());
  };
  StringRef type;
  int64_t since;
  Value x;
  NodeOp difference = producer(numerator, "Sub");
  auto mean =
      difference ? trailingMean(difference.getInputs()[1]) : std::nullopt;
  if (mean && mean->first == difference.getInputs()[0] &&
      mean->second == root.axis && sameDifference(numerator, base)) {
    x = difference.getInputs()[0];
    type = "LayerNormalization";
    since = 17;
  } else if (numerator == base) {
    x = base;
    type = "RMSNormalization";
    since = 23;
  } else {
    return {};
  }
  auto operand = cast<RankedTensorType>(x.getType());
  if (operand != node.getResult(0).getType())
    return {};
  OpBuilder builder(node);
  auto one = RankedTensorType::get({1}, operand.getElementType());
  Value ones = arith::ConstantOp::create(
      builder, node.getLoc(),
      DenseElementsAttr::get(one,
                             builder.getFloatAttr(one.getElementType(), 1)));
  return create(
      node, type, since, "", {x, ones},
      {builder.getNamedAttr("axis", builder.getI64IntegerAttr(root.axis)),
       builder.getNamedAttr("epsilon", builder.getF32FloatAttr(
                                           static_cast<float>(root.epsilon)))});
}

/// x where `value` is 1 + erf(x / sqrt 2).
Value matchBell(Value value) {
  Value bell = besides(producer(value, "Add"), 1);
  NodeOp erf = bell ? producer(bell, "Erf") : NodeOp();
  if (!erf)
    return {};
  Value inside = erf.getInputs()[0];
  if (NodeOp quotient = producer(inside, "Div"))
    return isNumber(quotient.getInputs()[1], M_SQRT2) ? quotient.getInputs()[0]
                                                      : Value();
  return besides(producer(inside, "Mul"), M_SQRT1_2);
}

/// x/2 (1 + erf(x / sqrt 2)), its three factors in any order.
Value raiseGelu(NodeOp node) {
  if (!producer(node.getResult(0), "Mul"))
    return {};
  SmallVector<Value> factors;
  for (Value operand : node.getInputs()) {
    NodeOp product = producer(operand, "Mul");
    // One of the two factors is a product itself, or neither.
    if (product && factors.size() < 2)
      llvm::append_range(factors, product.getInputs());
    else
      factors.push_back(operand);
  }
  if (factors.size() != 3)
    return {};
  Value x;
  int halves = 0;
  for (Value factor : factors) {
    if (isNumber(factor, 0.5))
      ++halves;
    else if (Value inside = matchBell(factor))
      x = inside;
  }
  if (!x || halves != 1 || !llvm::is_contained(factors, x) ||
      x.getType() != node.getResult(0).getType())
    return {};
  return create(node, "Gelu", 20, "", x, {});
}

/// x * sigmoid(x)
Value raiseSilu(NodeOp node) {
  if (!producer(node.getResult(0), "Mul"))
    return {};
  for (Value operand : node.getInputs()) {
    NodeOp sigmoid = producer(operand, "Sigmoid");
    if (!sigmoid || other(node, operand) != sigmoid.getInputs()[0])
      continue;
    OpBuilder builder(node);
    return create(node, "QuickGelu", 1, "com.microsoft", sigmoid.getInputs()[0],
                  builder.getNamedAttr("alpha", builder.getF32FloatAttr(1)));
  }
  return {};
}

struct RaiseComposites
    : public penstock::impl::RaiseCompositesBase<RaiseComposites> {
  void runOnOperation() override {
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>()) {
      if (function.isDeclaration())
        continue;
      for (NodeOp node :
           llvm::make_early_inc_range(function.getOps<NodeOp>())) {
        if (!node.getDomainName().empty() || node.getNumResults() != 1)
          continue;
        Value raised = raiseNorm(node);
        if (!raised)
          raised = raiseGelu(node);
        if (!raised)
          raised = raiseSilu(node);
        if (raised)
          node.getResult(0).replaceAllUsesWith(raised);
      }
      // What nothing reads any more.
      for (Operation &op : llvm::make_early_inc_range(
               llvm::reverse(function.getBody().front())))
        if (op.use_empty() && isa<NodeOp, arith::ConstantOp>(op))
          op.erase();
    }
  }
};

} // namespace
