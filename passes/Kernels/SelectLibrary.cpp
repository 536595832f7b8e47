//===- SelectLibrary.cpp - Contractions become library calls --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Transposes and batches are strides, so nothing is ever rearranged; a product
// into a buffer that was just set to zero need not read it. What the library
// cannot do, or only slowly, stays a contraction and becomes loops.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/Pipeline.h"
#include "passes/Kernels/BufferRange.h"
#include "passes/Kernels/Passes.h"
#include "penstock/Target/Cpu/LibraryScratch.h"
#include "penstock/Target/Cpu/MatrixProduct.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINESELECTLIBRARY
#include "passes/Kernels/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

/// The product that `contract` is; a reason where the library has none.
FailureOr<MatrixProduct> readProduct(linalg::ContractOp contract,
                                     std::string &reason) {
  auto op = cast<linalg::LinalgOp>(contract.getOperation());
  SmallVector<SmallVector<int64_t>> strides(op->getNumOperands());
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    SmallVector<int64_t> &steps = strides[operand.getOperandNumber()];
    int64_t offset;
    if (!type || !type.getElementType().isF32() ||
        failed(type.getStridesAndOffset(steps, offset)) ||
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
  using PipelineSelectLibraryBase::PipelineSelectLibraryBase;

  void select(linalg::ContractOp contract) {
    std::string reason;
    FailureOr<MatrixProduct> product = readProduct(contract, reason);
    if (failed(product))
      return (void)(contract.emitRemark("becomes loops: ") << reason);
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
    auto gemm = pipeline::GemmOp::create(
        builder, contract.getLoc(), a, b, c, sizes,
        strides(product->left, m, k), strides(product->right, k, n),
        strides(MatrixProduct::C, m, n), /*accumulate=*/!fill,
        /*panels=*/nullptr, /*scratch=*/nullptr);

    if (failed(gemmScratchBytes(gemm, threads, &reason))) {
      contract.emitRemark("becomes loops: ") << reason;
      gemm.erase();
      return;
    }
    if (fill)
      fill.erase();
    contract.erase();
  }

  void runOnOperation() override {
    SmallVector<linalg::ContractOp> contracts;
    getOperation().walk([&](linalg::ContractOp contract) {
      if (contract.hasPureBufferSemantics())
        contracts.push_back(contract);
    });
    for (linalg::ContractOp contract : contracts)
      select(contract);
  }
};

} // namespace
