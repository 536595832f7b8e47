//===- Target.cpp - What the compiler asks a kind of device ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the implementation for an op, and the shapes that every kind of device
// passes to the runtime alike.
//===----------------------------------------------------------------------===//

#include "penstock/Target/Target.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace penstock;

static_assert(
    int(PENSTOCK_CONV_FORWARD) == int(kernel::ConvolutionKind::Forward) &&
    int(PENSTOCK_CONV_INPUT_GRAD) == int(kernel::ConvolutionKind::InputGrad) &&
    int(PENSTOCK_CONV_WEIGHT_GRAD) == int(kernel::ConvolutionKind::WeightGrad));

const Target *Target::get(Attribute attribute) {
  return attribute.getDialect().getRegisteredInterface<Target>();
}

OpCost Target::getConvolutionCost(TargetAttrInterface target,
                                  const kernel::ConvolutionShape &shape,
                                  bool isDirect) const {
  auto count = [](ArrayRef<int64_t> sizes) {
    return static_cast<double>(ShapedType::getNumElements(sizes));
  };
  double width = static_cast<double>(shape.element.getIntOrFloatBitWidth()) / 8;
  OpCost cost;
  cost.contraction = true;
  // Each output meets the weights of its channel.
  cost.flops = 2 * count(shape.output) * count(shape.weights.drop_front());
  cost.memoryBytes = width * count(shape.weights);
  cost.bytes =
      width * (count(shape.input) + count(shape.output)) + cost.memoryBytes;
  return cost;
}

//===----------------------------------------------------------------------===//
// Library calls
//===----------------------------------------------------------------------===//

static const Target *findTarget(kernel::LibraryCallOpInterface call,
                                TargetAttrInterface &attribute) {
  attribute = pipeline::getTarget(call);
  const Target *target = attribute ? Target::get(attribute) : nullptr;
  if (!target)
    call.emitError("is in a function without a target: run "
                   "pipeline-assign-targets first");
  return target;
}

static InFlightDiagnostic reject(kernel::LibraryCallOpInterface call,
                                 StringRef reason) {
  return call.emitError("no library can compute this ")
         << (isa<kernel::GemmOp>(call) ? "product" : "convolution") << ": "
         << reason;
}

FailureOr<LibraryPlan> penstock::planCall(kernel::LibraryCallOpInterface call) {
  TargetAttrInterface attribute;
  const Target *target = findTarget(call, attribute);
  if (!target)
    return failure();
  std::string reason;
  FailureOr<LibraryPlan> plan = target->plan(attribute, call, reason);
  if (failed(plan))
    return reject(call, reason);
  return plan;
}

FailureOr<std::optional<WeightPacking>>
penstock::planPacking(kernel::LibraryCallOpInterface call) {
  TargetAttrInterface attribute;
  const Target *target = findTarget(call, attribute);
  if (!target)
    return failure();
  std::string reason;
  FailureOr<std::optional<WeightPacking>> packing =
      target->planPacking(attribute, call, reason);
  if (failed(packing))
    return reject(call, reason);
  return packing;
}

bool penstock::prefersParallelLoops(Operation *op) {
  TargetAttrInterface attribute = pipeline::getTarget(op);
  const Target *target = attribute ? Target::get(attribute) : nullptr;
  return target && target->prefersParallelLoops(attribute);
}

bool penstock::splitsLongSums(Operation *op) {
  TargetAttrInterface attribute = pipeline::getTarget(op);
  const Target *target = attribute ? Target::get(attribute) : nullptr;
  return target && target->splitsLongSums(attribute);
}

bool penstock::asksForDirectConvolution(Operation *op) {
  while (op->getParentOp())
    op = op->getParentOp();
  return op->hasAttr(pipeline::kDirectConvolutionAttr);
}

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

/// The types that libraries multiply.
static std::optional<uint32_t> findElement(Type type) {
  type = getElementTypeOrSelf(type);
  return type.isF32()    ? std::optional<uint32_t>(PENSTOCK_F32)
         : type.isBF16() ? std::optional<uint32_t>(PENSTOCK_BF16)
                         : std::nullopt;
}

std::optional<penstock_gemm_descriptor>
penstock::describeShapes(kernel::GemmOp gemm) {
  ArrayRef<int64_t> sizes = gemm.getSizes();
  ArrayRef<int64_t> batch = sizes.drop_back(3);
  std::optional<uint32_t> factors = findElement(gemm.getA().getType());
  std::optional<uint32_t> sums = findElement(gemm.getC().getType());
  if (batch.size() > PENSTOCK_MAX_BATCH_RANK || !factors || !sums)
    return std::nullopt;
  penstock_gemm_descriptor result = {};
  result.element = *factors;
  result.result_element = *sums;
  result.batch_rank = static_cast<uint32_t>(batch.size());
  llvm::copy(batch, result.batch);
  llvm::copy(gemm.getStridesA(), result.stride_a);
  llvm::copy(gemm.getStridesB(), result.stride_b);
  llvm::copy(gemm.getStridesC(), result.stride_c);
  result.m = sizes[batch.size()];
  result.n = sizes[batch.size() + 1];
  result.k = sizes[batch.size() + 2];
  result.accumulate = gemm.getAccumulate();
  return result;
}

std::optional<penstock_conv_descriptor>
penstock::describeShapes(const kernel::ConvolutionShape &shape) {
  unsigned rank = shape.getSpatialRank();
  std::optional<uint32_t> element = findElement(shape.element);
  if (rank > PENSTOCK_MAX_SPATIAL_RANK || !element)
    return std::nullopt;
  for (ArrayRef<int64_t> sizes : {shape.input, shape.weights, shape.output})
    if (llvm::is_contained(sizes, 0))
      return std::nullopt;
  penstock_conv_descriptor result = {};
  result.kind = static_cast<uint32_t>(shape.kind);
  result.element = *element;
  result.spatial_rank = rank;
  result.batch = shape.input[0];
  result.groups = shape.groups;
  result.input_channels = shape.input[1];
  result.output_channels = shape.output[1];
  for (unsigned i = 0; i < rank; ++i) {
    result.input[i] = shape.input[i + 2];
    result.kernel[i] = shape.weights[i + 2];
    result.output[i] = shape.output[i + 2];
    result.stride[i] = shape.strides[i];
    result.dilation[i] = shape.dilations[i];
    result.pad_before[i] = shape.pads[i];
    // As far as the last window reaches; where it leaves elements, none.
    int64_t reach = (result.output[i] - 1) * result.stride[i] +
                    (result.kernel[i] - 1) * result.dilation[i] + 1;
    result.pad_after[i] =
        std::max<int64_t>(reach - result.input[i] - result.pad_before[i], 0);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Kernel pipelines
//===----------------------------------------------------------------------===//

using KernelPipelines =
    llvm::SmallVector<std::pair<std::string, KernelPipelineBuilder>>;

static KernelPipelines &getKernelPipelines() {
  static KernelPipelines pipelines;
  return pipelines;
}

void penstock::registerKernelPipeline(StringRef dialect,
                                      KernelPipelineBuilder build) {
  // Registered again, as passes may be, it is the same.
  for (auto &[name, known] : getKernelPipelines())
    if (name == dialect)
      return;
  getKernelPipelines().emplace_back(dialect.str(), build);
}

void penstock::buildKernelPipelines(OpPassManager &manager,
                                    ArrayRef<std::string> kinds) {
  for (auto &[name, build] : getKernelPipelines())
    if (kinds.empty() || name == getKernelPipelines().front().first ||
        llvm::is_contained(kinds, name))
      build(manager);
}
