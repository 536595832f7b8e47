//===- GpuToNvvm.cpp - Kernels in the NVVM dialect ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The patterns are upstream's. Ours is which of the functions of `math` stay
// instructions, and that buffers are bare addresses.
//===----------------------------------------------------------------------===//

#include "passes/Cuda/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUCommon/GPUCommonPass.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Triple.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEGPUTONVVM
#include "passes/Cuda/Passes.h.inc"
} // namespace penstock

using namespace mlir;

namespace {

/// Returns how many bytes from the first element of a buffer on are its own; 0
/// where that is not known.
int64_t getBytes(Type type) {
  auto buffer = dyn_cast<MemRefType>(type);
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!buffer || !buffer.hasStaticShape() || buffer.getNumElements() == 0 ||
      failed(buffer.getStridesAndOffset(strides, offset)))
    return 0;
  Type element = buffer.getElementType();
  if (!element.isIntOrIndexOrFloat())
    return 0;
  int64_t last = 0;
  for (auto [size, stride] : llvm::zip_equal(buffer.getShape(), strides)) {
    if (ShapedType::isDynamic(stride) || stride < 0)
      return 0;
    last += (size - 1) * stride;
  }
  int64_t bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  return (last + 1) * ((bits + 7) / 8);
}

/// Returns the bytes of the parameters, by kernel.
llvm::StringMap<SmallVector<int64_t>> getParameterBytes(Operation *module) {
  llvm::StringMap<SmallVector<int64_t>> result;
  module->walk([&](gpu::GPUFuncOp kernel) {
    for (Type type : kernel.getArgumentTypes())
      result[kernel.getName()].push_back(getBytes(type));
  });
  return result;
}

struct GpuToNvvmPass : penstock::impl::PipelineGpuToNvvmBase<GpuToNvvmPass> {
  void runOnOperation() override {
    // 1. Before the lowering, which decides alignments.
    gpu::GPUModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    std::string layout =
        llvm::Triple("nvptx64-nvidia-cuda").computeDataLayout();
    module->setAttr(LLVM::LLVMDialect::getDataLayoutAttrName(),
                    StringAttr::get(context, layout));

    // 2. What is several instructions of the dialect gpu.
    RewritePatternSet expansions(context);
    populateGpuRewritePatterns(expansions);
    if (failed(applyPatternsGreedily(module, std::move(expansions))))
      return signalPassFailure();

    // 3. All dialects at once, functions of libdevice last.
    LowerToLLVMOptions options(context);
    options.useBarePtrCallConv = true;
    LLVMTypeConverter types(context, options);
    configureGpuToNVVMTypeConverter(types);
    RewritePatternSet patterns(context);
    arith::populateArithToLLVMConversionPatterns(types, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
    index::populateIndexToLLVMConversionPatterns(types, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(types, patterns);
    populateMathToLLVMConversionPatterns(types, patterns);
    populateVectorToLLVMConversionPatterns(types, patterns);
    populateGpuToNVVMConversionPatterns(types, patterns, /*benefit=*/0);
    LLVMConversionTarget target(*context);
    configureGpuToNVVMConversionLegality(target);
    target.addLegalOp<LLVM::CopySignOp, LLVM::FAbsOp, LLVM::FCeilOp,
                      LLVM::FFloorOp, LLVM::FMAOp, LLVM::RoundEvenOp,
                      LLVM::SqrtOp>();
    // Intrinsics that the code generator has no instructions for.
    target.addIllegalOp<LLVM::ACosOp, LLVM::ASinOp, LLVM::ATan2Op, LLVM::ATanOp,
                        LLVM::CoshOp, LLVM::SinhOp, LLVM::TanOp>();
    llvm::StringMap<SmallVector<int64_t>> bytes = getParameterBytes(module);
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      return signalPassFailure();

    // 4. What a bare address says no more.
    StringRef name = LLVM::LLVMDialect::getDereferenceableAttrName();
    module.walk([&](LLVM::LLVMFuncOp function) {
      for (auto [number, count] :
           llvm::enumerate(bytes.lookup(function.getName())))
        if (count)
          function.setArgAttr(number, name,
                              IntegerAttr::get(types.getIndexType(), count));
    });
  }
};

} // namespace
