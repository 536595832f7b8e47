//===- Interpolation.cpp - Tensors at computed places ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Interpolation.h. nn.gather finds the elements, so the tensor gets its
// derivative from there, and the places get theirs through the weights.
//===----------------------------------------------------------------------===//

#include "Interpolation.h"

#include "ConstantTensor.h"

#include "dialects/Nn/Nn.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::onnx;

Type penstock::onnx::placeType(Type element) {
  return element.getIntOrFloatBitWidth() < 32
             ? Float32Type::get(element.getContext())
             : element;
}

Value penstock::onnx::emitFloor(Emitter &inside, Value value) {
  return inside.make<math::FloorOp>(value);
}

Value penstock::onnx::clampIndex(Emitter &inside, Value value, double low,
                                 double high) {
  Type type = value.getType();
  value = inside.make<arith::MaxNumFOp>(value, inside.scalar(type, low));
  value = inside.make<arith::MinNumFOp>(value, inside.scalar(type, high));
  return inside.cast(value, inside.builder.getI64Type());
}

Value penstock::onnx::clampPlace(Emitter &inside, Value value, double low,
                                 double high) {
  Type type = value.getType();
  return inside.min(inside.max(value, inside.scalar(type, low)),
                    inside.scalar(type, high));
}

Value penstock::onnx::isOutside(Emitter &inside, Value value, double low,
                                double high) {
  Type type = value.getType();
  return inside.any(inside.less(value, inside.scalar(type, low)),
                    inside.less(inside.scalar(type, high), value));
}

Value penstock::onnx::interpolate(Emitter &emitter, RankedTensorType type,
                                  Value data, Value samples,
                                  ArrayRef<Taps> spatial) {
  MLIRContext *context = emitter.getContext();
  int64_t rank = type.getRank();
  SmallVector<int64_t> counts;
  SmallVector<Value> operands;
  SmallVector<unsigned> firstWeight;

  // 1. What is found at each combination.
  for (const Taps &taps : spatial)
    counts.push_back(static_cast<int64_t>(taps.positions.size()));
  forEachIndex(counts, [&](ArrayRef<int64_t> choice) {
    SmallVector<AffineExpr> at;
    SmallVector<Value> indices;
    SmallVector<Attribute> maps;
    auto addTensor = [&](Value tensor, ArrayRef<int64_t> axes) {
      at.push_back(getAffineSymbolExpr(indices.size(), context));
      indices.push_back(tensor);
      maps.push_back(AffineMapAttr::get(emitter.map(rank, axes)));
    };
    if (samples)
      addTensor(samples, {0});
    else
      at.push_back(getAffineDimExpr(0, context));
    at.push_back(getAffineDimExpr(1, context));
    for (auto [taps, which] : llvm::zip_equal(spatial, choice))
      addTensor(taps.positions[which], taps.axes);
    operands.push_back(emitter.make<nn::GatherOp>(
        type, data, indices, AffineMap::get(rank, indices.size(), at, context),
        ArrayAttr::get(context, maps)));
  });

  // 2. The weights, broadcast.
  for (const Taps &taps : spatial) {
    firstWeight.push_back(operands.size());
    for (Value weight : taps.weights) {
      SmallVector<int64_t> shape(rank, 1);
      for (int64_t axis : taps.axes)
        shape[axis] = type.getDimSize(axis);
      operands.push_back(emitter.reshape(weight, shape));
    }
  }

  // 3. The last axis first, as one would by hand.
  return emitter.elementwise(
      type, operands, [&](Emitter &inside, ArrayRef<Value> scalars) {
        Type place = placeType(type.getElementType());
        unsigned next = 0;
        auto sum = [&](auto &self, size_t axis) -> Value {
          if (axis == spatial.size())
            return inside.cast(scalars[next++], place);
          Value total;
          for (int64_t i = 0; i < counts[axis]; ++i) {
            Value term = self(self, axis + 1);
            if (!spatial[axis].weights.empty())
              term = inside.mul(scalars[firstWeight[axis] + i], term);
            total = total ? inside.add(total, term) : term;
          }
          return total;
        };
        return inside.cast(sum(sum, 0), type.getElementType());
      });
}
