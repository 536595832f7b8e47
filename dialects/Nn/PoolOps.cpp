//===- PoolOps.cpp - Pooling ----------------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of the ops in PoolOps.td.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"

using namespace mlir;
using namespace penstock::nn;

/// Every window has an element inside: none is before the first element or
/// begins after the last.
template <typename Op>
static LogicalResult verifyPool(Op op, RankedTensorType whole,
                                RankedTensorType windows) {
  size_t rank = op.getWindow().size();
  if (rank < 1 || op.getStrides().size() != rank ||
      op.getDilations().size() != rank || op.getPads().size() != rank ||
      whole.getRank() != static_cast<int64_t>(rank + 2) ||
      windows.getRank() != static_cast<int64_t>(rank + 2))
    return op.emitOpError("M6: needs as many strides, dilations and pads as "
                          "dimensions of its window and spatial ones");
  if (whole.getElementType() != windows.getElementType())
    return op.emitOpError("M2: mixes element types");
  for (unsigned i : {0u, 1u})
    if (whole.getDimSize(i) != windows.getDimSize(i))
      return op.emitOpError("M7: changes dimension ")
             << i << " of " << whole << " to " << windows;
  for (size_t i = 0; i < rank; ++i) {
    int64_t stride = op.getStrides()[i], pad = op.getPads()[i];
    int64_t reach = (op.getWindow()[i] - 1) * op.getDilations()[i];
    if (op.getWindow()[i] < 1 || stride < 1 || op.getDilations()[i] < 1 ||
        pad < 0)
      return op.emitOpError("M8: has a window, stride or dilation that is not "
                            "positive, or a negative pad");
    int64_t count = windows.getDimSize(i + 2), size = whole.getDimSize(i + 2);
    if (count > 0 && (pad > reach || (count - 1) * stride - pad >= size))
      return op.emitOpError("M9: has a window outside of spatial dimension ")
             << i << " of " << whole;
  }
  return success();
}

LogicalResult MaxPoolOp::verify() {
  if (getIndices().getType().getShape() != getResult().getType().getShape())
    return emitOpError("M10: indices and result differ in shape");
  return verifyPool(*this, getInput().getType(), getResult().getType());
}
LogicalResult SumPoolOp::verify() {
  return verifyPool(*this, getInput().getType(), getResult().getType());
}
LogicalResult SumPoolGradOp::verify() {
  return verifyPool(*this, getResult().getType(), getCotangent().getType());
}
LogicalResult MaxPoolGradOp::verify() {
  if (getIndices().getType().getShape() != getCotangent().getType().getShape())
    return emitOpError("M10: indices and cotangent differ in shape");
  return verifyPool(*this, getResult().getType(), getCotangent().getType());
}
