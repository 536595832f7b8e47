//===- Pipelines.cpp - The pipeline lower-program-to-llvm -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What runs between the two levels, in order, and why in this order.
//===----------------------------------------------------------------------===//

#include "passes/Lowering/Passes.h"

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

void penstock::buildLowerKernelsCpuPipeline(
    OpPassManager &manager, const LowerProgramToLlvmOptions &options) {
  // The runtime's functions want to know who calls.
  manager.addPass(createPipelineAddDeviceArgument());
  // Rows first: a loop over rows is a good thing to split.
  PipelineFuseRowsOptions rows;
  rows.threads = options.threads;
  manager.addNestedPass<func::FuncOp>(createPipelineFuseRows(rows));
  // Splitting needs ops; loops only exist afterwards.
  PipelineParalleliseOptions parallelise;
  parallelise.threads = options.threads;
  parallelise.threshold = options.threshold;
  manager.addPass(createPipelineParallelise(parallelise));
  // Before the loops are written out: equal ones are written once.
  manager.addPass(createPipelineOutlineKernels());
  PipelineVectorLoopsOptions loops;
  loops.width = options.vectorWidth;
  manager.addNestedPass<func::FuncOp>(createPipelineVectorLoops(loops));
  // On the vectors, which the loops made of scalar bodies.
  manager.addPass(createPipelineApproximateMath());
  manager.addNestedPass<func::FuncOp>(createLoopInvariantCodeMotionPass());
  manager.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  manager.addNestedPass<func::FuncOp>(createCSEPass());
}

void penstock::buildConvertToLlvmPipeline(OpPassManager &manager) {
  // Structure first: masked and multi-dimensional vectors to loops, loops to
  // branches, views to address arithmetic. Then each dialect to LLVM.
  manager.addNestedPass<func::FuncOp>(createConvertVectorToSCFPass());
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(memref::createExpandStridedMetadataPass());
  manager.addPass(createLowerAffinePass());
  manager.addPass(createConvertVectorToLLVMPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createFinalizeMemRefToLLVMConversionPass());
  // Buffers of static shape are passed as bare addresses.
  ConvertFuncToLLVMPassOptions functions;
  functions.useBarePtrCallConv = true;
  manager.addPass(createConvertFuncToLLVMPass(functions));
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

void penstock::buildLowerProgramToLlvmPipeline(
    OpPassManager &manager, const LowerProgramToLlvmOptions &options) {
  buildLowerKernelsCpuPipeline(manager, options);
  // Device functions become LLVM functions here, which the tables of the
  // program can name.
  ConvertPipelineToRuntimeOptions runtime;
  runtime.cpu = options.cpu;
  runtime.features = options.features;
  runtime.method = options.method;
  runtime.schedule = options.schedule;
  runtime.plan = options.plan;
  manager.addPass(createConvertPipelineToRuntime(runtime));
  buildConvertToLlvmPipeline(manager);
}

void penstock::registerLoweringPipelines() {
  PassPipelineRegistration<LowerProgramToLlvmOptions>(
      "lower-program-to-llvm",
      "Device programs and kernels to the LLVM dialect",
      buildLowerProgramToLlvmPipeline);
  PassPipelineRegistration<LowerProgramToLlvmOptions>(
      "pipeline-lower-kernels-cpu",
      "Kernels to vector loops, split over threads; products stay",
      buildLowerKernelsCpuPipeline);
}
