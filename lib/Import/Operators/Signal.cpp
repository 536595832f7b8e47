//===- Signal.cpp - Fourier transforms, windows and mel weights -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A transform is a product with a constant matrix of cosines and sines, so it
// has a derivative and any length. What spectra are weighted by are constants.
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "Indexing.h"
#include "OperatorTable.h"

#include <cmath>

using namespace mlir;
using namespace penstock::onnx;

/// The most elements of a matrix: they are part of the program.
static constexpr int64_t largestMatrix = 1 << 22;

/// Reads the number that a constant operand holds.
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

/// The same of an integer that is positive.
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

namespace {
/// From [.., taken, .., 1 or 2] to [.., kept, .., parts].
struct Transform {
  /// The length that frequencies divide, how many elements there are of it, and
  /// how many frequencies are wanted.
  int64_t length, taken, kept;
  bool isInverse = false;
  /// The spectrum of real numbers has half of its frequencies twice, as
  /// conjugates: one is kept, and an inverse takes that for both.
  bool isOneSided = false;

  int64_t parts() const { return isInverse && isOneSided ? 1 : 2; }

  LogicalResult check(NodeBinder &node, int64_t operandParts) const;
  Value emit(Emitter &emitter, Value input, int64_t axis) const;
};
} // namespace

LogicalResult Transform::check(NodeBinder &node, int64_t operandParts) const {
  if (operandParts != 1 && operandParts != 2)
    return node.error() << "transforms " << node.type(0)
                        << ", whose last axis must be 1, of real numbers, or "
                           "2, of complex ones";
  if (taken * operandParts * kept * parts() > largestMatrix)
    return node.error() << "transforms " << taken << " elements to " << kept
                        << " frequencies, whose matrix is too large to be part "
                           "of a program; transform the data beforehand";
  return success();
}

Value Transform::emit(Emitter &emitter, Value input, int64_t axis) const {
  RankedTensorType type = Emitter::getType(input);
  Type element = type.getElementType();
  int64_t operandParts = type.getShape().back(), before = 1, between = 1;
  for (int64_t size : type.getShape().take_front(axis))
    before *= size;
  for (int64_t size : type.getShape().drop_front(axis + 1).drop_back())
    between *= size;
  ConstantTensor matrix(
      RankedTensorType::get({taken, operandParts, kept, parts()}, element));
  size_t next = 0;
  forEachIndex(matrix.shape(), [&](ArrayRef<int64_t> index) {
    auto turn = static_cast<double>(index[0] * index[2] % length) /
                static_cast<double>(length);
    double cosine = std::cos(2 * M_PI * turn);
    double sine = (isInverse ? 1 : -1) * std::sin(2 * M_PI * turn);
    double value = index[1] == index[3] ? cosine : index[3] == 1 ? sine : -sine;
    if (isInverse)
      value /= static_cast<double>(length);
    // With its conjugate, which the first and the middle are themselves.
    if (isInverse && isOneSided && index[0] != 0 && 2 * index[0] != length)
      value *= 2;
    matrix.floats[next++] = value;
  });
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = kept;
  shape.back() = parts();
  if (taken < type.getDimSize(axis)) {
    SmallVector<int64_t> offsets(type.getRank(), 0), sizes(type.getShape());
    sizes[axis] = taken;
    input = emitter.slice(input, offsets, sizes);
  }
  // (before, taken, between, parts of the operand) x (taken, those, kept,
  // parts)
  Value product = emitter.contract(
      emitter.reshape(input, {before, taken, between, operandParts}),
      emitter.constant(matrix.pack()),
      RankedTensorType::get({before, kept, between, parts()}, element),
      {emitter.map(6, {0, 1, 2, 3}), emitter.map(6, {1, 3, 4, 5}),
       emitter.map(6, {0, 4, 2, 5})});
  return emitter.reshape(product, shape);
}

namespace {
struct Dft : Transform {
  int64_t axis;
  LogicalResult bind(NodeBinder &node);
};
} // namespace

LogicalResult Dft::bind(NodeBinder &node) {
  bool isOperand = node.getSince() >= 20;
  if (failed(isOperand ? node.operands({"input", "dft_length", "axis"}, 1)
                       : node.operands({"input", "dft_length"}, 1)) ||
      failed(node.requireFloat(0)) ||
      failed(node.attribute("inverse", isInverse)) ||
      failed(node.attribute("onesided", isOneSided)))
    return failure();
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
  int64_t size = node.shape(0)[axis];
  bool isOfHalf = isInverse && isOneSided;
  length = isOfHalf ? 2 * (size - 1) : size;
  if (node.has(1) && failed(readLength(node, 1, length)))
    return failure();
  if (length <= 0)
    return node.error() << "transforms " << node.type(0)
                        << (isOfHalf ? ", half of a spectrum of no elements"
                                     : ", which has no elements");
  int64_t half = length / 2 + 1;
  taken = std::min(isOfHalf ? half : length, size);
  kept = isOneSided && !isOfHalf ? half : length;
  return check(node, node.shape(0).back());
}

static Types inferDft(Dft &dft, NodeBinder &node) {
  SmallVector<int64_t> shape(node.shape(0));
  shape[dft.axis] = dft.kept;
  shape.back() = dft.parts();
  return node.makeType(shape);
}

static Values lowerDft(Dft &dft, NodeBinder &node, Emitter &emitter) {
  return dft.emit(emitter, node.operand(0), dft.axis);
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

static Types inferStft(ShortTransform &stft, NodeBinder &node) {
  return node.makeType({node.shape(0)[0], stft.frames, stft.transform.kept, 2});
}

static Values lowerStft(ShortTransform &stft, NodeBinder &node,
                        Emitter &emitter) {
  int64_t length = stft.transform.length;
  SmallVector<int64_t> positions;
  for (int64_t frame = 0; frame < stft.frames; ++frame)
    for (int64_t i = 0; i < length; ++i)
      positions.push_back(frame * stft.step + i);
  auto type =
      node.makeType({node.shape(0)[0], stft.frames, length, node.shape(0)[2]});
  Value frames = emitter.reshape(
      emitTake(emitter, node.operand(0), 1, positions), type.getShape());
  if (node.has(2))
    frames = emitter.elementwise(
        type, {frames, emitter.reshape(node.operand(2), {length, 1})},
        &Emitter::mul);
  return stft.transform.emit(emitter, frames, 2);
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

static Types inferWindow(NodeBinder &node) {
  int64_t size;
  Type element;
  if (failed(node.operands({"size"}, 1)) || failed(readLength(node, 0, size)) ||
      failed(bindDatatype(node, element)))
    return failure();
  return RankedTensorType::get({size}, element);
}

/// Sums of cosines of one and two turns over the period.
struct Cosines {
  double c0, c1, c2;
};
constexpr Cosines kHann = {0.5, 0.5, 0};
constexpr Cosines kHamming = {25.0 / 46.0, 1 - 25.0 / 46.0, 0};
constexpr Cosines kBlackman = {0.42, 0.5, 0.08};

template <const Cosines &cosines>
static Constants foldWindow(NodeBinder &node) {
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
  return window.pack();
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

static Types inferMelWeights(MelWeights &mel, NodeBinder &node) {
  Type element;
  if (failed(bindDatatype(node, element)))
    return failure();
  return RankedTensorType::get({mel.length / 2 + 1, mel.bins}, element);
}

static Constants foldMelWeights(MelWeights &mel, NodeBinder &node) {
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
  return weights.pack();
}

template <const Cosines &cosines>
static void addWindow(OperatorTable &table, StringRef name) {
  table.add(name, {17}, inferWindow, foldWindow<cosines>,
            lowerFolded<foldWindow<cosines>>, Operator::Inactive);
}

void penstock::onnx::addSignal(OperatorTable &table) {
  table.add("DFT", {17, 20}, bound<inferDft>, nullptr, bound<lowerDft>);
  table.add("STFT", {17}, bound<inferStft>, nullptr, bound<lowerStft>);
  addWindow<kHann>(table, "HannWindow");
  addWindow<kHamming>(table, "HammingWindow");
  addWindow<kBlackman>(table, "BlackmanWindow");
  table.add("MelWeightMatrix", {17}, bound<inferMelWeights>,
            bound<foldMelWeights>, lowerFolded<bound<foldMelWeights>>,
            Operator::Inactive);
}
