//===- Signal.cpp - Fourier transforms and windows ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A transform is a product with a constant matrix of cosines and sines, so it
// has a derivative and any length. Windows and mel weights are constants.
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "Indexing.h"
#include "OperatorTable.h"

#include <cmath>

using namespace mlir;
using namespace penstock::onnx;

/// The number that a constant operand holds.
static LogicalResult readScalar(NodeBinder &node, unsigned i, double &value) {
  DenseElementsAttr constant = node.constant(i);
  if (!constant || constant.getNumElements() != 1)
    return node.error() << "operand '" << node.operandName(i)
                        << "' must be a constant scalar when the model is "
                           "compiled; make it an initializer";
  ConstantTensor tensor(constant);
  value = tensor.isFloat() ? tensor.floats[0]
                           : static_cast<double>(tensor.integers[0]);
  return success();
}

static LogicalResult readLength(NodeBinder &node, unsigned i, int64_t &value) {
  double number;
  if (failed(node.requireInteger(i)) || failed(readScalar(node, i, number)))
    return failure();
  value = static_cast<int64_t>(number);
  if (value < 1)
    return node.error() << "operand '" << node.operandName(i) << "' is "
                        << value << ", it must be positive";
  return success();
}

static LogicalResult lowerFolded(NodeBinder &node, OpBuilder &builder,
                                 Values &results, Operator::FoldFn fold) {
  SmallVector<DenseElementsAttr> constants;
  if (failed(fold(node, constants)))
    return failure();
  results.push_back(Emitter(builder, node.getLoc()).constant(constants[0]));
  return success();
}

//===--- DFT, STFT ---===//

/// The most elements of a matrix: they are part of the program.
static constexpr int64_t largestMatrix = 1 << 22;

namespace {
/// From [.., taken, .., 1 or 2] to [.., kept, .., 2].
struct Transform {
  /// The length that frequencies divide, how many elements there are of it, and
  /// how many frequencies are wanted.
  int64_t length, taken, kept;
  bool isInverse = false;

  LogicalResult check(NodeBinder &node, int64_t parts) const;
  Value emit(Emitter &emitter, Value input, int64_t axis) const;
};
} // namespace

LogicalResult Transform::check(NodeBinder &node, int64_t parts) const {
  if (parts != 1 && parts != 2)
    return node.error() << "transforms " << node.type(0)
                        << ", whose last axis must be 1, of real numbers, or "
                           "2, of complex ones";
  if (taken * parts * kept * 2 > largestMatrix)
    return node.error() << "transforms " << taken << " elements to " << kept
                        << " frequencies, whose matrix is too large to be part "
                           "of a program; transform the data beforehand";
  return success();
}

Value Transform::emit(Emitter &emitter, Value input, int64_t axis) const {
  RankedTensorType type = Emitter::typeOf(input);
  Type element = type.getElementType();
  int64_t parts = type.getShape().back(), before = 1, between = 1;
  for (int64_t size : type.getShape().take_front(axis))
    before *= size;
  for (int64_t size : type.getShape().drop_front(axis + 1).drop_back())
    between *= size;
  ConstantTensor matrix(
      RankedTensorType::get({taken, parts, kept, 2}, element));
  size_t next = 0;
  forEachIndex(matrix.shape(), [&](ArrayRef<int64_t> index) {
    auto turn = static_cast<double>(index[0] * index[2] % length) /
                static_cast<double>(length);
    double cosine = std::cos(2 * M_PI * turn);
    double sine = (isInverse ? 1 : -1) * std::sin(2 * M_PI * turn);
    double value = index[1] == index[3] ? cosine : index[3] == 1 ? sine : -sine;
    matrix.floats[next++] =
        isInverse ? value / static_cast<double>(length) : value;
  });
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = kept;
  shape.back() = 2;
  if (taken < type.getDimSize(axis)) {
    SmallVector<int64_t> offsets(type.getRank(), 0), strides(type.getRank(), 1),
        sizes(type.getShape());
    sizes[axis] = taken;
    input = emitSlice(emitter, input, offsets, sizes, strides);
  }
  // (before, taken, between, parts) x (taken, parts, kept, 2)
  Value product = emitter.contract(
      emitter.reshape(input, {before, taken, between, parts}),
      emitter.constant(matrix.pack()),
      RankedTensorType::get({before, kept, between, 2}, element),
      {emitter.map(6, {0, 1, 2, 3}), emitter.map(6, {1, 3, 4, 5}),
       emitter.map(6, {0, 4, 2, 5})});
  return emitter.reshape(product, shape);
}

static LogicalResult bindDft(NodeBinder &node, Transform &transform,
                             int64_t &axis) {
  bool isOperand = node.getSince() >= 20, onesided = false;
  if (failed(isOperand ? node.operands({"input", "dft_length", "axis"}, 1)
                       : node.operands({"input", "dft_length"}, 1)) ||
      failed(node.requireFloat(0)) ||
      failed(node.attribute("inverse", transform.isInverse)) ||
      failed(node.attribute("onesided", onesided)))
    return failure();
  if (transform.isInverse && onesided)
    return node.error() << "is inverse and onesided, which implementations do "
                           "not agree on; use one of them";
  axis = isOperand ? -2 : 1;
  if (isOperand && node.has(2)) {
    double number;
    if (failed(readScalar(node, 2, number)))
      return failure();
    axis = static_cast<int64_t>(number);
  }
  if ((!isOperand && failed(node.attribute("axis", axis))) ||
      failed(node.normalizeAxis("the axis", axis, node.rank(0))))
    return failure();
  if (axis == node.rank(0) - 1)
    return node.error() << "transforms the last axis, that of real and "
                           "imaginary parts";
  transform.length = node.shape(0)[axis];
  if (node.has(1) && failed(readLength(node, 1, transform.length)))
    return failure();
  if (transform.length == 0)
    return node.error() << "transforms " << node.type(0)
                        << ", which has no elements";
  transform.taken = std::min(transform.length, node.shape(0)[axis]);
  transform.kept = onesided ? transform.length / 2 + 1 : transform.length;
  return transform.check(node, node.shape(0).back());
}

static LogicalResult inferDft(NodeBinder &node, Types &types) {
  Transform transform;
  int64_t axis;
  if (failed(bindDft(node, transform, axis)))
    return failure();
  SmallVector<int64_t> shape(node.shape(0));
  shape[axis] = transform.kept;
  shape.back() = 2;
  types.push_back(RankedTensorType::get(shape, node.elementType(0)));
  return success();
}

static LogicalResult lowerDft(NodeBinder &node, OpBuilder &builder,
                              Values &results) {
  Transform transform;
  int64_t axis;
  if (failed(bindDft(node, transform, axis)))
    return failure();
  Emitter emitter(builder, node.getLoc());
  results.push_back(transform.emit(emitter, node.operand(0), axis));
  return success();
}

namespace {
struct ShortTransform {
  Transform transform;
  int64_t step, frames;
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult ShortTransform::bind(NodeBinder &node) {
  bool onesided = true;
  if (failed(node.operands({"signal", "frame_step", "window", "frame_length"},
                           2)) ||
      failed(node.requireFloat(0)) || failed(readLength(node, 1, step)) ||
      failed(node.attribute("onesided", onesided)))
    return failure();
  if (node.rank(0) != 3)
    return node.error() << "operand 'signal' is " << node.type(0)
                        << ", its axes must be batch, time and parts";
  int64_t &length = transform.length;
  length = 0;
  if (node.has(3) && failed(readLength(node, 3, length)))
    return failure();
  if (node.has(2)) {
    if (failed(node.requireSameElementType(0, 2)))
      return failure();
    if (node.rank(2) != 1 || (length != 0 && node.shape(2)[0] != length))
      return node.error() << "operand 'window' is " << node.type(2)
                          << ", which is no frame of " << length << " elements";
    length = node.shape(2)[0];
  }
  if (length == 0)
    return node.error() << "has neither 'window' nor 'frame_length'";
  if (length > node.shape(0)[1])
    return node.error() << "has frames of " << length
                        << " elements in a signal "
                        << "of " << node.shape(0)[1];
  // A onesided spectrum of complex numbers would leave half of it out.
  if (onesided && node.shape(0)[2] == 2)
    return node.error()
           << "has a complex signal, whose spectrum needs attribute "
              "'onesided' to be 0";
  frames = (node.shape(0)[1] - length) / step + 1;
  transform.taken = length;
  transform.kept = onesided ? length / 2 + 1 : length;
  return transform.check(node, node.shape(0)[2]);
}

static LogicalResult inferStft(NodeBinder &node, Types &types) {
  ShortTransform stft;
  if (failed(stft.bind(node)))
    return failure();
  types.push_back(RankedTensorType::get(
      {node.shape(0)[0], stft.frames, stft.transform.kept, 2},
      node.elementType(0)));
  return success();
}

static LogicalResult lowerStft(NodeBinder &node, OpBuilder &builder,
                               Values &results) {
  ShortTransform stft;
  if (failed(stft.bind(node)))
    return failure();
  Emitter emitter(builder, node.getLoc());
  int64_t length = stft.transform.length;
  SmallVector<int64_t> positions;
  for (int64_t frame = 0; frame < stft.frames; ++frame)
    for (int64_t i = 0; i < length; ++i)
      positions.push_back(frame * stft.step + i);
  auto type = RankedTensorType::get(
      {node.shape(0)[0], stft.frames, length, node.shape(0)[2]},
      node.elementType(0));
  Value frames = emitter.reshape(
      emitTake(builder, node.getLoc(), node.operand(0), 1, positions),
      type.getShape());
  if (node.has(2))
    frames = emitter.elementwise(
        type, {frames, emitter.reshape(node.operand(2), {length, 1})},
        [](Emitter &inside, ArrayRef<Value> scalars) {
          return inside.mul(scalars[0], scalars[1]);
        });
  results.push_back(stft.transform.emit(emitter, frames, 2));
  return success();
}

//===--- HannWindow, HammingWindow, BlackmanWindow ---===//

static LogicalResult bindDatatype(NodeBinder &node, Type &element) {
  int64_t number = 1;
  if (failed(node.attribute("output_datatype", number)))
    return failure();
  element = getElementType(node.getContext(), number);
  if (!element || !isa<FloatType>(element))
    return node.badAttribute("output_datatype", "the number of a float type");
  return success();
}

static LogicalResult inferWindow(NodeBinder &node, Types &types) {
  int64_t size;
  Type element;
  if (failed(node.operands({"size"}, 1)) || failed(readLength(node, 0, size)) ||
      failed(bindDatatype(node, element)))
    return failure();
  types.push_back(RankedTensorType::get({size}, element));
  return success();
}

/// Sums of cosines of one and two turns over the period.
struct Cosines {
  double c0, c1, c2;
};
constexpr Cosines kHann = {0.5, 0.5, 0};
constexpr Cosines kHamming = {25.0 / 46.0, 1 - 25.0 / 46.0, 0};
constexpr Cosines kBlackman = {0.42, 0.5, 0.08};

template <const Cosines &cosines>
static LogicalResult foldWindow(NodeBinder &node, Constants &results) {
  bool isPeriodic = true;
  if (failed(node.attribute("periodic", isPeriodic)))
    return failure();
  auto [c0, c1, c2] = cosines;
  ConstantTensor window(resultType(node));
  int64_t size = window.shape()[0], period = isPeriodic ? size : size - 1;
  for (int64_t i = 0; i < size; ++i) {
    double turn =
        2 * M_PI * static_cast<double>(i) / static_cast<double>(period);
    window.floats[i] =
        period == 0 ? 1 : c0 - c1 * std::cos(turn) + c2 * std::cos(2 * turn);
  }
  results.push_back(window.pack());
  return success();
}

template <const Cosines &cosines>
static LogicalResult lowerWindow(NodeBinder &node, OpBuilder &builder,
                                 Values &results) {
  return lowerFolded(node, builder, results, foldWindow<cosines>);
}

//===--- MelWeightMatrix ---===//

namespace {
struct MelWeights {
  int64_t bins, length;
  double rate, low, high;
  LogicalResult bind(NodeBinder &node);
  /// The spectrum's bins that the triangles begin and end at.
  SmallVector<int64_t> getCorners() const;
};
} // namespace

SmallVector<int64_t> MelWeights::getCorners() const {
  auto toMel = [](double hertz) {
    return 2595 * std::log1p(hertz / 700) / std::log(10.0);
  };
  double first = toMel(low);
  double step = (toMel(high) - first) / static_cast<double>(bins + 2);
  SmallVector<int64_t> corners;
  for (int64_t i = 0; i < bins + 2; ++i) {
    double mel = static_cast<double>(i) * step + first;
    double hertz = 700 * std::expm1(mel / 2595 * std::log(10.0));
    corners.push_back(static_cast<int64_t>(
        std::floor(static_cast<double>(length + 1) * hertz / rate)));
  }
  return corners;
}

LogicalResult MelWeights::bind(NodeBinder &node) {
  if (failed(node.operands({"num_mel_bins", "dft_length", "sample_rate",
                            "lower_edge_hertz", "upper_edge_hertz"},
                           5)) ||
      failed(readLength(node, 0, bins)) ||
      failed(readLength(node, 1, length)) ||
      failed(readScalar(node, 2, rate)) || failed(readScalar(node, 3, low)) ||
      failed(readScalar(node, 4, high)))
    return failure();
  bool fits = rate > 0 && low >= 0 && high >= low &&
              bins * (length / 2 + 1) <= largestMatrix;
  for (int64_t corner : fits ? getCorners() : SmallVector<int64_t>())
    fits &= corner <= length / 2;
  if (!fits)
    return node.error() << "has " << bins << " bins from " << low << " to "
                        << high << " Hz, which a transform of " << length
                        << " elements at " << rate << " Hz does not have";
  return success();
}

static LogicalResult inferMelWeights(NodeBinder &node, Types &types) {
  MelWeights mel;
  Type element;
  if (failed(mel.bind(node)) || failed(bindDatatype(node, element)))
    return failure();
  types.push_back(
      RankedTensorType::get({mel.length / 2 + 1, mel.bins}, element));
  return success();
}

static LogicalResult foldMelWeights(NodeBinder &node, Constants &results) {
  MelWeights mel;
  if (failed(mel.bind(node)))
    return failure();
  ConstantTensor weights(resultType(node));
  SmallVector<int64_t> corners = mel.getCorners();
  for (int64_t i = 0; i < mel.bins; ++i) {
    int64_t left = corners[i], peak = corners[i + 1], right = corners[i + 2];
    auto at = [&](int64_t row) -> double & {
      return weights.floats[row * mel.bins + i];
    };
    at(peak) = 1;
    for (int64_t row = left; row < peak; ++row)
      at(row) =
          static_cast<double>(row - left) / static_cast<double>(peak - left);
    for (int64_t row = peak; row < right; ++row)
      at(row) =
          static_cast<double>(right - row) / static_cast<double>(right - peak);
  }
  results.push_back(weights.pack());
  return success();
}

static LogicalResult lowerMelWeights(NodeBinder &node, OpBuilder &builder,
                                     Values &results) {
  return lowerFolded(node, builder, results, foldMelWeights);
}

void penstock::onnx::addSignal(OperatorTable &table) {
  table.add("DFT", {17, 20}, inferDft, nullptr, lowerDft);
  table.add("STFT", {17}, inferStft, nullptr, lowerStft);
  table.add("HannWindow", {17}, inferWindow, foldWindow<kHann>,
            lowerWindow<kHann>, Operator::Inactive);
  table.add("HammingWindow", {17}, inferWindow, foldWindow<kHamming>,
            lowerWindow<kHamming>, Operator::Inactive);
  table.add("BlackmanWindow", {17}, inferWindow, foldWindow<kBlackman>,
            lowerWindow<kBlackman>, Operator::Inactive);
  table.add("MelWeightMatrix", {17}, inferMelWeights, foldMelWeights,
            lowerMelWeights, Operator::Inactive);
}
