//===- NarrowProducts.cpp - Products of bf16 factors ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of f32 numbers that were bf16 before are exact, so a library that
// adds products of bf16 in f32 computes the same sums, faster. Convolutions of
// bf16 round their result as well: where one is rounded next anyway, nothing
// changes.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/Pipeline.h"
#include "passes/Kernels/LibraryConvolutions.h"
#include "passes/Kernels/Passes.h"
#include "passes/Kernels/Widening.h"
#include "penstock/Support/Structured.h"
#include "penstock/Target/Target.h"

#include "mlir/IR/Matchers.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINENARROWPRODUCTS
#include "passes/Kernels/Passes.h.inc"
} // namespace penstock

using namespace mlir;
using namespace penstock;

namespace {

/// Extends a tensor of bf16, and adds it to one of f32 if there is one.
Value extend(OpBuilder &builder, Location loc, Value value, Value sum = {}) {
  auto type =
      cast<RankedTensorType>(value.getType()).clone(builder.getF32Type());
  Structured s(builder, loc);
  int64_t rank = type.getRank();
  return s.generic(
      value, sum ? sum : s.empty(type), {s.identity(rank), s.identity(rank)},
      s.parallel(rank), [&](Scalars &s, ValueRange elements) {
        Value wide = s.make<arith::ExtFOp>(type.getElementType(), elements[0]);
        return sum ? s.add(elements[1], wide) : wide;
      });
}

void narrow(linalg::ContractOp contract) {
  SmallVector<Value> factors;
  for (Value factor : contract.getInputs())
    if (Value narrow = findNarrow(factor))
      factors.push_back(narrow);
  if (factors.size() != contract.getInputs().size())
    return;
  OpBuilder builder(contract);
  auto made = linalg::ContractOp::create(
      builder, contract.getLoc(), contract->getResultTypes(), factors,
      contract.getOutputs(), contract.getIndexingMapsAttr());
  contract->replaceAllUsesWith(made->getResults());
  contract.erase();
}

void narrow(Operation *op, const nn::Convolution &conv) {
  auto structured = cast<DestinationStyleOpInterface>(op);
  Value first = findNarrow(op->getOperand(0)),
        second = findNarrow(op->getOperand(1)),
        sum = structured.getDpsInits().front();
  if (!first || !second ||
      !takesConvolution(op, conv, BFloat16Type::get(op->getContext()),
                        "is computed of f32"))
    return;
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Type bf16 = builder.getBF16Type();
  auto type = cast<RankedTensorType>(sum.getType()).clone(bf16);
  Value output = tensor::EmptyOp::create(builder, loc, type, ValueRange());
  bool adds = conv.kind == nn::Convolution::WeightGrad;
  if (adds) {
    Value zero = arith::ConstantOp::create(builder, loc,
                                           builder.getFloatAttr(bf16, 0.0));
    output = linalg::FillOp::create(builder, loc, zero, output).getResult(0);
  }
  OperationState state(loc, op->getName(), {first, second, output}, {type},
                       op->getAttrs());
  Value made = builder.create(state)->getResult(0);

  // What rounds the result has it already.
  for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
    if (!adds && isRounding(user)) {
      user->getResult(0).replaceAllUsesWith(made);
      user->erase();
    }
  if (!op->use_empty()) {
    auto fill = sum.getDefiningOp<linalg::FillOp>();
    bool isZero =
        fill && matchPattern(fill.getInputs().front(), m_AnyZeroFloat());
    op->replaceAllUsesWith(ValueRange(
        extend(builder, loc, made, adds && !isZero ? sum : Value())));
  }
  op->erase();
}

struct NarrowProductsPass
    : penstock::impl::PipelineNarrowProductsBase<NarrowProductsPass> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    TargetAttrInterface attribute = pipeline::getTarget(function);
    const Target *target = attribute ? Target::get(attribute) : nullptr;
    if (!target || !target->multipliesBf16(attribute))
      return;
    SmallVector<Operation *> ops;
    function.walk([&](Operation *op) {
      if (isa<linalg::ContractOp>(op) || nn::Convolution::match(op))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      if (auto contract = dyn_cast<linalg::ContractOp>(op))
        narrow(contract);
      else
        narrow(op, *nn::Convolution::match(op));
    // What extended the factors.
    SmallVector<Operation *> unused;
    function.walk([&](linalg::GenericOp op) {
      if (op->use_empty() && isWidening(op))
        unused.push_back(op);
    });
    for (Operation *op : unused)
      op->erase();
  }
};

} // namespace
