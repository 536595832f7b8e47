//===- KernelModule.cpp - Kernels as LLVM IR ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's optimizer sees the same module for PTX and for the emulated GPU, with
// a GPU's costs: what the emulation computes is what the GPU does.
//===----------------------------------------------------------------------===//

#include "KernelModule.h"

#include "penstock/Target/ObjectFile.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/Internalize.h"

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

using namespace mlir;
using namespace penstock;
using namespace penstock::cuda;

gpu::GPUModuleOp cuda::findKernels(ModuleOp module) {
  return module.lookupSymbol<gpu::GPUModuleOp>(kKernelsModule);
}

static std::unique_ptr<llvm::TargetMachine> createMachine(const GpuArch &arch,
                                                          Location loc) {
  static const bool once = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)once;
  std::string error;
  llvm::Triple triple("nvptx64-nvidia-cuda");
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) {
    emitError(loc) << "this build of LLVM has no code generator for GPUs: "
                   << error;
    return nullptr;
  }
  llvm::TargetOptions options;
  // Every addition and product rounds by itself: ptxas joins none of them.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  // The emulated GPU has the costs of a real one.
  StringRef name = arch.number ? arch.name : "sm_80";
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, name, "+ptx" + std::to_string(arch.ptx), options,
      llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

//===----------------------------------------------------------------------===//
// Functions of libdevice
//===----------------------------------------------------------------------===//

static SmallVector<llvm::Function *> getMissing(llvm::Module &module) {
  SmallVector<llvm::Function *> missing;
  for (llvm::Function &function : module)
    if (function.isDeclaration() && !function.use_empty() &&
        function.getName().starts_with("__nv_"))
      missing.push_back(&function);
  return missing;
}

/// Links those that the kernels call out of the toolkit's library.
static LogicalResult linkLibdevice(llvm::Module &module, const Toolkit &toolkit,
                                   Location loc) {
  SmallVector<llvm::Function *> missing = getMissing(module);
  if (missing.empty())
    return success();
  SmallVector<std::string> names;
  for (llvm::Function *function : missing)
    names.push_back(function->getName().drop_front(5).str());
  llvm::SmallString<256> path(toolkit.path);
  llvm::sys::path::append(path, "nvvm", "libdevice", "libdevice.10.bc");
  if (!llvm::sys::fs::exists(path))
    return emitError(loc) << "the GPU needs " << llvm::join(names, ", ")
                          << " of libdevice, and there is no " << path.str()
                          << "; name a CUDA toolkit by --cuda-path";
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> library =
      llvm::parseIRFile(path, diagnostic, module.getContext());
  if (!library)
    return emitError(loc) << path.str() << ": " << diagnostic.getMessage();
  library->setDataLayout(module.getDataLayout());
  library->setTargetTriple(module.getTargetTriple());
  auto makeInternal = [](llvm::Module &linked, const llvm::StringSet<> &added) {
    llvm::internalizeModule(linked, [&](const llvm::GlobalValue &value) {
      return !value.hasName() || !added.count(value.getName());
    });
  };
  if (llvm::Linker::linkModules(module, std::move(library),
                                llvm::Linker::Flags::LinkOnlyNeeded,
                                makeInternal))
    return emitError(loc) << "cannot link " << path.str();
  // Numbers next to zero are zero, as everywhere.
  module.setModuleFlag(llvm::Module::Override, "nvvm-reflect-ftz", 1);
  if (SmallVector<llvm::Function *> left = getMissing(module); !left.empty())
    return emitError(loc) << path.str() << " has no "
                          << left.front()->getName();
  return success();
}

//===----------------------------------------------------------------------===//
// LLVM IR and PTX
//===----------------------------------------------------------------------===//

/// Returns whether an instruction computes with f16 or bf16.
static bool isNarrowArithmetic(const llvm::Instruction &instruction) {
  if (instruction.getNumOperands() == 0 ||
      !instruction.getOperand(0)->getType()->getScalarType()->is16bitFPTy())
    return false;
  if (const auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
    switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::fma:
    case llvm::Intrinsic::maximum:
    case llvm::Intrinsic::maxnum:
    case llvm::Intrinsic::minimum:
    case llvm::Intrinsic::minnum:
    case llvm::Intrinsic::sqrt:
      return true;
    default:
      return false;
    }
  return llvm::isa<llvm::FCmpInst>(instruction) ||
         (llvm::isa<llvm::BinaryOperator>(instruction) &&
          instruction.getType()->isFPOrFPVectorTy());
}

/// Computes in f32 what is to be computed in f16 or bf16, and rounds: the same
/// bits, but for what is smaller than the smallest normal number. Instructions
/// of f16 flush that to zero where those of f32 shall, of which it is none; and
/// what instructions there are depends on the architecture. At the end, because
/// the optimizer reverses this.
static void computeInF32(llvm::Module &module) {
  SmallVector<llvm::Instruction *> found;
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (isNarrowArithmetic(instruction))
        found.push_back(&instruction);
  for (llvm::Instruction *instruction : found) {
    llvm::IRBuilder<> builder(instruction);
    auto widen = [&](llvm::Value *value) {
      llvm::Type *type = value->getType();
      if (!type->isFPOrFPVectorTy())
        return value;
      return builder.CreateFPExt(value,
                                 type->getWithNewType(builder.getFloatTy()));
    };
    llvm::Value *result;
    if (auto *compare = llvm::dyn_cast<llvm::FCmpInst>(instruction)) {
      result = builder.CreateFCmp(compare->getPredicate(),
                                  widen(compare->getOperand(0)),
                                  widen(compare->getOperand(1)));
    } else if (auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(instruction)) {
      SmallVector<llvm::Value *> arguments;
      for (llvm::Value *argument : call->args())
        arguments.push_back(widen(argument));
      result = builder.CreateIntrinsic(arguments.front()->getType(),
                                       call->getIntrinsicID(), arguments);
    } else {
      auto *binary = llvm::cast<llvm::BinaryOperator>(instruction);
      result =
          builder.CreateBinOp(binary->getOpcode(), widen(binary->getOperand(0)),
                              widen(binary->getOperand(1)));
    }
    if (result->getType() != instruction->getType())
      result = builder.CreateFPTrunc(result, instruction->getType());
    instruction->replaceAllUsesWith(result);
    instruction->eraseFromParent();
  }
}

std::unique_ptr<llvm::Module>
cuda::translateKernels(gpu::GPUModuleOp kernels, const GpuArch &arch,
                       const Toolkit &toolkit, llvm::LLVMContext &context) {
  MLIRContext *dialects = kernels.getContext();
  registerBuiltinDialectTranslation(*dialects);
  registerLLVMDialectTranslation(*dialects);
  registerGPUDialectTranslation(*dialects);
  registerNVVMDialectTranslation(*dialects);
  Location loc = kernels.getLoc();
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(arch, loc);
  if (!machine)
    return nullptr;
  std::unique_ptr<llvm::Module> module =
      translateModuleToLLVMIR(kernels, context, kKernelsModule);
  if (!module) {
    emitError(loc) << "internal error: the kernels have no form as LLVM IR";
    return nullptr;
  }
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  if (arch.number && failed(linkLibdevice(*module, toolkit, loc)))
    return nullptr;
  for (llvm::Function &function : *module)
    if (!function.isDeclaration())
      function.addFnAttr("denormal-fp-math-f32", "preserve-sign,preserve-sign");
  optimizeModule(*module, *machine, llvm::OptimizationLevel::O3);
  computeInF32(*module);
  return module;
}

FailureOr<std::string> cuda::emitPtx(gpu::GPUModuleOp kernels,
                                     const GpuArch &arch,
                                     const Toolkit &toolkit) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module =
      translateKernels(kernels, arch, toolkit, context);
  if (!module)
    return failure();
  std::unique_ptr<llvm::TargetMachine> machine =
      createMachine(arch, kernels.getLoc());
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager manager;
  if (machine->addPassesToEmitFile(manager, stream, nullptr,
                                   llvm::CodeGenFileType::AssemblyFile))
    return kernels.emitError("internal error: LLVM emits no PTX");
  manager.run(*module);
  return text.str().str();
}
