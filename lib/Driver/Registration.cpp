//===- Registration.cpp - All dialects and passes of Penstock -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Registration.h. Upstream dialects are named one by one: a compiler that
// loads all of them starts in twice the time.
//===----------------------------------------------------------------------===//

#include "penstock/Driver/Registration.h"

#include "dialects/Kernel/Kernel.h"
#include "dialects/Nn/Nn.h"
#include "dialects/Onnx/Onnx.h"
#include "dialects/Pipeline/Pipeline.h"
#include "passes/Cpu/Passes.h"
#include "passes/Cuda/Passes.h"
#include "passes/Frontend/Passes.h"
#include "passes/Kernels/Passes.h"
#include "passes/Partition/Passes.h"
#include "passes/Program/Passes.h"
#include "passes/Runtime/Passes.h"
#include "passes/Schedule/Passes.h"
#include "passes/Training/Passes.h"
#include "passes/Verify/Passes.h"
#include "penstock/Autodiff/Autodiff.h"
#include "penstock/Driver/Options.h"
#include "penstock/Methods/MethodSpec.h"
#include "penstock/Optimizers/OptimizerSpec.h"
#include "penstock/Schedule/FromIR.h"
#include "penstock/Target/Cpu/CpuTarget.h"
#include "penstock/Target/Cuda/CudaTarget.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/Transforms/AllInterfaces.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/TensorInferTypeOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/TensorTilingInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

using namespace mlir;
using namespace penstock;

/// Our own kinds of devices, and behind them those of plug-ins. That of CPUs is
/// the first one: it also lowers functions without a target.
static std::vector<TargetKind> &getTargetKinds() {
  static std::vector<TargetKind> kinds = {
      {"cpu", registerCpuTarget, registerCpuKernelPipeline,
       [](MLIRContext *context,
          const CompileOptions &options) -> pipeline::TargetAttrInterface {
         return cpu::TargetAttr::get(context, options.threads, options.march);
       }},
      {"cuda", registerCudaTarget, registerCudaKernelPipeline,
       [](MLIRContext *context,
          const CompileOptions &options) -> pipeline::TargetAttrInterface {
         return cuda::TargetAttr::get(
             context, options.gpuArch, options.precision == "tf32",
             options.libraryWorkspace, options.plainKernels);
       }}};
  return kinds;
}

void penstock::addTargetKind(const TargetKind &kind) {
  getTargetKinds().push_back(kind);
}

std::vector<std::string> penstock::getTargetNames() {
  std::vector<std::string> names;
  for (const TargetKind &kind : getTargetKinds())
    names.push_back(kind.name.str());
  return names;
}

void penstock::registerDialects(DialectRegistry &registry) {
  registry.insert<onnx::OnnxDialect, nn::NnDialect, pipeline::PipelineDialect,
                  kernel::KernelDialect, affine::AffineDialect,
                  arith::ArithDialect, bufferization::BufferizationDialect,
                  cf::ControlFlowDialect, func::FuncDialect, gpu::GPUDialect,
                  LLVM::LLVMDialect, linalg::LinalgDialect, math::MathDialect,
                  memref::MemRefDialect, NVVM::NVVMDialect, scf::SCFDialect,
                  tensor::TensorDialect, vector::VectorDialect>();
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(
      registry);
  linalg::registerAllDialectInterfaceImplementations(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerInferTypeOpInterfaceExternalModels(registry);
  tensor::registerTilingInterfaceExternalModels(registry);
  vector::registerBufferizableOpInterfaceExternalModels(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerAutodiffModels(registry);
  registerOptimizers(registry);
  registerMethods(registry);
  schedule::registerSchedules(registry);
  for (const TargetKind &kind : getTargetKinds()) {
    kind.registerTarget(registry);
    kind.registerKernelPipeline();
  }
}

void penstock::registerPasses() {
  registerFrontendPasses();
  registerPartitionPasses();
  registerTrainingPasses();
  registerSchedulePasses();
  registerProgramPasses();
  registerKernelsPasses();
  registerCpuPasses();
  registerCudaPasses();
  registerRuntimePasses();
  registerVerifyPasses();
  registerFrontendPipelines();
  registerPartitionPipelines();
  registerTrainingPipelines();
  registerSchedulePipelines();
  registerProgramPipelines();
  registerCpuPipelines();
  registerCudaPipelines();
  registerRuntimePipelines();
}

penstock::pipeline::TargetAttrInterface
penstock::getTarget(MLIRContext *context, const CompileOptions &options,
                    StringRef kind) {
  context->getOrLoadDialect(kind);
  auto found = llvm::find_if(getTargetKinds(), [&](const TargetKind &each) {
    return each.name == kind;
  });
  return found->makeTarget(context, options);
}

SmallVector<penstock::pipeline::TargetAttrInterface>
penstock::getTargets(MLIRContext *context, const CompileOptions &options) {
  SmallVector<pipeline::TargetAttrInterface> targets;
  for (const std::string &kind : options.deviceTargets)
    targets.push_back(getTarget(context, options, kind));
  if (targets.empty())
    targets.push_back(getTarget(context, options, options.target));
  return targets;
}
