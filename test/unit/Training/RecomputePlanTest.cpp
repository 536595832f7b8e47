//===- RecomputePlanTest.cpp - What is dropped against all there is -------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random small functions, every budget: plans against the best of all sets of
// residuals, whose bytes and seconds are counted here anew.
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
    for (Operation &op : problem.block->without_terminator())
      if (!isa<tensor::EmptyOp>(op) && pick(0, 3) > 0)
        problem.residuals.insert(op.getResult(0));
    if (pick(0, 1))
      problem.residuals.insert(function.getArgument(0));
  }

  /// What it is to drop these residuals, by their positions.
  Counted count(unsigned dropped) const;
  std::vector<unsigned> getDroppable() const {
    std::vector<unsigned> result;
    for (auto [index, value] : llvm::enumerate(problem.residuals))
      if (value.getDefiningOp())
        result.push_back(index);
    return result;
  }
  unsigned positionsOf(const llvm::SetVector<Value> &values) const {
    unsigned result = 0;
    for (auto [index, value] : llvm::enumerate(problem.residuals))
      if (values.contains(value))
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

Counted Function::count(unsigned dropped) const {
  llvm::DenseSet<Value> stored;
  llvm::SmallVector<Operation *> work;
  llvm::DenseSet<Operation *> ran;
  auto run = [&](Operation *op) {
    if (ran.insert(op).second)
      work.push_back(op);
  };
  for (auto [index, value] : llvm::enumerate(problem.residuals))
    if (dropped >> index & 1)
      run(value.getDefiningOp());
    else
      stored.insert(value);
  Counted result;
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    result.seconds += getForwardSeconds(getAnalyticCost(op), MachineRates());
    for (Value operand : op->getOperands()) {
      Operation *source = operand.getDefiningOp();
      if (!source && problem.data.contains(operand))
        stored.insert(operand);
      else if (source && !stored.contains(operand))
        run(source);
    }
  }
  for (Value value : stored)
    result.bytes += int64_t(getTypeBytes(value.getType()));
  return result;
}

TEST(RecomputePlan, FitsAndIsCheapWhereverSomethingDoes) {
  MLIRContext context;
  context.loadDialect<arith::ArithDialect, func::FuncDialect,
                      linalg::LinalgDialect, math::MathDialect,
                      tensor::TensorDialect>();
  int plans = 0, cheapest = 0, missed = 0;
  double sum = 0, worst = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Function function(context, seed);
    // 1. Every set that could be dropped.
    std::vector<unsigned> droppable = function.getDroppable();
    std::vector<Counted> all;
    for (unsigned subset = 0; subset < 1u << droppable.size(); ++subset) {
      unsigned dropped = 0;
      for (auto [bit, index] : llvm::enumerate(droppable))
        dropped |= (subset >> bit & 1) << index;
      all.push_back(function.count(dropped));
    }
    std::set<int64_t> budgets = {0};
    for (const Counted &counted : all)
      budgets.insert(counted.bytes);

    // 2. The best for each budget.
    for (int64_t budget : budgets) {
      std::optional<double> least;
      for (const Counted &counted : all)
        if (counted.bytes <= budget)
          least = std::min(least.value_or(counted.seconds), counted.seconds);
      RecomputePlan plan = planRecomputeWithin(function.problem, budget);
      unsigned dropped = function.positionsOf(plan.dropped);
      Counted counted = function.count(dropped);
      // It says what it is.
      EXPECT_EQ(counted.bytes, getStoredBytes(plan.stored.getArrayRef()));
      EXPECT_NEAR(counted.seconds, plan.seconds, 1e-15);
      if (counted.bytes > budget) {
        missed += least.has_value();
        continue;
      }
      ASSERT_TRUE(least);
      // Nothing is recomputed that the budget has room for.
      for (unsigned index : droppable)
        if (dropped >> index & 1) {
          Counted without = function.count(dropped & ~(1u << index));
          EXPECT_TRUE(without.bytes > budget ||
                      without.seconds >= counted.seconds - 1e-15)
              << "seed " << seed << ", budget " << budget;
        }
      ++plans;
      cheapest += counted.seconds <= *least * (1 + 1e-9);
      double ratio =
          *least > 0 ? counted.seconds / *least : 1.0 + (counted.seconds > 0);
      sum += ratio;
      worst = std::max(worst, ratio);
    }
  }
  RecordProperty("plans", plans);
  RecordProperty("cheapest", cheapest);
  RecordProperty("mean", std::to_string(sum / plans));
  RecordProperty("worst", std::to_string(worst));
  RecordProperty("missed", missed);
  // Values are changed one by one: where several must be at a time, the best is
  // not found.
  EXPECT_LE(missed, plans / 100);
  EXPECT_GE(cheapest, plans * 8 / 10);
  EXPECT_LE(sum / plans, 1.05);
}
