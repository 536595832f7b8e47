//===- OverwriteGradients.cpp - Nothing to add to with one microbatch -----===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An update that uses the gradient of a single microbatch needs no sum: setting
// it to zero, and reading it in order to add, are two passes over every weight.
// Zero takes the place of the gradient so far inside the function, where a
// product that begins with it becomes one that overwrites.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/Signatures.h"
#include "passes/Training/ForwardStage.h"
#include "passes/Training/GradientSum.h"
#include "passes/Training/Passes.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEOVERWRITEGRADIENTS
#include "passes/Training/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

/// A gradient as a backward task adds to it: read, argument, write.
struct Sum {
  ReadOp read;
  func::CallOp call;
  unsigned argument;
};

bool makesGradients(TaskOp task) {
  return task.getKind() == TaskKind::Backward ||
         task.getKind() == TaskKind::WeightGrad;
}

/// How the one task that makes `gradient` adds to it; nothing where it is not
/// of the usual form.
std::optional<Sum> findSum(ModuleOp module, VariableOp gradient) {
  Attribute name = FlatSymbolRefAttr::get(gradient);
  std::optional<Sum> sum;
  for (auto task : module.getOps<TaskOp>())
    for (auto read : task.getBody().getOps<ReadOp>()) {
      if (read.getVariableAttr() != name)
        continue;
      if (sum || !makesGradients(task) || !read.getValue().hasOneUse())
        return std::nullopt;
      OpOperand &use = *read.getValue().use_begin();
      auto call = dyn_cast<func::CallOp>(use.getOwner());
      if (!call)
        return std::nullopt;
      sum = Sum{read, call, use.getOperandNumber()};
    }
  return sum;
}

/// Zero of an elementwise op that adds to it is a constant of its body.
void takeZero(OpBuilder &builder, OpOperand &use, Value zero) {
  auto op = dyn_cast<linalg::GenericOp>(use.getOwner());
  if (!op || op.getNumParallelLoops() != op.getNumLoops() ||
      !op.isDpsInit(&use))
    return;
  op.getMatchingBlockArgument(&use).replaceAllUsesWith(zero);
  auto type = cast<RankedTensorType>(use.get().getType());
  builder.setInsertionPoint(op);
  use.set(tensor::EmptyOp::create(builder, op.getLoc(), type, ValueRange()));
}

/// Counts the calls of each function. Modules of other lines have their own.
llvm::DenseMap<StringAttr, int64_t> countCalls(ModuleOp module) {
  llvm::DenseMap<StringAttr, int64_t> counts;
  for (Operation &op : *module.getBody())
    if (!isa<ModuleOp>(op))
      op.walk(
          [&](func::CallOp call) { ++counts[call.getCalleeAttr().getAttr()]; });
  return counts;
}

/// The function computes its gradient from nothing instead of argument
/// `number`.
void beginWithZero(func::FuncOp function, unsigned number) {
  BlockArgument argument = function.getArgument(number);
  auto type = cast<RankedTensorType>(argument.getType());
  Block &body = function.front();
  Operation *first = nullptr;
  for (Operation *user : argument.getUsers()) {
    Operation *ancestor = body.findAncestorOpInBlock(*user);
    if (!first || ancestor->isBeforeInBlock(first))
      first = ancestor;
  }
  if (first) {
    OpBuilder builder(first);
    Location loc = first->getLoc();
    Value zero = arith::ConstantOp::create(
        builder, loc, builder.getZeroAttr(type.getElementType()));
    Value empty = tensor::EmptyOp::create(builder, loc, type, ValueRange());
    Value zeros =
        linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
    argument.replaceAllUsesWith(zeros);
    for (OpOperand &use : llvm::make_early_inc_range(zeros.getUses()))
      takeZero(builder, use, zero);
    if (zeros.use_empty())
      zeros.getDefiningOp()->erase();
    if (empty.use_empty())
      empty.getDefiningOp()->erase();
  }
  (void)function.eraseArgument(number);
}

struct OverwriteGradientsPass
    : penstock::impl::PipelineOverwriteGradientsBase<OverwriteGradientsPass> {
  using PipelineOverwriteGradientsBase::PipelineOverwriteGradientsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<TrainingOp> training = requireTraining(module);
    if (failed(training))
      return signalPassFailure();
    if (training->getMicrobatches() != 1)
      return;
    SymbolTable symbols(module);
    llvm::DenseMap<StringAttr, int64_t> calls = countCalls(module);
    llvm::DenseSet<Attribute> grouped;
    for (auto group : module.getOps<GroupOp>())
      for (auto member : group.getMembers().getAsRange<ArrayAttr>())
        grouped.insert(member.begin(), member.end());
    for (auto &[parameter, gradients] : collectGradients(module)) {
      // Of several gradients, some are zero until their sum is received.
      VariableOp gradient = gradients.front();
      if (gradients.size() > 1 ||
          grouped.contains(FlatSymbolRefAttr::get(gradient)))
        continue;
      std::optional<Sum> sum = findSum(module, gradient);
      if (!sum)
        continue;
      auto function = symbols.lookup<func::FuncOp>(sum->call.getCallee());
      if (!function || function.isDeclaration() ||
          !function.getArgAttr(sum->argument, kIntoAttr) ||
          calls.lookup(function.getSymNameAttr()) != 1)
        continue;
      beginWithZero(function, sum->argument);
      sum->call->eraseOperand(sum->argument);
      sum->read.erase();
    }
    signFunctions(module);
  }
};

} // namespace
