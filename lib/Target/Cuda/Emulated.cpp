//===- Emulated.cpp - Kernels that the host runs --------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The optimized code of a GPU, instruction by instruction, as code of the host.
// Arithmetic is IEEE's on both, so its bits are those of the GPU. What only a
// GPU has (barriers, shuffles, numbers of threads) is called by name, and
// shared memory belongs to the block that runs on this thread of the host.
// Whether an access lies within its buffer is asked before it.
//===----------------------------------------------------------------------===//

#include "KernelModule.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace mlir;
using namespace penstock;

using llvm::CallBase;
using llvm::Function;
using llvm::GlobalVariable;
using llvm::Instruction;
using llvm::IRBuilder;

namespace {

/// Returns whether the emulated GPU has it; `suffix` is what follows llvm.nvvm.
bool isEmulated(StringRef suffix) {
  static constexpr StringLiteral kKnown[] = {
      "read.ptx.sreg.tid.x",   "read.ptx.sreg.tid.y",
      "read.ptx.sreg.tid.z",   "read.ptx.sreg.ctaid.x",
      "read.ptx.sreg.ctaid.y", "read.ptx.sreg.ctaid.z",
      "read.ptx.sreg.ntid.x",  "read.ptx.sreg.nctaid.x",
      "read.ptx.sreg.laneid",  "barrier.cta.sync.aligned.all",
      "bar.warp.sync",         "shfl.sync.bfly.i32",
      "shfl.sync.down.i32",    "shfl.sync.up.i32",
      "shfl.sync.idx.i32",     "shfl.sync.bfly.f32",
      "shfl.sync.down.f32",    "shfl.sync.up.f32",
      "shfl.sync.idx.f32",     "vote.ballot.sync"};
  return llvm::is_contained(kKnown, suffix);
}

bool makesThreadsWait(StringRef callee) {
  return callee.starts_with("ps_emulated_") &&
         (callee.contains("barrier") || callee.contains("shfl") ||
          callee.contains("vote") || callee.contains("warp_sync"));
}

/// The function of the C library that computes one of libdevice; empty: none.
std::string findInCLibrary(StringRef name) {
  name.consume_front("__nv_");
  StringRef base = name;
  base.consume_back("f");
  bool isKnown =
      llvm::StringSwitch<bool>(base)
          .Cases({"sin", "cos", "tan", "asin", "acos", "atan", "atan2"}, true)
          .Cases({"sinh", "cosh", "tanh", "asinh", "acosh", "atanh"}, true)
          .Cases({"exp", "exp2", "expm1", "log", "log2", "log10", "log1p"},
                 true)
          .Cases({"pow", "cbrt", "erf", "erfc", "fmod", "rint", "round"}, true)
          .Default(false);
  // "erf" ends in f and is the one for f64.
  if (name == "erf")
    return "erf";
  return isKnown ? name.str() : "";
}

class Retargeter {
public:
  Retargeter(llvm::Module &module, Location loc) : module(module), loc(loc) {}

  LogicalResult run(const llvm::Module &host) {
    expandBf16();
    if (failed(replaceCalls()))
      return failure();
    placeSharedMemory();
    SmallVector<Function *> kernels;
    for (Function &function : module)
      if (!function.isDeclaration() &&
          function.getCallingConv() == llvm::CallingConv::PTX_Kernel)
        kernels.push_back(&function);
    for (Function &function : module)
      dropGpu(function);
    for (Function *kernel : kernels) {
      checkAccesses(*kernel);
      pack(*kernel);
    }
    module.setTargetTriple(host.getTargetTriple());
    module.setDataLayout(host.getDataLayout());
    return success();
  }

private:
  /// Rounds f32 to bf16, to nearest and to even, as integers: few processors
  /// have the instruction, and old C libraries lack the function.
  void expandBf16() {
    SmallVector<llvm::FPTruncInst *> casts;
    for (Function &function : module)
      for (Instruction &instruction : llvm::instructions(function))
        if (auto *cast = llvm::dyn_cast<llvm::FPTruncInst>(&instruction))
          if (cast->getType()->getScalarType()->isBFloatTy())
            casts.push_back(cast);
    for (llvm::FPTruncInst *cast : casts) {
      IRBuilder<> builder(cast);
      llvm::Value *value = cast->getOperand(0);
      llvm::Type *wide = builder.getInt32Ty(), *narrow = builder.getInt16Ty(),
                 *f32 = builder.getFloatTy();
      if (auto *vector = llvm::dyn_cast<llvm::VectorType>(cast->getType())) {
        wide = llvm::VectorType::get(wide, vector->getElementCount());
        narrow = llvm::VectorType::get(narrow, vector->getElementCount());
        f32 = llvm::VectorType::get(f32, vector->getElementCount());
      }
      if (value->getType() != f32)
        value = builder.CreateFPTrunc(value, f32);
      auto number = [&](uint64_t n) { return llvm::ConstantInt::get(wide, n); };
      llvm::Value *bits = builder.CreateBitCast(value, wide);
      llvm::Value *odd =
          builder.CreateAnd(builder.CreateLShr(bits, number(16)), number(1));
      llvm::Value *rounded =
          builder.CreateAdd(bits, builder.CreateAdd(odd, number(0x7fff)));
      llvm::Value *isNan = builder.CreateFCmpUNO(value, value);
      llvm::Value *result =
          builder.CreateSelect(isNan, number(0x7fff0000), rounded);
      result =
          builder.CreateTrunc(builder.CreateLShr(result, number(16)), narrow);
      cast->replaceAllUsesWith(builder.CreateBitCast(result, cast->getType()));
      cast->eraseFromParent();
    }
  }

  LogicalResult replaceCalls() {
    for (Function &function : llvm::make_early_inc_range(module)) {
      if (!function.isDeclaration())
        continue;
      StringRef name = function.getName();
      std::string replacement;
      if (name.consume_front("llvm.nvvm.")) {
        if (!isEmulated(name))
          return emitError(loc)
                 << "internal error: the emulated GPU has no " << name;
        replacement = "ps_emulated_" + name.str();
        std::replace(replacement.begin(), replacement.end(), '.', '_');
      } else if (name.starts_with("__nv_")) {
        replacement = findInCLibrary(name);
        if (replacement.empty())
          return emitError(loc) << "the emulated GPU has no function " << name;
      } else {
        continue;
      }
      auto callee =
          module.getOrInsertFunction(replacement, function.getFunctionType());
      auto *target = llvm::cast<Function>(callee.getCallee());
      bool waits = makesThreadsWait(replacement);
      if (waits)
        target->addFnAttr(llvm::Attribute::Convergent);
      for (llvm::User *user : llvm::make_early_inc_range(function.users())) {
        auto *call = llvm::cast<CallBase>(user);
        call->setCalledFunction(target);
        call->setAttributes(llvm::AttributeList());
        if (waits)
          call->setConvergent();
      }
      function.eraseFromParent();
    }
    return success();
  }

  /// Gives each variable its place in the memory of a block, which the emulator
  /// fills before it starts one. Those of different kernels overlap: only one
  /// of them runs in a block.
  void placeSharedMemory() {
    SmallVector<GlobalVariable *> variables;
    constexpr unsigned kShared = 3;
    for (GlobalVariable &variable : module.globals())
      if (variable.getAddressSpace() == kShared)
        variables.push_back(&variable);
    if (variables.empty())
      return;
    llvm::LLVMContext &context = module.getContext();
    auto base = module.getOrInsertFunction("ps_emulated_shared",
                                           llvm::PointerType::get(context, 0));
    for (GlobalVariable *variable : variables) {
      uint64_t bytes =
          module.getDataLayout().getTypeAllocSize(variable->getValueType());
      llvm::Align align = variable->getAlign().value_or(llvm::Align(16));
      llvm::DenseMap<Function *, uint64_t> offsets;
      llvm::convertUsersOfConstantsToInstructions({variable});
      for (llvm::Use &use : llvm::make_early_inc_range(variable->uses())) {
        auto *user = llvm::cast<Instruction>(use.getUser());
        auto [offset, isNew] = offsets.try_emplace(user->getFunction());
        if (isNew) {
          uint64_t &end = sharedBytes[user->getFunction()];
          offset->second = llvm::alignTo(end, align);
          end = offset->second + bytes;
        }
        auto *phi = llvm::dyn_cast<llvm::PHINode>(user);
        IRBuilder<> builder(phi ? phi->getIncomingBlock(use)->getTerminator()
                                : user);
        llvm::Value *address = builder.CreateConstGEP1_64(
            builder.getInt8Ty(), builder.CreateCall(base), offset->second);
        use.set(builder.CreateAddrSpaceCast(address, variable->getType()));
      }
      variable->eraseFromParent();
    }
  }

  /// Lets the emulator end the kernel where it would access something behind
  /// the end, or before the beginning, of a buffer of known size.
  void checkAccesses(Function &kernel) {
    const llvm::DataLayout &layout = module.getDataLayout();
    SmallVector<Instruction *> accesses;
    for (Instruction &instruction : llvm::instructions(kernel))
      if (llvm::isa<llvm::LoadInst, llvm::StoreInst>(instruction))
        accesses.push_back(&instruction);
    for (Instruction *access : accesses) {
      llvm::Value *address = llvm::getLoadStorePointerOperand(access);
      auto *buffer =
          llvm::dyn_cast<llvm::Argument>(llvm::getUnderlyingObject(address));
      uint64_t bytes = buffer ? buffer->getDereferenceableBytes() : 0;
      uint64_t size = layout.getTypeStoreSize(llvm::getLoadStoreType(access));
      if (bytes < size || address == buffer)
        continue;
      IRBuilder<> builder(access);
      llvm::Type *i64 = builder.getInt64Ty();
      llvm::Value *offset =
          builder.CreateSub(builder.CreatePtrToInt(address, i64),
                            builder.CreatePtrToInt(buffer, i64));
      llvm::Value *isOutside =
          builder.CreateICmpUGT(offset, builder.getInt64(bytes - size));
      builder.SetInsertPoint(llvm::SplitBlockAndInsertIfThen(
          isOutside, access->getIterator(), /*Unreachable=*/true));
      auto callee =
          module.getOrInsertFunction("ps_emulated_outside", builder.getVoidTy(),
                                     builder.getInt32Ty(), i64, i64);
      builder.CreateCall(callee, {builder.getInt32(buffer->getArgNo()), offset,
                                  builder.getInt64(bytes)});
    }
  }

  static void dropGpu(Function &function) {
    function.setCallingConv(llvm::CallingConv::C);
    function.removeFnAttr("target-cpu");
    function.removeFnAttr("target-features");
    for (Instruction &instruction : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<CallBase>(&instruction))
        call->setCallingConv(llvm::CallingConv::C);
  }

  /// NAME_packed takes the addresses of the parameters, as a launch does. Those
  /// that are addresses of the device lie away from the host's.
  void pack(Function &kernel) {
    llvm::LLVMContext &context = module.getContext();
    llvm::Type *pointer = llvm::PointerType::get(context, 0);
    auto *packed =
        Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                                 {pointer}, false),
                         llvm::GlobalValue::InternalLinkage,
                         kernel.getName() + "_packed", module);
    IRBuilder<> builder(llvm::BasicBlock::Create(context, "", packed));
    llvm::Value *bias = builder.CreateLoad(
        builder.getInt64Ty(),
        module.getOrInsertGlobal("ps_emulated_bias", builder.getInt64Ty()));
    SmallVector<llvm::Value *> arguments;
    for (llvm::Argument &argument : kernel.args()) {
      llvm::Value *cell = builder.CreateLoad(
          pointer, builder.CreateConstGEP1_64(pointer, packed->getArg(0),
                                              argument.getArgNo()));
      if (!argument.getType()->isPointerTy()) {
        arguments.push_back(builder.CreateLoad(argument.getType(), cell));
        continue;
      }
      llvm::Value *address = builder.CreateLoad(builder.getInt64Ty(), cell);
      arguments.push_back(builder.CreateIntToPtr(
          builder.CreateSub(address, bias), argument.getType()));
    }
    builder.CreateCall(&kernel, arguments);
    builder.CreateRetVoid();
    kernel.setLinkage(llvm::GlobalValue::InternalLinkage);
    bool waits = false;
    for (Instruction &instruction : llvm::instructions(kernel))
      if (auto *call = llvm::dyn_cast<CallBase>(&instruction))
        if (Function *callee = call->getCalledFunction())
          waits |= makesThreadsWait(callee->getName());
    addRow(kernel, *packed, waits);
  }

  /// A penstock_emulated_kernel.
  void addRow(Function &kernel, Function &packed, bool waits) {
    IRBuilder<> builder(module.getContext());
    auto *name = builder.CreateGlobalString(kernel.getName(), "", 0, &module);
    name->setLinkage(llvm::GlobalValue::PrivateLinkage);
    rows.push_back(
        llvm::ConstantStruct::getAnon({name, &packed, builder.getInt32(waits),
                                       builder.getInt32(static_cast<uint32_t>(
                                           sharedBytes.lookup(&kernel)))}));
  }

  llvm::Module &module;
  Location loc;
  /// Bytes of shared memory by kernel.
  llvm::DenseMap<Function *, uint64_t> sharedBytes;

public:
  SmallVector<llvm::Constant *> rows;
};

} // namespace

LogicalResult cuda::retargetToHost(llvm::Module &kernels,
                                   const llvm::Module &host, Location loc) {
  Retargeter retargeter(kernels, loc);
  if (failed(retargeter.run(host)))
    return failure();
  auto *type = llvm::ArrayType::get(retargeter.rows.front()->getType(),
                                    retargeter.rows.size());
  new GlobalVariable(
      kernels, type, /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage,
      llvm::ConstantArray::get(type, retargeter.rows), kEmulatedTable);
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(kernels, &stream))
    return emitError(loc) << "internal error: the emulated kernels are no "
                             "valid code: "
                          << problem;
  return success();
}
