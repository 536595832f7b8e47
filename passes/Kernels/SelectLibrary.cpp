//===- SelectLibrary.cpp - Products and convolutions become library calls -===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Transposes and batches are strides, so nothing is ever rearranged; a product
// into a buffer that was just set to zero need not read it. A product that the
// library of the target cannot do, or only slowly, stays a contraction and
// becomes loops; for convolutions that is decided earlier, on tensors.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Convolution.h"
#include "dialects/Pipeline/Pipeline.h"
#include "passes/Kernels/BufferRange.h"
#include "passes/Kernels/Passes.h"
#include "passes/Kernels/Widening.h"
#include "penstock/Target/MatrixProduct.h"
#include "penstock/Target/Target.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINESELECTLIBRARY
#include "passes/Kernels/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

static_assert(int(nn::Convolution::Forward) ==
                  int(kernel::ConvolutionKind::Forward) &&
              int(nn::Convolution::InputGrad) ==
                  int(kernel::ConvolutionKind::InputGrad) &&
              int(nn::Convolution::WeightGrad) ==
                  int(kernel::ConvolutionKind::WeightGrad));

namespace {

/// The product that `contract` is; a reason where it is none that a library
/// could compute.
FailureOr<MatrixProduct> readProduct(linalg::ContractOp contract,
                                     std::string &reason) {
  auto op = cast<linalg::LinalgOp>(contract.getOperation());
  SmallVector<SmallVector<int64_t>> strides(op->getNumOperands());
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    SmallVector<int64_t> &steps = strides[operand.getOperandNumber()];
    int64_t offset;
    // Factors may be bf16.
    bool isKnown =
        type && (type.getElementType().isF32() ||
                 (isNarrowProduct(contract) && op.isDpsInput(&operand)));
    if (!isKnown || failed(type.getStridesAndOffset(steps, offset)) ||
        llvm::is_contained(steps, ShapedType::kDynamic)) {
      reason = "not an f32 product of strided matrices";
      return failure();
    }
  }
  return readMatrixProduct(op.getStaticLoopRanges(), op.getIndexingMapsArray(),
                           strides, &reason);
}

/// The fill with zero that `contract` adds to, when nothing lies between.
linalg::FillOp findZeroFill(linalg::ContractOp contract) {
  Value output = contract.getDpsInits().front();
  BufferRange range = BufferRange::of(output);
  for (Operation *op = contract->getPrevNode(); op; op = op->getPrevNode()) {
    bool touches = false;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        touches |= isa<MemRefType>(operand.getType()) &&
                   BufferRange::of(operand).overlaps(range);
    });
    if (!touches || isa<ViewLikeOpInterface>(op))
      continue;
    auto fill = dyn_cast<linalg::FillOp>(op);
    if (!fill || fill.getDpsInits().front() != output ||
        !matchPattern(fill.getInputs().front(), m_AnyZeroFloat()))
      return {};
    return fill;
  }
  return {};
}

struct SelectLibraryPass
    : penstock::impl::PipelineSelectLibraryBase<SelectLibraryPass> {
  void select(linalg::ContractOp contract) {
    std::string reason;
    FailureOr<MatrixProduct> product = readProduct(contract, reason);
    if (failed(product))
      return (void)(contract.emitRemark("becomes loops: ") << reason);
    TargetAttrInterface attribute = pipeline::getTarget(contract);
    const Target *target = attribute ? Target::get(attribute) : nullptr;
    if (!target)
      return (void)contract.emitRemark("becomes loops: no target is known");
    const MatrixProduct::Dimension &m = product->m, &n = product->n,
                                   &k = product->k;
    Value a = contract->getOperand(product->left),
          b = contract->getOperand(product->right),
          c = contract.getDpsInits().front();

    OpBuilder builder(contract);
    auto strides = [&](MatrixProduct::Operand operand,
                       const MatrixProduct::Dimension &row,
                       const MatrixProduct::Dimension &column) {
      SmallVector<int64_t> result;
      for (const MatrixProduct::Dimension &dimension : product->batch)
        result.push_back(dimension.strides[operand]);
      result.push_back(row.strides[operand]);
      result.push_back(column.strides[operand]);
      return result;
    };
    SmallVector<int64_t> sizes;
    for (const MatrixProduct::Dimension &dimension : product->batch)
      sizes.push_back(dimension.size);
    sizes.append({m.size, n.size, k.size});
    linalg::FillOp fill = findZeroFill(contract);
    auto gemm = kernel::GemmOp::create(
        builder, contract.getLoc(), /*pending=*/Type(), a, b, c,
        /*packed=*/Value(), /*bias=*/Value(), /*relu=*/false, sizes,
        strides(product->left, m, k), strides(product->right, k, n),
        strides(MatrixProduct::C, m, n), /*accumulate=*/!fill,
        /*config=*/nullptr, /*scratch=*/nullptr);

    FailureOr<LibraryPlan> plan = target->plan(attribute, gemm, reason);
    if (failed(plan)) {
      contract.emitRemark("becomes loops: ") << reason;
      gemm.erase();
      return;
    }
    gemm.setConfigAttr(plan->config);
    if (fill)
      fill.erase();
    contract.erase();
  }

  LogicalResult select(Operation *op, const nn::Convolution &conv) {
    OpBuilder builder(op);
    auto call = kernel::ConvOp::create(
        builder, op->getLoc(), static_cast<kernel::ConvolutionKind>(conv.kind),
        conv.input, conv.weights, conv.output, /*packed=*/Value(), conv.strides,
        conv.dilations, conv.pads, conv.groups, /*config=*/nullptr,
        /*scratch=*/nullptr);
    FailureOr<LibraryPlan> plan = planCall(call);
    if (failed(plan))
      return failure();
    call.setConfigAttr(plan->config);
    op->erase();
    return success();
  }

  void runOnOperation() override {
    SmallVector<linalg::ContractOp> contracts;
    SmallVector<Operation *> convolutions;
    getOperation().walk([&](Operation *op) {
      auto contract = dyn_cast<linalg::ContractOp>(op);
      if (contract && contract.hasPureBufferSemantics())
        contracts.push_back(contract);
      if (nn::Convolution::match(op) && op->getNumResults() == 0)
        convolutions.push_back(op);
    });
    for (linalg::ContractOp contract : contracts)
      select(contract);
    for (Operation *op : convolutions)
      if (failed(select(op, *nn::Convolution::match(op))))
        return signalPassFailure();
  }
};

} // namespace
