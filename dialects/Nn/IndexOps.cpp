//===- IndexOps.cpp - Verifiers of ops that go by positions ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See IndexOps.td.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"

using namespace mlir;
using namespace penstock::nn;

template <typename Affine> static std::string toText(Affine affine) {
  std::string text;
  llvm::raw_string_ostream(text) << affine;
  return text;
}

/// An iteration over `space` that finds its element of `data`.
static LogicalResult verifyAccess(Operation *op, RankedTensorType space,
                                  RankedTensorType data, ValueRange indices,
                                  AffineMap at, ArrayAttr indexMaps) {
  if (!space.hasStaticShape() || !data.hasStaticShape())
    return op->emitOpError("M12: needs static shapes");
  if (at.getNumDims() != static_cast<unsigned>(space.getRank()) ||
      at.getNumSymbols() != indices.size() ||
      at.getNumResults() != static_cast<unsigned>(data.getRank()))
    return op->emitOpError("M13: 'at' must take an index per axis of ")
           << space << " and " << indices.size()
           << " symbols, and give one per axis of " << data;
  if (indexMaps.size() != indices.size())
    return op->emitOpError("M14: has ")
           << indices.size() << " index tensors and " << indexMaps.size()
           << " index maps";
  for (auto [axis, result] : llvm::enumerate(at.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(result);
    if (!dim && !isa<AffineSymbolExpr>(result))
      return op->emitOpError("M13: 'at' gives ")
             << toText(result) << ", which is neither an index nor a symbol";
    if (dim && space.getDimSize(dim.getPosition()) > data.getDimSize(axis))
      return op->emitOpError("M13: axis ")
             << axis << " of " << data << " is too small for the indices of "
             << space;
  }
  for (auto [index, attribute] : llvm::zip_equal(indices, indexMaps)) {
    AffineMap map = cast<AffineMapAttr>(attribute).getValue();
    auto type = cast<RankedTensorType>(index.getType());
    if (map.getNumDims() != at.getNumDims() || map.getNumSymbols() != 0 ||
        map.getNumResults() != static_cast<unsigned>(type.getRank()))
      return op->emitOpError("M14: the index map ")
             << toText(map) << " does not lead to " << type;
    for (auto [axis, result] : llvm::enumerate(map.getResults())) {
      int64_t last = -1;
      if (auto constant = dyn_cast<AffineConstantExpr>(result))
        last = constant.getValue();
      else if (auto dim = dyn_cast<AffineDimExpr>(result))
        last = space.getDimSize(dim.getPosition()) - 1;
      else
        return op->emitOpError("M14: the index map ")
               << toText(map) << " is of more than indices and constants";
      if (last >= type.getDimSize(axis) || last < -1)
        return op->emitOpError("M14: the index map ")
               << toText(map) << " leads out of " << type;
    }
  }
  return success();
}

LogicalResult GatherOp::verify() {
  if (getResult().getType().getElementType() !=
      getData().getType().getElementType())
    return emitOpError("M11: data and result differ in element type");
  return verifyAccess(*this, getResult().getType(), getData().getType(),
                      getIndices(), getAt(), getIndexMaps());
}

LogicalResult ScatterOp::verify() {
  if (getUpdates().getType().getElementType() !=
      getInit().getType().getElementType())
    return emitOpError("M11: updates and result differ in element type");
  return verifyAccess(*this, getUpdates().getType(), getInit().getType(),
                      getIndices(), getAt(), getIndexMaps());
}

LogicalResult CumulativeSumOp::verify() {
  if (static_cast<int64_t>(getDim()) >= getInput().getType().getRank())
    return emitOpError("M15: dim ")
           << getDim() << " is not an axis of " << getInput().getType();
  return success();
}

LogicalResult TopKOp::verify() {
  RankedTensorType from = getInput().getType(), to = getResult().getType();
  auto dim = static_cast<int64_t>(getDim());
  if (dim >= from.getRank())
    return emitOpError("M15: dim ") << dim << " is not an axis of " << from;
  SmallVector<int64_t> shape(from.getShape());
  if (to.getRank() == from.getRank())
    shape[dim] = to.getDimSize(dim);
  if (to.getShape() != ArrayRef<int64_t>(shape) ||
      to.getDimSize(dim) > from.getDimSize(dim))
    return emitOpError("M16: the result ")
           << to << " is not as " << from << " with at most as many along "
           << dim;
  return success();
}

/// The type without the axes `dims`.
static RankedTensorType dropAxes(RankedTensorType type,
                                 ArrayRef<int64_t> dims) {
  SmallVector<int64_t> shape;
  for (auto [d, size] : llvm::enumerate(type.getShape()))
    if (!llvm::is_contained(dims, static_cast<int64_t>(d)))
      shape.push_back(size);
  return RankedTensorType::get(shape, type.getElementType());
}

void LogSumExpOp::build(OpBuilder &builder, OperationState &state, Value input,
                        ArrayRef<int64_t> dims) {
  build(builder, state, dropAxes(cast<RankedTensorType>(input.getType()), dims),
        input, dims);
}

LogicalResult LogSumExpOp::verify() {
  RankedTensorType type = getInput().getType();
  for (int64_t dim : getDims())
    if (dim < 0 || dim >= type.getRank())
      return emitOpError("M15: dim ") << dim << " is not an axis of " << type;
  if (!llvm::is_sorted(getDims(), std::less_equal<int64_t>()))
    return emitOpError("M17: the dims are not in increasing order");
  if (getResult().getType() != dropAxes(type, getDims()))
    return emitOpError("M18: the result must be ")
           << dropAxes(type, getDims()) << ", got " << getResult().getType();
  return success();
}
