//===- AnalyticCost.cpp - Cost of ops without measuring them --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See AnalyticCost.h. A contraction costs two operations per point of its
// iteration space; other structured ops one per op in the body and point.
//===----------------------------------------------------------------------===//

#include "penstock/Cost/AnalyticCost.h"

#include "dialects/Nn/Convolution.h"
#include "penstock/Support/ByteSize.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <algorithm>

using namespace mlir;

double penstock::getTypeBytes(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() ||
      !tensor.getElementType().isIntOrFloat())
    return 0;
  return static_cast<double>(getByteSize(tensor));
}

/// Points of the iteration space, 0 when it is not static.
static double getIterationPoints(linalg::LinalgOp op) {
  double points = 1;
  for (int64_t size : op.getStaticLoopRanges())
    points *= ShapedType::isDynamic(size) ? 0.0 : static_cast<double>(size);
  return points;
}

penstock::OpCost penstock::getAnalyticCost(Operation *op) {
  OpCost cost;
  if (op->hasTrait<OpTrait::ConstantLike>() ||
      isa<tensor::EmptyOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp,
          tensor::CastOp, linalg::FillOp>(op))
    return cost;
  for (Type type : op->getOperandTypes())
    cost.bytes += getTypeBytes(type);
  for (Type type : op->getResultTypes())
    cost.bytes += getTypeBytes(type);
  if (auto contraction = dyn_cast<linalg::ContractOp>(op)) {
    cost.contraction = true;
    cost.flops = 2 * getIterationPoints(
                         cast<linalg::LinalgOp>(contraction.getOperation()));
  } else if (auto conv = penstock::nn::Convolution::match(op)) {
    cost.contraction = true;
    cost.flops = 2 * conv->getProducts();
  } else if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
    auto body = structured.getBlock()->without_terminator();
    cost.flops = getIterationPoints(structured) *
                 static_cast<double>(std::distance(body.begin(), body.end()));
  } else {
    // Composites (softmax, cross-entropy): a few operations per element read.
    cost.flops = cost.bytes;
  }
  return cost;
}

double penstock::getForwardSeconds(const OpCost &cost,
                                   const MachineRates &rates) {
  double products = cost.contraction ? cost.flops / rates.flopsPerSecond : 0;
  if (rates.cachedBytesPerSecond > 0)
    return products +
           (cost.bytes - cost.memoryBytes) / rates.cachedBytesPerSecond +
           cost.memoryBytes / rates.bytesPerSecond;
  return std::max(products, cost.bytes / rates.bytesPerSecond);
}

double penstock::getTrainingSeconds(const OpCost &cost,
                                    const MachineRates &rates) {
  return 3 * getForwardSeconds(cost, rates);
}
