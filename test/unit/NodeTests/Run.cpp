//===- Run.cpp - A node test through the compiler -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Run.h. What fails while a model could still be at fault is a refusal, and
// must say why; what fails later is our own defect.
//===----------------------------------------------------------------------===//

#include "Run.h"

#include "dialects/Onnx/Onnx.h"
#include "dialects/Pipeline/Pipeline.h"
#include "passes/Frontend/Passes.h"
#include "penstock/Import/Import.h"
#include "penstock/Import/OperatorRegistry.h"
#include "test/unit/Kernels/Kernels.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <fstream>

using namespace mlir;
using namespace penstock;
using namespace penstock::test;

std::unique_ptr<MLIRContext> penstock::test::makeContext() {
  DialectRegistry registry;
  Kernels::registerDialects(registry);
  registry.insert<onnx::OnnxDialect>();
  auto context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  context->printOpOnDiagnostic(false);
  return context;
}

static bool runPasses(ModuleOp module,
                      llvm::function_ref<void(OpPassManager &)> build) {
  PassManager manager(module.getContext());
  build(manager);
  return succeeded(manager.run(module));
}

/// The elements of an initializer, which stayed in the model's file.
static std::string readBytes(pipeline::BytesAttr place) {
  std::string bytes(place.getLength(), '\0');
  std::ifstream file(place.getFile().str(), std::ios::binary);
  file.seekg(place.getOffset());
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

/// The buffers of @forward's arguments: inputs, then initializers.
static std::string collectArguments(ModuleOp module, NodeTestCase &testCase,
                                    std::vector<std::string> &buffers) {
  auto task = *module.getOps<pipeline::TaskOp>().begin();
  auto call = *task.getBody().getOps<func::CallOp>().begin();
  for (Value operand : call.getOperands()) {
    Operation *source = operand.getDefiningOp();
    if (auto take = dyn_cast<pipeline::TakeOp>(source)) {
      auto channel = SymbolTable::lookupNearestSymbolFrom<pipeline::ChannelOp>(
          source, take.getChannelAttr());
      auto input =
          testCase.inputs.find(channel.getSource()->getEndpoint().str());
      if (input == testCase.inputs.end())
        return "no data for input '" +
               channel.getSource()->getEndpoint().str() + "'";
      buffers.push_back(input->second.bytes);
      continue;
    }
    auto variable = SymbolTable::lookupNearestSymbolFrom<pipeline::VariableOp>(
        source, cast<pipeline::ReadOp>(source).getVariableAttr());
    buffers.push_back(readBytes(*variable.getInit()));
  }
  return "";
}

/// Compares the type that the function returns with what ONNX says.
static bool hasType(MLIRContext &context, Type type,
                    const HostTensor &expected) {
  return type ==
         RankedTensorType::get(
             expected.shape, onnx::getElementType(&context, expected.dataType));
}

/// Compiles the function, for a CPU or for the emulated GPU, and calls it.
/// Returns what is wrong with its results.
static std::string runKernels(ModuleOp module, const std::string &name,
                              bool gpu, std::vector<std::string> buffers,
                              const std::vector<HostTensor> &expected) {
  KernelOptions options;
  options.gpu = gpu;
  std::unique_ptr<Kernels> kernels = Kernels::compile(module, options);
  if (!kernels || !kernels->has(name))
    return "it does not compile";
  // In a random order of threads.
  kernels->order = 3;
  // Results begin as something else than they should be.
  std::vector<HostTensor> results = expected;
  for (HostTensor &result : results)
    result.bytes.assign(result.bytes.size(), '\x5a');
  std::vector<void *> pointers;
  for (std::string &buffer : buffers)
    pointers.push_back(buffer.data());
  for (HostTensor &result : results)
    pointers.push_back(result.bytes.data());
  kernels->call(name, pointers);
  for (size_t i = 0; i < results.size(); ++i) {
    std::string difference = compare(expected[i], results[i]);
    if (!difference.empty())
      return "output " + std::to_string(i) + ": " + difference;
  }
  return "";
}

/// Imports with every input constant. What the importer folds must be right.
static Outcome fold(MLIRContext &context, const std::string &folder,
                    const std::string &model) {
  NodeTestCase testCase;
  Outcome outcome{Outcome::Passed, false, ""};
  outcome.message = readCase(folder, Binding::All, model, testCase);
  OwningOpRef<ModuleOp> module = importModel(&context, model, ImportOptions());
  if (!module || !runPasses(*module, [](OpPassManager &manager) {
        manager.addPass(createOnnxResolveShapes());
      }))
    return {Outcome::Wrong, false, "it runs, but not with constant inputs"};
  auto function = *module->getOps<func::FuncOp>().begin();
  auto results = function.front().getTerminator()->getOperands();
  for (auto [result, expected] : llvm::zip_equal(results, testCase.outputs)) {
    DenseElementsAttr constant = onnx::getConstant(result);
    if (!constant)
      return outcome;
    if (!hasType(context, result.getType(), expected))
      return {Outcome::Wrong, false, "folding: a result's type differs"};
    HostTensor actual{expected.name, expected.dataType, expected.shape, ""};
    unsigned bytes = elementBytes(expected.dataType);
    auto append = [&](const APInt &bits) {
      uint64_t value = bits.getZExtValue();
      actual.bytes.append(reinterpret_cast<const char *>(&value), bytes);
    };
    if (isa<FloatType>(constant.getElementType()))
      for (const APFloat &value : constant.getValues<APFloat>())
        append(value.bitcastToAPInt());
    else
      for (const APInt &value : constant.getValues<APInt>())
        append(value);
    std::string difference = compare(expected, actual);
    if (!difference.empty())
      return {Outcome::Wrong, false, "folding: " + difference};
  }
  outcome.folded = true;
  return outcome;
}

Outcome penstock::test::runCase(MLIRContext &context, const std::string &folder,
                                const std::string &scratch,
                                NodeTestCase &testCase) {
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && said.empty())
      said = diagnostic.str();
    return success();
  });
  auto wrong = [&](const std::string &what) {
    return Outcome{Outcome::Wrong, false,
                   said.empty() ? what : what + ": " + said};
  };
  std::string model = scratch + "/model.onnx";
  std::string problem = readCase(folder, Binding::Shapes, model, testCase);
  if (!problem.empty())
    return wrong(problem);

  // 1. To level graph.
  ImportOptions options;
  options.binaryCopy = scratch + "/copy.onnx";
  OwningOpRef<ModuleOp> module = importModel(&context, model, options);
  if (!module || !runPasses(*module, [](OpPassManager &manager) {
        manager.addPass(createOnnxResolveShapes());
        manager.addPass(createConvertOnnxToGraph());
        manager.addPass(createCanonicalizerPass());
        manager.addPass(createCSEPass());
      })) {
    if (said.empty())
      return wrong("refused without a word");
    return {Outcome::Refused, false, said};
  }
  if (!testCase.hasAllOutputs)
    return wrong("its outputs are no tensors of numbers, and it was imported");
  auto function = *module->getOps<func::FuncOp>().begin();
  if (function.getNumResults() != testCase.outputs.size())
    return wrong("the number of results differs");
  for (auto [type, expected] :
       llvm::zip_equal(function.getResultTypes(), testCase.outputs))
    if (!hasType(context, type, expected))
      return wrong("a result's type differs");
  std::vector<std::string> buffers;
  problem = collectArguments(*module, testCase, buffers);
  if (!problem.empty())
    return wrong(problem);

  // 2. The function alone, to machine code, and a call. Of results without
  // elements there
  //    is nothing to compute, and no more to compare.
  Operation *terminator = function.front().getTerminator();
  std::vector<HostTensor> expected;
  BitVector empty(testCase.outputs.size());
  for (auto [i, output] : llvm::enumerate(testCase.outputs)) {
    if (output.size() == 0)
      empty.set(i);
    else
      expected.push_back(output);
  }
  terminator->eraseOperands(empty);
  if (expected.empty())
    return fold(context, folder, model);
  if (failed(function.eraseResults(empty)))
    return wrong("results without elements cannot be dropped");
  // Nor do inputs without elements take part.
  BitVector unused(function.getNumArguments());
  for (auto [i, argument] : llvm::enumerate(function.getArguments())) {
    bool isEmpty = cast<ShapedType>(argument.getType()).getNumElements() == 0;
    if (isEmpty && argument.use_empty())
      unused.set(i);
  }
  for (size_t i = buffers.size(); i-- > 0;)
    if (unused.test(i))
      buffers.erase(buffers.begin() + static_cast<ptrdiff_t>(i));
  if (failed(function.eraseArguments(unused)))
    return wrong("inputs without elements cannot be dropped");
  std::string name = function.getName().str();
  for (Operation &op : llvm::make_early_inc_range(module->getOps()))
    if (&op != function)
      op.erase();
  OwningOpRef<ModuleOp> copy = module->clone();
  for (bool gpu : {false, true}) {
    problem = runKernels(gpu ? *copy : *module, name, gpu, buffers, expected);
    if (!problem.empty())
      return wrong(gpu ? "on a GPU, " + problem : problem);
  }
  return fold(context, folder, model);
}
