//===- Convolutions.cpp - Conv and ConvTranspose --------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both become ops of nn; a transposed convolution is the gradient of the input
// of a convolution that goes the other way. The bias is added afterwards, where
// it can be fused with what follows.
//===----------------------------------------------------------------------===//

#include "OperatorTable.h"
#include "Window.h"
#include "dialects/Nn/Nn.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

namespace {
struct Conv {
  Window window;
  int64_t groups = 1;
  SmallVector<int64_t> result;

  LogicalResult bindOperands(NodeBinder &node, bool transposed,
                             bool fused = false);
  LogicalResult bind(NodeBinder &node, bool fused = false);
};

struct TransposedConv : Conv {
  LogicalResult bind(NodeBinder &node);
};
} // namespace

/// Binds operands, group and kernel_shape, which both have. Sets N and M of the
/// result.
LogicalResult Conv::bindOperands(NodeBinder &node, bool transposed,
                                 bool fused) {
  if (failed(fused ? node.operands({"X", "W", "B", "Z"}, 2)
                   : node.operands({"X", "W", "B"}, 2)) ||
      failed(node.requireFloat(0)) ||
      failed(node.requireSameElementType(0, 1)) ||
      failed(node.attribute("group", groups)))
    return failure();
  if (node.rank(0) < 3 || node.rank(0) > 5)
    return node.error() << "convolves " << node.type(0)
                        << "; one to three spatial dimensions are supported";
  if (node.rank(1) != node.rank(0))
    return node.error() << "operand 'W' has rank " << node.rank(1)
                        << ", but 'X' " << node.rank(0);
  if (groups < 1)
    return node.badAttribute("group", "a positive number");
  ArrayRef<int64_t> x = node.shape(0), w = node.shape(1);
  int64_t channels = transposed ? w[0] : w[1] * groups;
  if (x[1] != channels || w[0] % groups != 0)
    return node.error() << "operand 'W' (" << node.type(1) << ") in " << groups
                        << (groups == 1 ? " group" : " groups")
                        << " does not fit the " << x[1] << " channels of 'X'";
  int64_t outputs = transposed ? w[1] * groups : w[0];
  if (node.has(2) && (node.rank(2) != 1 || node.shape(2)[0] != outputs ||
                      failed(node.requireSameElementType(0, 2))))
    return node.error() << "operand 'B' has type " << node.type(2)
                        << ", but there are " << outputs << " channels";
  SmallVector<int64_t> kernel(w.drop_front(2));
  if (failed(node.attribute("kernel_shape", kernel)))
    return failure();
  if (ArrayRef<int64_t>(kernel) != w.drop_front(2))
    return node.badAttribute("kernel_shape", "the spatial shape of 'W'");
  result = {x[0], outputs};
  return window.bind(node, kernel);
}

LogicalResult Conv::bind(NodeBinder &node, bool fused) {
  return failure(
      failed(bindOperands(node, /*transposed=*/false, fused)) ||
      failed(window.count(node, node.shape(0), /*ceil=*/false, result)));
}

LogicalResult TransposedConv::bind(NodeBinder &node) {
  if (failed(bindOperands(node, /*transposed=*/true)))
    return failure();
  unsigned rank = window.rank();
  SmallVector<int64_t> more(rank, 0), shape;
  if (failed(node.attribute("output_padding", more)) ||
      failed(node.attribute("output_shape", shape)))
    return failure();
  if (more.size() != rank ||
      llvm::any_of(more, [](int64_t value) { return value < 0; }))
    return node.badAttribute("output_padding",
                             Twine(rank) + " numbers that are not negative");
  if (shape.size() == rank + 2)
    shape.erase(shape.begin(), shape.begin() + 2);
  if (!shape.empty() &&
      (shape.size() != rank ||
       llvm::any_of(shape, [](int64_t value) { return value < 1; })))
    return node.badAttribute("output_shape", Twine(rank) + " positive numbers");
  ArrayRef<int64_t> x = node.shape(0);
  for (unsigned i = 0; i < rank; ++i) {
    int64_t full =
        window.strides[i] * (x[i + 2] - 1) + more[i] + window.extent(i);
    if (shape.empty() && !window.isSame()) {
      result.push_back(full - window.pads[i] - window.pads[rank + i]);
    } else {
      result.push_back(shape.empty() ? x[i + 2] * window.strides[i] : shape[i]);
      int64_t total = full - result.back();
      if (total < 0) {
        // Longer than all windows reach: what is missing is after them.
        window.pads[i] = 0;
        window.pads[rank + i] = total;
      } else {
        window.setPads(i, total,
                       /*largerBefore=*/window.autoPad != "SAME_UPPER");
      }
    }
    if (result.back() < 1)
      return node.error() << "pads more of spatial dimension " << i
                          << " away than there is";
    // The convolution that goes the other way meets its padding exactly.
    window.pads[rank + i] -= more[i];
  }
  return success();
}

/// Returns true if the bias is there and more than zeros, which is how
/// PyTorch's exporter writes "none". Adding them would at most change the sign
/// of a zero.
static bool hasBias(NodeBinder &node) {
  if (!node.has(2))
    return false;
  DenseElementsAttr constant = getConstant(node.operand(2));
  return !constant || !constant.isSplat() ||
         !isa<FloatType>(constant.getElementType()) ||
         !constant.getSplatValue<APFloat>().isZero();
}

/// Adds the bias to every element of its channel.
static Value addBias(NodeBinder &node, Emitter &emitter, Value value) {
  if (!hasBias(node))
    return value;
  RankedTensorType type = Emitter::getType(value);
  AffineMap all = emitter.builder.getMultiDimIdentityMap(type.getRank());
  AffineMap channel = emitter.map(type.getRank(), {1});
  return emitter.generic({value, node.operand(2)}, emitter.empty(type),
                         {all, channel, all},
                         SmallVector<utils::IteratorType>(
                             type.getRank(), utils::IteratorType::parallel),
                         [](Emitter &inside, ArrayRef<Value> scalars) {
                           return inside.add(scalars[0], scalars[1]);
                         });
}

static Value emitConv(NodeBinder &node, Emitter &emitter, const Conv &conv) {
  auto type = node.makeType(conv.result);
  const Window &window = conv.window;
  Value result =
      nn::ConvOp::create(emitter.builder, node.getLoc(), node.operand(0),
                         node.operand(1), emitter.empty(type), window.strides,
                         window.dilations, window.pads, conv.groups)
          .getResult(0);
  return addBias(node, emitter, result);
}

static Values lowerConv(Conv &conv, NodeBinder &node, Emitter &emitter) {
  return emitConv(node, emitter, conv);
}

//===--- com.microsoft: FusedConv ---===//

namespace {
/// A convolution, the sum with another tensor, and an activation.
struct FusedConv : Conv {
  std::string activation;
  /// The activation's own, as many as it has.
  SmallVector<double, 2> params;
  LogicalResult bind(NodeBinder &node);
  Value activate(Emitter &e, Value x) const;
};
} // namespace

LogicalResult FusedConv::bind(NodeBinder &node) {
  if (failed(Conv::bind(node, /*fused=*/true)) ||
      failed(node.attribute("activation", activation)))
    return failure();
  if (node.has(3) && (failed(node.requireSameElementType(0, 3)) ||
                      node.shape(3) != ArrayRef<int64_t>(result)))
    return node.error() << "operand 'Z' is " << node.type(3)
                        << ", it must have the shape of the convolution, "
                        << node.makeType(result);
  if (auto list = dyn_cast_or_null<DenseF32ArrayAttr>(
          node.node.getParam("activation_params")))
    params.assign(list.asArrayRef().begin(), list.asArrayRef().end());
  static const std::pair<StringRef, size_t> known[] = {
      {"", 0},          {"Relu", 0},        {"Tanh", 0}, {"Sigmoid", 0},
      {"LeakyRelu", 1}, {"HardSigmoid", 2}, {"Clip", 2}};
  const auto *found = llvm::find_if(
      known, [&](const auto &entry) { return entry.first == activation; });
  if (found == std::end(known))
    return node.badAttribute("activation", "Relu, Tanh, Sigmoid, LeakyRelu, "
                                           "HardSigmoid or Clip");
  if (params.size() < found->second)
    return node.error() << "attribute 'activation_params' has " << params.size()
                        << " numbers, " << activation << " has "
                        << found->second;
  return success();
}

Value FusedConv::activate(Emitter &e, Value x) const {
  Type type = x.getType();
  auto number = [&](double value) { return e.scalar(type, value); };
  if (activation == "Relu")
    return e.max(x, number(0));
  if (activation == "Tanh")
    return e.make<math::TanhOp>(x);
  if (activation == "Sigmoid") {
    Value negative = e.neg(x);
    Value power = e.make<math::ExpOp>(negative);
    return e.div(number(1), e.add(number(1), power));
  }
  if (activation == "LeakyRelu")
    return e.select(e.less(x, number(0)), e.mul(number(params[0]), x), x);
  if (activation == "HardSigmoid")
    return e.max(number(0), e.min(number(1), e.add(e.mul(number(params[0]), x),
                                                   number(params[1]))));
  if (activation == "Clip")
    return e.min(e.max(x, number(params[0])), number(params[1]));
  return x;
}

static Values lowerFusedConv(FusedConv &conv, NodeBinder &node,
                             Emitter &emitter) {
  SmallVector<Value> terms = {emitConv(node, emitter, conv)};
  if (node.has(3))
    terms.push_back(node.operand(3));
  return emitter.elementwise(Emitter::getType(terms[0]), terms,
                             [&](Emitter &inside, ArrayRef<Value> scalars) {
                               Value sum =
                                   scalars.size() == 2
                                       ? inside.add(scalars[0], scalars[1])
                                       : scalars[0];
                               return conv.activate(inside, sum);
                             });
}

//===--- ConvTranspose ---===//

static Values lowerConvTranspose(TransposedConv &conv, NodeBinder &node,
                                 Emitter &emitter) {
  auto type = node.makeType(conv.result);
  Window &window = conv.window;
  Value result = emitter.make<nn::ConvInputGradOp>(
      node.operand(0), node.operand(1), emitter.empty(type), window.strides,
      window.dilations, window.pads, conv.groups);
  return addBias(node, emitter, result);
}

void penstock::onnx::addConvolutions(OperatorTable &table) {
  table.add("Conv", {1, 11, 22}, bound<inferShape<Conv>>, nullptr,
            bound<lowerConv>);
  table.add("ConvTranspose", {1, 11, 22}, bound<inferShape<TransposedConv>>,
            nullptr, bound<lowerConvTranspose>);
  table.addMicrosoft("FusedConv", bound<inferShape<FusedConv>>,
                     bound<lowerFusedConv>);
}
