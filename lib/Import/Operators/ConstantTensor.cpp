//===- ConstantTensor.cpp - Constants that are computed with --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See ConstantTensor.h.
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"

#include "llvm/ADT/APFloat.h"

using namespace mlir;
using namespace penstock::onnx;

/// ONNX's bool and unsigned types are extended with zeros.
static bool isUnsigned(Type type) {
  return type.isInteger(1) || type.isUnsignedInteger();
}

ConstantTensor::ConstantTensor(DenseElementsAttr attribute)
    : type(cast<RankedTensorType>(attribute.getType())) {
  if (isFloat()) {
    for (APFloat value : attribute.getValues<APFloat>()) {
      bool losesInfo;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                    &losesInfo);
      floats.push_back(value.convertToDouble());
    }
    return;
  }
  for (const APInt &value : attribute.getValues<APInt>())
    integers.push_back(isUnsigned(type.getElementType())
                           ? static_cast<int64_t>(value.getZExtValue())
                           : value.getSExtValue());
}

ConstantTensor::ConstantTensor(RankedTensorType type) : type(type) {
  if (isFloat())
    floats.assign(type.getNumElements(), 0.0);
  else
    integers.assign(type.getNumElements(), 0);
}

DenseElementsAttr ConstantTensor::pack() const {
  Type element = type.getElementType();
  if (auto floatType = dyn_cast<FloatType>(element)) {
    SmallVector<APFloat> values;
    for (double number : floats) {
      APFloat value(number);
      bool losesInfo;
      value.convert(floatType.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                    &losesInfo);
      values.push_back(value);
    }
    return DenseElementsAttr::get(type, values);
  }
  SmallVector<APInt> values;
  for (int64_t number : integers)
    values.push_back(APInt(element.getIntOrFloatBitWidth(),
                           static_cast<uint64_t>(number), !isUnsigned(element),
                           /*implicitTrunc=*/true));
  return DenseElementsAttr::get(type, values);
}

int64_t penstock::onnx::linearize(ArrayRef<int64_t> index,
                                  ArrayRef<int64_t> shape) {
  int64_t position = 0;
  for (auto [i, size] : llvm::zip_equal(index, shape))
    position = position * size + i;
  return position;
}

void penstock::onnx::forEachIndex(ArrayRef<int64_t> shape,
                                  function_ref<void(ArrayRef<int64_t>)> visit) {
  if (llvm::is_contained(shape, 0))
    return;
  SmallVector<int64_t> index(shape.size(), 0);
  while (true) {
    visit(index);
    int64_t d = static_cast<int64_t>(shape.size()) - 1;
    for (; d >= 0; --d) {
      if (++index[d] < shape[d])
        break;
      index[d] = 0;
    }
    if (d < 0)
      return;
  }
}

ConstantTensor
ConstantTensor::gather(ArrayRef<int64_t> shape,
                       function_ref<int64_t(ArrayRef<int64_t>)> source) const {
  ConstantTensor result(RankedTensorType::get(shape, type.getElementType()));
  int64_t position = 0;
  forEachIndex(shape, [&](ArrayRef<int64_t> index) {
    int64_t from = source(index);
    if (isFloat())
      result.floats[position++] = floats[from];
    else
      result.integers[position++] = integers[from];
  });
  return result;
}

ConstantTensor ConstantTensor::broadcast(ArrayRef<int64_t> to) const {
  size_t offset = to.size() - shape().size();
  return gather(to, [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> from(index.drop_front(offset));
    for (auto [d, size] : llvm::enumerate(shape()))
      if (size == 1)
        from[d] = 0;
    return linearize(from, shape());
  });
}
