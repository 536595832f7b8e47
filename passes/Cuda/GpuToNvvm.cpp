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
#include "llvm/TargetParser/Triple.h"

namespace penstock {
#define GEN_PASS_DEF_PIPELINEGPUTONVVM
#include "passes/Cuda/Passes.h.inc"
} // namespace penstock

using namespace mlir;

namespace {

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
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
