//===- PlannedCost.cpp - Cost of ops by what will run ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See PlannedCost.h. Numbers that no data sheet has are measured:
// docs/measurements/planning.md.
//===----------------------------------------------------------------------===//

#include "penstock/Target/PlannedCost.h"

#include "dialects/Nn/Convolution.h"
#include "penstock/Target/MatrixProduct.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace penstock;

/// An elementwise op reads in the backward what it read, and a gradient.
static constexpr double kBackwardOfLoops = 1.5;
/// A function such as exp takes as long as so many bytes.
static constexpr double kBytesOfFunction = 16;
/// Composites go several times over their rows.
static constexpr double kPassesOfComposites = 3;
/// Maxima of windows in rows that are no multiple of this are found one by one,
/// and an element takes as long as so many bytes for each lane of a vector.
static constexpr int64_t kRowOfMaxima = 16;
static constexpr double kBytesOfLoneLane = 40;

void penstock::setPlanRates(ModuleOp module, const MachineRates &rates) {
  module->setAttr(
      pipeline::kPlanRatesAttr,
      DenseF64ArrayAttr::get(module.getContext(),
                             {rates.flopsPerSecond, rates.bytesPerSecond,
                              rates.cachedBytesPerSecond,
                              rates.linkBytesPerSecond, rates.latencySeconds}));
}

std::optional<MachineRates> penstock::getPlanRates(ModuleOp module) {
  auto rates =
      module->getAttrOfType<DenseF64ArrayAttr>(pipeline::kPlanRatesAttr);
  if (!rates)
    return std::nullopt;
  return MachineRates{rates[0], rates[1], rates[2], rates[3], rates[4]};
}

void penstock::setPlannedUpdate(ModuleOp module, const PlannedUpdate &update) {
  module->setAttr(pipeline::kPlanUpdateAttr,
                  DenseI64ArrayAttr::get(module.getContext(),
                                         {update.microbatches, update.passes}));
}

static PlannedUpdate getPlannedUpdate(ModuleOp module) {
  auto update =
      module->getAttrOfType<DenseI64ArrayAttr>(pipeline::kPlanUpdateAttr);
  return update ? PlannedUpdate{update[0], update[1]} : PlannedUpdate();
}

PlannedCost PlannedCost::get(ModuleOp module,
                             std::optional<MachineRates> rates) {
  return get(
      module,
      module->getAttrOfType<TargetAttrInterface>(pipeline::kPlanTargetAttr),
      rates);
}

PlannedCost PlannedCost::get(ModuleOp module, TargetAttrInterface attribute,
                             std::optional<MachineRates> rates) {
  if (!rates)
    rates = getPlanRates(module);
  const Target *target = attribute ? Target::get(attribute) : nullptr;
  PlannedUpdate update = getPlannedUpdate(module);
  if (!target)
    return PlannedCost({}, rates.value_or(MachineRates()), update);
  MachineRates own = target->getRates(attribute);
  // What a library does says nothing about devices of another kind.
  bool isAlike = !rates || (rates->cachedBytesPerSecond > 0) ==
                               (own.cachedBytesPerSecond > 0);
  return PlannedCost(isAlike ? attribute : TargetAttrInterface(),
                     rates.value_or(own), update);
}

static kernel::ConvolutionShape getShape(const nn::Convolution &conv,
                                         kernel::ConvolutionKind kind) {
  return {kind,
          getElementTypeOrSelf(conv.input),
          cast<ShapedType>(conv.input.getType()).getShape(),
          cast<ShapedType>(conv.weights.getType()).getShape(),
          cast<ShapedType>(conv.output.getType()).getShape(),
          conv.strides,
          conv.dilations,
          conv.pads,
          conv.groups};
}

static bool isUnwritten(Value value) {
  return value.getDefiningOp<tensor::EmptyOp>() ||
         value.getDefiningOp<linalg::FillOp>();
}

/// Bytes that the maxima which are found one by one take as long as.
static double getLoneBytes(nn::MaxPoolOp pool, int64_t lanes) {
  auto type = cast<ShapedType>(pool.getResult().getType());
  int64_t row = type.getShape().back();
  double lone = static_cast<double>(type.getNumElements()) *
                static_cast<double>(row % kRowOfMaxima) /
                static_cast<double>(row);
  return lone * kBytesOfLoneLane * static_cast<double>(lanes) *
         static_cast<double>(ShapedType::getNumElements(pool.getWindow()));
}

OpCost PlannedCost::getCost(Operation *op, ValueFilter isWeight) const {
  OpCost cost = getAnalyticCost(op);
  // Where traffic overlaps with arithmetic, the definition is what counts.
  if (cost.bytes == 0 || rates.cachedBytesPerSecond == 0)
    return cost;
  for (Value operand : op->getOperands())
    if (isWeight(operand) && !isUnwritten(operand))
      cost.memoryBytes += getTypeBytes(operand.getType());
  if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
    for (Value out : structured.getDpsInits())
      if (isUnwritten(out))
        cost.bytes -= getTypeBytes(out.getType());
    if (cost.contraction)
      return cost;
    double points = 1;
    for (int64_t size : structured.getStaticLoopRanges())
      points *= ShapedType::isDynamic(size) ? 0.0 : static_cast<double>(size);
    for (Operation &inner : structured.getBlock()->without_terminator())
      if (isa<math::MathDialect>(inner.getDialect()))
        cost.bytes += kBytesOfFunction * points;
  } else if (!cost.contraction && isa<nn::NnDialect>(op->getDialect())) {
    cost.bytes *= kPassesOfComposites;
  }
  return cost;
}

/// Returns the seconds in which an update packs weights, once for each call
/// that reads them so.
double
PlannedCost::getPackingSeconds(std::optional<PackedWeights> weights) const {
  return weights && update.microbatches >= weights->calls
             ? weights->bytes / rates.bytesPerSecond
             : 0;
}

/// Returns the products that read a weight as their right factor: that of a
/// contraction, and the one behind it for the gradient of the other factor.
static SmallVector<ProductShape>
getProductsOfWeights(Operation *op, PlannedCost::ValueFilter isWeight,
                     PlannedCost::ValueFilter needsGradient) {
  auto contraction = dyn_cast<linalg::ContractOp>(op);
  if (!contraction)
    return {};
  auto structured = cast<linalg::LinalgOp>(op);
  SmallVector<SmallVector<int64_t>> strides;
  for (Type type : op->getOperandTypes())
    strides.push_back(computeSuffixProduct(cast<ShapedType>(type).getShape()));
  FailureOr<MatrixProduct> product =
      readMatrixProduct(structured.getStaticLoopRanges(),
                        structured.getIndexingMapsArray(), strides);
  if (failed(product) || !product->batch.empty() ||
      !isWeight(op->getOperand(product->right)))
    return {};
  auto [m, n, k] =
      std::tuple(product->m.size, product->n.size, product->k.size);
  int64_t row = product->k.strides[product->right],
          column = product->n.strides[product->right];
  SmallVector<ProductShape> products{{m, n, k, {row, column}}};
  if (needsGradient(op->getOperand(product->left)))
    products.push_back({m, k, n, {column, row}});
  return products;
}

/// Returns the seconds that only the forward of an op takes.
double PlannedCost::getForwardOnly(Operation *op) const {
  auto pool = dyn_cast<nn::MaxPoolOp>(op);
  if (!pool || !target || rates.cachedBytesPerSecond == 0)
    return 0;
  int64_t lanes = Target::get(target)->countLanes(target);
  return getLoneBytes(pool, lanes) / rates.cachedBytesPerSecond;
}

double PlannedCost::getSeconds(Operation *op) const {
  auto never = [](Value) { return false; };
  OpCost cost = getCost(op, never);
  std::optional<nn::Convolution> conv = nn::Convolution::match(op);
  if (conv && target)
    cost = Target::get(target)->getConvolutionCost(
        target,
        getShape(*conv, static_cast<kernel::ConvolutionKind>(conv->kind)),
        asksForDirectConvolution(op));
  return getForwardSeconds(cost, rates) + getForwardOnly(op);
}

OpSeconds PlannedCost::getSeconds(Operation *op, ValueFilter isWeight,
                                  ValueFilter needsGradient) const {
  OpCost cost = getCost(op, isWeight);
  // 1. Convolutions: each gradient has an algorithm of its own.
  if (std::optional<nn::Convolution> conv = nn::Convolution::match(op);
      conv && target && conv->kind == nn::Convolution::Forward) {
    auto getKind = [&](kernel::ConvolutionKind kind) {
      return getForwardSeconds(
          Target::get(target)->getConvolutionCost(target, getShape(*conv, kind),
                                                  asksForDirectConvolution(op)),
          rates);
    };
    auto getPacking = [&](kernel::ConvolutionKind kind) {
      return !isWeight(conv->weights)
                 ? 0
                 : getPackingSeconds(Target::get(target)->getPackedWeights(
                       target, getShape(*conv, kind),
                       asksForDirectConvolution(op)));
    };
    OpSeconds seconds{getKind(kernel::ConvolutionKind::Forward), 0,
                      getPacking(kernel::ConvolutionKind::Forward)};
    if (needsGradient(conv->input)) {
      seconds.backward += getKind(kernel::ConvolutionKind::InputGrad);
      seconds.update += getPacking(kernel::ConvolutionKind::InputGrad);
    }
    if (needsGradient(conv->weights))
      seconds.backward += getKind(kernel::ConvolutionKind::WeightGrad);
    return seconds;
  }

  // 2. Products: one for the gradient of each factor.
  OpSeconds seconds{getForwardSeconds(cost, rates)};
  if (cost.contraction) {
    for (ProductShape shape : getProductsOfWeights(op, isWeight, needsGradient))
      if (target)
        seconds.update += getPackingSeconds(
            Target::get(target)->getPackedWeights(target, shape));
    for (Value operand : op->getOperands().take_front(2))
      seconds.backward += needsGradient(operand) ? seconds.forward : 0;
    return seconds;
  }
  if (llvm::any_of(op->getOperands(), needsGradient))
    seconds.backward = rates.cachedBytesPerSecond > 0
                           ? kBackwardOfLoops * seconds.forward
                           : 2 * seconds.forward;
  seconds.forward += getForwardOnly(op);
  return seconds;
}
