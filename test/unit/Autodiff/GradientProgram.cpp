//===- GradientProgram.cpp - A function and its backward, compiled --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See GradientProgram.h.
//===----------------------------------------------------------------------===//

#include "GradientProgram.h"

#include "dialects/Nn/Nn.h"
#include "dialects/Onnx/Onnx.h"
#include "passes/Cpu/Passes.h"
#include "passes/Frontend/Passes.h"
#include "passes/Kernels/Passes.h"
#include "passes/Runtime/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Verifier.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/Support/TargetSelect.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::test;

namespace {

MLIRContext &getContext() {
  static MLIRContext *context = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    registerAllPasses();
    registerKernelsPasses();
    registerCpuPasses();
    registerRuntimePasses();
    DialectRegistry registry;
    registerAllDialects(registry);
    registerAllExtensions(registry);
    registerBuiltinDialectTranslation(registry);
    registerLLVMDialectTranslation(registry);
    registry.insert<nn::NnDialect, onnx::OnnxDialect>();
    registerAutodiffModels(registry);
    return new MLIRContext(registry, MLIRContext::Threading::DISABLED);
  }();
  return *context;
}

const char *const lowering =
    "func.func(nn-expand-composites,"
    "linalg-generalize-named-ops),"
    "one-shot-bufferize{bufferize-function-boundaries "
    "function-boundary-type-conversion=identity-layout-map},"
    "buffer-results-to-out-params{modify-public-functions},"
    "func.func(promote-buffers-to-stack{max-alloc-size-in-bytes=65536}),"
    "func.func(convert-linalg-to-loops),expand-strided-metadata,lower-affine,"
    "convert-scf-to-cf,convert-math-to-llvm,"
    "convert-math-to-libm,convert-arith-to-llvm,finalize-memref-to-llvm,"
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv},convert-cf-to-llvm,"
    "reconcile-unrealized-casts";

/// The fourth microbatch of a run whose seed is 5; state stays what it is.
class TestTraining : public nn::TrainingContext {
public:
  TestTraining(OpBuilder &builder, Location loc, bool frozen)
      : builder(builder), loc(loc), frozen(frozen) {}
  bool freezesStatistics() const override { return frozen; }
  Value getMicrobatch() override {
    return arith::ConstantIndexOp::create(builder, loc, 3);
  }
  Value getSeed() override {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getI64IntegerAttr(5));
  }
  Value getState(Value state) override { return state; }
  void setState(Value, Value) override {}

private:
  OpBuilder &builder;
  Location loc;
  bool frozen;
};

/// Expands what is different in training, as pipeline-expand-training does.
LogicalResult expandForTraining(func::FuncOp function, bool frozen) {
  SmallVector<nn::ModeDependentOpInterface> ops;
  function.walk([&](nn::ModeDependentOpInterface op) { ops.push_back(op); });
  for (nn::ModeDependentOpInterface op : ops) {
    OpBuilder builder(op);
    TestTraining training(builder, op.getLoc(), frozen);
    SmallVector<Value> results;
    if (failed(op.expandForTraining(builder, training, results)))
      return failure();
    op->replaceAllUsesWith(results);
    op->erase();
  }
  return success();
}

} // namespace

std::string GradientProgram::differentiate() {
  std::string messages;
  ScopedDiagnosticHandler handler(&getContext(), [&](Diagnostic &diagnostic) {
    messages += diagnostic.str() + "\n";
    return success();
  });
  module = parseSourceString<ModuleOp>(testCase.text, &getContext());
  if (!module)
    return "does not parse: " + messages;
  // Nodes of a model become what the compiler differentiates.
  PassManager frontend(&getContext());
  frontend.addPass(createConvertOnnxToGraph());
  if (failed(frontend.run(*module)))
    return "does not lower to level graph: " + messages;
  forward = module->lookupSymbol<func::FuncOp>("f");
  if (failed(expandForTraining(forward, testCase.frozen)))
    return "does not expand: " + messages;
  argumentTypes = llvm::to_vector(forward.getArgumentTypes());
  resultTypes = llvm::to_vector(forward.getResultTypes());
  DifferentiationRequest request;
  for (auto [role, type] : llvm::zip(testCase.roles, argumentTypes)) {
    bool isFloat =
        isa<FloatType>(cast<RankedTensorType>(type).getElementType());
    request.isParameter.push_back(role == 'p' || role == 'P');
    request.isWanted.push_back(isFloat && (role == 'p' || role == 'd'));
    request.hasPriorCotangent.push_back(false);
  }
  for (Type type : resultTypes) {
    bool isFloat =
        isa<FloatType>(cast<RankedTensorType>(type).getElementType());
    request.seeds.push_back({isFloat ? Seed::Argument : Seed::None, 0});
  }
  FailureOr<Differentiation> result =
      penstock::differentiate(forward, request, "backward");
  if (failed(result))
    return messages.empty() ? "failed without a message" : messages;
  backward = *result;
  if (!backward.function)
    return "no gradient";
  backwardType = backward.function.getFunctionType();
  return "";
}

std::string GradientProgram::compile() {
  std::string error;
  llvm::raw_string_ostream stream(error);
  ScopedDiagnosticHandler handler(&getContext(), [&](Diagnostic &diagnostic) {
    stream << diagnostic.str() << "\n";
    return success();
  });
  // The forward returns the residuals, as pipeline-differentiate makes it.
  Operation *terminator = forward.front().getTerminator();
  SmallVector<Value> results(terminator->getOperands());
  for (Value residual : backward.residuals) {
    residualTypes.push_back(residual.getType());
    if (auto argument = dyn_cast<BlockArgument>(residual)) {
      residualSources.emplace_back(true, argument.getArgNumber());
      continue;
    }
    residualSources.emplace_back(false, results.size());
    results.push_back(residual);
  }
  OpBuilder builder(&getContext());
  terminator->setOperands(results);
  forward.setFunctionType(
      builder.getFunctionType(argumentTypes, ValueRange(results).getTypes()));
  forwardType = forward.getFunctionType();
  if (failed(mlir::verify(*module)))
    return "the differentiated module is not valid: " + error;
  forward.setPublic();
  backward.function.setPublic();

  PassManager manager(&getContext());
  if (failed(parsePassPipeline(lowering, manager, stream)) ||
      failed(manager.run(*module)))
    return "does not lower: " + error;
  ExecutionEngineOptions options;
  // Has the copy of strided buffers.
  StringRef libraries[] = {PENSTOCK_RUNNER_UTILS};
  options.sharedLibPaths = libraries;
  options.jitCodeGenOptLevel = llvm::CodeGenOptLevel::None;
  auto created = ExecutionEngine::create(*module, options);
  if (!created)
    return "does not compile: " + llvm::toString(created.takeError()) + error;
  engine = std::move(*created);
  return "";
}

Buffers GradientProgram::run(StringRef function, Buffers arguments,
                             ArrayRef<Type> results) const {
  Buffers outputs;
  for (Type type : results)
    outputs.emplace_back(type);
  std::vector<void *> pointers;
  for (Buffer &buffer : arguments)
    pointers.push_back(buffer.data());
  for (Buffer &buffer : outputs)
    pointers.push_back(buffer.data());
  SmallVector<void *> packed;
  for (void *&pointer : pointers)
    packed.push_back(&pointer);
  if (llvm::Error error = engine->invokePacked(function, packed)) {
    llvm::errs() << llvm::toString(std::move(error)) << "\n";
    std::exit(1);
  }
  return outputs;
}
