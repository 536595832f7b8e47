//===- Kernels.cpp - Compiles and runs kernels in tests -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See the header. The only stand-in is for the pass that turns products into
// calls with descriptors.
//===----------------------------------------------------------------------===//

#include "Kernels.h"

#include "dialects/Nn/Nn.h"
#include "lib/Target/Cuda/KernelModule.h"
#include "passes/Cpu/Passes.h"
#include "passes/Cuda/Passes.h"
#include "passes/Kernels/Passes.h"
#include "passes/Program/Passes.h"
#include "passes/Runtime/LaunchTable.h"
#include "passes/Runtime/Passes.h"
#include "penstock/Target/Cpu/CpuTarget.h"
#include "penstock/Target/Cuda/CudaTarget.h"
#include "penstock/Target/ObjectFile.h"

#include "runtime/device/emulated/Enqueue.h"
#include "runtime/device/emulated/Fibers.h"
#include "runtime/support/CompilerCalls.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

#include <cstdlib>

using namespace mlir;
using namespace penstock;

extern "C" {
/// The device of these tests is the object that holds the kernels.
static void testGemm(void *device, uint32_t id, const float *a, const float *b,
                     float *c) {
  const ProductDescriptor &product =
      static_cast<Kernels *>(device)->products[id];
  size_t rank = product.sizes.size() - 3;
  int64_t m = product.sizes[rank], n = product.sizes[rank + 1],
          k = product.sizes[rank + 2], batches = 1;
  for (size_t i = 0; i < rank; ++i)
    batches *= product.sizes[i];
  for (int64_t batch = 0; batch < batches; ++batch) {
    int64_t atA = 0, atB = 0, atC = 0, rest = batch;
    for (size_t i = rank; i-- > 0;) {
      int64_t index = rest % product.sizes[i];
      rest /= product.sizes[i];
      atA += index * product.stridesA[i];
      atB += index * product.stridesB[i];
      atC += index * product.stridesC[i];
    }
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += static_cast<double>(a[atA + i * product.stridesA[rank] +
                                       l * product.stridesA[rank + 1]]) *
                 b[atB + l * product.stridesB[rank] +
                   j * product.stridesB[rank + 1]];
        float &target = c[atC + i * product.stridesC[rank] +
                          j * product.stridesC[rank + 1]];
        target = static_cast<float>(product.accumulate ? target + sum : sum);
      }
  }
}

static void testLaunch(void *device, uint32_t id, const uint64_t *words) {
  auto &kernels = *static_cast<Kernels *>(device);
  const LaunchedKernel &kernel = kernels.launches[id];
  std::vector<uint64_t> values(words, words + kernel.isBuffer.size());
  std::vector<void *> parameters;
  for (size_t i = 0; i < values.size(); ++i) {
    // Addresses of the device are not those of the host.
    if (kernel.isBuffer[i])
      values[i] += runtime::emulated::kBias;
    parameters.push_back(&values[i]);
  }
  auto sizes = [](const std::array<int64_t, 3> &of) {
    return runtime::emulated::Dimensions{static_cast<uint32_t>(of[0]),
                                         static_cast<uint32_t>(of[1]),
                                         static_cast<uint32_t>(of[2])};
  };
  std::string problem = runtime::emulated::launch(
      *kernel.code, sizes(kernel.grid), sizes(kernel.block), 0,
      parameters.data(), kernels.order);
  if (!problem.empty()) {
    llvm::errs() << kernel.name << ": " << problem << "\n";
    std::abort();
  }
}

static const void *testFindConstant(void *device, uint32_t id) {
  return static_cast<Kernels *>(device)->constants[id].data();
}

static void testParallel(void *device, void (*body)(void *, int64_t),
                         void *closure, int64_t count) {
  ++static_cast<Kernels *>(device)->parallelCalls;
  for (int64_t i = count; i-- > 0;)
    body(closure, i);
}
}

/// kernel.gemm becomes a call with the number of its descriptor.
static void lowerProducts(ModuleOp module,
                          std::vector<ProductDescriptor> &products) {
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  MLIRContext *context = module.getContext();
  Type pointer = LLVM::LLVMPointerType::get(context);
  Type i32 = builder.getI32Type();
  auto callee = LLVM::LLVMFuncOp::create(
      builder, module.getLoc(), "penstock_gemm",
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                  {pointer, i32, pointer, pointer, pointer}));
  module.walk([&](kernel::GemmOp gemm) {
    Location loc = gemm.getLoc();
    builder.setInsertionPoint(gemm);
    auto address = [&](Value buffer) -> Value {
      Value value =
          memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, buffer);
      value =
          arith::IndexCastOp::create(builder, loc, builder.getI64Type(), value);
      // The pointer is that of the buffer that this one may be a part of.
      SmallVector<int64_t> strides;
      int64_t offset = 0;
      (void)cast<MemRefType>(buffer.getType())
          .getStridesAndOffset(strides, offset);
      int64_t bytes = offset * static_cast<int64_t>(sizeof(float));
      value = arith::AddIOp::create(
          builder, loc, value,
          arith::ConstantOp::create(builder, loc,
                                    builder.getI64IntegerAttr(bytes)));
      return LLVM::IntToPtrOp::create(builder, loc, pointer, value);
    };
    Value id = LLVM::ConstantOp::create(
        builder, loc, i32, builder.getI32IntegerAttr(products.size()));
    products.push_back({gemm.getSizes(), gemm.getStridesA(), gemm.getStridesB(),
                        gemm.getStridesC(), gemm.getAccumulate()});
    Value device = gemm->getParentOfType<func::FuncOp>().getArgument(0);
    LLVM::CallOp::create(builder, loc, callee,
                         ValueRange{device, id, address(gemm.getA()),
                                    address(gemm.getB()),
                                    address(gemm.getC())});
    // What follows applies the epilogue.
    if (Value pending = gemm.getPending())
      pending.replaceAllUsesWith(
          arith::ConstantIntOp::create(builder, loc, 1, 1));
    gemm.erase();
  });
  // LLVM functions cannot say which result goes into which buffer.
  module.walk([](func::FuncOp function) {
    function->removeAttr(pipeline::kTargetAttr);
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      for (StringRef name : {pipeline::kIntoAttr, pipeline::kScratchAttr})
        function.removeArgAttr(i, name);
  });
}

/// The constants that products read, in the order of their numbers.
static void collectConstants(ModuleOp module,
                             std::vector<std::vector<float>> &constants) {
  llvm::StringSet<> known;
  module.walk([&](kernel::ConstantOp constant) {
    if (!known.insert(constant.getName()).second)
      return;
    auto global = module.lookupSymbol<memref::GlobalOp>(constant.getName());
    auto values =
        cast<DenseElementsAttr>(*global.getInitialValue()).getValues<float>();
    constants.emplace_back(values.begin(), values.end());
  });
}

/// Launches become calls with the number of their kernel.
static LogicalResult lowerLaunches(ModuleOp module,
                                   std::vector<LaunchedKernel> &launches) {
  llvm::StringSet<> known;
  module.walk([&](kernel::LaunchOp launch) {
    StringRef name = launch.getKernel().getLeafReference();
    if (!known.insert(name).second)
      return;
    LaunchedKernel kernel;
    kernel.name = name.str();
    llvm::copy(launch.getGrid(), kernel.grid.begin());
    llvm::copy(launch.getBlock(), kernel.block.begin());
    for (Value parameter : launch.getParameters())
      kernel.isBuffer.push_back(isa<MemRefType>(parameter.getType()));
    launches.push_back(std::move(kernel));
  });
  LaunchTable table;
  RuntimeCalls runtime(module);
  return failure(failed(table.collect(module)) ||
                 failed(table.convert(runtime)));
}

/// Plants a mistake in optimized kernels.
static void plant(KernelFault fault, llvm::Module &code) {
  SmallVector<llvm::CallInst *> barriers;
  for (llvm::Function &function : code)
    for (llvm::Instruction &each : llvm::instructions(function))
      if (auto *call = dyn_cast<llvm::CallInst>(&each);
          call && call->getCalledFunction() &&
          call->getCalledFunction()->getName().starts_with("llvm.nvvm.barrier"))
        barriers.push_back(call);
  for (llvm::CallInst *barrier : barriers) {
    if (fault == KernelFault::NoBarriers) {
      barrier->eraseFromParent();
      continue;
    }
    llvm::IRBuilder<> builder(barrier);
    llvm::Value *thread = builder.CreateIntrinsic(
        builder.getInt32Ty(), llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {});
    llvm::Instruction *then = llvm::SplitBlockAndInsertIfThen(
        builder.CreateICmpULT(thread, builder.getInt32(16)), barrier,
        /*Unreachable=*/false);
    barrier->moveBefore(then->getIterator());
  }
}

std::unique_ptr<Kernels> Kernels::compile(const std::string &source,
                                          KernelOptions options) {
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  auto module = parseSourceString<ModuleOp>(source, &context);
  return module ? compile(*module, options) : nullptr;
}

void Kernels::registerDialects(DialectRegistry &registry) {
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registry.insert<nn::NnDialect, kernel::KernelDialect,
                  pipeline::PipelineDialect>();
  registerCpuTarget(registry);
  registerCudaTarget(registry);
}

std::unique_ptr<Kernels> Kernels::compile(ModuleOp module,
                                          KernelOptions options) {
  // 1. To kernels on buffers.
  module.getContext()->loadDialect<cpu::CpuDialect, cuda::CudaDialect>();
  Attribute device =
      cpu::TargetAttr::get(module.getContext(), options.threads, "native");
  if (options.gpu)
    device =
        cuda::TargetAttr::get(module.getContext(), "emulated",
                              /*tf32=*/false, /*workspace=*/0, options.plain);
  for (auto function : module.getOps<func::FuncOp>())
    function->setAttr(pipeline::kTargetAttr, device);
  PassManager toBuffers(module.getContext());
  // The loops are the oracle of the library.
  NnExpandCompositesOptions composites;
  composites.library = false;
  toBuffers.addPass(createNnExpandComposites(composites));
  if (options.fuse)
    toBuffers.addPass(createPipelineFuse());
  toBuffers.addNestedPass<func::FuncOp>(createPipelineSplitReductions());
  toBuffers.addPass(createPipelineBufferizeFunctions());
  toBuffers.addPass(createPipelineSelectLibrary());
  if (failed(toBuffers.run(module)))
    return nullptr;
  auto kernels = std::make_unique<Kernels>();
  TargetOptions target;
  target.exported.clear();
  for (auto function :
       llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    StringRef name = function.getName();
    if (!name.consume_back(".kernel")) {
      function.erase();
      continue;
    }
    target.exported.push_back(function.getName().str());
    int64_t &bytes = kernels->scratchBytes[name];
    unsigned last = function.getNumArguments() - 1;
    if (function.getArgAttr(last, pipeline::kScratchAttr))
      bytes =
          cast<MemRefType>(function.getArgumentTypes().back()).getNumElements();
  }

  // 2. To machine code.
  CpuKernelOptions lowering;
  lowering.vectorWidth = options.width;
  lowering.threshold = options.threshold;
  PassManager toLoops(module.getContext()), toLlvm(module.getContext());
  toLoops.addPass(createPipelineAddDeviceArgument());
  if (options.gpu)
    buildCudaKernelPipeline(toLoops);
  else
    buildCpuKernelPipeline(toLoops, lowering);
  if (failed(toLoops.run(module)))
    return nullptr;
  collectConstants(module, kernels->constants);
  if (failed(lowerLaunches(module, kernels->launches)))
    return nullptr;
  lowerProducts(module, kernels->products);
  buildConvertToLlvmPipeline(toLlvm);
  if (failed(toLlvm.run(module)))
    return nullptr;
  if (options.gpu)
    target.addCode = [&](llvm::Module &host) -> LogicalResult {
      gpu::GPUModuleOp code = cuda::findKernels(module);
      if (!code)
        return success();
      std::unique_ptr<llvm::Module> added = cuda::translateKernels(
          code, *cuda::findGpuArch("emulated"), Toolkit(), host.getContext());
      if (added && options.fault != KernelFault::None)
        plant(options.fault, *added);
      return success(
          added &&
          succeeded(cuda::retargetToHost(*added, host, module.getLoc())) &&
          !llvm::Linker::linkModules(host, std::move(added)));
    };
  llvm::SmallVector<char> object;
  llvm::raw_svector_ostream stream(object);
  if (failed(emitObject(module, target, stream)))
    return nullptr;

  // 3. Into this process.
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit) {
    llvm::errs() << llvm::toString(jit.takeError()) << "\n";
    return nullptr;
  }
  kernels->jit = std::move(*jit);
  llvm::orc::JITDylib &library_ = kernels->jit->getMainJITDylib();
  llvm::orc::SymbolMap symbols;
  auto define = [&](StringRef name, auto *function) {
    symbols[kernels->jit->mangleAndIntern(name)] = {
        llvm::orc::ExecutorAddr::fromPtr(function),
        llvm::JITSymbolFlags::Exported};
  };
  define("__truncsfbf2", &__truncsfbf2);
  define("penstock_find_constant", &testFindConstant);
  define("penstock_gemm", &testGemm);
  define("penstock_launch", &testLaunch);
  define("penstock_parallel", &testParallel);
  llvm::cantFail(library_.define(llvm::orc::absoluteSymbols(symbols)));
  library_.addGenerator(llvm::cantFail(
      llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
          kernels->jit->getDataLayout().getGlobalPrefix())));
  if (auto error =
          kernels->jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(
              StringRef(object.data(), object.size())))) {
    llvm::errs() << llvm::toString(std::move(error)) << "\n";
    return nullptr;
  }
  if (kernels->launches.empty())
    return kernels;
  auto table = kernels->jit->lookup(cuda::kEmulatedTable);
  if (!table) {
    llvm::errs() << llvm::toString(table.takeError()) << "\n";
    return nullptr;
  }
  // There is a row for each of them, in another order.
  ArrayRef<penstock_emulated_kernel> rows(
      table->toPtr<const penstock_emulated_kernel *>(),
      kernels->launches.size());
  for (LaunchedKernel &kernel : kernels->launches)
    kernel.code = llvm::find_if(
        rows, [&](const auto &row) { return kernel.name == row.name; });
  return kernels;
}

// Generated code does not say what type its functions have.
__attribute__((no_sanitize("function"))) void
Kernels::call(const std::string &name, std::vector<void *> arguments,
              std::vector<float> scalars) {
  auto symbol = jit->lookup(name + ".kernel");
  if (!symbol) {
    llvm::errs() << llvm::toString(symbol.takeError()) << "\n";
    std::abort();
  }
  // Integer and floating-point arguments are numbered apart by the System V
  // convention, and arguments too many do no harm.
  using P = void *;
  using Function = void (*)(P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P,
                            float, float, float, float, float, float);
  size_t bytes = static_cast<size_t>(scratchBytes[name]);
  std::vector<char> memory(bytes + 64, static_cast<char>(0xab));
  if (bytes)
    arguments.push_back(reinterpret_cast<void *>(
        (reinterpret_cast<uintptr_t>(memory.data()) + 63) & ~uintptr_t(63)));
  if (arguments.size() > 15 || scalars.size() > 6)
    std::abort();
  arguments.resize(15);
  scalars.resize(6);
  void **a = arguments.data();
  float *s = scalars.data();
  symbol->toPtr<Function>()(this, a[0], a[1], a[2], a[3], a[4], a[5], a[6],
                            a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14],
                            s[0], s[1], s[2], s[3], s[4], s[5]);
}
