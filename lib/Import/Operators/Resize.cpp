//===- Resize.cpp - Resize and Upsample -----------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Along each axis an output element is a weighted sum of input elements, with
// weights that are known when compiling: a product with a constant matrix,
// whose derivative is the product with the transposed one. Nearest neighbors
// at a whole factor repeat elements and need no product.
//===----------------------------------------------------------------------===//

#include "OperatorTable.h"

#include <cmath>

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

namespace {

/// Up to since-version 9, Resize was called Upsample.
constexpr int64_t kScalesAreOperands = 9, kHasRoi = 11;

/// The nearest_mode of versions without one. They do not say it, but their
/// example and ONNX Runtime round down, and up where the input shrinks.
constexpr StringLiteral kOldNearest = "";

/// Input elements outside of the input have the weight of the nearest inside,
/// or none with exclude_outside.
using Weights = SmallVector<std::pair<int64_t, double>>;

struct Axis {
  int64_t input, output;
  double scale, start = 0, end = 1;
};

struct Resize {
  std::string mode = "nearest", coordinates = "half_pixel",
              nearest = "round_prefer_floor";
  double cubic = -0.75, extrapolation = 0;
  bool excludeOutside = false, antialias = false;
  SmallVector<Axis> axes;
  SmallVector<int64_t> result;

  LogicalResult bind(NodeBinder &node);
  /// The place of an output element among the input's; `isOutside` where
  /// tf_crop_and_resize asks for extrapolation.
  double locate(const Axis &axis, int64_t o, bool &isOutside) const;
  Weights getWeights(const Axis &axis, int64_t o, bool &isOutside) const;
  /// The weight of an element at a distance from a place.
  double kernel(double distance) const;
  /// The elements around a place, as far as the kernel reaches.
  Weights getTaps(double place, double scale) const;

private:
  LogicalResult bindAttributes(NodeBinder &node);
  LogicalResult bindSizes(NodeBinder &node);
};

} // namespace

LogicalResult Resize::bindAttributes(NodeBinder &node) {
  if (node.getSince() < kHasRoi) {
    coordinates = "asymmetric";
    nearest = kOldNearest;
  }
  if (failed(node.attribute("mode", mode)) ||
      failed(node.attribute("coordinate_transformation_mode", coordinates)) ||
      failed(node.attribute("nearest_mode", nearest)) ||
      failed(node.attribute("cubic_coeff_a", cubic)) ||
      failed(node.attribute("extrapolation_value", extrapolation)) ||
      failed(node.attribute("exclude_outside", excludeOutside)) ||
      failed(node.attribute("antialias", antialias)))
    return failure();
  if (mode == "bilinear")
    mode = "linear";
  if (mode != "nearest" && mode != "linear" && mode != "cubic")
    return node.badAttribute("mode", "nearest, linear or cubic");
  if (!llvm::is_contained({"half_pixel", "pytorch_half_pixel", "asymmetric",
                           "align_corners", "half_pixel_symmetric",
                           "tf_half_pixel_for_nn", "tf_crop_and_resize"},
                          StringRef(coordinates)))
    return node.badAttribute("coordinate_transformation_mode",
                             "a mode of the specification");
  if (!llvm::is_contained(
          {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"},
          StringRef(nearest)) &&
      node.getSince() >= kHasRoi)
    return node.badAttribute("nearest_mode", "round_prefer_floor, "
                                             "round_prefer_ceil, floor or "
                                             "ceil");
  return success();
}

/// The constant floats of an operand, or of the attribute of old versions.
static LogicalResult readFloats(NodeBinder &node, unsigned i,
                                SmallVectorImpl<double> &values) {
  DenseElementsAttr constant = node.constant(i);
  if (!constant || !isa<FloatType>(constant.getElementType()))
    return node.error() << "operand '" << node.operandName(i)
                        << "' is not constant: the shape of the result must "
                           "be known when compiling";
  for (const APFloat &value : constant.getValues<APFloat>()) {
    APFloat wide = value;
    bool losesInfo;
    wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
    values.push_back(wide.convertToDouble());
  }
  return success();
}

LogicalResult Resize::bindSizes(NodeBinder &node) {
  int64_t rank = node.rank(0);
  bool hasRoi = node.getSince() >= kHasRoi;
  unsigned scalesAt = hasRoi ? 2 : 1;
  SmallVector<double> scales;
  SmallVector<int64_t> sizes, chosen;
  if (failed(node.attribute("axes", chosen)))
    return failure();
  if (chosen.empty()) {
    chosen = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  } else {
    for (int64_t &axis : chosen)
      if (failed(node.normalizeAxis("attribute 'axes'", axis, rank)))
        return failure();
  }
  if (node.getSince() < kScalesAreOperands) {
    auto attribute =
        dyn_cast_or_null<DenseF32ArrayAttr>(node.node.getParam("scales"));
    if (!attribute)
      return node.badAttribute("scales", "a list of numbers");
    scales.append(attribute.asArrayRef().begin(), attribute.asArrayRef().end());
  } else if (node.has(scalesAt) && node.type(scalesAt).getNumElements()) {
    if (failed(readFloats(node, scalesAt, scales)))
      return failure();
  } else if (hasRoi && node.has(3)) {
    if (failed(node.constantIntegers(3, sizes)))
      return failure();
  } else {
    return node.error() << "has neither scales nor sizes";
  }
  size_t given = sizes.empty() ? scales.size() : sizes.size();
  if (given != chosen.size())
    return node.error() << "has " << given << " scales or sizes for "
                        << chosen.size() << " axes";
  std::string policy = "stretch";
  if (failed(node.attribute("keep_aspect_ratio_policy", policy)))
    return failure();
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    return node.badAttribute("keep_aspect_ratio_policy",
                             "stretch, not_larger or not_smaller");
  SmallVector<double> roi;
  if (coordinates == "tf_crop_and_resize") {
    if (!hasRoi || !node.has(1) || failed(readFloats(node, 1, roi)))
      return node.error() << "needs a constant operand 'roi'";
    if (roi.size() != 2 * chosen.size())
      return node.error() << "has " << roi.size() << " numbers in 'roi' for "
                          << chosen.size() << " axes";
  }

  for (int64_t size : node.shape(0))
    axes.push_back({size, size, 1.0});
  // One scale for all axes, also where it makes no whole number of elements.
  std::optional<double> common;
  if (!sizes.empty() && policy != "stretch") {
    common = policy == "not_larger" ? HUGE_VAL : 0;
    for (auto [axis, size] : llvm::zip(chosen, sizes)) {
      double scale =
          static_cast<double>(size) / static_cast<double>(axes[axis].input);
      common = policy == "not_larger" ? std::min(*common, scale)
                                      : std::max(*common, scale);
    }
    for (auto [axis, size] : llvm::zip(chosen, sizes))
      size = static_cast<int64_t>(
          std::floor(*common * static_cast<double>(axes[axis].input) + 0.5));
  }
  for (auto [index, position] : llvm::enumerate(chosen)) {
    Axis &axis = axes[position];
    double input = static_cast<double>(axis.input);
    if (sizes.empty()) {
      axis.scale = scales[index];
      axis.output = static_cast<int64_t>(std::floor(input * axis.scale));
    } else {
      axis.output = sizes[index];
      axis.scale = common.value_or(static_cast<double>(axis.output) / input);
    }
    if (!(axis.scale > 0) || axis.output < 1 || axis.input < 1)
      return node.error() << "resizes axis " << position << " from "
                          << axis.input << " to " << axis.output << " elements";
    if (!roi.empty()) {
      axis.start = roi[index];
      axis.end = roi[index + chosen.size()];
    }
  }
  for (const Axis &axis : axes)
    result.push_back(axis.output);
  return success();
}

LogicalResult Resize::bind(NodeBinder &node) {
  bool hasRoi = node.getSince() >= kHasRoi;
  if (failed(hasRoi ? node.operands({"X", "roi", "scales", "sizes"}, 1)
                    : node.operands({"X", "scales"}, 1)) ||
      failed(node.requireFloat(0)) || failed(bindAttributes(node)))
    return failure();
  return bindSizes(node);
}

double Resize::locate(const Axis &axis, int64_t o, bool &isOutside) const {
  double at = static_cast<double>(o);
  double input = static_cast<double>(axis.input);
  double output = static_cast<double>(axis.output);
  if (coordinates == "asymmetric")
    return at / axis.scale;
  // The length that the scale asks for, before it is rounded down, as ONNX's
  // reference has it.
  if (coordinates == "align_corners")
    return axis.output > 1 ? at * (input - 1) / (axis.scale * input - 1) : 0;
  if (coordinates == "tf_half_pixel_for_nn")
    return (at + 0.5) / axis.scale;
  if (coordinates == "pytorch_half_pixel" && axis.output == 1)
    return 0;
  if (coordinates == "half_pixel_symmetric") {
    double adjustment = output / (axis.scale * input);
    return input / 2 * (1 - adjustment) + (at + 0.5) / axis.scale - 0.5;
  }
  if (coordinates == "tf_crop_and_resize") {
    double place =
        axis.output > 1
            ? axis.start * (input - 1) +
                  at * (axis.end - axis.start) * (input - 1) / (output - 1)
            : 0.5 * (axis.start + axis.end) * (input - 1);
    isOutside |= place < 0 || place > input - 1;
    return place;
  }
  return (at + 0.5) / axis.scale - 0.5;
}

/// Which element is nearest to a place.
static double roundTo(double place, double scale, StringRef how) {
  if (how == kOldNearest)
    how = scale < 1 ? "ceil" : "floor";
  if (how == "floor")
    return std::floor(place);
  if (how == "ceil")
    return std::ceil(place);
  double below = std::floor(place), part = place - below;
  bool up = how == "round_prefer_floor" ? part > 0.5 : part >= 0.5;
  return up ? below + 1 : below;
}

double Resize::kernel(double distance) const {
  double d = std::abs(distance), a = cubic;
  if (mode == "linear")
    return std::max(1 - d, 0.0);
  // Keys' kernel.
  if (d <= 1)
    return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

Weights Resize::getTaps(double place, double scale) const {
  // Stretched where elements fall out, so that each has its share.
  double stretch = antialias ? std::min(scale, 1.0) : 1.0;
  int64_t reach = mode == "linear" ? 1 : 2;
  auto first = static_cast<int64_t>(
      std::floor(static_cast<double>(-reach) / stretch) + 1);
  // A place on an element counts as right of the one before it.
  auto below = static_cast<int64_t>(stretch < 1 ? std::ceil(place) - 1
                                                : std::floor(place));
  Weights taps;
  double sum = 0;
  for (int64_t offset = first; offset < 2 - first; ++offset) {
    double distance = static_cast<double>(below + offset) - place;
    taps.emplace_back(below + offset, kernel(distance * stretch));
    sum += taps.back().second;
  }
  if (stretch < 1)
    for (auto &[element, weight] : taps)
      weight /= sum;
  return taps;
}

Weights Resize::getWeights(const Axis &axis, int64_t o, bool &isOutside) const {
  double place = locate(axis, o, isOutside);
  if (isOutside)
    return {};
  Weights taps;
  if (mode == "nearest")
    taps.emplace_back(static_cast<int64_t>(roundTo(place, axis.scale, nearest)),
                      1.0);
  else
    taps = getTaps(place, axis.scale);
  Weights weights;
  double sum = 0;
  for (auto [element, weight] : taps) {
    bool isInside = element >= 0 && element < axis.input;
    if (!isInside && excludeOutside && mode != "nearest")
      continue;
    if (weight == 0)
      continue;
    weights.emplace_back(std::clamp<int64_t>(element, 0, axis.input - 1),
                         weight);
    sum += weight;
  }
  if (excludeOutside && mode != "nearest" && sum != 0)
    for (auto &[element, weight] : weights)
      weight /= sum;
  return weights;
}

static Types inferResize(Resize &resize, NodeBinder &node) {
  return node.makeType(resize.result);
}

/// How often each element repeats, where the axis does just that; else 0.
static int64_t getRepeats(const Resize &resize, const Axis &axis) {
  if (resize.mode != "nearest" || axis.output % axis.input != 0)
    return 0;
  int64_t factor = axis.output / axis.input;
  for (int64_t o = 0; o < axis.output; ++o) {
    bool isOutside = false;
    Weights weights = resize.getWeights(axis, o, isOutside);
    if (isOutside || weights.size() != 1 || weights[0].first != o / factor)
      return 0;
  }
  return factor;
}

/// Repeats every element along the axes that have factors other than 1.
static Value repeat(Emitter &emitter, Value value, ArrayRef<int64_t> factors) {
  RankedTensorType type = Emitter::getType(value);
  SmallVector<int64_t> shape, merged, own;
  for (auto [size, factor] : llvm::zip(type.getShape(), factors)) {
    own.push_back(static_cast<int64_t>(shape.size()));
    shape.push_back(size);
    if (factor != 1)
      shape.push_back(factor);
    merged.push_back(size * factor);
  }
  auto repeated = RankedTensorType::get(shape, type.getElementType());
  int64_t rank = repeated.getRank();
  Value result = emitter.generic(
      value, emitter.empty(repeated),
      {emitter.map(rank, own), emitter.builder.getMultiDimIdentityMap(rank)},
      SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
      [](Emitter &, ArrayRef<Value> scalars) { return scalars[0]; });
  return emitter.reshape(result, merged);
}

static Values lowerResize(Resize &resize, NodeBinder &node, Emitter &emitter) {
  Value value = node.operand(0);
  auto element = cast<FloatType>(node.elementType(0));
  int64_t rank = node.rank(0);

  // 1. Axes that repeat their elements, all at once.
  SmallVector<int64_t> factors;
  for (const Axis &axis : resize.axes)
    factors.push_back(std::max<int64_t>(getRepeats(resize, axis), 1));
  bool isOutside = false;

  // 2. The others one after the other, those that shrink first.
  SmallVector<int64_t> order;
  for (int64_t i = 0; i < rank; ++i)
    if (getRepeats(resize, resize.axes[i]) == 0)
      order.push_back(i);
  llvm::sort(order, [&](int64_t a, int64_t b) {
    return std::pair(resize.axes[a].scale, a) <
           std::pair(resize.axes[b].scale, b);
  });
  SmallVector<SmallVector<bool>> outside(rank);
  for (int64_t position : order) {
    const Axis &axis = resize.axes[position];
    SmallVector<double> matrix(axis.output * axis.input, 0.0);
    for (int64_t o = 0; o < axis.output; ++o) {
      bool isLeft = false;
      for (auto [i, weight] : resize.getWeights(axis, o, isLeft))
        matrix[o * axis.input + i] += weight;
      outside[position].push_back(isLeft);
      isOutside |= isLeft;
    }
    SmallVector<APFloat> rounded;
    for (double weight : matrix) {
      APFloat number(weight);
      bool losesInfo;
      number.convert(element.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                     &losesInfo);
      rounded.push_back(number);
    }
    Value weights = emitter.constant(DenseElementsAttr::get(
        RankedTensorType::get({axis.output, axis.input}, element), rounded));
    SmallVector<int64_t> shape(Emitter::getShape(value));
    shape[position] = axis.output;
    SmallVector<int64_t> from = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    SmallVector<int64_t> to = from;
    from[position] = rank;
    value = emitter.contract(
        value, weights, RankedTensorType::get(shape, element),
        {emitter.map(rank + 1, from), emitter.map(rank + 1, {position, rank}),
         emitter.map(rank + 1, to)});
  }
  if (llvm::any_of(factors, [](int64_t factor) { return factor != 1; }))
    value = repeat(emitter, value, factors);

  // 3. What tf_crop_and_resize puts outside.
  if (isOutside && resize.extrapolation != 0) {
    auto type = RankedTensorType::get(resize.result, element);
    SmallVector<Value> operands{value};
    for (int64_t position = 0; position < rank; ++position) {
      if (!llvm::is_contained(outside[position], true))
        continue;
      SmallVector<int64_t> shape(rank, 1);
      shape[position] = resize.result[position];
      operands.push_back(emitter.constant(DenseElementsAttr::get(
          RankedTensorType::get(shape, emitter.builder.getI1Type()),
          ArrayRef<bool>(outside[position]))));
    }
    value = emitter.elementwise(
        type, operands, [&](Emitter &inside, ArrayRef<Value> scalars) {
          Value result = scalars[0];
          for (Value isLeft : scalars.drop_front())
            result = inside.select(
                isLeft, inside.scalar(element, resize.extrapolation), result);
          return result;
        });
  }
  return value;
}

void penstock::onnx::addResize(OperatorTable &table) {
  table.add("Resize", {10, 11, 13, 18, 19}, bound<inferResize>, nullptr,
            bound<lowerResize>);
  table.add("Upsample", {7, 9}, bound<inferResize>, nullptr,
            bound<lowerResize>);
  table.markOperands("Resize", &Operator::extents, {1, 2, 3});
  table.markOperands("Upsample", &Operator::extents, {1});
}
