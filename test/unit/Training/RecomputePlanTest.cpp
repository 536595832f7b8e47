//===- RecomputePlanTest.cpp - What is dropped against all there is -------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random small functions, every budget: plans against the best of all sets of
// ops that could run again, whose bytes and seconds are counted here anew.
//===----------------------------------------------------------------------===//

#include "passes/Training/RecomputePlan.h"

#include "penstock/Cost/AnalyticCost.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace mlir;
using namespace penstock;

namespace {

struct Counted {
  int64_t bytes = 0;
  double seconds = 0;
};

/// A function of vectors, layer by layer: products, maps and sums.
class Function {
public:
  Function(MLIRContext &context, unsigned seed) : random(seed) {
    module = parseSourceString<ModuleOp>(write(), ParserConfig(&context));
    auto function = *module->getOps<func::FuncOp>().begin();
    problem.block = &function.front();
    problem.data.insert(function.getArgument(0));
    for (Operation &op : problem.block->without_terminator()) {
      if (isa<tensor::EmptyOp>(op))
        continue;
      ops.push_back(&op);
      if (pick(0, 3) > 0)
        problem.residuals.insert(op.getResult(0));
    }
    if (pick(0, 1))
      problem.residuals.insert(function.getArgument(0));
  }

  /// Counts what it takes to run what is needed of these ops, by their
  /// positions.
  Counted count(unsigned runs) const;
  /// Ops that take time.
  std::vector<Operation *> ops;
  unsigned positionsOf(ArrayRef<Operation *> runs) const {
    unsigned result = 0;
    for (auto [index, op] : llvm::enumerate(ops))
      if (llvm::is_contained(runs, op))
        result |= 1u << index;
    return result;
  }

  RecomputeProblem problem;

private:
  int pick(int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  }
  std::string write();

  std::mt19937 random;
  OwningOpRef<ModuleOp> module;
};

} // namespace

std::string Function::write() {
  auto vector = [](int width) {
    return "tensor<" + std::to_string(width) + "xf32>";
  };
  std::vector<int> widths = {16 * pick(1, 40)};
  std::string arguments = "%v0: " + vector(widths[0]), body;
  for (int layer = 1; layer <= 9; ++layer) {
    std::string name = std::to_string(layer);
    int from = pick(std::max(0, layer - 3), layer - 1), width = widths[from];
    std::string input = "%v" + std::to_string(from), type = vector(width);
    auto same = llvm::find(widths, width) - widths.begin();
    switch (pick(0, 3)) {
    case 0:
      body += "%v" + name + " = math.tanh " + input + " : " + type + "\n";
      break;
    case 1:
      body += "%v" + name + " = arith.addf " + input + ", %v" +
              std::to_string(same) + " : " + type + "\n";
      break;
    default: {
      int made = 16 * pick(1, 40);
      std::string matrix = "tensor<" + std::to_string(made) + "x" +
                           std::to_string(width) + "xf32>";
      arguments += ", %w" + name + ": " + matrix;
      body += "%e" + name + " = tensor.empty() : " + vector(made) + "\n%v" +
              name + " = linalg.matvec ins(%w" + name + ", " + input + " : " +
              matrix + ", " + type + ") outs(%e" + name + " : " + vector(made) +
              ") -> " + vector(made) + "\n";
      width = made;
    }
    }
    widths.push_back(width);
  }
  return "func.func @f(" + arguments + ") {\n" + body + "return\n}\n";
}

Counted Function::count(unsigned runs) const {
  llvm::DenseSet<Value> stored;
  llvm::SmallVector<Operation *> work;
  llvm::DenseSet<Operation *> ran;
  auto need = [&](Value value) {
    Operation *source = value.getDefiningOp();
    if (source && (isa<tensor::EmptyOp>(source) ||
                   runs >> (llvm::find(ops, source) - ops.begin()) & 1)) {
      if (ran.insert(source).second)
        work.push_back(source);
    } else if (source || problem.data.contains(value)) {
      stored.insert(value);
    }
  };
  for (Value value : problem.residuals)
    need(value);
  Counted result;
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    result.seconds += getForwardSeconds(getAnalyticCost(op), MachineRates());
    for (Value operand : op->getOperands())
      need(operand);
  }
  for (Value value : stored)
    result.bytes += int64_t(getTypeBytes(value.getType()));
  return result;
}

TEST(RecomputePlan, IsTheCheapestThatFits) {
  MLIRContext context;
  context.loadDialect<arith::ArithDialect, func::FuncDialect,
                      linalg::LinalgDialect, math::MathDialect,
                      tensor::TensorDialect>();
  int plans = 0, refused = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Function function(context, seed);
    // 1. Every set of ops that could run.
    std::vector<Counted> all;
    for (unsigned runs = 0; runs < 1u << function.ops.size(); ++runs)
      all.push_back(function.count(runs));
    std::set<int64_t> budgets = {0};
    for (const Counted &counted : all)
      budgets.insert(counted.bytes);

    // 2. The best for each budget.
    int64_t fewest = *std::next(budgets.begin());
    for (int64_t budget : budgets) {
      std::optional<double> least;
      for (const Counted &counted : all)
        if (counted.bytes <= budget)
          least = std::min(least.value_or(counted.seconds), counted.seconds);
      RecomputePlan plan = planRecomputeWithin(function.problem, budget);
      Counted counted = function.count(function.positionsOf(plan.ops));
      // It says what it is.
      EXPECT_EQ(counted.bytes, getStoredBytes(plan.stored.getArrayRef()));
      EXPECT_NEAR(counted.seconds, plan.seconds, 1e-15);
      if (!least) {
        EXPECT_EQ(counted.bytes, fewest) << "seed " << seed;
        ++refused;
        continue;
      }
      EXPECT_LE(counted.bytes, budget) << "seed " << seed;
      EXPECT_LE(counted.seconds, *least * (1 + 1e-9))
          << "seed " << seed << ", budget " << budget;
      // What is proved is true, and says that nothing is cheaper.
      EXPECT_LE(plan.leastSeconds, *least * (1 + 1e-9));
      EXPECT_GE(plan.leastSeconds, plan.seconds * (1 - 1e-9));
      ++plans;
    }
  }
  RecordProperty("plans", plans);
  RecordProperty("refused", refused);
  EXPECT_GT(plans, 2000);
  EXPECT_GT(refused, 30);
}
