//===- CudaTarget.cpp - CUDA devices --------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels become images of code in the executable, which the runtime loads on
// the GPU. Device functions stay code of the host.
//===----------------------------------------------------------------------===//

#include "penstock/Target/Cuda/CudaTarget.h"

#include "KernelModule.h"
#include "Library.h"
#include "penstock/Target/ObjectFile.h"
#include "penstock/cuda_convolution.h"

#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"

using namespace mlir;
using namespace penstock;

namespace {

/// Fails where kernels, and the library calls beside them, were made for the
/// emulated GPU and are to run on a real one, or the other way around.
LogicalResult checkTarget(gpu::GPUModuleOp kernels, cuda::TargetAttr target) {
  auto known =
      kernels->getAttrOfType<cuda::TargetAttr>(cuda::kKernelsTargetAttr);
  if (!known || known.isEmulated() == target.isEmulated())
    return success();
  return kernels.emitError("this program was made for ")
         << known.getArchs() << ", not for " << target.getArchs()
         << "; compile it with --gpu-arch=" << known.getArchs();
}

class CudaTarget : public Target {
public:
  using Target::Target;

  FailureOr<LibraryPlan> plan(TargetAttrInterface target,
                              kernel::LibraryCallOpInterface call,
                              std::string &reason) const override {
    if (auto gemm = dyn_cast<kernel::GemmOp>(call.getOperation()))
      return cuda::planProduct(cast<cuda::TargetAttr>(target), gemm, reason);
    auto conv = cast<kernel::ConvOp>(call.getOperation());
    return cuda::planConvolution(
        cast<cuda::TargetAttr>(target), kernel::ConvolutionShape::get(conv),
        dyn_cast_or_null<cuda::ConvAttr>(conv.getConfigAttr()),
        asksForDirectConvolution(conv), reason);
  }

  /// No library of a GPU gains from weights that are packed beforehand.
  FailureOr<std::optional<WeightPacking>>
  planPacking(TargetAttrInterface, kernel::LibraryCallOpInterface,
              std::string &) const override {
    return std::optional<WeightPacking>();
  }

  bool takesConvolution(TargetAttrInterface target,
                        const kernel::ConvolutionShape &shape, bool isDirect,
                        std::string &reason) const override {
    return succeeded(cuda::planConvolution(cast<cuda::TargetAttr>(target),
                                           shape, /*config=*/{}, isDirect,
                                           reason));
  }

  std::optional<CallDescriptor>
  describe(kernel::LibraryCallOpInterface call) const override {
    if (auto gemm = dyn_cast<kernel::GemmOp>(call.getOperation()))
      return cuda::describeProduct(gemm);
    return cuda::describeConvolution(cast<kernel::ConvOp>(call.getOperation()));
  }
  std::optional<CallDescriptor>
  describe(kernel::PackingAttrInterface) const override {
    return std::nullopt;
  }

  int64_t getAlignment(kernel::LibraryCallOpInterface call) const override {
    return isa<kernel::ConvOp>(call) ? runtime::cuda::kTensorAlignment : 1;
  }

  /// Each iteration is a thread.
  bool prefersParallelLoops(TargetAttrInterface) const override { return true; }

  /// Tensor cores do.
  bool multipliesBf16(TargetAttrInterface) const override { return true; }

  /// A sum has at most the threads of one block.
  bool splitsLongSums(TargetAttrInterface target) const override {
    return !cast<cuda::TargetAttr>(target).getPlain();
  }

  /// Half of what the data sheet of an H100 promises: f32 without tensor cores,
  /// and HBM3.
  MachineRates getRates(TargetAttrInterface) const override {
    return {.flopsPerSecond = 33e12, .bytesPerSecond = 1.7e12};
  }

  FailureOr<DeviceDescription> describe(TargetAttrInterface attribute,
                                        Location loc) const override {
    auto target = cast<cuda::TargetAttr>(attribute);
    FailureOr<TargetCpu> host = resolveTargetCpu(getHostProcessor(target), loc);
    if (failed(host))
      return failure();
    return DeviceDescription{cuda::CudaDialect::getDialectNamespace().str(), 1,
                             target.getArchs().str(), host->required};
  }

  /// Emulated kernels are code of the host, which may as well be fast.
  std::string getHostProcessor(TargetAttrInterface target) const override {
    return cast<cuda::TargetAttr>(target).isEmulated() ? "native" : "";
  }

  LogicalResult addKernelCode(TargetAttrInterface target, ModuleOp module,
                              const Toolkit &toolkit,
                              llvm::Module &host) const override {
    gpu::GPUModuleOp kernels = cuda::findKernels(module);
    auto own = cast<cuda::TargetAttr>(target);
    if (!kernels)
      return success();
    if (failed(checkTarget(kernels, own)))
      return failure();
    return cuda::addImages(kernels, own, toolkit, host);
  }

  LogicalResult printKernelCode(TargetAttrInterface target, ModuleOp module,
                                const Toolkit &toolkit,
                                llvm::raw_ostream &output) const override {
    gpu::GPUModuleOp kernels = cuda::findKernels(module);
    if (!kernels)
      return success();
    if (failed(checkTarget(kernels, cast<cuda::TargetAttr>(target))))
      return failure();
    for (StringRef name : cast<cuda::TargetAttr>(target).getArchList()) {
      FailureOr<std::string> ptx =
          cuda::emitPtx(kernels, *cuda::findGpuArch(name), toolkit);
      if (failed(ptx))
        return failure();
      output << *ptx;
    }
    return success();
  }

  std::vector<std::string>
  getLinkLibraries(TargetAttrInterface target) const override {
    if (cast<cuda::TargetAttr>(target).isEmulated())
      return {"libpenstock_cuda.a", "libpenstock_emulated.a"};
    return {"libpenstock_cuda.a"};
  }
};

} // namespace

void penstock::registerCudaTarget(DialectRegistry &registry) {
  registry.insert<cuda::CudaDialect, gpu::GPUDialect>();
  // Host code is translated with the kernels beside it.
  registerGPUDialectTranslation(registry);
  registry.addExtension(+[](MLIRContext *, cuda::CudaDialect *dialect) {
    dialect->addInterfaces<CudaTarget>();
  });
}
