//===- Pipelines.cpp - To the LLVM dialect --------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of every kind of device have a pipeline of their own. The last
// conversions are those of upstream; their order is what is ours.
//===----------------------------------------------------------------------===//

#include "passes/Runtime/Passes.h"
#include "penstock/Target/Target.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace penstock;

void penstock::buildLowerProgramToLlvmPipeline(
    OpPassManager &manager, const LowerProgramToLlvmOptions &options) {
  buildLowerProgramToRuntimePipeline(manager, options);
  buildConvertToLlvmPipeline(manager);
}

void penstock::buildLowerProgramToRuntimePipeline(
    OpPassManager &manager, const LowerProgramToLlvmOptions &options) {
  // The runtime's functions want to know who calls.
  manager.addPass(createPipelineAddDeviceArgument());
  buildKernelPipelines(manager, llvm::to_vector(options.kinds));
  // Device functions become LLVM functions here, which the tables of the
  // program can name.
  ConvertPipelineToRuntimeOptions runtime;
  runtime.plan = options.plan;
  manager.addPass(createConvertPipelineToRuntime(runtime));
}

void penstock::buildConvertToLlvmPipeline(OpPassManager &manager) {
  // First of all, as what follows takes as long as there are ops.
  manager.addPass(createPipelinePassAddresses());
  // Functions of devices compute the same versions and places again for each
  // buffer; it is less work for all that follows if they do so once.
  manager.addNestedPass<LLVM::LLVMFuncOp>(createCSEPass());

  // Structure first: masked and multi-dimensional vectors to loops, loops to
  // branches, views to address arithmetic. Then each dialect to LLVM. The
  // tables of the program are most of a module, and nothing in them is to be
  // converted: passes that need no symbols see functions only.
  manager.addNestedPass<func::FuncOp>(createConvertVectorToSCFPass());
  auto addToFunctions = [&](auto create) {
    manager.addNestedPass<func::FuncOp>(create());
    manager.addNestedPass<LLVM::LLVMFuncOp>(create());
  };
  addToFunctions([] { return createSCFToControlFlowPass(); });
  addToFunctions([] { return memref::createExpandStridedMetadataPass(); });
  addToFunctions([] { return createLowerAffinePass(); });
  addToFunctions([] { return createConvertVectorToLLVMPass(); });
  addToFunctions([] { return createArithToLLVMConversionPass(); });
  addToFunctions([] { return createConvertMathToLLVMPass(); });
  manager.addPass(createFinalizeMemRefToLLVMConversionPass());
  // Buffers of static shape are passed as bare addresses.
  ConvertFuncToLLVMPassOptions functions;
  functions.useBarePtrCallConv = true;
  manager.addPass(createConvertFuncToLLVMPass(functions));
  manager.addPass(createConvertControlFlowToLLVMPass());
  OpPassManager &functionManager = manager.nest<LLVM::LLVMFuncOp>();
  functionManager.addPass(createReconcileUnrealizedCastsPass());
  functionManager.addPass(createCanonicalizerPass());
  functionManager.addPass(createCSEPass());
}

void penstock::registerRuntimePipelines() {
  PassPipelineRegistration<LowerProgramToLlvmOptions>(
      "lower-program-to-llvm",
      "Device programs and kernels to the LLVM dialect",
      buildLowerProgramToLlvmPipeline);
}
