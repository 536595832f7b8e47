//===- Pipelines.cpp - The pipeline lower-program-to-llvm -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What runs between the two levels, in order, and why in this order.
//===----------------------------------------------------------------------===//

#include "passes/Cpu/Passes.h"
#include "passes/Kernels/Passes.h"
#include "passes/Runtime/Passes.h"

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
  PipelineParallelizeOptions parallelize;
  parallelize.threads = options.threads;
  parallelize.threshold = options.threshold;
  manager.addPass(createPipelineParallelize(parallelize));
  // Before the loops are written out: equal ones are written once.
  manager.addPass(createPipelineOutlineKernels());
  PipelineVectorLoopsOptions loops;
  loops.width = options.vectorWidth;
  manager.addNestedPass<func::FuncOp>(createPipelineVectorLoops(loops));
  // On the vectors, which the loops made of scalar bodies.
  manager.addPass(createPipelineApproximateMath());
  manager.addPass(createPipelineExpandBf16());
  manager.addNestedPass<func::FuncOp>(createLoopInvariantCodeMotionPass());
  manager.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  manager.addNestedPass<func::FuncOp>(createCSEPass());
}

void penstock::buildLowerProgramToLlvmPipeline(
    OpPassManager &manager, const LowerProgramToLlvmOptions &options) {
  buildLowerKernelsCpuPipeline(manager, options);
  // Device functions become LLVM functions here, which the tables of the
  // program can name.
  ConvertPipelineToRuntimeOptions runtime;
  runtime.cpu = options.cpu;
  runtime.features = options.features;
  runtime.plan = options.plan;
  manager.addPass(createConvertPipelineToRuntime(runtime));
  buildConvertToLlvmPipeline(manager);
}

void penstock::registerCpuPipelines() {
  PassPipelineRegistration<LowerProgramToLlvmOptions>(
      "lower-program-to-llvm",
      "Device programs and kernels to the LLVM dialect",
      buildLowerProgramToLlvmPipeline);
  PassPipelineRegistration<LowerProgramToLlvmOptions>(
      "pipeline-lower-kernels-cpu",
      "Kernels to vector loops, split over threads; products stay",
      buildLowerKernelsCpuPipeline);
}
