//===- ConvOps.cpp - Convolutions -----------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The common view of the three ops, their verifier and their effects.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Convolution.h"

using namespace mlir;
using namespace penstock::nn;

std::optional<Convolution> Convolution::match(Operation *op) {
  auto make = [](auto conv, Kind kind, Value input, Value weights,
                 Value output) {
    return Convolution{kind,
                       input,
                       weights,
                       output,
                       conv.getStrides(),
                       conv.getDilations(),
                       conv.getPads(),
                       static_cast<int64_t>(conv.getGroups())};
  };
  if (auto conv = dyn_cast<ConvOp>(op))
    return make(conv, Forward, conv.getFirst(), conv.getSecond(),
                conv.getInit());
  if (auto conv = dyn_cast<ConvInputGradOp>(op))
    return make(conv, InputGrad, conv.getInit(), conv.getSecond(),
                conv.getFirst());
  if (auto conv = dyn_cast<ConvWeightGradOp>(op))
    return make(conv, WeightGrad, conv.getFirst(), conv.getInit(),
                conv.getSecond());
  return std::nullopt;
}

double Convolution::getProducts() const {
  double products = static_cast<double>(getType(output).getNumElements());
  for (int64_t size : getType(weights).getShape().drop_front())
    products *= static_cast<double>(size);
  return products;
}

int64_t penstock::nn::countWindows(int64_t size, int64_t padding,
                                   int64_t window, int64_t stride,
                                   int64_t dilation) {
  int64_t room = size + padding - ((window - 1) * dilation + 1);
  return room < 0 ? -1 : room / stride + 1;
}

static LogicalResult verifyConvolution(Operation *op) {
  Convolution conv = *Convolution::match(op);
  size_t rank = conv.strides.size();
  ArrayRef<int64_t> x = conv.getType(conv.input).getShape();
  ArrayRef<int64_t> w = conv.getType(conv.weights).getShape();
  ArrayRef<int64_t> y = conv.getType(conv.output).getShape();
  if (rank < 1 || conv.dilations.size() != rank ||
      conv.pads.size() != 2 * rank || x.size() != rank + 2 ||
      w.size() != rank + 2 || y.size() != rank + 2)
    return op->emitOpError(
        "M1: needs as many strides and dilations, and twice as "
        "many pads, as its tensors have spatial dimensions");
  Type element = conv.getType(conv.input).getElementType();
  if (conv.getType(conv.weights).getElementType() != element ||
      conv.getType(conv.output).getElementType() != element)
    return op->emitOpError("M2: mixes element types");
  if (x[0] != y[0] || y[1] != w[0] || x[1] != w[1] * conv.groups ||
      w[0] % conv.groups != 0)
    return op->emitOpError("M3: of ")
           << conv.input.getType() << " by " << conv.weights.getType()
           << " in groups(" << conv.groups << ") does not give "
           << conv.output.getType();
  for (size_t i = 0; i < rank; ++i) {
    if (conv.strides[i] < 1 || conv.dilations[i] < 1)
      return op->emitOpError("M4: strides and dilations are positive");
    int64_t expected =
        countWindows(x[i + 2], conv.getPadBefore(i) + conv.getPadAfter(i),
                     w[i + 2], conv.strides[i], conv.dilations[i]);
    if (expected != y[i + 2])
      return op->emitOpError("M5: has ")
             << expected << " windows along spatial dimension " << i
             << ", but its output " << y[i + 2];
  }
  return success();
}

LogicalResult ConvOp::verify() { return verifyConvolution(*this); }
LogicalResult ConvInputGradOp::verify() { return verifyConvolution(*this); }
LogicalResult ConvWeightGradOp::verify() { return verifyConvolution(*this); }

using Effects =
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

/// None on tensors; on buffers, reads what goes in and writes what comes out.
static void addEffects(DestinationStyleOpInterface op, bool readsInit,
                       Effects &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    bool isInit = op.isDpsInit(&operand);
    if (!isInit || readsInit)
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (isInit)
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}

void ConvOp::getEffects(Effects &effects) { addEffects(*this, false, effects); }
void ConvInputGradOp::getEffects(Effects &effects) {
  addEffects(*this, false, effects);
}
void ConvWeightGradOp::getEffects(Effects &effects) {
  addEffects(*this, true, effects);
}

static Speculation::Speculatability speculate(Operation *op) {
  return op->getNumResults() ? Speculation::Speculatable
                             : Speculation::NotSpeculatable;
}
Speculation::Speculatability ConvOp::getSpeculatability() {
  return speculate(*this);
}
Speculation::Speculatability ConvInputGradOp::getSpeculatability() {
  return speculate(*this);
}
Speculation::Speculatability ConvWeightGradOp::getSpeculatability() {
  return speculate(*this);
}
