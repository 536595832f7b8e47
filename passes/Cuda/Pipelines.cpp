//===- Pipelines.cpp - Kernels on a GPU -----------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pipeline from kernels on buffers to a gpu.module in the NVVM dialect:
// what runs, in order, and why in this order.
//===----------------------------------------------------------------------===//

#include "dialects/Cuda/Cuda.h"
#include "passes/Cuda/Passes.h"
#include "passes/Kernels/Passes.h"
#include "penstock/Target/Target.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace penstock;

bool penstock::isStageFunction(func::FuncOp function, StringRef kind) {
  return !function.isDeclaration() &&
         !function->hasAttr(pipeline::kDeviceAttr) &&
         pipeline::isOfKind(function, kind) &&
         (kind.empty() || pipeline::getTarget(function));
}

void penstock::buildCudaKernelPipeline(OpPassManager &manager) {
  std::string kind = cuda::CudaDialect::getDialectNamespace().str();
  // Calls of functions, before these have kernels.
  PipelineMergeUpdatesOptions updates;
  updates.kind = kind;
  manager.addPass(createPipelineMergeUpdates(updates));
  // Before ops join rows: a product takes them along for nothing.
  PipelineFormEpiloguesOptions epilogues;
  epilogues.kind = kind;
  manager.addNestedPass<func::FuncOp>(createPipelineFormEpilogues(epilogues));
  // On the host's buffers, of which it is known whether they overlap.
  PipelineParallelLoopsOptions parallel;
  parallel.kind = kind;
  manager.addNestedPass<func::FuncOp>(createPipelineParallelLoops(parallel));
  PipelineFormRowsOptions rows;
  rows.kind = kind;
  manager.addNestedPass<func::FuncOp>(createPipelineFormRows(rows));
  // Before the kernels are written out: equal ones are written once.
  PipelineOutlineGpuKernelsOptions outline;
  outline.kind = kind;
  manager.addPass(createPipelineOutlineGpuKernels(outline));
  PipelinePlaceConstantsOptions constants;
  constants.kind = kind;
  manager.addNestedPass<func::FuncOp>(createPipelinePlaceConstants(constants));
  // Threads, class by class; the last one takes what is left.
  manager.addPass(createPipelineGpuUpdates());
  manager.addPass(createPipelineGpuRows());
  manager.addPass(createPipelineGpuElementwise());
  manager.addPass(createPipelineGpuTransposes());
  manager.addPass(createPipelineGpuScatters());
  manager.addPass(createPipelineGpuLoops());
  // When all that a function does are launches and library calls, and kernels
  // are final but for their parameters.
  PipelineFormActionsOptions actions;
  actions.kind = kind;
  manager.addPass(createPipelineFormActions(actions));
  // Before anything becomes LLVM: on the host, too.
  PipelineApproximateMathOptions math;
  math.kind = kind;
  manager.addPass(createPipelineApproximateMath(math));

  OpPassManager &kernels = manager.nest<gpu::GPUModuleOp>();
  kernels.addPass(createLoopInvariantCodeMotionPass());
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
  // Structure first: vectors of several dimensions to loops, loops to branches,
  // views to address arithmetic.
  kernels.addPass(createConvertVectorToSCFPass());
  kernels.addPass(createSCFToControlFlowPass());
  kernels.addPass(memref::createExpandStridedMetadataPass());
  kernels.addPass(createLowerAffinePass());
  kernels.addPass(createPipelineGpuToNvvm());
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
  kernels.addPass(createReconcileUnrealizedCastsPass());
}

void penstock::registerCudaPipelines() {
  PassPipelineRegistration<>(
      "pipeline-lower-kernels-cuda",
      "Kernels to a gpu.module in the NVVM dialect; library calls stay",
      buildCudaKernelPipeline);
}

void penstock::registerCudaKernelPipeline() {
  registerKernelPipeline(cuda::CudaDialect::getDialectNamespace(),
                         buildCudaKernelPipeline);
}
