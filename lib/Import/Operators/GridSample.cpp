//===- GridSample.cpp - GridSample and AffineGrid -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Images at places that a grid names with coordinates of -1 to 1, and the grids
// of affine maps.
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "Interpolation.h"
#include "OperatorTable.h"

using namespace mlir;
using namespace penstock::onnx;

//===--- GridSample ---===//

namespace {
struct GridSample {
  enum Mode { Nearest, Linear, Cubic } mode = Linear;
  enum Padding { Zeros, Border, Reflection } padding = Zeros;
  bool alignCorners = false;

  LogicalResult bind(NodeBinder &node);
  /// Coordinates of -1 to 1 as places among the `size` elements of an axis.
  Value locate(Emitter &inside, Value coordinate, int64_t size) const;
  Value reflect(Emitter &inside, Value place, int64_t size) const;
  Taps getTaps(Emitter &emitter, Value coordinates, int64_t size) const;

private:
  double low() const { return alignCorners ? 0 : -0.5; }
  double high(int64_t size) const {
    return static_cast<double>(size - 1) - low();
  }
};
} // namespace

LogicalResult GridSample::bind(NodeBinder &node) {
  std::string modeName = node.getSince() < 20 ? "bilinear" : "linear";
  std::string paddingName = "zeros";
  if (failed(node.operands({"X", "grid"}, 2)) || failed(node.requireFloat(0)) ||
      failed(node.requireFloat(1)) ||
      failed(node.attribute("mode", modeName)) ||
      failed(node.attribute("padding_mode", paddingName)) ||
      failed(node.attribute("align_corners", alignCorners)))
    return failure();
  // Version 20 renamed them.
  if (modeName == "bilinear" || modeName == "linear")
    mode = Linear;
  else if (modeName == "bicubic" || modeName == "cubic")
    mode = Cubic;
  else if (modeName == "nearest")
    mode = Nearest;
  else
    return node.badAttribute("mode", "nearest, linear or cubic");
  if (paddingName == "border")
    padding = Border;
  else if (paddingName == "reflection")
    padding = Reflection;
  else if (paddingName != "zeros")
    return node.badAttribute("padding_mode", "zeros, border or reflection");
  int64_t spatial = node.rank(0) - 2;
  if (spatial < 1 || node.rank(1) != node.rank(0) ||
      node.shape(1).back() != spatial || node.shape(1)[0] != node.shape(0)[0])
    return node.error() << "operand 'grid' is " << node.type(1)
                        << ", which does not name places of " << node.type(0);
  for (int64_t size : node.shape(0).drop_front(2))
    if (size == 0)
      return node.error() << "samples " << node.type(0)
                          << ", which has no elements";
  return success();
}

static Types inferGridSample(GridSample &sample, NodeBinder &node) {
  SmallVector<int64_t> shape(node.shape(0).take_front(2));
  llvm::append_range(shape, node.shape(1).drop_front().drop_back());
  return node.makeType(shape);
}

/// Mirrored at the borders until it is between them.
Value GridSample::reflect(Emitter &inside, Value place, int64_t size) const {
  Type type = place.getType();
  double range = high(size) - low();
  if (range == 0)
    return inside.scalar(type, 0);
  Value from = inside.scalar(type, low()), to = inside.scalar(type, high(size));
  Value length = inside.scalar(type, range);
  Value isBelow = inside.less(place, from), isAbove = inside.less(to, place);
  Value distance =
      inside.select(isBelow, inside.sub(from, place), inside.sub(place, to));
  Value turns = emitFloor(inside, inside.div(distance, length));
  Value rest = inside.sub(distance, inside.mul(turns, length));
  Value half = inside.mul(turns, inside.scalar(type, 0.5));
  Value isEven = inside.equal(emitFloor(inside, half), half);
  // Below, an even number of turns counts from the lower border; above, an odd.
  Value countsFromLow =
      inside.compare(arith::CmpIPredicate::eq, isBelow, isEven);
  Value mirrored = inside.select(countsFromLow, inside.add(from, rest),
                                 inside.sub(to, rest));
  Value isOut = inside.any(isBelow, isAbove);
  return inside.select(isOut, mirrored, place);
}

Value GridSample::locate(Emitter &inside, Value n, int64_t size) const {
  Type type = n.getType();
  Value one = inside.scalar(type, 1), two = inside.scalar(type, 2);
  Value shifted = inside.add(n, one), place;
  if (alignCorners)
    place = inside.mul(inside.div(shifted, two),
                       inside.scalar(type, static_cast<double>(size - 1)));
  else
    place = inside.div(
        inside.sub(
            inside.mul(shifted, inside.scalar(type, static_cast<double>(size))),
            one),
        two);
  if (mode == Nearest)
    place = inside.make<math::RoundEvenOp>(place);
  if (padding == Reflection)
    return reflect(inside, place, size);
  // Cubic weights are those of the place, also beyond the border: PyTorch and
  // ONNX Runtime clip what is read there, ONNX's reference the place.
  if (padding == Zeros || mode == Cubic)
    return place;
  return inside.select(
      isOutside(inside, place, low(), high(size)),
      clampPlace(inside, place, 0, static_cast<double>(size - 1)), place);
}

/// Keys' weights of the elements -1, 0, 1 and 2 around a place.
static SmallVector<Value> cubicWeights(Emitter &inside, Value part) {
  Type type = part.getType();
  const double a = -0.75;
  auto number = [&](double value) { return inside.scalar(type, value); };
  auto far = [&](Value d) {
    Value sum = inside.sub(inside.mul(number(a), d), number(5 * a));
    sum = inside.add(inside.mul(sum, d), number(8 * a));
    return inside.sub(inside.mul(sum, d), number(4 * a));
  };
  auto near = [&](Value d) {
    Value sum = inside.sub(inside.mul(number(a + 2), d), number(a + 3));
    return inside.add(inside.mul(inside.mul(sum, d), d), number(1));
  };
  return {far(inside.add(part, number(1))), near(part),
          near(inside.sub(number(1), part)), far(inside.sub(number(2), part))};
}

Taps GridSample::getTaps(Emitter &emitter, Value coordinates,
                         int64_t size) const {
  RankedTensorType given = Emitter::getType(coordinates);
  auto places = RankedTensorType::get(given.getShape(),
                                      placeType(given.getElementType()));
  auto positions =
      RankedTensorType::get(given.getShape(), emitter.builder.getI64Type());
  Value place = emitter.elementwise(
      places, coordinates, [&](Emitter &inside, ArrayRef<Value> scalars) {
        return locate(inside, inside.cast(scalars[0], places.getElementType()),
                      size);
      });
  // Around an image that is padded with zeros lies one more element.
  double before = padding == Zeros ? 1 : 0;
  double last = static_cast<double>(size - 1) + 2 * before;
  int64_t first = mode == Cubic ? -1 : 0;
  int64_t count = mode == Cubic ? 4 : mode == Linear ? 2 : 1;
  Taps taps;
  for (int64_t i = 0; i < count; ++i) {
    auto offset = static_cast<double>(first + i);
    taps.positions.push_back(emitter.elementwise(
        positions, place, [&](Emitter &inside, ArrayRef<Value> scalars) {
          Type type = scalars[0].getType();
          Value position = emitFloor(inside, scalars[0]);
          if (offset != 0)
            position = inside.add(position, inside.scalar(type, offset));
          if (padding == Reflection)
            position = reflect(inside, position, size);
          if (before != 0)
            position = inside.add(position, inside.scalar(type, before));
          return clampIndex(inside, position, 0, last);
        }));
    if (mode == Nearest)
      continue;
    taps.weights.push_back(emitter.elementwise(
        places, place, [&](Emitter &inside, ArrayRef<Value> scalars) {
          Value part = inside.sub(scalars[0], emitFloor(inside, scalars[0]));
          if (mode == Cubic)
            return cubicWeights(inside, part)[i];
          return i == 1 ? part
                        : inside.sub(inside.scalar(part.getType(), 1), part);
        }));
  }
  return taps;
}

/// Zeros around the spatial axes.
static Value padWithZeros(Emitter &emitter, Value value) {
  RankedTensorType type = Emitter::getType(value);
  SmallVector<OpFoldResult> widths;
  SmallVector<int64_t> shape;
  for (auto [axis, size] : llvm::enumerate(type.getShape())) {
    int64_t width = axis < 2 ? 0 : 1;
    widths.push_back(emitter.builder.getIndexAttr(width));
    shape.push_back(size + 2 * width);
  }
  return emitter.make<tensor::PadOp>(
      RankedTensorType::get(shape, type.getElementType()), value, widths,
      widths, emitter.scalar(type.getElementType(), 0));
}

static Values lowerGridSample(GridSample &sample, NodeBinder &node,
                              Emitter &emitter) {
  RankedTensorType type = resultType(node);
  if (type.getNumElements() == 0)
    return emitter.empty(type);
  int64_t spatial = node.rank(0) - 2;
  int64_t samples = type.getDimSize(0), channels = type.getDimSize(1);
  int64_t points = type.getNumElements() / samples / channels;
  Value grid = emitter.reshape(node.operand(1), {samples, points, spatial});
  SmallVector<Taps> taps;
  for (int64_t i = 0; i < spatial; ++i) {
    // The grid names the last axis first.
    Value coordinates = tensor::ExtractSliceOp::create(
        emitter.builder, emitter.loc, node.makeType({samples, points}, 1), grid,
        getAsIndexOpFoldResult(emitter.getContext(), {0, 0, spatial - 1 - i}),
        getAsIndexOpFoldResult(emitter.getContext(), {samples, points, 1}),
        getAsIndexOpFoldResult(emitter.getContext(), {1, 1, 1}));
    taps.push_back(sample.getTaps(emitter, coordinates, node.shape(0)[2 + i]));
    taps.back().axes = {0, 2};
  }
  Value data = sample.padding == GridSample::Zeros
                   ? padWithZeros(emitter, node.operand(0))
                   : node.operand(0);
  auto flat =
      RankedTensorType::get({samples, channels, points}, type.getElementType());
  return emitter.reshape(interpolate(emitter, flat, data, Value(), taps),
                         type.getShape());
}

//===--- AffineGrid ---===//

namespace {
struct AffineGrid {
  bool alignCorners = false;
  SmallVector<int64_t> size;
  LogicalResult bind(NodeBinder &node);
  int64_t spatial() const { return static_cast<int64_t>(size.size()) - 2; }
};
} // namespace

LogicalResult AffineGrid::bind(NodeBinder &node) {
  if (failed(node.operands({"theta", "size"}, 2)) ||
      failed(node.requireFloat(0)) || failed(node.constantIntegers(1, size)) ||
      failed(node.attribute("align_corners", alignCorners)))
    return failure();
  bool fits = size.size() == 4 || size.size() == 5;
  fits = fits && node.shape(0) ==
                     ArrayRef<int64_t>({size[0], spatial(), spatial() + 1});
  for (int64_t given : size)
    fits &= given >= 0;
  if (!fits)
    return node.error() << "operand 'theta' is " << node.type(0)
                        << ", which is no affine map of a grid for the "
                        << size.size() << " sizes of operand 'size'";
  return success();
}

static Types inferAffineGrid(AffineGrid &grid, NodeBinder &node) {
  SmallVector<int64_t> shape(grid.size);
  shape.erase(shape.begin() + 1);
  shape.push_back(grid.spatial());
  return node.makeType(shape);
}

/// theta times (x, y, 1) of every point, the last axis first.
static Values lowerAffineGrid(AffineGrid &grid, NodeBinder &node,
                              Emitter &emitter) {
  ArrayRef<int64_t> spatial = ArrayRef<int64_t>(grid.size).drop_front(2);
  Type element = node.elementType(0);
  int64_t points = 1;
  for (int64_t size : spatial)
    points *= size;
  ConstantTensor base(
      RankedTensorType::get({points, grid.spatial() + 1}, element));
  size_t next = 0;
  forEachIndex(spatial, [&](ArrayRef<int64_t> index) {
    for (int64_t i = grid.spatial() - 1; i >= 0; --i) {
      auto at = static_cast<double>(index[i]);
      auto size = static_cast<double>(spatial[i]);
      // A single point is in the middle.
      double place =
          grid.alignCorners ? 2 * at / (size - 1) - 1 : (2 * at + 1) / size - 1;
      base.floats[next++] = spatial[i] == 1 ? 0 : place;
    }
    base.floats[next++] = 1;
  });
  auto type =
      RankedTensorType::get({grid.size[0], points, grid.spatial()}, element);
  Value product =
      emitter.contract(emitter.constant(base.pack()), node.operand(0), type,
                       {emitter.map(4, {1, 3}), emitter.map(4, {0, 2, 3}),
                        emitter.map(4, {0, 1, 2})});
  return emitter.reshape(product, resultType(node).getShape());
}

void penstock::onnx::addGridSample(OperatorTable &table) {
  table.add("GridSample", {16, 20, 22}, bound<inferGridSample>, nullptr,
            bound<lowerGridSample>);
  table.add("AffineGrid", {20}, bound<inferAffineGrid>, nullptr,
            bound<lowerAffineGrid>);
}
