//===- PlannedCostTest.cpp - Costs by what will run -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Convolutions by Winograd's algorithm where the library takes it, products and
// loops by their traffic, gradients where they are needed: by hand, on a CPU.
//===----------------------------------------------------------------------===//

#include "penstock/Target/PlannedCost.h"

#include "dialects/Nn/Nn.h"
#include "penstock/Target/Cpu/CpuTarget.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
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
func.func @f(%x: tensor<8x64x32x32xf32>, %w: tensor<48x64x3x3xf32>, %r: tensor<5x7xf32>, %v: tensor<11x7xf32>, %p: tensor<2x3x18x16xf32>, %ra: tensor<33x192xf32>, %va: tensor<256x192xf32>, %xc: tensor<8x64x4x4xf32>, %wc: tensor<96x64x1x1xf32>) {
  %o = tensor.empty() : tensor<8x48x32x32xf32>
  %c = nn.conv %x, %w outs(%o) strides [1, 1] dilations [1, 1] pads [1, 1, 1, 1] groups(1) : tensor<8x64x32x32xf32>, tensor<48x64x3x3xf32>, tensor<8x48x32x32xf32> -> tensor<8x48x32x32xf32>
  %e = tensor.empty() : tensor<5x11xf32>
  %a = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%r, %v : tensor<5x7xf32>, tensor<11x7xf32>) outs(%e : tensor<5x11xf32>) -> tensor<5x11xf32>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<5x11xf32>) outs(%e : tensor<5x11xf32>) {
    ^bb0(%q: f32, %z: f32):
      %s = arith.addf %q, %q : f32
      linalg.yield %s : f32 } -> tensor<5x11xf32>
  %m, %i = nn.max_pool %p window [3, 2] strides [3, 2] dilations [1, 1] pads [0, 0] : tensor<2x3x18x16xf32> -> tensor<2x3x6x8xf32>, tensor<2x3x6x8xi32>
  %oc = tensor.empty() : tensor<8x96x4x4xf32>
  %cc = nn.conv %xc, %wc outs(%oc) strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] groups(1) : tensor<8x64x4x4xf32>, tensor<96x64x1x1xf32>, tensor<8x96x4x4xf32> -> tensor<8x96x4x4xf32> loc("small")
  %ea = tensor.empty() : tensor<33x256xf32>
  %aa = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%ra, %va : tensor<33x192xf32>, tensor<256x192xf32>) outs(%ea : tensor<33x256xf32>) -> tensor<33x256xf32> loc("wide")
  return
}
)mlir";

class PlannedCosts : public testing::Test {
protected:
  PlannedCosts() {
    DialectRegistry registry;
    registerCpuTarget(registry);
    registry.insert<arith::ArithDialect, func::FuncDialect,
                    linalg::LinalgDialect, nn::NnDialect,
                    pipeline::PipelineDialect, tensor::TensorDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = parseSourceString<ModuleOp>(kOps, ParserConfig(&context));
  }

  /// The op of this name, or the first of its kind.
  template <typename OpTy> Operation *find(StringRef name = "") {
    Operation *found = nullptr;
    module->walk([&](OpTy op) {
      auto own = dyn_cast<NameLoc>(op->getLoc());
      if (!found && (own ? own.getName().getValue() : "") == name)
        found = op;
    });
    return found;
  }

  /// On a CPU of the features that all of this kind have.
  PlannedCost getCosts(StringRef march = "x86-64-v3") {
    (*module)->setAttr(pipeline::kPlanTargetAttr,
                       cpu::TargetAttr::get(&context, /*threads=*/1, march));
    return PlannedCost::get(*module);
  }

  static bool never(Value) { return false; }
  static bool always(Value) { return true; }
  /// Treats the second operand as a parameter that trains.
  static auto isWeight(Operation *op) {
    return
        [weight = op->getOperand(1)](Value value) { return value == weight; };
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(PlannedCosts, WinogradTakesProductsOfTilesAndTransforms) {
  ASSERT_TRUE(module);
  PlannedCost costs = getCosts();
  Operation *conv = find<nn::ConvOp>();
  // 8 x 8 x 8 tiles of 6 x 6 points; tensors once, transformed ones twice.
  double tiles = 512, products = 2 * tiles * 36 * 64 * 48;
  double plain = 4.0 * (8 * 64 * 1024 + 8 * 48 * 1024 + 48 * 64 * 9);
  double transformed = 4.0 * 36 * (tiles * (64 + 48) + 64 * 48);
  double forward = products / 100e9 + (plain + 2 * transformed) * 1.65 / 80e9;
  OpSeconds seconds = costs.getSeconds(conv, never, never);
  EXPECT_NEAR(seconds.forward, forward, 1e-9);
  EXPECT_EQ(seconds.backward, 0);
  // What enters the model has no gradient.
  OpSeconds first = costs.getSeconds(conv, isWeight(conv), isWeight(conv));
  OpSeconds later = costs.getSeconds(conv, isWeight(conv), always);
  EXPECT_NEAR(first.backward, forward, 1e-9);
  EXPECT_NEAR(later.backward, 2 * forward, 1e-9);
  EXPECT_NEAR(costs.getSeconds(conv), forward, 1e-9);

  // By the definition, where that is asked for.
  (*module)->setAttr(pipeline::kDirectConvolutionAttr, UnitAttr::get(&context));
  double weights = 4.0 * 48 * 64 * 9;
  EXPECT_NEAR(costs.getSeconds(conv),
              2.0 * 8 * 48 * 1024 * 64 * 9 / 100e9 + (plain - weights) / 80e9 +
                  weights / 20e9,
              1e-9);
}

TEST_F(PlannedCosts, WeightsComeFromMemoryAndTheRestFromCaches) {
  PlannedCost costs = getCosts();
  Operation *product = find<linalg::ContractOp>();
  double forward = 2.0 * 5 * 7 * 11 / 100e9 + 4.0 * (5 * 7 + 5 * 11) / 80e9 +
                   4.0 * 11 * 7 / 20e9;
  OpSeconds seconds =
      costs.getSeconds(product, isWeight(product), isWeight(product));
  EXPECT_NEAR(seconds.forward, forward, 1e-15);
  EXPECT_NEAR(seconds.backward, forward, 1e-15);

  // What is not written yet is not read.
  OpSeconds loop = costs.getSeconds(find<linalg::GenericOp>(), never, always);
  EXPECT_NEAR(loop.forward, 2 * 4.0 * 5 * 11 / 80e9, 1e-15);
  EXPECT_NEAR(loop.backward, 1.5 * loop.forward, 1e-15);
}

TEST_F(PlannedCosts, MaximaThatFillNoVectorAreFoundOneByOne) {
  PlannedCost costs = getCosts();
  Operation *pool = find<nn::MaxPoolOp>();
  double once = 3 * 4.0 * (2 * 3 * 18 * 16 + 2 * 2 * 3 * 6 * 8) / 80e9;
  OpSeconds seconds = costs.getSeconds(pool, never, always);
  EXPECT_NEAR(seconds.forward, once + 2 * 3 * 6 * 8 * 6 * 320 / 80e9, 1e-12);
  EXPECT_NEAR(seconds.backward, 1.5 * once, 1e-12);
}

TEST_F(PlannedCosts, HalvesOfVectorsTakeLongerToTransform) {
  Operation *conv = find<nn::ConvOp>();
  auto getForward = [&](StringRef march) {
    return getCosts(march).getSeconds(conv, never, never).forward;
  };
  double plain = 4.0 * (8 * 64 * 1024 + 8 * 48 * 1024 + 48 * 64 * 9),
         transformed = 4.0 * 36 * (512 * (64 + 48) + 64 * 48);
  EXPECT_NEAR(getForward("znver4") - getForward("x86-64-v3"),
              (2.8 - 1.65) * (plain + 2 * transformed) / 80e9, 1e-9);
}

TEST_F(PlannedCosts, VectorsAreAsLongAsThoseOfTheProcessor) {
  Operation *pool = find<nn::MaxPoolOp>();
  for (auto [march, lanes, atATime] : {std::tuple("x86-64-v4", 16, 16),
                                       {"znver4", 16, 8},
                                       {"x86-64-v3", 8, 8},
                                       {"x86-64-v2", 4, 4}}) {
    PlannedCost costs = getCosts(march);
    EXPECT_EQ(costs.getRates().flopsPerSecond, 12.5e9 * atATime) << march;
    EXPECT_EQ(costs.getRates().cachedBytesPerSecond, 80e9) << march;
    OpSeconds seconds = costs.getSeconds(pool, never, always);
    EXPECT_NEAR(seconds.forward - seconds.backward / 1.5,
                2 * 3 * 6 * 8 * 6 * 40.0 * lanes / 80e9, 1e-12)
        << march;
  }
}

TEST_F(PlannedCosts, UpdatesMoveWeightsAndPackThem) {
  ASSERT_TRUE(module);
  Operation *product = find<linalg::ContractOp>("wide");
  auto getUpdate = [&](int64_t microbatches, PlannedCost::ValueFilter filter) {
    setPlannedUpdate(*module, {microbatches, /*passes=*/6});
    return getCosts().getSeconds(product, isWeight(product), filter).update;
  };
  // Only the forward reads weights by columns, and transposes them in each
  // call: panels of them are read and written once, from four calls on.
  double once = 2 * 4.0 * 192 * 256 / 20e9;
  EXPECT_EQ(getUpdate(3, always), 0);
  EXPECT_GE(getUpdate(4, always), once);
  EXPECT_LT(getUpdate(4, always), 1.2 * once);
  EXPECT_EQ(getUpdate(64, never), getUpdate(4, always));
  setPlannedUpdate(*module, {4, 6});
  EXPECT_EQ(getCosts().getSeconds(product, never, always).update, 0);
  // The rest of an update goes by the bytes of the weights.
  EXPECT_NEAR(getCosts().getUpdateSeconds(1e6), 6e6 / 20e9, 1e-12);
  // Few weights, or few rows, are taken as they are.
  Operation *small = find<linalg::ContractOp>();
  EXPECT_EQ(getCosts().getSeconds(small, isWeight(small), always).update, 0);
  Operation *conv = find<nn::ConvOp>("small");
  EXPECT_EQ(getCosts().getSeconds(conv, isWeight(conv), always).update, 0);
}

TEST_F(PlannedCosts, WithoutATargetTheDefinitionCounts) {
  PlannedCost costs = PlannedCost::get(*module);
  Operation *conv = find<nn::ConvOp>();
  EXPECT_DOUBLE_EQ(costs.getSeconds(conv),
                   getForwardSeconds(getAnalyticCost(conv), MachineRates()));
}
} // namespace
