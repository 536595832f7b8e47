//===- CpuDialect.cpp - The cpu dialect -----------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers the attributes and holds their verifiers.
//===----------------------------------------------------------------------===//

#include "dialects/Cpu/Cpu.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::cpu;

#include "dialects/Cpu/CpuDialect.cpp.inc"
#include "dialects/Cpu/CpuEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Cpu/CpuAttributes.cpp.inc"

void CpuDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Cpu/CpuAttributes.cpp.inc"
      >();
}

using EmitError = function_ref<InFlightDiagnostic()>;

LogicalResult TargetAttr::verify(EmitError emitError, int64_t threads,
                                 StringRef march) {
  if (threads < 1)
    return emitError() << "a device has at least one thread, got " << threads;
  if (march.empty())
    return emitError() << "a processor has a name, or is \"native\"";
  return success();
}

//===----------------------------------------------------------------------===//
// Configs
//===----------------------------------------------------------------------===//

LogicalResult GemmAttr::verify(EmitError emitError, int64_t threads,
                               int64_t width, int64_t stride) {
  if (threads < 1)
    return emitError() << "a product is for at least one thread, got "
                       << threads;
  if (width < 0 || (width > 0 ? stride < 1 : stride != 0))
    return emitError() << "panels have positive width and stride, got " << width
                       << " by " << stride;
  return success();
}

LogicalResult GemmAttr::verifyCall(Operation *call) const {
  auto gemm = dyn_cast<kernel::GemmOp>(call);
  if (!gemm)
    return call->emitOpError("K5: is no product, but has the config of one: ")
           << *this;
  if (bool(gemm.getPacked()) != (getWidth() > 0))
    return call->emitOpError(
        "K5: has panels in its config exactly where it reads "
        "packed weights");
  if (gemm.hasEpilogue())
    return call->emitOpError("K5: has an epilogue, which a CPU leaves to the "
                             "loops that follow");
  return success();
}

LogicalResult ConvAttr::verify(EmitError emitError, ConvolutionAlgorithm,
                               int64_t threads) {
  if (threads < 1)
    return emitError() << "a convolution is for at least one thread, got "
                       << threads;
  return success();
}

LogicalResult ConvAttr::verifyCall(Operation *call) const {
  if (!isa<kernel::ConvOp>(call))
    return call->emitOpError(
               "K5: is no convolution, but has the config of one: ")
           << *this;
  return success();
}

//===----------------------------------------------------------------------===//
// Orders of packed weights
//===----------------------------------------------------------------------===//

LogicalResult PanelsAttr::verify(EmitError emitError, ArrayRef<int64_t> sizes,
                                 ArrayRef<int64_t> strides, int64_t width,
                                 int64_t stride) {
  auto isPositive = [](int64_t value) { return value > 0; };
  if (sizes.size() != 2 || strides.size() != 2 ||
      !llvm::all_of(sizes, isPositive) || !llvm::all_of(strides, isPositive) ||
      width <= 0 || stride < std::min(width, sizes[1]))
    return emitError() << "a matrix has two sizes and strides, and rows of its "
                          "panels do not overlap";
  return success();
}

bool PanelsAttr::fits(MemRefType weights, MemRefType packed) const {
  ArrayRef<int64_t> sizes = getSizes(), strides = getStrides();
  return weights.getLayout().isIdentity() && weights.hasStaticShape() &&
         (sizes[0] - 1) * strides[0] + (sizes[1] - 1) * strides[1] <
             weights.getNumElements() &&
         packed.hasStaticShape() && packed.getNumElements() > 0 &&
         packed.getNumElements() % (sizes[0] * getStride()) == 0;
}

StringRef PanelsAttr::getVariableSuffix() const {
  return getStrides()[0] == 1 ? ".panels_transposed" : ".panels";
}

LogicalResult
BlockedAttr::verify(EmitError emitError, bool, ArrayRef<int64_t> input,
                    ArrayRef<int64_t> weights, ArrayRef<int64_t> output,
                    ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations,
                    ArrayRef<int64_t> pads, int64_t groups, ConvAttr) {
  size_t rank = strides.size();
  if (rank < 1 || dilations.size() != rank || pads.size() != 2 * rank ||
      input.size() != rank + 2 || weights.size() != rank + 2 ||
      output.size() != rank + 2 || groups < 1)
    return emitError() << "a convolution has as many strides and dilations, "
                          "and twice as many pads, as spatial dimensions";
  return success();
}

bool BlockedAttr::fits(MemRefType weights, MemRefType packed) const {
  return weights.getLayout().isIdentity() &&
         weights.getShape() == getWeights() && packed.hasStaticShape() &&
         packed.getNumElements() > 0;
}

StringRef BlockedAttr::getVariableSuffix() const {
  return getInputGrad() ? ".prepacked_backward" : ".prepacked";
}
