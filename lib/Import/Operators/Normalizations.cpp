//===- Normalizations.cpp - LayerNormalization and its kin ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each is brought to rows, the last axis of a matrix, which moves no data, and
// normalised there by an `nn` op. Scale and bias follow as an op of their own:
// the derivative then keeps the normalised x, which holds no weight.
//===----------------------------------------------------------------------===//

#include "OperatorTable.h"

#include "dialects/Nn/Nn.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

static int64_t product(ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

static LogicalResult bindEpsilon(NodeBinder &node, double &epsilon) {
  if (failed(node.attribute("epsilon", epsilon)))
    return failure();
  if (!(epsilon >= 0))
    return node.badAttribute("epsilon", "a number that is not negative");
  return success();
}

/// Statistics are computed in the type that `stash_type` names, unless the
/// operand's own is wider.
static LogicalResult bindStashType(NodeBinder &node, Type &stash) {
  int64_t number = 1;
  if (failed(node.attribute("stash_type", number)))
    return failure();
  stash = getElementType(node.getContext(), number);
  if (!stash || !isa<FloatType>(stash))
    return node.badAttribute("stash_type", "the number of a float type");
  return success();
}

static Type widest(Type a, Type b) {
  return a.getIntOrFloatBitWidth() >= b.getIntOrFloatBitWidth() ? a : b;
}

static Value castTo(Emitter &emitter, Value value, Type element) {
  RankedTensorType type = Emitter::typeOf(value);
  if (type.getElementType() == element)
    return value;
  return emitter.elementwise(RankedTensorType::get(type.getShape(), element),
                             value,
                             [&](Emitter &inside, ArrayRef<Value> scalars) {
                               return inside.cast(scalars[0], element);
                             });
}

//===--- Over trailing axes: LayerNormalization, RMSNormalization ---===//

namespace {
/// LayerNormalization, RMSNormalization, and the fused forms of com.microsoft
/// that end in one of them.
struct TrailingNorm {
  double epsilon = 1e-5;
  int64_t axis = -1;
  Type stash;
  /// Rows, and elements of a row.
  int64_t rows, size;
  RankedTensorType statistics;

  LogicalResult bind(NodeBinder &node);
  /// The operand number of scale and bias, each of which must broadcast to x.
  LogicalResult bindAffine(NodeBinder &node, unsigned operand);
};

struct Normalized {
  Value result, mean, rstd;
};
} // namespace

LogicalResult TrailingNorm::bind(NodeBinder &node) {
  int64_t rank = node.rank(0);
  if (failed(node.requireFloat(0)) || failed(bindEpsilon(node, epsilon)) ||
      failed(node.attribute("axis", axis)) ||
      failed(node.normalizeAxis("attribute 'axis'", axis, rank)) ||
      failed(bindStashType(node, stash)))
    return failure();
  rows = product(node.shape(0).take_front(axis));
  size = product(node.shape(0).drop_front(axis));
  if (size == 0)
    return node.error() << "operand '" << node.operandName(0) << "' is "
                        << node.type(0) << ", and has nothing to normalise";
  SmallVector<int64_t> shape(node.shape(0));
  std::fill(shape.begin() + axis, shape.end(), 1);
  statistics = RankedTensorType::get(shape, stash);
  return success();
}

LogicalResult TrailingNorm::bindAffine(NodeBinder &node, unsigned operand) {
  if (!node.has(operand))
    return success();
  SmallVector<int64_t> shape(node.shape(0));
  if (failed(node.requireFloat(operand)) ||
      failed(node.broadcast(operand, shape)))
    return failure();
  if (ArrayRef<int64_t>(shape) != node.shape(0))
    return node.error() << "operand '" << node.operandName(operand) << "' is "
                        << node.type(operand)
                        << ", which does not broadcast to the operand's "
                        << node.type(0);
  return success();
}

/// x of shape [rows, size], scale and bias (null: none) in any shape that
/// broadcasts to `full`.
static Normalized emitTrailing(Emitter &emitter, const TrailingNorm &norm,
                               Value x, Value scale, Value bias, bool centered,
                               ArrayRef<int64_t> full) {
  OpBuilder &builder = emitter.builder;
  Location loc = emitter.loc;
  Type element = Emitter::typeOf(x).getElementType();
  Type compute = widest(element, norm.stash);
  Value rows =
      castTo(emitter, emitter.reshape(x, {norm.rows, norm.size}), compute);
  auto type = Emitter::typeOf(rows);
  Normalized out;
  Value value, variance;
  if (centered) {
    auto op = nn::NormalizeOp::create(builder, loc, rows, {1}, norm.epsilon);
    value = op.getResult();
    out.mean = op.getMean();
    variance = op.getVariance();
  } else {
    auto op = nn::RmsNormalizeOp::create(builder, loc, rows, {1}, norm.epsilon);
    value = op.getResult();
    variance = op.getMeanSquare();
  }
  // Scale and bias that are one row each leave the matrix a matrix.
  auto asRow = [&](Value operand) -> Value {
    ArrayRef<int64_t> shape = Emitter::shapeOf(operand);
    while (!shape.empty() && shape.size() > full.size() - norm.axis &&
           shape.front() == 1)
      shape = shape.drop_front();
    if (shape != full.drop_front(norm.axis))
      return {};
    return emitter.reshape(operand, {norm.size});
  };
  SmallVector<Value> operands = {value};
  bool isMatrix = true;
  for (Value operand : {scale, bias})
    if (operand) {
      Value vector = asRow(operand);
      isMatrix &= !!vector;
      operands.push_back(vector);
    }
  ArrayRef<int64_t> shape = type.getShape();
  if (!isMatrix) {
    shape = full;
    operands = {emitter.reshape(value, full)};
    for (Value operand : {scale, bias})
      if (operand)
        operands.push_back(operand);
  }
  if (operands.size() > 1 || compute != element)
    value = emitter.elementwise(
        RankedTensorType::get(shape, element), operands,
        [&](Emitter &inside, ArrayRef<Value> scalars) {
          unsigned next = 1;
          Value result = scalars[0];
          if (scale)
            result = inside.mul(result, inside.cast(scalars[next++], compute));
          if (bias)
            result = inside.add(result, inside.cast(scalars[next++], compute));
          return inside.cast(result, element);
        });
  out.result = emitter.reshape(value, full);
  auto statistic = [&](Value vector) {
    return emitter.reshape(castTo(emitter, vector, norm.stash),
                           norm.statistics.getShape());
  };
  if (out.mean)
    out.mean = statistic(out.mean);
  out.rstd = statistic(emitter.elementwise(
      Emitter::typeOf(variance), variance,
      [&](Emitter &inside, ArrayRef<Value> scalars) {
        Value shifted =
            inside.add(scalars[0], inside.scalar(compute, norm.epsilon));
        Value root = math::SqrtOp::create(inside.builder, inside.loc, shifted);
        return inside.div(inside.scalar(compute, 1), root);
      }));
  return out;
}

/// Whether an operand is a constant of ones: as a scale, it is none.
static bool isOnes(NodeBinder &node, unsigned i) {
  DenseElementsAttr constant = node.constant(i);
  return constant && constant.isSplat() &&
         constant.getSplatValue<APFloat>().isExactlyValue(1.0);
}

template <bool centered>
static LogicalResult bindLayerNorm(NodeBinder &node, TrailingNorm &norm) {
  return success(succeeded(node.operands({"X", "Scale", "B"}, 2)) &&
                 succeeded(norm.bind(node)) &&
                 succeeded(norm.bindAffine(node, 1)) &&
                 succeeded(norm.bindAffine(node, 2)));
}

template <bool centered>
static LogicalResult inferLayerNorm(NodeBinder &node, Types &types) {
  TrailingNorm norm;
  if (failed(bindLayerNorm<centered>(node, norm)))
    return failure();
  if (!centered && node.has(2))
    return node.error() << "takes no operand 'B'";
  types.push_back(node.type(0));
  // RMSNormalization has one output, its contrib form also 1 / sqrt.
  for (unsigned i = 1; i < node.node.getNumResults() && i < (centered ? 3 : 2);
       ++i)
    types.push_back(norm.statistics);
  return success();
}

template <bool centered>
static LogicalResult lowerLayerNorm(NodeBinder &node, OpBuilder &builder,
                                    Values &results) {
  TrailingNorm norm;
  if (failed(bindLayerNorm<centered>(node, norm)))
    return failure();
  Emitter emitter(builder, node.getLoc());
  Normalized out = emitTrailing(emitter, norm, node.operand(0),
                                isOnes(node, 1) ? Value() : node.operand(1),
                                node.has(2) ? node.operand(2) : Value(),
                                centered, node.shape(0));
  SmallVector<Value> all = {out.result};
  if (centered)
    all.push_back(out.mean);
  all.push_back(out.rstd);
  results.append(all.begin(), all.begin() + node.node.getNumResults());
  return success();
}

//===--- com.microsoft: SkipLayerNormalization ---===//

namespace {
/// LayerNormalization(input + skip + bias), with the sum as another result.
struct SkipNorm : TrailingNorm {
  unsigned beta = 3, bias = 4;
  LogicalResult bind(NodeBinder &node, bool centered);
};
} // namespace

LogicalResult SkipNorm::bind(NodeBinder &node, bool centered) {
  LogicalResult named =
      centered ? node.operands({"input", "skip", "gamma", "beta", "bias"}, 3)
               : node.operands({"input", "skip", "gamma", "bias"}, 3);
  if (!centered)
    bias = 3;
  epsilon = 1e-12;
  if (failed(named) || failed(TrailingNorm::bind(node)) ||
      failed(bindAffine(node, 1)) || failed(bindAffine(node, 2)) ||
      failed(bindAffine(node, bias)) ||
      (centered && failed(bindAffine(node, beta))))
    return failure();
  return success();
}

template <bool centered>
static LogicalResult inferSkipNorm(NodeBinder &node, Types &types) {
  SkipNorm norm;
  if (failed(norm.bind(node, centered)))
    return failure();
  unsigned count = node.node.getNumResults();
  for (unsigned i = 0; i < count && i < 4; ++i)
    types.push_back(i == 1 || i == 2 ? norm.statistics : node.type(0));
  return success();
}

template <bool centered>
static LogicalResult lowerSkipNorm(NodeBinder &node, OpBuilder &builder,
                                   Values &results) {
  SkipNorm norm;
  if (failed(norm.bind(node, centered)))
    return failure();
  Emitter emitter(builder, node.getLoc());
  SmallVector<Value> terms = {node.operand(0), node.operand(1)};
  if (node.has(norm.bias))
    terms.push_back(node.operand(norm.bias));
  Value sum = emitter.elementwise(
      node.type(0), terms, [](Emitter &inside, ArrayRef<Value> scalars) {
        Value total = inside.add(scalars[0], scalars[1]);
        return scalars.size() == 3 ? inside.add(total, scalars[2]) : total;
      });
  Normalized out = emitTrailing(
      emitter, norm, sum, node.operand(2),
      centered && node.has(norm.beta) ? node.operand(norm.beta) : Value(),
      centered, node.shape(0));
  if (!centered)
    out.mean = emitter.filled(norm.statistics, emitter.scalar(norm.stash, 0));
  SmallVector<Value> all = {out.result, out.mean, out.rstd, sum};
  results.append(all.begin(), all.begin() + node.node.getNumResults());
  return success();
}

//===--- Per channel: GroupNormalization, InstanceNormalization ---===//

namespace {
/// x is [N, C, ...]; rows are the elements of a sample's group of channels.
struct ChannelNorm {
  double epsilon = 1e-5;
  int64_t groups, channels, points;
  /// The sizes that scale and bias have: one per group, or per channel.
  int64_t affine;
  Type stash;

  LogicalResult bind(NodeBinder &node, bool isInstance);
};
} // namespace

LogicalResult ChannelNorm::bind(NodeBinder &node, bool isInstance) {
  if (failed(isInstance ? node.operands({"input", "scale", "B"}, 3)
                        : node.operands({"X", "scale", "bias"}, 3)) ||
      failed(node.requireFloat(0)) || failed(bindEpsilon(node, epsilon)))
    return failure();
  if (node.rank(0) < 2)
    return node.error() << "operand '" << node.operandName(0) << "' is "
                        << node.type(0)
                        << ", it must have the samples at axis 0 and the "
                           "channels at axis 1";
  channels = node.shape(0)[1];
  points = product(node.shape(0).drop_front(2));
  groups = affine = channels;
  stash = node.elementType(0);
  if (!isInstance) {
    if (!node.hasAttribute("num_groups"))
      return node.error() << "attribute 'num_groups' is missing";
    if (failed(node.attribute("num_groups", groups)))
      return failure();
    if (groups < 1 || channels % groups != 0)
      return node.badAttribute("num_groups", "a divisor of the " +
                                                 Twine(channels) + " channels");
    // Scale and bias became per channel at 21.
    if (node.getSince() < 21)
      affine = groups;
    else if (failed(bindStashType(node, stash)))
      return failure();
  }
  if (channels * points == 0)
    return node.error() << "operand '" << node.operandName(0) << "' is "
                        << node.type(0) << ", and has nothing to normalise";
  for (unsigned i : {1u, 2u}) {
    if (failed(node.requireSameElementType(0, i)))
      return failure();
    if (node.shape(i) != ArrayRef<int64_t>({affine}))
      return node.error() << "operand '" << node.operandName(i) << "' is "
                          << node.type(i) << ", it must have one number for "
                          << "each of the " << affine
                          << (affine == channels ? " channels" : " groups");
  }
  return success();
}

template <bool isInstance>
static LogicalResult inferChannelNorm(NodeBinder &node, Types &types) {
  ChannelNorm norm;
  if (failed(norm.bind(node, isInstance)))
    return failure();
  types.push_back(node.type(0));
  return success();
}

template <bool isInstance>
static LogicalResult lowerChannelNorm(NodeBinder &node, OpBuilder &builder,
                                      Values &results) {
  ChannelNorm norm;
  if (failed(norm.bind(node, isInstance)))
    return failure();
  Emitter emitter(builder, node.getLoc());
  Type element = node.elementType(0), compute = widest(element, norm.stash);
  int64_t samples = node.shape(0)[0];
  int64_t rows = samples * norm.groups;
  int64_t size = norm.channels / norm.groups * norm.points;
  Value x =
      castTo(emitter, emitter.reshape(node.operand(0), {rows, size}), compute);
  Value normalized =
      nn::NormalizeOp::create(builder, node.getLoc(), x, {1}, norm.epsilon)
          .getResult();
  // [samples, groups or channels, the rest], scaled along the middle.
  int64_t rest = norm.channels * norm.points / norm.affine;
  Value parts = emitter.reshape(normalized, {samples, norm.affine, rest});
  auto column = [&](unsigned i) {
    return emitter.reshape(node.operand(i), {norm.affine, 1});
  };
  Value result = emitter.elementwise(
      RankedTensorType::get({samples, norm.affine, rest}, element),
      {parts, column(1), column(2)},
      [&](Emitter &inside, ArrayRef<Value> scalars) {
        Value scaled = inside.mul(scalars[0], inside.cast(scalars[1], compute));
        Value sum = inside.add(scaled, inside.cast(scalars[2], compute));
        return inside.cast(sum, element);
      });
  results.push_back(emitter.reshape(result, node.shape(0)));
  return success();
}

//===--- MeanVarianceNormalization ---===//

namespace {
struct MeanVariance {
  SmallVector<int64_t> axes = {0, 2, 3};
  LogicalResult bind(NodeBinder &node) {
    return success(
        succeeded(node.operands({"X"}, 1)) && succeeded(node.requireFloat(0)) &&
        succeeded(node.attribute("axes", axes)) &&
        succeeded(node.normalizeAxes("attribute 'axes'", axes, node.rank(0))));
  }
};
} // namespace

static LogicalResult inferMeanVariance(NodeBinder &node, Types &types) {
  MeanVariance norm;
  if (failed(norm.bind(node)))
    return failure();
  types.push_back(node.type(0));
  return success();
}

/// (x - mean) / (deviation + 1e-9), the deviation from squared differences.
static LogicalResult lowerMeanVariance(NodeBinder &node, OpBuilder &builder,
                                       Values &results) {
  MeanVariance norm;
  if (failed(norm.bind(node)))
    return failure();
  Emitter emitter(builder, node.getLoc());
  RankedTensorType type = node.type(0);
  Type element = type.getElementType();
  SmallVector<int64_t> kept(type.getShape());
  double count = 1;
  for (int64_t axis : norm.axes) {
    count *= static_cast<double>(kept[axis]);
    kept[axis] = 1;
  }
  auto mean = [&](Value value) {
    Value sum = emitter.reduce(value, norm.axes, emitter.scalar(element, 0),
                               [](Emitter &inside, ArrayRef<Value> scalars) {
                                 return inside.add(scalars[0], scalars[1]);
                               });
    Value result = emitter.elementwise(
        Emitter::typeOf(sum), sum,
        [&](Emitter &inside, ArrayRef<Value> scalars) {
          return inside.div(scalars[0], inside.scalar(element, count));
        });
    return emitter.reshape(result, kept);
  };
  Value centered =
      emitter.elementwise(type, {node.operand(0), mean(node.operand(0))},
                          [](Emitter &inside, ArrayRef<Value> scalars) {
                            return inside.sub(scalars[0], scalars[1]);
                          });
  Value variance = mean(emitter.elementwise(
      type, centered, [](Emitter &inside, ArrayRef<Value> scalars) {
        return inside.mul(scalars[0], scalars[0]);
      }));
  results.push_back(emitter.elementwise(
      type, {centered, variance},
      [&](Emitter &inside, ArrayRef<Value> scalars) {
        Value deviation =
            math::SqrtOp::create(inside.builder, inside.loc, scalars[1]);
        return inside.div(scalars[0],
                          inside.add(deviation, inside.scalar(element, 1e-9)));
      }));
  return success();
}

//===--- LpNormalization ---===//

namespace {
struct LpNorm {
  int64_t axis = -1, p = 2;
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult LpNorm::bind(NodeBinder &node) {
  if (failed(node.operands({"input"}, 1)) || failed(node.requireFloat(0)) ||
      failed(node.attribute("axis", axis)) ||
      failed(node.normalizeAxis("attribute 'axis'", axis, node.rank(0))) ||
      failed(node.attribute("p", p)))
    return failure();
  if (p != 1 && p != 2)
    return node.badAttribute("p", "1 or 2");
  return success();
}

static LogicalResult inferLpNorm(NodeBinder &node, Types &types) {
  LpNorm norm;
  if (failed(norm.bind(node)))
    return failure();
  types.push_back(node.type(0));
  return success();
}

/// x / norm; a vector of zeros, which has no direction, stays zero.
static LogicalResult lowerLpNorm(NodeBinder &node, OpBuilder &builder,
                                 Values &results) {
  LpNorm norm;
  if (failed(norm.bind(node)))
    return failure();
  Emitter emitter(builder, node.getLoc());
  RankedTensorType type = node.type(0);
  Type element = type.getElementType();
  Value sum = emitter.reduce(
      node.operand(0), norm.axis, emitter.scalar(element, 0),
      [&](Emitter &inside, ArrayRef<Value> scalars) {
        Value x = scalars[1];
        Value term = norm.p == 2
                         ? inside.mul(x, x)
                         : math::AbsFOp::create(inside.builder, inside.loc, x)
                               .getResult();
        return inside.add(scalars[0], term);
      });
  // Where the norm is zero it is replaced before the root and the division, so
  // that the derivative is a number as well.
  Value length = emitter.elementwise(
      Emitter::typeOf(sum), sum,
      [&](Emitter &inside, ArrayRef<Value> scalars) -> Value {
        Value one = inside.scalar(element, 1);
        Value isZero = inside.equal(scalars[0], inside.scalar(element, 0));
        Value safe = inside.select(isZero, one, scalars[0]);
        if (norm.p == 1)
          return safe;
        return math::SqrtOp::create(inside.builder, inside.loc, safe);
      });
  SmallVector<int64_t> kept(type.getShape());
  kept[norm.axis] = 1;
  results.push_back(emitter.elementwise(
      type, {node.operand(0), emitter.reshape(length, kept)},
      [](Emitter &inside, ArrayRef<Value> scalars) {
        return inside.div(scalars[0], scalars[1]);
      }));
  return success();
}

//===--- LRN ---===//

namespace {
struct LocalResponse {
  double alpha = 1e-4f, beta = 0.75, bias = 1;
  int64_t size = 0;
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult LocalResponse::bind(NodeBinder &node) {
  if (failed(node.operands({"X"}, 1)) || failed(node.requireFloat(0)) ||
      failed(node.attribute("alpha", alpha)) ||
      failed(node.attribute("beta", beta)) ||
      failed(node.attribute("bias", bias)) ||
      failed(node.attribute("size", size)))
    return failure();
  if (size < 1)
    return node.badAttribute("size", "a positive number of channels");
  if (node.rank(0) < 2)
    return node.error() << "operand 'X' is " << node.type(0)
                        << ", it must have the channels at axis 1";
  return success();
}

static LogicalResult inferLocalResponse(NodeBinder &node, Types &types) {
  LocalResponse norm;
  if (failed(norm.bind(node)))
    return failure();
  types.push_back(node.type(0));
  return success();
}

/// x / (bias + alpha/size * sum of squares over `size` channels around)^beta.
static LogicalResult lowerLocalResponse(NodeBinder &node, OpBuilder &builder,
                                        Values &results) {
  LocalResponse norm;
  if (failed(norm.bind(node)))
    return failure();
  Emitter emitter(builder, node.getLoc());
  Type element = node.elementType(0);
  int64_t samples = node.shape(0)[0], channels = node.shape(0)[1];
  int64_t points = product(node.shape(0).drop_front(2));
  auto type = RankedTensorType::get({samples, channels, points}, element);
  Value x = emitter.reshape(node.operand(0), type.getShape());
  Value squares = emitter.elementwise(
      type, x, [](Emitter &inside, ArrayRef<Value> scalars) {
        return inside.mul(scalars[0], scalars[0]);
      });
  // Zeros around the channels, then the window's channels side by side.
  int64_t before = (norm.size - 1) / 2, after = norm.size / 2;
  auto index = [&](int64_t value) -> OpFoldResult {
    return builder.getIndexAttr(value);
  };
  Value zero = emitter.scalar(element, 0);
  auto padded = RankedTensorType::get(
      {samples, channels + norm.size - 1, points}, element);
  if (norm.size > 1) {
    SmallVector<OpFoldResult> low = {index(0), index(before), index(0)};
    SmallVector<OpFoldResult> high = {index(0), index(after), index(0)};
    squares = tensor::PadOp::create(builder, node.getLoc(), padded, squares,
                                    low, high, zero);
  }
  SmallVector<Value> window = {x};
  for (int64_t i = 0; i < norm.size; ++i) {
    SmallVector<OpFoldResult> offsets = {index(0), index(i), index(0)};
    SmallVector<OpFoldResult> sizes = {index(samples), index(channels),
                                       index(points)};
    SmallVector<OpFoldResult> strides(3, index(1));
    window.push_back(tensor::ExtractSliceOp::create(
        builder, node.getLoc(), type, squares, offsets, sizes, strides));
  }
  Value result = emitter.elementwise(
      type, window, [&](Emitter &inside, ArrayRef<Value> scalars) {
        Value sum = scalars[1];
        for (Value square : scalars.drop_front(2))
          sum = inside.add(sum, square);
        double factor = norm.alpha / static_cast<double>(norm.size);
        Value base =
            inside.add(inside.scalar(element, norm.bias),
                       inside.mul(inside.scalar(element, factor), sum));
        Value power = math::PowFOp::create(inside.builder, inside.loc, base,
                                           inside.scalar(element, norm.beta));
        return inside.div(scalars[0], power);
      });
  results.push_back(emitter.reshape(result, node.shape(0)));
  return success();
}

void penstock::onnx::addNormalizations(OperatorTable &table) {
  table.add("LayerNormalization", {17}, inferLayerNorm<true>, nullptr,
            lowerLayerNorm<true>);
  table.add("RMSNormalization", {23}, inferLayerNorm<false>, nullptr,
            lowerLayerNorm<false>);
  table.add("GroupNormalization", {18, 21}, inferChannelNorm<false>, nullptr,
            lowerChannelNorm<false>);
  table.add("InstanceNormalization", {6, 22}, inferChannelNorm<true>, nullptr,
            lowerChannelNorm<true>);
  table.add("MeanVarianceNormalization", {9, 13}, inferMeanVariance, nullptr,
            lowerMeanVariance);
  table.add("LpNormalization", {1, 22}, inferLpNorm, nullptr, lowerLpNorm);
  table.add("LRN", {1, 13}, inferLocalResponse, nullptr, lowerLocalResponse);
  table.addMicrosoft("LayerNormalization", inferLayerNorm<true>,
                     lowerLayerNorm<true>);
  table.addMicrosoft("SimplifiedLayerNormalization", inferLayerNorm<false>,
                     lowerLayerNorm<false>);
  table.addMicrosoft("SkipLayerNormalization", inferSkipNorm<true>,
                     lowerSkipNorm<true>);
  table.addMicrosoft("SkipSimplifiedLayerNormalization", inferSkipNorm<false>,
                     lowerSkipNorm<false>);
}
