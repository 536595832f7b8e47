//===- RoiAlign.cpp - RoiAlign --------------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Averages over regions of images, whose corners are data. How many samples an
// average takes is known when compiling.
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "Interpolation.h"
#include "OperatorTable.h"

using namespace mlir;
using namespace penstock::onnx;

//===--- RoiAlign ---===//

namespace {
struct RoiAlign {
  bool halfPixel;
  int64_t height = 1, width = 1, ratio = 0;
  double scale = 1;

  LogicalResult bind(NodeBinder &node);
  /// Along rows (`axis` 0) or columns (1), `count` bins for each region.
  Taps getTaps(Emitter &emitter, Value regions, int64_t axis, int64_t count,
               int64_t size) const;
};
} // namespace

LogicalResult RoiAlign::bind(NodeBinder &node) {
  std::string mode = "avg";
  std::string coordinates =
      node.getSince() < 16 ? "output_half_pixel" : "half_pixel";
  if (failed(node.operands({"X", "rois", "batch_indices"}, 3)) ||
      failed(node.requireFloat(0)) ||
      failed(node.requireSameElementType(0, 1)) ||
      failed(node.requireInteger(2)) || failed(node.attribute("mode", mode)) ||
      failed(node.attribute("coordinate_transformation_mode", coordinates)) ||
      failed(node.attribute("output_height", height)) ||
      failed(node.attribute("output_width", width)) ||
      failed(node.attribute("sampling_ratio", ratio)) ||
      failed(node.attribute("spatial_scale", scale)))
    return failure();
  if (mode != "avg")
    return node.error() << "has mode '" << mode
                        << "', which implementations do not agree on; avg is "
                           "supported";
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
    return node.badAttribute("coordinate_transformation_mode",
                             "half_pixel or output_half_pixel");
  halfPixel = coordinates == "half_pixel";
  if (ratio < 1)
    return node.error() << "has sampling_ratio " << ratio
                        << ": how many samples a bin has would depend on data; "
                           "export the model with a positive sampling_ratio";
  if (height < 1 || width < 1)
    return node.error() << "has bins of " << height << " rows and " << width
                        << " columns";
  if (node.rank(0) != 4 || node.rank(1) != 2 || node.shape(1)[1] != 4 ||
      node.shape(2) != node.shape(1).take_front(1) || node.shape(0)[2] == 0 ||
      node.shape(0)[3] == 0)
    return node.error() << "operands " << node.type(0) << ", " << node.type(1)
                        << " and " << node.type(2)
                        << " are no images, corners of regions and the image "
                           "of each region";
  return success();
}

static Types inferRoiAlign(RoiAlign &align, NodeBinder &node) {
  return node.makeType(
      {node.shape(1)[0], node.shape(0)[1], align.height, align.width});
}

Taps RoiAlign::getTaps(Emitter &emitter, Value regions, int64_t axis,
                       int64_t count, int64_t size) const {
  OpBuilder &builder = emitter.builder;
  Type type = placeType(Emitter::getType(regions).getElementType());
  int64_t number = Emitter::getShape(regions)[0];
  // Corners are x1, y1, x2, y2.
  SmallVector<Value> operands;
  for (int64_t corner : {0, 1})
    operands.push_back(emitter.reshape(
        tensor::ExtractSliceOp::create(
            builder, emitter.loc, regions,
            getAsIndexOpFoldResult(builder.getContext(),
                                   {0, 2 * corner + 1 - axis}),
            getAsIndexOpFoldResult(builder.getContext(), {number, 1}),
            getAsIndexOpFoldResult(builder.getContext(), {1, 1})),
        {number, 1}));
  // How many bins each sample is from the start.
  ConstantTensor steps(RankedTensorType::get({count * ratio}, type));
  for (int64_t i = 0; i < count * ratio; ++i)
    steps.floats[i] =
        static_cast<double>(i / ratio) +
        (static_cast<double>(i % ratio) + 0.5) / static_cast<double>(ratio);
  operands.push_back(emitter.constant(steps.pack()));
  auto places = RankedTensorType::get({number, count * ratio}, type);
  Value place = emitter.elementwise(
      places, operands, [&](Emitter &inside, ArrayRef<Value> scalars) {
        Value factor = inside.scalar(type, scale);
        Value shift = inside.scalar(type, halfPixel ? 0.5 : 0);
        Value ends[2];
        for (unsigned i : {0, 1})
          ends[i] = inside.sub(
              inside.mul(inside.cast(scalars[i], type), factor), shift);
        Value extent = inside.sub(ends[1], ends[0]);
        if (!halfPixel)
          extent = inside.max(extent, inside.scalar(type, 1));
        Value bin =
            inside.div(extent, inside.scalar(type, static_cast<double>(count)));
        return inside.add(ends[0], inside.mul(scalars[2], bin));
      });
  auto last = static_cast<double>(size - 1);
  auto positions =
      RankedTensorType::get(places.getShape(), builder.getI64Type());
  Taps taps;
  for (unsigned i : {0, 1}) {
    taps.positions.push_back(emitter.elementwise(
        positions, place, [&](Emitter &inside, ArrayRef<Value> scalars) {
          Value position =
              emitFloor(inside, clampPlace(inside, scalars[0], 0, last));
          return clampIndex(
              inside, inside.add(position, inside.scalar(type, i)), 0, last);
        }));
    taps.weights.push_back(emitter.elementwise(
        places, place, [&](Emitter &inside, ArrayRef<Value> scalars) {
          Value held = clampPlace(inside, scalars[0], 0, last);
          Value part = inside.sub(held, emitFloor(inside, held));
          Value weight =
              i == 1 ? part : inside.sub(inside.scalar(type, 1), part);
          // A sample that is further away than one element counts as zero.
          return inside.select(
              isOutside(inside, scalars[0], -1, static_cast<double>(size)),
              inside.scalar(type, 0), weight);
        }));
  }
  taps.axes = {0, 2 + axis};
  return taps;
}

static Values lowerRoiAlign(RoiAlign &align, NodeBinder &node,
                            Emitter &emitter) {
  RankedTensorType type = resultType(node);
  Type element = type.getElementType();
  int64_t regions = type.getDimSize(0), channels = type.getDimSize(1);
  if (type.getNumElements() == 0)
    return emitter.empty(type);
  Taps taps[] = {align.getTaps(emitter, node.operand(1), 0, align.height,
                               node.shape(0)[2]),
                 align.getTaps(emitter, node.operand(1), 1, align.width,
                               node.shape(0)[3])};
  auto samples =
      RankedTensorType::get({regions, channels, align.height * align.ratio,
                             align.width * align.ratio},
                            element);
  Value values =
      interpolate(emitter, samples, node.operand(0), node.operand(2), taps);
  values = emitter.reshape(values, {regions, channels, align.height,
                                    align.ratio, align.width, align.ratio});
  Value sum =
      emitter.reduce(values, {3, 5}, emitter.scalar(element, 0), &Emitter::add);
  return emitter.elementwise(
      type, sum, [&](Emitter &inside, ArrayRef<Value> scalars) {
        auto count = static_cast<double>(align.ratio * align.ratio);
        return inside.div(scalars[0], inside.scalar(element, count));
      });
}

void penstock::onnx::addRoiAlign(OperatorTable &table) {
  table.add("RoiAlign", {10, 16, 22}, bound<inferRoiAlign>, nullptr,
            bound<lowerRoiAlign>);
}
