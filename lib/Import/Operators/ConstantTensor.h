//===- ConstantTensor.h - Constants that are computed with ------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models compute shapes: a constant is unpacked to integers or doubles, moved
// and computed with, and packed again. Doubles are exact for the one rounded
// operation on f32 and smaller that a fold does.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_OPERATORS_CONSTANTTENSOR_H
#define PENSTOCK_LIB_IMPORT_OPERATORS_CONSTANTTENSOR_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace penstock::onnx {

struct ConstantTensor {
  mlir::RankedTensorType type;
  /// One of them holds the elements, by the element type.
  llvm::SmallVector<int64_t> integers;
  llvm::SmallVector<double> floats;

  explicit ConstantTensor(mlir::DenseElementsAttr attribute);
  /// Zeros.
  explicit ConstantTensor(mlir::RankedTensorType type);

  bool isFloat() const {
    return llvm::isa<mlir::FloatType>(type.getElementType());
  }
  llvm::ArrayRef<int64_t> shape() const { return type.getShape(); }

  mlir::DenseElementsAttr pack() const;

  /// A tensor of `shape` whose element at `index` is this one's at the linear
  /// position `source(index)`.
  ConstantTensor
  gather(llvm::ArrayRef<int64_t> shape,
         llvm::function_ref<int64_t(llvm::ArrayRef<int64_t>)> source) const;
  /// Numpy's broadcast to `shape`.
  ConstantTensor broadcast(llvm::ArrayRef<int64_t> shape) const;
};

/// The linear position of an index in a row-major tensor of this shape.
int64_t linearize(llvm::ArrayRef<int64_t> index, llvm::ArrayRef<int64_t> shape);

/// Calls `visit` for every index of the shape, in row-major order.
void forEachIndex(llvm::ArrayRef<int64_t> shape,
                  llvm::function_ref<void(llvm::ArrayRef<int64_t>)> visit);

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_OPERATORS_CONSTANTTENSOR_H
