//===- BufferRange.cpp - Which bytes a buffer is --------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See BufferRange.h.
//===----------------------------------------------------------------------===//

#include "passes/Kernels/BufferRange.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace penstock;

BufferRange BufferRange::of(Value buffer) {
  BufferRange range;
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>()) {
    auto bytes = dyn_cast<memref::ViewOp>(view.getOperation());
    if (bytes && range.end == INT64_MAX) {
      MemRefType type = bytes.getType();
      std::optional<int64_t> offset = getConstantIntValue(bytes.getByteShift());
      if (offset && type.hasStaticShape() &&
          type.getElementType().isIntOrFloat()) {
        int64_t bits = type.getElementType().getIntOrFloatBitWidth();
        range.begin = *offset;
        range.end = *offset + type.getNumElements() * ((bits + 7) / 8);
      }
    }
    buffer = view.getViewSource();
  }
  range.root = buffer;
  return range;
}
