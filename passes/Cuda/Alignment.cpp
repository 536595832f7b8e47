//===- Alignment.cpp - Buffers that begin at whole vectors ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Alignment.h.
//===----------------------------------------------------------------------===//

#include "passes/Cuda/Alignment.h"

#include "passes/Cuda/Passes.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace penstock;

int64_t penstock::getElementBytes(Type type) {
  if (!type.isIntOrFloat())
    return 0;
  int64_t bits = type.getIntOrFloatBitWidth();
  return bits == 1 ? 1 : bits % 8 ? 0 : bits / 8;
}

/// Returns whether a slice begins at a multiple of kVectorBytes of its source.
static bool keepsAlignment(memref::SubViewOp slice) {
  MemRefType type = slice.getSourceType();
  SmallVector<int64_t> strides;
  int64_t start;
  int64_t element = getElementBytes(type.getElementType());
  if (failed(type.getStridesAndOffset(strides, start)) || element == 0)
    return false;
  int64_t bytes = 0;
  for (auto [offset, stride] :
       llvm::zip_equal(slice.getMixedOffsets(), strides)) {
    std::optional<int64_t> constant = getConstantIntValue(offset);
    if (ShapedType::isDynamic(stride))
      return constant && *constant == 0;
    // A counter may have any value.
    int64_t step = stride * element;
    if (constant)
      bytes += *constant * step;
    else if (step % kVectorBytes)
      return false;
  }
  return bytes % kVectorBytes == 0;
}

bool penstock::beginsAtVector(Value buffer) {
  while (true) {
    if (auto argument = dyn_cast<BlockArgument>(buffer))
      return isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
    Operation *producer = buffer.getDefiningOp();
    if (auto view = dyn_cast<memref::ViewOp>(producer)) {
      std::optional<int64_t> shift = getConstantIntValue(view.getByteShift());
      if (!shift || *shift % kVectorBytes)
        return false;
      buffer = view.getSource();
    } else if (auto slice = dyn_cast<memref::SubViewOp>(producer)) {
      if (!keepsAlignment(slice))
        return false;
      buffer = slice.getSource();
    } else if (isa<memref::CollapseShapeOp, memref::ExpandShapeOp,
                   memref::CastOp>(producer)) {
      buffer = producer->getOperand(0);
    } else {
      return false;
    }
  }
}

/// Returns whether each row of a buffer begins at a multiple of `elements` from
/// its start.
static bool hasVectorRows(MemRefType type, int64_t elements) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)) || strides.empty())
    return false;
  return strides.back() == 1 &&
         llvm::all_of(ArrayRef(strides).drop_back(), [&](int64_t stride) {
           return !ShapedType::isDynamic(stride) && stride % elements == 0;
         });
}

bool penstock::isVectorAligned(Value buffer, int64_t elements) {
  if (!hasVectorRows(cast<MemRefType>(buffer.getType()), elements))
    return false;
  while (Operation *producer = buffer.getDefiningOp()) {
    // LLVM places constants as it needs them.
    if (isa<memref::GetGlobalOp>(producer))
      return true;
    auto slice = dyn_cast<memref::SubViewOp>(producer);
    if (slice ? !keepsAlignment(slice)
              : !isa<memref::CollapseShapeOp, memref::ExpandShapeOp>(producer))
      return false;
    buffer = producer->getOperand(0);
  }
  return isParameterAligned(buffer);
}

bool penstock::isParameterAligned(Value buffer) {
  auto argument = dyn_cast<BlockArgument>(buffer);
  if (!argument)
    return false;
  auto kernel = dyn_cast<gpu::GPUFuncOp>(argument.getOwner()->getParentOp());
  if (!kernel || argument.getArgNumber() >= kernel.getNumArguments())
    return false;
  auto bytes = kernel.getArgAttrOfType<IntegerAttr>(
      argument.getArgNumber(), LLVM::LLVMDialect::getAlignAttrName());
  return bytes && bytes.getInt() % kVectorBytes == 0;
}
