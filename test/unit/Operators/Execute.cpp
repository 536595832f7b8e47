//===- Execute.cpp - Runs a function of ONNX nodes ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Execute.h.
//===----------------------------------------------------------------------===//

#include "Execute.h"

#include "dialects/Nn/Nn.h"
#include "dialects/Onnx/Onnx.h"
#include "passes/Cpu/Passes.h"
#include "passes/Frontend/Passes.h"
#include "passes/Kernels/Passes.h"
#include "passes/Runtime/Passes.h"
#include "penstock/Import/OperatorRegistry.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"

#include <cmath>
#include <cstring>
#if __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
#endif

using namespace mlir;
using namespace penstock;
using namespace penstock::test;

MLIRContext &penstock::test::context() {
  static MLIRContext *shared = [] {
    DialectRegistry registry;
    registerAllDialects(registry);
    registerAllExtensions(registry);
    registerAllToLLVMIRTranslations(registry);
    registerAllPasses();
    registerFrontendPasses();
    registerKernelsPasses();
    registerCpuPasses();
    registerRuntimePasses();
    registry.insert<onnx::OnnxDialect, nn::NnDialect>();
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto *context = new MLIRContext(registry, MLIRContext::Threading::DISABLED);
    context->loadAllAvailableDialects();
    return context;
  }();
  return *shared;
}

//===--- Tensors ---===//

DenseElementsAttr penstock::test::toAttribute(const HostTensor &tensor) {
  Type element = onnx::getElementType(&context(), tensor.dataType);
  if (!element)
    return {};
  auto type = RankedTensorType::get(tensor.shape, element);
  if (element.isInteger(1)) {
    SmallVector<bool> values(tensor.bytes.begin(), tensor.bytes.end());
    return DenseElementsAttr::get(type, ArrayRef<bool>(values));
  }
  if (tensor.size() == 0)
    return DenseElementsAttr::get(type, ArrayRef<Attribute>());
  return DenseElementsAttr::getFromRawBuffer(
      type, ArrayRef<char>(tensor.bytes.data(), tensor.bytes.size()));
}

//===--- From a model to onnx.node ops ---===//

static Attribute toAttribute(Builder &builder, const NodeAttribute &attribute) {
  if (auto *value = std::get_if<int64_t>(&attribute))
    return builder.getI64IntegerAttr(*value);
  if (auto *value = std::get_if<float>(&attribute))
    return builder.getF32FloatAttr(*value);
  if (auto *value = std::get_if<std::string>(&attribute))
    return builder.getStringAttr(*value);
  if (auto *value = std::get_if<std::vector<int64_t>>(&attribute))
    return builder.getDenseI64ArrayAttr(*value);
  if (auto *value = std::get_if<std::vector<float>>(&attribute))
    return builder.getDenseF32ArrayAttr(*value);
  return penstock::test::toAttribute(std::get<HostTensor>(attribute));
}

Build penstock::test::buildModule(const Model &model,
                                  const std::vector<HostTensor> &inputs,
                                  const std::set<std::string> &constants) {
  Build build;
  MLIRContext *ctx = &context();
  ScopedDiagnosticHandler handler(ctx, [&](Diagnostic &diagnostic) {
    build.error += diagnostic.str() + "\n";
    return success();
  });
  OpBuilder builder(ctx);
  Location unknown = builder.getUnknownLoc();
  build.module = ModuleOp::create(unknown);
  builder.setInsertionPointToEnd(build.module->getBody());
  auto function = func::FuncOp::create(builder, unknown, "main",
                                       builder.getFunctionType({}, {}));
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);

  std::map<std::string, Value> values;
  auto define = [&](const HostTensor &tensor, bool constant) {
    DenseElementsAttr attribute = toAttribute(tensor);
    if (!attribute) {
      build.error += "element type of '" + tensor.name + "'\n";
      return;
    }
    if (constant) {
      values[tensor.name] =
          arith::ConstantOp::create(builder, unknown, attribute);
      return;
    }
    values[tensor.name] = body->addArgument(attribute.getType(), unknown);
    build.arguments.push_back(tensor);
  };
  for (const HostTensor &tensor : model.initializers)
    define(tensor, true);
  for (const HostTensor &tensor : inputs)
    define(tensor, constants.count(tensor.name));
  if (!build.error.empty())
    return build;

  for (const ModelNode &node : model.nodes) {
    const onnx::Operator *entry =
        onnx::lookupOperator(node.domain, node.type, model.opset);
    if (!entry) {
      build.unknown = node.type;
      return build;
    }
    SmallVector<Value> operands;
    for (const std::string &input : node.inputs)
      operands.push_back(input.empty()
                             ? onnx::AbsentOp::create(builder, unknown)
                             : values.at(input));
    SmallVector<NamedAttribute> params;
    for (const auto &[name, attribute] : node.attributes)
      params.emplace_back(builder.getStringAttr(name),
                          ::toAttribute(builder, attribute));
    SmallVector<Type> types(node.outputs.size(), builder.getNoneType());
    auto op = onnx::NodeOp::create(
        builder, NameLoc::get(builder.getStringAttr(node.outputs[0])), types,
        node.type, operands, entry->since,
        node.domain.empty() ? StringAttr() : builder.getStringAttr(node.domain),
        params.empty() ? DictionaryAttr() : builder.getDictionaryAttr(params));
    if (failed(onnx::inferResultTypes(op)))
      return build;
    // Shapes that the model computes are constants for the next node.
    SmallVector<DenseElementsAttr> folded;
    if (failed(onnx::foldNode(op, folded)))
      return build;
    for (auto [i, name] : llvm::enumerate(node.outputs))
      values[name] =
          folded.empty()
              ? Value(op.getOutputs()[i])
              : arith::ConstantOp::create(builder, op.getLoc(), folded[i]);
  }
  SmallVector<Value> results;
  for (const std::string &output : model.outputs)
    results.push_back(values.at(output));
  func::ReturnOp::create(builder, unknown, results);
  function.setType(builder.getFunctionType(body->getArgumentTypes(),
                                           TypeRange(ValueRange(results))));
  if (failed(verify(*build.module)) && build.error.empty())
    build.error = "does not verify\n";
  return build;
}

//===--- Lowering and running ---===//

const char *const penstock::test::lowerToGraph =
    "convert-onnx-to-graph,canonicalize,cse";

static constexpr const char *lowerToLLVM =
    "nn-expand-composites,"
    "one-shot-bufferize{bufferize-function-boundaries=true "
    "function-boundary-type-conversion=identity-layout-map},"
    "buffer-results-to-out-params{modify-public-functions=true},"
    "func.func(convert-linalg-to-loops),"
    "expand-strided-metadata,lower-affine,convert-scf-to-cf,"
    "math-extend-to-supported-types{target-type=f32},"
    "convert-math-to-libm,convert-math-to-funcs{convert-ctlz=false},"
    "arith-expand{include-bf16=true},convert-arith-to-llvm,"
    "convert-math-to-llvm,finalize-memref-to-llvm,"
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=true},"
    "convert-cf-to-llvm,reconcile-unrealized-casts";

std::string penstock::test::runPasses(ModuleOp module, StringRef pipeline) {
  std::string errors;
  ScopedDiagnosticHandler handler(&context(), [&](Diagnostic &diagnostic) {
    errors += diagnostic.str() + "\n";
    return success();
  });
  PassManager manager(&context());
  if (failed(parsePassPipeline(pipeline, manager)) ||
      failed(manager.run(module)))
    return errors.empty() ? "a pass failed without a word\n" : errors;
  return "";
}

/// A function `call(ptr *buffers)` around @main, whose arguments are bare
/// pointers.
static void addEntry(llvm::Module &module) {
  llvm::Function *main = module.getFunction("main");
  llvm::LLVMContext &ctx = module.getContext();
  llvm::IRBuilder<> builder(ctx);
  auto *pointer = llvm::PointerType::get(ctx, 0);
  auto *entry = llvm::Function::Create(
      llvm::FunctionType::get(builder.getVoidTy(), {pointer}, false),
      llvm::Function::ExternalLinkage, "call", module);
  builder.SetInsertPoint(llvm::BasicBlock::Create(ctx, "", entry));
  SmallVector<llvm::Value *> arguments;
  for (unsigned i = 0; i < main->arg_size(); ++i)
    arguments.push_back(builder.CreateLoad(
        pointer, builder.CreateConstGEP1_64(pointer, entry->getArg(0), i)));
  builder.CreateCall(main, arguments);
  builder.CreateRetVoid();
}

std::string penstock::test::execute(ModuleOp module,
                                    const std::vector<HostTensor> &arguments,
                                    std::vector<HostTensor> &results) {
  std::string errors = runPasses(module, lowerToLLVM);
  if (!errors.empty())
    return errors;
  auto llvmContext = std::make_unique<llvm::LLVMContext>();
  ScopedDiagnosticHandler handler(&context(), [&](Diagnostic &diagnostic) {
    errors += diagnostic.str() + "\n";
    return success();
  });
  auto llvmModule = translateModuleToLLVMIR(module, *llvmContext);
  if (!llvmModule)
    return "no translation to LLVM IR: " + errors;
  addEntry(*llvmModule);
  auto fail = [](llvm::Error error) { return toString(std::move(error)); };
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit)
    return fail(jit.takeError());
  llvmModule->setDataLayout((*jit)->getDataLayout());
  auto symbols = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      (*jit)->getDataLayout().getGlobalPrefix());
  if (!symbols)
    return fail(symbols.takeError());
  (*jit)->getMainJITDylib().addGenerator(std::move(*symbols));
  if (auto error = (*jit)->addIRModule(llvm::orc::ThreadSafeModule(
          std::move(llvmModule), std::move(llvmContext))))
    return fail(std::move(error));
  auto entry = (*jit)->lookup("call");
  if (!entry)
    return fail(entry.takeError());

  std::vector<HostTensor> copies = arguments;
  std::vector<void *> buffers;
  for (HostTensor &tensor : copies)
    buffers.push_back(tensor.bytes.data());
  for (HostTensor &tensor : results) {
    tensor.bytes.assign(tensor.size() * elementBytes(tensor.dataType), '\x5a');
    buffers.push_back(tensor.bytes.data());
  }
#if __has_feature(address_sanitizer)
  // Bufferized for one call, the code frees nothing.
  __lsan::ScopedDisabler mayLeak;
#endif
  entry->toPtr<void (*)(void **)>()(buffers.data());
  return "";
}
