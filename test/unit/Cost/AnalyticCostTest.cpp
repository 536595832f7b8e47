//===- AnalyticCostTest.cpp - Costs against counting by hand --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations and bytes of one op of each kind, on odd and distinct sizes.
//===----------------------------------------------------------------------===//

#include "penstock/Cost/AnalyticCost.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace penstock;

namespace {
constexpr const char *kOps = R"mlir(
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
#col = affine_map<(i, j) -> (j)>
func.func @f(%x: tensor<5x7xf32>, %w: tensor<11x7xf32>, %b: tensor<11xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x11xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x11xf32>) -> tensor<5x11xf32>
  %a = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<5x7xf32>, tensor<11x7xf32>) outs(%z : tensor<5x11xf32>) -> tensor<5x11xf32>
  %h = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<5x11xf32>, tensor<11xf32>) outs(%e : tensor<5x11xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %s = arith.addf %p, %q : f32
      %r = arith.maximumf %s, %zero : f32
      linalg.yield %r : f32 } -> tensor<5x11xf32>
  %c = tensor.collapse_shape %h [[0, 1]] : tensor<5x11xf32> into tensor<55xf32>
  return
}
)mlir";

class AnalyticCost : public testing::Test {
protected:
  AnalyticCost() {
    context.loadDialect<arith::ArithDialect, func::FuncDialect,
                        linalg::LinalgDialect, math::MathDialect,
                        tensor::TensorDialect>();
    module = parseSourceString<ModuleOp>(kOps, ParserConfig(&context));
  }

  template <typename OpTy> OpCost costOf() {
    OpCost cost;
    module->walk([&](OpTy op) {
      if (op->getParentOp()->getName().getStringRef() == "func.func")
        cost = getAnalyticCost(op);
    });
    return cost;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(AnalyticCost, ContractionCountsMultipliesAndAdds) {
  OpCost cost = costOf<linalg::ContractOp>();
  EXPECT_TRUE(cost.contraction);
  EXPECT_EQ(cost.flops, 2.0 * 5 * 7 * 11);
  // Both operands, what it accumulates into, and the result.
  EXPECT_EQ(cost.bytes, 4.0 * (5 * 7 + 11 * 7 + 2 * 5 * 11));
}

TEST_F(AnalyticCost, ElementwiseCountsItsBodyPerElement) {
  OpCost cost = costOf<linalg::GenericOp>();
  EXPECT_FALSE(cost.contraction);
  EXPECT_EQ(cost.flops, 2.0 * 5 * 11);
  EXPECT_EQ(cost.bytes, 4.0 * (3 * 5 * 11 + 11));
}

TEST_F(AnalyticCost, NamingMemoryCostsNothing) {
  for (const OpCost &cost :
       {costOf<tensor::EmptyOp>(), costOf<linalg::FillOp>(),
        costOf<tensor::CollapseShapeOp>(), costOf<arith::ConstantOp>()}) {
    EXPECT_EQ(cost.flops, 0);
    EXPECT_EQ(cost.bytes, 0);
  }
}

TEST_F(AnalyticCost, SecondsAreThoseOfTheSlowerResource) {
  MachineRates rates{/*flopsPerSecond=*/100, /*bytesPerSecond=*/10};
  OpCost product{/*flops=*/1000, /*bytes=*/20, /*contraction=*/true};
  EXPECT_DOUBLE_EQ(getForwardSeconds(product, rates), 10);
  product.bytes = 200;
  EXPECT_DOUBLE_EQ(getForwardSeconds(product, rates), 20);
  // Outside of products only bytes count.
  OpCost map{/*flops=*/1000, /*bytes=*/20, /*contraction=*/false};
  EXPECT_DOUBLE_EQ(getForwardSeconds(map, rates), 2);
  EXPECT_DOUBLE_EQ(getTrainingSeconds(map, rates), 6);
}

TEST_F(AnalyticCost, BytesOfTypes) {
  Builder builder(&context);
  EXPECT_EQ(getTypeBytes(RankedTensorType::get({3, 5}, builder.getF64Type())),
            120);
  EXPECT_EQ(getTypeBytes(RankedTensorType::get({3}, builder.getI1Type())), 3);
  EXPECT_EQ(getTypeBytes(builder.getF32Type()), 0);
}
} // namespace
