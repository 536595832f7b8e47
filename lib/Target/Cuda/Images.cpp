//===- Images.cpp - The code of kernels in the executable -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// penstock_device_code, described in abi.def: for each architecture the PTX,
// which later GPUs run, too, and the machine code where there is an assembler.
//===----------------------------------------------------------------------===//

#include "KernelModule.h"

#include "penstock/abi.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/Linker/Linker.h"

using namespace mlir;
using namespace penstock;

using llvm::Constant;
using llvm::ConstantStruct;
using llvm::GlobalVariable;

namespace {

class ImageTable {
public:
  explicit ImageTable(llvm::Module &host)
      : host(host), builder(host.getContext()) {}

  /// Adds bytes that the driver takes as they are.
  void add(uint32_t kind, const cuda::GpuArch &arch, StringRef bytes) {
    Constant *data = llvm::ConstantDataArray::getString(
        host.getContext(), bytes, /*AddNull=*/kind == PENSTOCK_IMAGE_PTX);
    auto *global = new GlobalVariable(
        host, data->getType(), /*isConstant=*/true,
        llvm::GlobalValue::InternalLinkage, data, "penstock.image");
    global->setAlignment(llvm::Align(64));
    add(kind, arch, global);
  }

  void add(uint32_t kind, const cuda::GpuArch &arch, GlobalVariable *data) {
    Constant *end = llvm::ConstantExpr::getGetElementPtr(
        data->getValueType(), data, builder.getInt64(1));
    images.push_back(ConstantStruct::getAnon(
        {builder.getInt32(kind), builder.getInt32(arch.number),
         builder.getInt32(static_cast<uint8_t>(arch.feature)),
         builder.getInt32(0), data, end}));
  }

  /// Defines what the program refers to.
  void emit() {
    auto *type = llvm::ArrayType::get(images.front()->getType(), images.size());
    auto *table = new GlobalVariable(
        host, type, /*isConstant=*/true, llvm::GlobalValue::InternalLinkage,
        llvm::ConstantArray::get(type, images), "penstock.images");
    Constant *code = ConstantStruct::getAnon(
        {builder.getInt32(static_cast<uint32_t>(images.size())), table});
    auto *global = new GlobalVariable(host, code->getType(),
                                      /*isConstant=*/true,
                                      llvm::GlobalValue::InternalLinkage, code);
    if (GlobalVariable *declared =
            host.getGlobalVariable(kDeviceCodeSymbol, /*AllowInternal=*/true)) {
      declared->replaceAllUsesWith(global);
      declared->eraseFromParent();
    }
    global->setName(kDeviceCodeSymbol);
  }

private:
  llvm::Module &host;
  llvm::IRBuilder<> builder;
  SmallVector<Constant *> images;
};

} // namespace

LogicalResult cuda::addImages(gpu::GPUModuleOp kernels, TargetAttr target,
                              const Toolkit &toolkit, llvm::Module &host) {
  ImageTable table(host);
  Location loc = kernels.getLoc();
  for (StringRef name : target.getArchList()) {
    const GpuArch &arch = *findGpuArch(name);
    if (target.isEmulated()) {
      std::unique_ptr<llvm::Module> code =
          translateKernels(kernels, arch, toolkit, host.getContext());
      if (!code || failed(retargetToHost(*code, host, loc)))
        return failure();
      if (llvm::Linker::linkModules(host, std::move(code)))
        return emitError(loc) << "internal error: the emulated kernels do not "
                                 "link";
      GlobalVariable *rows = host.getGlobalVariable(kEmulatedTable);
      rows->setLinkage(llvm::GlobalValue::InternalLinkage);
      table.add(PENSTOCK_IMAGE_EMULATED, arch, rows);
      continue;
    }
    FailureOr<std::string> ptx = emitPtx(kernels, arch, toolkit);
    if (failed(ptx))
      return failure();
    FailureOr<std::string> binary = assemble(*ptx, arch, toolkit, loc);
    if (failed(binary))
      return failure();
    if (!binary->empty())
      table.add(PENSTOCK_IMAGE_CUBIN, arch, *binary);
    table.add(PENSTOCK_IMAGE_PTX, arch, *ptx);
  }
  table.emit();
  return success();
}
