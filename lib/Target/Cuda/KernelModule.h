//===- KernelModule.h - Kernels as LLVM IR ----------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A gpu.module in the LLVM and NVVM dialects becomes LLVM IR, optimized for one
// architecture. PTX is made of it, and code of the host for the emulated GPU.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_TARGET_CUDA_KERNELMODULE_H
#define PENSTOCK_LIB_TARGET_CUDA_KERNELMODULE_H

#include "dialects/Cuda/Cuda.h"
#include "penstock/Target/Target.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/IR/Module.h"

#include <memory>

namespace penstock::cuda {

/// Returns the kernels of a program, or null where none is launched.
mlir::gpu::GPUModuleOp findKernels(mlir::ModuleOp module);

/// Translates and optimizes the kernels for an architecture. Functions of
/// libdevice come from the toolkit; the emulated GPU has them in the C library.
/// Null after an error at `kernels`.
std::unique_ptr<llvm::Module> translateKernels(mlir::gpu::GPUModuleOp kernels,
                                               const GpuArch &arch,
                                               const Toolkit &toolkit,
                                               llvm::LLVMContext &context);

/// Returns the kernels as PTX.
mlir::FailureOr<std::string> emitPtx(mlir::gpu::GPUModuleOp kernels,
                                     const GpuArch &arch,
                                     const Toolkit &toolkit);

/// Assembles PTX. An empty result: there is no assembler.
mlir::FailureOr<std::string> assemble(llvm::StringRef ptx, const GpuArch &arch,
                                      const Toolkit &toolkit,
                                      mlir::Location loc);

/// The symbol of an emulated image in the code of the host.
inline constexpr llvm::StringLiteral kEmulatedTable =
    "penstock_emulated_kernels";

/// Turns kernels into functions that the host calls once per thread, each
/// NAME_packed. What they need of a GPU they call by a name that begins with
/// ps_emulated_. Fails with an error at `loc` where the emulated GPU has no
/// such instruction.
mlir::LogicalResult retargetToHost(llvm::Module &kernels,
                                   const llvm::Module &host,
                                   mlir::Location loc);

/// Adds penstock_device_code to the host's code.
mlir::LogicalResult addImages(mlir::gpu::GPUModuleOp kernels, TargetAttr target,
                              const Toolkit &toolkit, llvm::Module &host);

} // namespace penstock::cuda

#endif // PENSTOCK_LIB_TARGET_CUDA_KERNELMODULE_H
