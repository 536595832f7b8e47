//===- Pipelines.cpp - Kernels on a CPU -----------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pipeline from kernels on buffers to loops over vectors: what runs, in
// order, and why in this order.
//===----------------------------------------------------------------------===//

#include "passes/Cpu/Passes.h"
#include "passes/Kernels/Passes.h"
#include "penstock/Target/Target.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace penstock;

void penstock::buildCpuKernelPipeline(OpPassManager &manager,
                                      const CpuKernelOptions &options) {
  StringRef kind = cpu::CpuDialect::getDialectNamespace();
  // Rows first: a loop over rows is a good thing to split.
  PipelineFuseRowsOptions rows;
  rows.kind = kind.str();
  manager.addNestedPass<func::FuncOp>(createPipelineFuseRows(rows));
  // Splitting needs ops; loops only exist afterwards.
  PipelineParallelizeOptions parallelize;
  parallelize.threshold = options.threshold;
  manager.addPass(createPipelineParallelize(parallelize));
  // Before the loops are written out: equal ones are written once.
  PipelineOutlineKernelsOptions outline;
  outline.kind = kind.str();
  manager.addPass(createPipelineOutlineKernels(outline));
  PipelineVectorLoopsOptions loops;
  loops.width = options.vectorWidth;
  manager.addNestedPass<func::FuncOp>(createPipelineVectorLoops(loops));
  // On the vectors, which the loops made of scalar bodies.
  PipelineApproximateMathOptions math;
  math.kind = kind.str();
  manager.addPass(createPipelineApproximateMath(math));
  manager.addNestedPass<func::FuncOp>(createPipelineExpandBf16());
  manager.addNestedPass<func::FuncOp>(createLoopInvariantCodeMotionPass());
  manager.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  manager.addNestedPass<func::FuncOp>(createCSEPass());
}

void penstock::registerCpuPipelines() {
  PassPipelineRegistration<CpuKernelOptions>(
      "pipeline-lower-kernels-cpu",
      "Kernels to vector loops, split over threads; library calls stay",
      buildCpuKernelPipeline);
}

void penstock::registerCpuKernelPipeline() {
  registerKernelPipeline(cpu::CpuDialect::getDialectNamespace(),
                         [](OpPassManager &manager) {
                           buildCpuKernelPipeline(manager, CpuKernelOptions());
                         });
}

cpu::TargetAttr penstock::getCpuTarget(func::FuncOp function) {
  if (pipeline::TargetAttrInterface target = pipeline::getTarget(function))
    return dyn_cast<cpu::TargetAttr>(target);
  return cpu::TargetAttr::get(function.getContext(), 1, "native");
}
