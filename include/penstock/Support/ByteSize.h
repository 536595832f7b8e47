//===- ByteSize.h - Bytes of a tensor or a buffer ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How values lie in memory: densely, each element in whole bytes, so that an i1
// takes one. Files, arenas and reports all count so.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SUPPORT_BYTESIZE_H
#define PENSTOCK_SUPPORT_BYTESIZE_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

namespace penstock {

/// Bytes of a value of this type, whose shape is static and whose elements are
/// numbers.
inline int64_t getByteSize(mlir::ShapedType type) {
  mlir::Type element = type.getElementType();
  unsigned bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  return type.getNumElements() *
         static_cast<int64_t>(llvm::divideCeil(bits, 8));
}

} // namespace penstock

#endif // PENSTOCK_SUPPORT_BYTESIZE_H
