//===- KernelDialect.cpp - The kernel dialect -----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers attributes and ops, and holds their verifiers. What only a target
// can check of a call, its config checks.
//===----------------------------------------------------------------------===//

#include "dialects/Kernel/Kernel.h"

#include "dialects/AttributeRules.h"
#include "dialects/Pipeline/Pipeline.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::kernel;

#include "dialects/Kernel/KernelAttrInterfaces.cpp.inc"
#include "dialects/Kernel/KernelDialect.cpp.inc"
#include "dialects/Kernel/KernelEnums.cpp.inc"
#include "dialects/Kernel/KernelOpInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Kernel/KernelAttributes.cpp.inc"

void KernelDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Kernel/KernelAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Kernel/KernelOps.cpp.inc"
      >();
}

static const AttributeRule rules[] = {
    {kPackingAttr,
     [](Operation *op, Attribute value) {
       auto variable = dyn_cast<pipeline::VariableOp>(op);
       return variable && variable.getRole() == pipeline::Role::Prepacked &&
              isa<PackingAttrInterface>(value);
     },
     "the order of packed weights, on a variable that holds them"},
};

LogicalResult KernelDialect::verifyOperationAttribute(Operation *op,
                                                      NamedAttribute attr) {
  return verifyAttribute(rules, op, attr);
}

LogicalResult ScratchAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t bytes, int64_t offset) {
  if (bytes <= 0 || offset < 0)
    return emitError() << "scratch is some bytes from a byte on, got " << bytes
                       << " at " << offset;
  return success();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Weights are the right operand.
Value GemmOp::getPackableWeights() { return getB(); }

/// Libraries add a bias to f32 matrices that lie by rows.
static LogicalResult verifyEpilogue(GemmOp gemm) {
  ArrayRef<int64_t> sizes = gemm.getSizes();
  Type sum = getElementTypeOrSelf(gemm.getC().getType());
  if (sizes.size() != 3 || gemm.getAccumulate() || !sum.isF32() ||
      getElementTypeOrSelf(gemm.getA().getType()) != sum ||
      gemm.getStridesC().back() != 1 || gemm.getStridesC().front() < sizes[1])
    return gemm.emitOpError("K17: has an epilogue, and is no product of f32 "
                            "matrices that overwrites rows");
  if (Value bias = gemm.getBias()) {
    auto type = cast<MemRefType>(bias.getType());
    if (type.getElementType() != sum || type.getShape() != sizes.slice(1, 1) ||
        !type.getLayout().isIdentity())
      return gemm.emitOpError("K17: adds a bias of ")
             << type << " to rows of " << sizes[1] << " elements";
  }
  return success();
}

LogicalResult GemmOp::verify() {
  size_t rank = getSizes().size();
  if (rank < 3)
    return emitOpError("K1: needs sizes [batch..., m, n, k]");
  if (llvm::any_of(getSizes(), [](int64_t size) { return size <= 0; }))
    return emitOpError("K1: needs positive sizes");
  for (ArrayRef<int64_t> strides :
       {getStridesA(), getStridesB(), getStridesC()})
    if (strides.size() != rank - 1)
      return emitOpError("K2: needs ")
             << rank - 1 << " strides per operand, got " << strides.size();
  Type left = getElementTypeOrSelf(getA().getType());
  Type right = getElementTypeOrSelf(getB().getType());
  Type sum = getElementTypeOrSelf(getC().getType());
  if (left != right || (sum != left && !(left.isBF16() && sum.isF32())))
    return emitOpError("K3: multiplies ")
           << left << " by " << right << " to " << sum;
  if (getPacked() && rank != 3)
    return emitOpError("K4: reads packed weights, and has batch dimensions");
  if (hasEpilogue() != bool(getPending()))
    return emitOpError("K17: says whether an epilogue is pending exactly "
                       "where there is a bias or relu");
  if (hasEpilogue() && failed(verifyEpilogue(*this)))
    return failure();
  return getConfigAttr() ? getConfigAttr().verifyCall(*this) : success();
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

ConvolutionShape ConvolutionShape::get(ConvOp conv) {
  return {conv.getKind(),
          conv.getInput().getType().getElementType(),
          conv.getInput().getType().getShape(),
          conv.getWeights().getType().getShape(),
          conv.getOutput().getType().getShape(),
          conv.getStrides(),
          conv.getDilations(),
          conv.getPads(),
          static_cast<int64_t>(conv.getGroups())};
}

Value ConvOp::getPackableWeights() {
  return getKind() == ConvolutionKind::WeightGrad ? Value()
                                                  : Value(getWeights());
}

void ConvOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  OpOperand *result =
      getKind() == ConvolutionKind::Forward     ? &getOutputMutable()
      : getKind() == ConvolutionKind::InputGrad ? &getInputMutable()
                                                : &getWeightsMutable();
  for (OpOperand &operand : getOperation()->getOpOperands()) {
    bool isResult = &operand == result;
    if (!isResult || getKind() == ConvolutionKind::WeightGrad)
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (isResult)
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}

/// Returns the number of windows along a dimension, -1 when none fits.
static int64_t countWindows(int64_t size, int64_t padding, int64_t window,
                            int64_t stride, int64_t dilation) {
  int64_t room = size + padding - ((window - 1) * dilation + 1);
  return room < 0 ? -1 : room / stride + 1;
}

LogicalResult ConvOp::verify() {
  auto shape = ConvolutionShape::get(*this);
  ArrayRef<int64_t> x = shape.input, w = shape.weights, y = shape.output;
  size_t rank = shape.strides.size();
  if (rank < 1 || shape.dilations.size() != rank ||
      shape.pads.size() != 2 * rank || x.size() != rank + 2 ||
      w.size() != rank + 2 || y.size() != rank + 2)
    return emitOpError(
        "K6: needs as many strides and dilations, and twice as many "
        "pads, as its buffers have spatial dimensions");
  for (MemRefType type :
       {getInput().getType(), getWeights().getType(), getOutput().getType()})
    if (type.getElementType() != shape.element || !type.hasStaticShape() ||
        !type.getLayout().isIdentity())
      return emitOpError("K7: needs dense buffers of one element type, got ")
             << type;
  if (x[0] != y[0] || y[1] != w[0] || x[1] != w[1] * shape.groups ||
      w[0] % shape.groups != 0)
    return emitOpError("K8: of ")
           << getInput().getType() << " by " << getWeights().getType()
           << " in groups(" << shape.groups << ") does not give "
           << getOutput().getType();
  for (size_t i = 0; i < rank; ++i) {
    if (shape.strides[i] < 1 || shape.dilations[i] < 1)
      return emitOpError("K8: strides and dilations are positive");
    int64_t windows =
        countWindows(x[i + 2], shape.pads[i] + shape.pads[rank + i], w[i + 2],
                     shape.strides[i], shape.dilations[i]);
    if (windows != y[i + 2])
      return emitOpError("K8: has ")
             << windows << " windows along spatial dimension " << i
             << ", but its output " << y[i + 2];
  }
  if (getPacked() && getKind() == ConvolutionKind::WeightGrad)
    return emitOpError("K9: computes the weights, and reads no packed ones");
  return getConfigAttr() ? getConfigAttr().verifyCall(*this) : success();
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

LogicalResult PackOp::verify() {
  if (!getOrder().fits(getWeights().getType(), getPacked().getType()))
    return emitOpError("K10: cannot bring ")
           << getWeights().getType() << " into " << getPacked().getType()
           << " as " << getOrder();
  return success();
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

LogicalResult LaunchOp::verify() {
  constexpr int64_t kMostThreads = 1024, kMostBlocks = (1LL << 31) - 1,
                    kMostRows = (1LL << 16) - 1;
  ArrayRef<int64_t> grid = getGrid(), block = getBlock();
  auto isPositive = [](int64_t size) { return size > 0; };
  if (grid.size() != 3 || block.size() != 3 ||
      !llvm::all_of(grid, isPositive) || !llvm::all_of(block, isPositive))
    return emitOpError(
        "K11: needs three positive sizes of the grid and of a block");
  for (int64_t size : block)
    if (size > kMostThreads || block[0] * block[1] * block[2] > kMostThreads)
      return emitOpError("K12: has more than ")
             << kMostThreads << " threads a block";
  if (grid[0] > kMostBlocks || grid[1] > kMostRows || grid[2] > kMostRows)
    return emitOpError("K12: has a grid of more than ")
           << kMostBlocks << " x " << kMostRows << " x " << kMostRows
           << " blocks";
  for (Value parameter : getParameters()) {
    Type type = parameter.getType();
    if (auto buffer = dyn_cast<MemRefType>(type)) {
      SmallVector<int64_t> strides;
      int64_t offset;
      if (!buffer.hasStaticShape() ||
          failed(buffer.getStridesAndOffset(strides, offset)) ||
          ShapedType::isDynamicShape(strides))
        return emitOpError(
                   "K13: passes a buffer whose shape or strides are not "
                   "known: ")
               << type;
    } else if (!type.isIndex() && type.getIntOrFloatBitWidth() > 64) {
      return emitOpError("K13: passes a number of more than 64 bits: ") << type;
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

LogicalResult ConstantOp::verify() {
  if (!cast<MemRefType>(getType()).getLayout().isIdentity())
    return emitOpError("K14: is dense, not ") << getType();
  return success();
}

//===----------------------------------------------------------------------===//
// Actions
//===----------------------------------------------------------------------===//

LogicalResult ActionOp::verify() {
  for (Operation &op : *getBody().begin())
    if (!isa<CallOpInterface>(op) || op.getNumResults() != 0)
      return emitOpError(
                 "K15: has calls without results and nothing else, not ")
             << op.getName();
  return success();
}

LogicalResult ScalarOp::verify() {
  Type type = cast<MemRefType>(getType()).getElementType();
  if (!type.isIndex() && type.getIntOrFloatBitWidth() > 64)
    return emitOpError("K16: holds a number of more than 64 bits: ")
           << getType();
  return success();
}

#define GET_OP_CLASSES
#include "dialects/Kernel/KernelOps.cpp.inc"
