//===- ObjectFile.cpp - From the LLVM dialect to machine code -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's own back end, driven as `opt` and `llc` do.
//===----------------------------------------------------------------------===//

#include "penstock/Target/ObjectFile.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace penstock;

namespace {

void initializeTargets() {
  static const bool once = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)once;
}

std::string joined(const llvm::StringSet<> &features) {
  SmallVector<std::string> names;
  for (const auto &feature : features)
    names.push_back("+" + feature.getKey().str());
  llvm::sort(names);
  return llvm::join(names, ",");
}

std::unique_ptr<llvm::TargetMachine>
createMachine(const TargetCpu &cpu, unsigned optimization, Location loc) {
  std::string error;
  llvm::Triple triple(cpu.triple);
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) {
    emitError(loc) << error;
    return nullptr;
  }
  llvm::TargetOptions options;
  // Only products and sums that the IR joins itself are joined.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.FunctionSections = true;
  options.DataSections = true;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, cpu.name, cpu.features, options, llvm::Reloc::PIC_, std::nullopt,
      optimization > 1 ? llvm::CodeGenOptLevel::Default
                       : llvm::CodeGenOptLevel::Less));
  if (!machine)
    emitError(loc) << "LLVM has no code generator for " << cpu.triple;
  return machine;
}

/// Says what the functions that do not say it yet are compiled for.
void setProcessor(llvm::Module &module, const TargetCpu &cpu) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration() || function.hasFnAttribute("target-cpu"))
      continue;
    function.addFnAttr("target-cpu", cpu.name);
    function.addFnAttr("target-features", cpu.features);
    // The default would be 256 bits where 512 clock lower.
    if (cpu.vectorWidth == 16)
      function.addFnAttr("prefer-vector-width", "512");
  }
}

/// Returns whether a function is long, but does nothing but compute addresses
/// and call: a stage of many kernels, or who runs it. For such, alias analysis
/// and schedulers take more than linear time, and gain nothing.
bool isLongGlue(const llvm::Function &function) {
  constexpr size_t kManyOperands = 256; // in a block
  size_t most = 0;
  for (const llvm::BasicBlock &block : function) {
    size_t operands = 0;
    for (const llvm::Instruction &op : block) {
      if (op.getType()->isVectorTy())
        return false;
      operands += op.getNumOperands();
    }
    most = std::max(most, operands);
  }
  return most > kManyOperands;
}

/// The module as LLVM IR for `machine`'s CPU.
std::unique_ptr<llvm::Module>
translate(ModuleOp module, const TargetOptions &options, const TargetCpu &cpu,
          llvm::TargetMachine &machine, llvm::LLVMContext &context) {
  registerBuiltinDialectTranslation(*module.getContext());
  registerLLVMDialectTranslation(*module.getContext());
  // Before the translation: it looks up alignments.
  module->setAttr(
      LLVM::LLVMDialect::getDataLayoutAttrName(),
      StringAttr::get(module.getContext(),
                      machine.createDataLayout().getStringRepresentation()));
  module->setAttr(LLVM::LLVMDialect::getTargetTripleAttrName(),
                  StringAttr::get(module.getContext(), cpu.triple));
  std::unique_ptr<llvm::Module> result = translateModuleToLLVMIR(
      module, context, module.getName().value_or("penstock"));
  if (!result) {
    module.emitError("internal error: the module has no form as LLVM IR");
    return nullptr;
  }
  setProcessor(*result, cpu);
  for (llvm::Function &function : *result) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("no-trapping-math", "true");
    if (isLongGlue(function)) {
      function.addFnAttr(llvm::Attribute::OptimizeNone);
      function.addFnAttr(llvm::Attribute::NoInline);
    }
    if (!llvm::is_contained(options.exported, function.getName()))
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  for (llvm::GlobalVariable &global : result->globals())
    if (!global.isDeclaration() && !global.hasAppendingLinkage() &&
        !llvm::is_contained(options.exported, global.getName()))
      global.setLinkage(llvm::GlobalValue::InternalLinkage);
  return result;
}

} // namespace

FailureOr<TargetCpu> penstock::resolveTargetCpu(StringRef march, Location loc) {
  initializeTargets();
  TargetCpu cpu;
  cpu.triple = llvm::sys::getDefaultTargetTriple();
  llvm::StringSet<> features;
  if (march == "native") {
    static const std::string name = llvm::sys::getHostCPUName().str();
    cpu.name = name;
    // A virtual machine takes 50 us for each question, and every call of a
    // library asks.
    static const llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
    SmallVector<std::string> all;
    for (const auto &feature : host) {
      if (feature.getValue())
        features.insert(feature.getKey());
      all.push_back((feature.getValue() ? "+" : "-") + feature.getKey().str());
    }
    llvm::sort(all);
    cpu.features = llvm::join(all, ",");
  } else {
    cpu.name = march.empty() ? "generic" : march.str();
    march = cpu.name;
    std::string error;
    llvm::Triple triple(cpu.triple);
    const llvm::Target *target =
        llvm::TargetRegistry::lookupTarget(triple, error);
    if (!target)
      return emitError(loc) << error;
    std::unique_ptr<llvm::MCSubtargetInfo> generic(
        target->createMCSubtargetInfo(triple, "", ""));
    if (!generic || !generic->isCPUStringValid(march))
      return emitError(loc) << "--march=" << march
                            << ": LLVM knows no such CPU for " << cpu.triple;
    std::unique_ptr<llvm::MCSubtargetInfo> info(
        target->createMCSubtargetInfo(triple, march, ""));
    for (const llvm::SubtargetFeatureKV &feature :
         info->getEnabledProcessorFeatures())
      features.insert(feature.Key);
    cpu.features = joined(features);
  }
  if (features.contains("avx512f") && features.contains("avx512vl") &&
      features.contains("avx512bw") && features.contains("avx512dq"))
    cpu.vectorWidth = 16;
  else if (features.contains("avx2"))
    cpu.vectorWidth = 8;
  cpu.unitWidth = cpu.name == "znver4" ? std::min<int64_t>(cpu.vectorWidth, 8)
                                       : cpu.vectorWidth;

  // Instructions that the code generator chooses by itself; the others would
  // only reject machines that can run the program.
  llvm::StringSet<> required;
  for (StringRef name : {"sse3",         "ssse3",
                         "sse4.1",       "sse4.2",
                         "avx",          "avx2",
                         "fma",          "f16c",
                         "bmi",          "bmi2",
                         "lzcnt",        "popcnt",
                         "movbe",        "adx",
                         "gfni",         "avx512f",
                         "avx512cd",     "avx512bw",
                         "avx512dq",     "avx512vl",
                         "avx512vbmi",   "avx512vbmi2",
                         "avx512ifma",   "avx512vnni",
                         "avx512bitalg", "avx512vpopcntdq",
                         "avx512bf16",   "avx512fp16",
                         "avxvnni",      "xop",
                         "fma4",         "tbm",
                         "sse4a",        "vpclmulqdq",
                         "vaes",         "pclmul"})
    if (features.contains(name))
      required.insert(name);
  cpu.required = joined(required);
  return cpu;
}

/// Returns whether a pass of the middle end has anything to gain. LLVM leaves
/// it to who builds a pipeline to skip functions that are not to be optimized.
/// And propagating called values takes quadratic time in the arguments of a
/// call, for calls by address, which programs make only of the runtime.
static bool isWorthRunning(StringRef pass, llvm::Any unit) {
  if (const auto *function = llvm::any_cast<const llvm::Function *>(&unit))
    return !(*function)->hasOptNone();
  return pass != "CalledValuePropagationPass";
}

void penstock::optimizeModule(llvm::Module &module,
                              llvm::TargetMachine &machine,
                              llvm::OptimizationLevel level) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassInstrumentationCallbacks callbacks;
  callbacks.registerShouldRunOptionalPassCallback(isWorthRunning);
  llvm::PassBuilder builder(&machine, llvm::PipelineTuningOptions(),
                            std::nullopt, &callbacks);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  builder.buildPerModuleDefaultPipeline(level).run(module, modules);
}

LogicalResult penstock::emitObject(ModuleOp module,
                                   const TargetOptions &options,
                                   llvm::raw_pwrite_stream &output) {
  FailureOr<TargetCpu> cpu = resolveTargetCpu(options.march, module.getLoc());
  if (failed(cpu))
    return failure();
  auto machine = createMachine(*cpu, options.optimization, module.getLoc());
  llvm::LLVMContext context;
  if (!machine)
    return failure();
  auto ir = translate(module, options, *cpu, *machine, context);
  if (!ir)
    return failure();

  // 1. The middle end. Without fast-math flags it changes no bits.
  optimizeModule(*ir, *machine,
                 options.optimization > 1 ? llvm::OptimizationLevel::O2
                                          : llvm::OptimizationLevel::O1);

  // 2. What is optimized already.
  if (options.addCode) {
    if (failed(options.addCode(*ir)))
      return failure();
    setProcessor(*ir, *cpu);
  }

  // 3. Machine code.
  llvm::legacy::PassManager manager;
  if (machine->addPassesToEmitFile(manager, output, nullptr,
                                   llvm::CodeGenFileType::ObjectFile))
    return module.emitError("internal error: LLVM emits no object files for ")
           << cpu->triple;
  manager.run(*ir);
  return success();
}
