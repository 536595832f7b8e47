//===- TensorRules.cpp - Derivatives of tensor ops ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that move elements: the cotangent moves back. Shapes are static.
//===----------------------------------------------------------------------===//

#include "lib/Autodiff/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace penstock;

static SmallVector<OpFoldResult> getAttrs(OpBuilder &builder,
                                          ArrayRef<int64_t> values) {
  return llvm::map_to_vector(values, [&](int64_t value) -> OpFoldResult {
    return builder.getIndexAttr(value);
  });
}

template <typename Op> static LogicalResult reportDynamic(Op op) {
  return op.emitError() << "'" << op->getName()
                        << "' with offsets or sizes that are not constant has "
                           "no derivative rule";
}

static LogicalResult pullBackExpand(tensor::ExpandShapeOp op,
                                    Pullback &pullback) {
  Value dy = pullback.getCotangent(op.getResult());
  pullback.add(op.getSrc(),
               tensor::CollapseShapeOp::create(pullback.getBuilder(),
                                               op.getLoc(), op.getSrcType(), dy,
                                               op.getReassociationIndices()),
               op.getLoc());
  return success();
}

static LogicalResult pullBackCollapse(tensor::CollapseShapeOp op,
                                      Pullback &pullback) {
  Value dy = pullback.getCotangent(op.getResult());
  pullback.add(op.getSrc(),
               tensor::ExpandShapeOp::create(pullback.getBuilder(), op.getLoc(),
                                             op.getSrcType(), dy,
                                             op.getReassociationIndices()),
               op.getLoc());
  return success();
}

static LogicalResult pullBackCast(tensor::CastOp op, Pullback &pullback) {
  pullback.add(op.getSource(),
               tensor::CastOp::create(pullback.getBuilder(), op.getLoc(),
                                      op.getSource().getType(),
                                      pullback.getCotangent(op.getResult())),
               op.getLoc());
  return success();
}

namespace {
/// A slice of which everything is constant.
struct StaticSlice {
  ArrayRef<int64_t> offsets, sizes, strides;

  template <typename Op>
  explicit StaticSlice(Op op)
      : offsets(op.getStaticOffsets()), sizes(op.getStaticSizes()),
        strides(op.getStaticStrides()) {}

  /// Returns true if the slices are disjoint along some dimension. A stride
  /// other than one counts as taking everything in between.
  bool isApartFrom(const StaticSlice &other) const {
    for (size_t i = 0; i < offsets.size(); ++i) {
      if (ShapedType::isDynamic(offsets[i]) ||
          ShapedType::isDynamic(other.offsets[i]))
        continue;
      int64_t end = offsets[i] + (sizes[i] - 1) * strides[i];
      int64_t otherEnd =
          other.offsets[i] + (other.sizes[i] - 1) * other.strides[i];
      if (end < other.offsets[i] || otherEnd < offsets[i])
        return true;
    }
    return false;
  }
};
} // namespace

/// Returns `value` before slices apart from `slice` were inserted; null if one
/// is not apart.
static Value skipInserts(Value value, const StaticSlice &slice) {
  while (auto insert = value.getDefiningOp<tensor::InsertSliceOp>()) {
    if (!insert.getSizes().empty() || !insert.getStrides().empty() ||
        !StaticSlice(insert).isApartFrom(slice))
      return {};
    value = insert.getDest();
  }
  return value;
}

/// Returns true if the cotangent so far is zero in the slice: zeros with other
/// slices inserted. Then one more is inserted, and parts of a split cost a copy
/// each.
static bool isZeroIn(Value cotangent, const StaticSlice &slice) {
  Value start = cotangent ? skipInserts(cotangent, slice) : Value();
  auto fill = start ? start.getDefiningOp<linalg::FillOp>() : linalg::FillOp();
  return fill && matchPattern(fill.getInputs().front(), m_PosZeroFloat());
}

static LogicalResult pullBackExtractSlice(tensor::ExtractSliceOp op,
                                          Pullback &pullback) {
  if (!op.getOffsets().empty() || !op.getSizes().empty() ||
      !op.getStrides().empty())
    return reportDynamic(op);
  OpBuilder &builder = pullback.getBuilder();
  Value source = op.getSource();
  if (!pullback.isActive(source))
    return success();
  auto insertInto = [&](Value destination) -> Value {
    return tensor::InsertSliceOp::create(
        builder, op.getLoc(), pullback.getCotangent(op.getResult()),
        destination, op.getMixedOffsets(), op.getMixedSizes(),
        op.getMixedStrides());
  };
  bool accumulates = !!pullback.getAccumulator(source);
  Value known = pullback.getCotangent(source);
  if (!accumulates && isZeroIn(known, StaticSlice(op)))
    pullback.setCotangent(source, insertInto(known));
  else
    pullback.add(
        source,
        insertInto(createZeros(builder, op.getLoc(), op.getSourceType())),
        op.getLoc());
  return success();
}

static LogicalResult pullBackInsertSlice(tensor::InsertSliceOp op,
                                         Pullback &pullback) {
  if (!op.getOffsets().empty() || !op.getSizes().empty() ||
      !op.getStrides().empty())
    return reportDynamic(op);
  OpBuilder &builder = pullback.getBuilder();
  Value dy = pullback.getCotangent(op.getResult());
  if (pullback.isActive(op.getSource()))
    pullback.add(op.getSource(),
                 tensor::ExtractSliceOp::create(
                     builder, op.getLoc(), op.getSourceType(), dy,
                     op.getMixedOffsets(), op.getMixedSizes(),
                     op.getMixedStrides()),
                 op.getLoc());
  // What was in the slice is gone. Where nothing with a derivative was there,
  // nobody asks for its cotangent, and it need not be zero.
  Value start = skipInserts(op.getDest(), StaticSlice(op));
  if (start && !pullback.isActive(start)) {
    pullback.add(op.getDest(), dy, op.getLoc());
  } else if (pullback.isActive(op.getDest())) {
    Value zeros = createZeros(builder, op.getLoc(), op.getSourceType());
    pullback.add(op.getDest(),
                 tensor::InsertSliceOp::create(
                     builder, op.getLoc(), zeros, dy, op.getMixedOffsets(),
                     op.getMixedSizes(), op.getMixedStrides()),
                 op.getLoc());
  }
  return success();
}

static LogicalResult pullBackPad(tensor::PadOp op, Pullback &pullback) {
  if (!op.getLow().empty() || !op.getHigh().empty())
    return reportDynamic(op);
  Value padding = op.getConstantPaddingValue();
  if (!padding || pullback.isActive(padding))
    return op.emitError() << "'tensor.pad' with a value that is not constant "
                             "has no derivative rule";
  OpBuilder &builder = pullback.getBuilder();
  RankedTensorType type = op.getSourceType();
  SmallVector<int64_t> ones(type.getRank(), 1);
  pullback.add(op.getSource(),
               tensor::ExtractSliceOp::create(
                   builder, op.getLoc(), type,
                   pullback.getCotangent(op.getResult()), op.getMixedLowPad(),
                   getAttrs(builder, type.getShape()), getAttrs(builder, ones)),
               op.getLoc());
  return success();
}

static LogicalResult pullBackConcat(tensor::ConcatOp op, Pullback &pullback) {
  OpBuilder &builder = pullback.getBuilder();
  Value dy = pullback.getCotangent(op.getResult());
  int64_t dim = op.getDim();
  SmallVector<int64_t> offsets(op.getResultType().getRank(), 0);
  SmallVector<int64_t> ones(offsets.size(), 1);
  // Every part by its own offset, the last part first, as everywhere.
  for (Value input : op.getInputs())
    offsets[dim] += cast<RankedTensorType>(input.getType()).getDimSize(dim);
  for (Value input : llvm::reverse(op.getInputs())) {
    auto type = cast<RankedTensorType>(input.getType());
    offsets[dim] -= type.getDimSize(dim);
    if (!pullback.isActive(input))
      continue;
    pullback.add(input,
                 tensor::ExtractSliceOp::create(
                     builder, op.getLoc(), type, dy, getAttrs(builder, offsets),
                     getAttrs(builder, type.getShape()),
                     getAttrs(builder, ones)),
                 op.getLoc());
  }
  return success();
}

void penstock::registerTensorRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, tensor::TensorDialect *) {
    context->loadDialect<arith::ArithDialect, linalg::LinalgDialect>();
    tensor::ExpandShapeOp::attachInterface<
        RuleModel<tensor::ExpandShapeOp, pullBackExpand>>(*context);
    tensor::CollapseShapeOp::attachInterface<
        RuleModel<tensor::CollapseShapeOp, pullBackCollapse>>(*context);
    tensor::CastOp::attachInterface<RuleModel<tensor::CastOp, pullBackCast>>(
        *context);
    tensor::ExtractSliceOp::attachInterface<
        RuleModel<tensor::ExtractSliceOp, pullBackExtractSlice>>(*context);
    tensor::InsertSliceOp::attachInterface<
        RuleModel<tensor::InsertSliceOp, pullBackInsertSlice>>(*context);
    tensor::PadOp::attachInterface<RuleModel<tensor::PadOp, pullBackPad>>(
        *context);
    tensor::ConcatOp::attachInterface<
        RuleModel<tensor::ConcatOp, pullBackConcat>>(*context);
  });
}
