//===- Pooling.cpp - MaxPool, AveragePool, LpPool and their global forms --===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Averages and norms are sums over windows between elementwise ops. How many
// elements an average counts is known when compiling.
//===----------------------------------------------------------------------===//

#include "OperatorTable.h"
#include "Window.h"
#include "dialects/Nn/Nn.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

namespace {
struct Pool {
  Window window;
  bool ceil = false;
  SmallVector<int64_t> result;

  LogicalResult bind(NodeBinder &node);
  ArrayRef<int64_t> padsBefore() const {
    return ArrayRef<int64_t>(window.pads).take_front(window.rank());
  }
};
} // namespace

static LogicalResult bindOperand(NodeBinder &node) {
  if (failed(node.operands({"X"}, 1)) || failed(node.requireFloat(0)))
    return failure();
  if (node.rank(0) < 3)
    return node.error() << "pools " << node.type(0)
                        << ", which has no spatial dimension";
  return success();
}

LogicalResult Pool::bind(NodeBinder &node) {
  SmallVector<int64_t> kernel;
  if (failed(bindOperand(node)) ||
      failed(node.attribute("kernel_shape", kernel)) ||
      failed(node.attribute("ceil_mode", ceil)))
    return failure();
  if (static_cast<int64_t>(kernel.size()) != node.rank(0) - 2)
    return node.badAttribute("kernel_shape", "as many numbers as 'X' has "
                                             "spatial dimensions");
  result = {node.shape(0)[0], node.shape(0)[1]};
  if (failed(window.bind(node, kernel)) ||
      failed(window.count(node, node.shape(0), ceil, result)))
    return failure();
  for (unsigned i = 0; i < window.rank(); ++i)
    if (window.pads[i] >= window.extent(i) ||
        window.pads[window.rank() + i] >= window.extent(i))
      return node.error() << "has windows that lie in the padding alone";
  return success();
}

//===--- MaxPool ---===//

static Types inferMaxPool(Pool &pool, NodeBinder &node) {
  if (node.node.getNumResults() < 2)
    return node.makeType(pool.result);
  return {node.makeType(pool.result),
          RankedTensorType::get(pool.result,
                                IntegerType::get(node.getContext(), 64))};
}

/// ONNX's indices count through the whole tensor, ours through a plane.
static Value countThroughTensor(NodeBinder &node, Emitter &emitter,
                                Value indices, bool columnMajor) {
  ArrayRef<int64_t> shape = node.shape(0);
  int64_t plane = 1;
  for (int64_t size : shape.drop_front(2))
    plane *= size;
  auto type = RankedTensorType::get(Emitter::getShape(indices),
                                    emitter.builder.getI64Type());
  auto body = [&](Emitter &inside, ArrayRef<Value> scalars) -> Value {
    OpBuilder &b = inside.builder;
    Location loc = inside.loc;
    Type i64 = b.getI64Type();
    auto number = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
    };
    auto loop = [&](int64_t dim) -> Value {
      return arith::IndexCastOp::create(b, loc, i64,
                                        linalg::IndexOp::create(b, loc, dim));
    };
    Value position = arith::ExtSIOp::create(b, loc, i64, scalars[0]);
    if (columnMajor) {
      // The same position, with the first spatial dimension the fastest.
      Value rest = position, turned = number(0);
      int64_t stride = plane;
      for (int64_t size : llvm::reverse(shape.drop_front(2))) {
        stride /= size;
        Value digit = arith::RemSIOp::create(b, loc, rest, number(size));
        rest = arith::DivSIOp::create(b, loc, rest, number(size));
        turned = inside.add(turned, inside.mul(digit, number(stride)));
      }
      position = turned;
    }
    Value before = inside.add(inside.mul(loop(0), number(shape[1])), loop(1));
    return inside.add(inside.mul(before, number(plane)), position);
  };
  return emitter.elementwise(type, indices, body);
}

static Values lowerMaxPool(Pool &pool, NodeBinder &node, Emitter &emitter) {
  int64_t storageOrder = 0;
  if (failed(node.attribute("storage_order", storageOrder)))
    return failure();
  if (storageOrder != 0 && storageOrder != 1)
    return node.badAttribute("storage_order", "0 or 1");
  auto op = nn::MaxPoolOp::create(
      emitter.builder, emitter.loc, node.makeType(pool.result),
      RankedTensorType::get(pool.result, emitter.builder.getI32Type()),
      node.operand(0), pool.window.sizes, pool.window.strides,
      pool.window.dilations, pool.padsBefore());
  if (node.node.getNumResults() < 2)
    return op.getResult();
  return {op.getResult(), countThroughTensor(node, emitter, op.getIndices(),
                                             storageOrder == 1)};
}

//===--- AveragePool, LpPool ---===//

static Value createSumPool(const Pool &pool, Emitter &emitter, Value input) {
  auto type = RankedTensorType::get(pool.result,
                                    Emitter::getType(input).getElementType());
  return emitter.make<nn::SumPoolOp>(type, input, pool.window.sizes,
                                     pool.window.strides, pool.window.dilations,
                                     pool.padsBefore());
}

/// The elements of each window that count along one spatial dimension.
static SmallVector<int64_t> countElements(const Pool &pool, unsigned i,
                                          int64_t size, bool withPadding) {
  const Window &window = pool.window;
  int64_t first = withPadding ? -window.pads[i] : 0;
  int64_t end = withPadding ? size + window.pads[window.rank() + i] : size;
  SmallVector<int64_t> counts;
  for (int64_t o = 0; o < pool.result[2 + i]; ++o) {
    int64_t count = 0;
    for (int64_t k = 0; k < window.sizes[i]; ++k) {
      int64_t at =
          o * window.strides[i] + k * window.dilations[i] - window.pads[i];
      count += at >= first && at < end;
    }
    counts.push_back(count);
  }
  return counts;
}

static Values lowerAveragePool(Pool &pool, NodeBinder &node, Emitter &emitter) {
  bool countPadding = false;
  if (failed(node.attribute("count_include_pad", countPadding)))
    return failure();
  Value sum = createSumPool(pool, emitter, node.operand(0));
  auto type = Emitter::getType(sum);
  unsigned rank = pool.window.rank();
  SmallVector<SmallVector<int64_t>> counts;
  bool isUniform = true;
  double first = 1;
  for (unsigned i = 0; i < rank; ++i) {
    counts.push_back(
        countElements(pool, i, node.shape(0)[2 + i], countPadding));
    isUniform &= llvm::all_equal(counts.back());
    if (!counts.back().empty())
      first *= static_cast<double>(counts.back().front());
  }
  if (isUniform) {
    return emitter.elementwise(
        type, sum, [&](Emitter &inside, ArrayRef<Value> scalars) {
          return inside.div(scalars[0],
                            inside.scalar(type.getElementType(), first));
        });
  }
  // The divisors of one plane.
  ArrayRef<int64_t> windows = ArrayRef<int64_t>(pool.result).drop_front(2);
  SmallVector<APFloat> divisors;
  auto element = cast<FloatType>(type.getElementType());
  int64_t total = 1;
  for (int64_t size : windows)
    total *= size;
  for (int64_t flat = 0; flat < total; ++flat) {
    int64_t rest = flat;
    double count = 1;
    for (unsigned i = rank; i-- > 0;) {
      count *= static_cast<double>(counts[i][rest % windows[i]]);
      rest /= windows[i];
    }
    APFloat value(count);
    bool losesInfo;
    value.convert(element.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                  &losesInfo);
    divisors.push_back(value);
  }
  Value divisor = emitter.constant(DenseElementsAttr::get(
      RankedTensorType::get(windows, element), divisors));
  return emitter.elementwise(type, {sum, divisor}, &Emitter::div);
}

static Value power(Emitter &inside, Value value, double exponent) {
  if (exponent == 1)
    return value;
  if (exponent == 2)
    return inside.mul(value, value);
  if (exponent == 0.5)
    return inside.make<math::SqrtOp>(value);
  return inside.make<math::PowFOp>(value,
                                   inside.scalar(value.getType(), exponent));
}

static LogicalResult bindNorm(NodeBinder &node, double &p) {
  int64_t order = 2;
  if (failed(node.attribute("p", order)))
    return failure();
  if (order < 1)
    return node.badAttribute("p", "a positive number");
  p = static_cast<double>(order);
  return success();
}

/// |x|^p.
static Value toPower(Emitter &emitter, Value input, double p) {
  return emitter.elementwise(Emitter::getType(input), input,
                             [&](Emitter &inside, ArrayRef<Value> scalars) {
                               Value size =
                                   inside.make<math::AbsFOp>(scalars[0]);
                               return power(inside, size, p);
                             });
}

static Value takeRoot(Emitter &emitter, Value sum, double p) {
  return emitter.elementwise(Emitter::getType(sum), sum,
                             [&](Emitter &inside, ArrayRef<Value> scalars) {
                               return power(inside, scalars[0], 1 / p);
                             });
}

static Values lowerLpPool(Pool &pool, NodeBinder &node, Emitter &emitter) {
  double p;
  if (failed(bindNorm(node, p)))
    return failure();
  Value powers = toPower(emitter, node.operand(0), p);
  return takeRoot(emitter, createSumPool(pool, emitter, powers), p);
}

//===--- Global forms ---===//

namespace {
/// One window over each plane.
struct GlobalPool {
  SmallVector<int64_t> result;

  LogicalResult bind(NodeBinder &node) {
    if (failed(bindOperand(node)))
      return failure();
    result.assign(node.rank(0), 1);
    std::copy_n(node.shape(0).begin(), 2, result.begin());
    return success();
  }
};
} // namespace

/// The sum of each plane, as N x C.
static Value sumPlanes(Emitter &emitter, Value input) {
  SmallVector<int64_t> axes;
  for (int64_t axis = 2; axis < Emitter::getType(input).getRank(); ++axis)
    axes.push_back(axis);
  Type element = Emitter::getType(input).getElementType();
  return emitter.reduce(input, axes, emitter.scalar(element, 0), &Emitter::add);
}

static double planeSize(NodeBinder &node) {
  double size = 1;
  for (int64_t dim : node.shape(0).drop_front(2))
    size *= static_cast<double>(dim);
  return size;
}

static Values lowerGlobalAverage(GlobalPool &pool, NodeBinder &node,
                                 Emitter &emitter) {
  Value sum = sumPlanes(emitter, node.operand(0));
  double size = planeSize(node);
  Value mean = emitter.elementwise(
      Emitter::getType(sum), sum,
      [&](Emitter &inside, ArrayRef<Value> scalars) {
        return inside.div(scalars[0],
                          inside.scalar(scalars[0].getType(), size));
      });
  return emitter.reshape(mean, pool.result);
}

static Values lowerGlobalNorm(GlobalPool &pool, NodeBinder &node,
                              Emitter &emitter) {
  double p;
  if (failed(bindNorm(node, p)))
    return failure();
  Value powers = toPower(emitter, node.operand(0), p);
  Value root = takeRoot(emitter, sumPlanes(emitter, powers), p);
  return emitter.reshape(root, pool.result);
}

static Values lowerGlobalMax(GlobalPool &pool, NodeBinder &node,
                             Emitter &emitter) {
  ArrayRef<int64_t> window = node.shape(0).drop_front(2);
  if (llvm::is_contained(window, 0))
    return node.error() << "takes the maximum of no elements";
  SmallVector<int64_t> ones(window.size(), 1), zeros(window.size(), 0);
  return emitter.make<nn::MaxPoolOp>(
      node.makeType(pool.result),
      RankedTensorType::get(pool.result, emitter.builder.getI32Type()),
      node.operand(0), window, ones, ones, zeros);
}

void penstock::onnx::addPooling(OperatorTable &table) {
  table.add("MaxPool", {1, 8, 10, 11, 12, 22}, bound<inferMaxPool>, nullptr,
            bound<lowerMaxPool>);
  table.add("AveragePool", {7, 10, 11, 19, 22}, bound<inferShape<Pool>>,
            nullptr, bound<lowerAveragePool>);
  table.add("LpPool", {2, 11, 18, 22}, bound<inferShape<Pool>>, nullptr,
            bound<lowerLpPool>);
  auto addGlobal = [&](StringRef name, std::initializer_list<int64_t> sinces,
                       Operator::LowerFn lower) {
    table.add(name, sinces, bound<inferShape<GlobalPool>>, nullptr, lower);
  };
  addGlobal("GlobalAveragePool", {1, 22}, bound<lowerGlobalAverage>);
  addGlobal("GlobalMaxPool", {1, 22}, bound<lowerGlobalMax>);
  addGlobal("GlobalLpPool", {2, 22}, bound<lowerGlobalNorm>);
}
