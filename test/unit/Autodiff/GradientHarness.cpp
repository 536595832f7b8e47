//===- GradientHarness.cpp - Checks of derivatives ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything is lowered by upstream passes to scalar loops, so that a wrong
// kernel cannot hide a wrong derivative, nor the other way round.
//===----------------------------------------------------------------------===//

#include "GradientHarness.h"

#include "dialects/Nn/Nn.h"
#include "dialects/Onnx/Onnx.h"
#include "passes/Frontend/Passes.h"
#include "passes/Lowering/Passes.h"
#include "penstock/Autodiff/Autodiff.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
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

#include <cmath>
#include <random>

using namespace mlir;
using namespace penstock;
using namespace penstock::test;

namespace {

/// Elements of a tensor: f64, or integers of 32 or 64 bits.
struct Buffer {
  RankedTensorType type;
  std::vector<double> floats;
  std::vector<int64_t> wide;
  std::vector<int32_t> narrow;

  explicit Buffer(Type tensor) : type(cast<RankedTensorType>(tensor)) {
    size_t count = type.getNumElements();
    if (isFloat())
      floats.resize(count);
    else if (type.getElementType().isInteger(32))
      narrow.resize(count);
    else
      wide.resize(count);
  }
  bool isFloat() const { return isa<Float64Type>(type.getElementType()); }
  void *data() {
    return isFloat()         ? static_cast<void *>(floats.data())
           : !narrow.empty() ? static_cast<void *>(narrow.data())
                             : static_cast<void *>(wide.data());
  }
};
using Buffers = std::vector<Buffer>;

MLIRContext &getContext() {
  static MLIRContext *context = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    registerAllPasses();
    registerLoweringPasses();
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

/// What is different in training, as pipeline-expand-training makes it.
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

/// A differentiated case, compiled.
class Program {
public:
  explicit Program(const GradientCase &testCase) : testCase(testCase) {}

  std::string differentiate();
  std::string compile();
  Differentiation backward;
  func::FuncOp forward;
  SmallVector<Type> argumentTypes, resultTypes, residualTypes;
  /// Where each residual is: an argument, or else a result of the forward.
  std::vector<std::pair<bool, unsigned>> residualSources;
  /// Copies, as lowering replaces the functions.
  FunctionType forwardType, backwardType;

  Buffers run(StringRef function, Buffers arguments,
              ArrayRef<Type> results) const;

private:
  const GradientCase &testCase;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<ExecutionEngine> engine;
};

std::string Program::differentiate() {
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

std::string Program::compile() {
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

Buffers Program::run(StringRef function, Buffers arguments,
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

/// The numbers that the recorder of gradients.json draws: Knuth's MMIX
/// generator, of which the upper 53 bits count.
class NumberSequence {
public:
  Buffer fill(Type type, double low, double high) {
    Buffer buffer(type);
    for (double &value : buffer.floats) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      value = low +
              (high - low) * std::ldexp(static_cast<double>(state >> 11), -53);
    }
    return buffer;
  }

private:
  uint64_t state = 20240717;
};

class Random {
public:
  explicit Random(const GradientCase &testCase)
      : testCase(testCase), generator(20240717) {}

  Buffer fill(Type type, double low, double high) {
    Buffer buffer(type);
    for (double &value : buffer.floats) {
      value = std::uniform_real_distribution<double>(low, high)(generator);
      if (testCase.quantum != 0)
        value = std::round(value / testCase.quantum) * testCase.quantum;
    }
    for (auto [index, value] : llvm::enumerate(buffer.wide))
      value = (index * 2) % testCase.classes;
    for (auto [index, value] : llvm::enumerate(buffer.narrow))
      value = (index * 2) % testCase.classes;
    return buffer;
  }

private:
  const GradientCase &testCase;
  std::mt19937_64 generator;
};

double dot(const std::vector<double> &a, const std::vector<double> &b) {
  double sum = 0;
  for (auto [x, y] : llvm::zip_equal(a, b))
    sum += x * y;
  return sum;
}

} // namespace

using Note = llvm::function_ref<void(double &, double, double)>;

/// The first outputs are those of the function, the rest are residuals; `found`
/// has the gradients by argument, in any order.
static std::string compareWithRecorded(
    const RecordedValues &recorded, const Program &program,
    const Buffers &outputs,
    const std::vector<std::pair<unsigned, std::vector<double>>> &found,
    Note note, double &largest) {
  if (recorded.outputs.size() != program.resultTypes.size() ||
      recorded.gradients.size() != found.size())
    return "what is recorded does not belong to this function";
  auto compare = [&](const std::vector<double> &got,
                     const std::vector<double> &expected) {
    for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i)
      note(largest, got[i], expected[i]);
    return got.size() == expected.size();
  };
  for (auto [expected, output] : llvm::zip(recorded.outputs, outputs))
    if (!compare(output.floats, expected))
      return "an output has another size than what is recorded";
  for (const auto &[argument, gradient] : found)
    if (!compare(gradient, recorded.gradients[argument]))
      return "a gradient has another size than what is recorded";
  return "";
}

GradientResult penstock::test::checkGradient(const GradientCase &testCase) {
  GradientResult result;
  Program program(testCase);
  result.error = program.differentiate();
  if (result.error.empty())
    result.error = program.compile();
  if (!result.error.empty())
    return result;
  Random random(testCase);
  NumberSequence sequence;
  auto fill = [&](Type type, double low, double high) {
    return testCase.recorded ? sequence.fill(type, low, high)
                             : random.fill(type, low, high);
  };
  Buffers inputs, cotangents;
  for (Type type : program.argumentTypes)
    inputs.push_back(fill(type, testCase.low, testCase.high));
  for (Type type : program.resultTypes)
    cotangents.push_back(fill(type, -1, 1));
  double step = testCase.quantum != 0 ? testCase.quantum : 1e-5;

  // <u, f(x)>, for the u that the backward gets.
  auto objective = [&](const Buffers &x) {
    Buffers y = program.run("f", x, program.forwardType.getResults());
    double sum = 0;
    for (auto [u, value] : llvm::zip(cotangents, y))
      if (u.isFloat())
        sum += dot(u.floats, value.floats);
    return sum;
  };

  // The forward may have had other parameters than the backward.
  Buffers stored = inputs;
  if (testCase.oneOp)
    for (auto [role, buffer] : llvm::zip(testCase.roles, stored))
      if (role == 'p' || role == 'P')
        buffer = random.fill(buffer.type, testCase.low, testCase.high);
  Buffers outputs = program.run("f", stored, program.forwardType.getResults());

  const Differentiation &backward = program.backward;
  Buffers arguments;
  for (unsigned index : backward.cotangents)
    arguments.push_back(cotangents[index]);
  for (auto [isArgument, index] : program.residualSources)
    arguments.push_back(isArgument ? stored[index] : outputs[index]);
  for (unsigned index : backward.parameters)
    arguments.push_back(inputs[index]);
  // What is in the accumulators must stay in the sum.
  Buffers accumulators;
  for (unsigned index : backward.accumulators)
    accumulators.push_back(random.fill(inputs[index].type, -1, 1));
  arguments.insert(arguments.end(), accumulators.begin(), accumulators.end());
  Buffers gradients =
      program.run("backward", arguments, program.backwardType.getResults());

  // Which gradient each wanted argument got.
  std::vector<std::pair<unsigned, std::vector<double>>> found;
  for (const InputGradient &gradient : backward.inputGradients)
    found.emplace_back(
        gradient.argument,
        (gradient.isResult ? gradients : arguments)[gradient.index].floats);
  for (auto [i, index] : llvm::enumerate(backward.accumulators)) {
    std::vector<double> sum =
        gradients[backward.firstAccumulatorResult + i].floats;
    for (auto [value, old] : llvm::zip(sum, accumulators[i].floats))
      value -= old;
    found.emplace_back(index, sum);
  }
  unsigned wanted = 0;
  for (auto [role, buffer] : llvm::zip(testCase.roles, inputs))
    wanted += buffer.isFloat() && (role == 'p' || role == 'd');
  // A gradient that is zero everywhere need not be computed.
  for (unsigned i = 0; testCase.recorded && i < inputs.size(); ++i) {
    auto isGradient = [&](const auto &entry) { return entry.first == i; };
    const std::vector<double> &expected = testCase.recorded->gradients[i];
    if (llvm::none_of(found, isGradient) &&
        llvm::all_of(expected, [](double value) { return value == 0; }))
      found.emplace_back(i, expected);
  }
  if (found.size() != wanted) {
    result.error = "gradients of " + std::to_string(found.size()) +
                   " arguments, wanted are " + std::to_string(wanted);
    return result;
  }

  auto note = [](double &largest, double got, double expected) {
    double error = std::abs(got - expected) / (1 + std::abs(expected));
    largest = std::isnan(error) ? INFINITY : std::max(largest, error);
  };
  if (testCase.recorded)
    result.error = compareWithRecorded(*testCase.recorded, program, outputs,
                                       found, note, result.recordedError);
  if (!result.error.empty() || !testCase.differences)
    return result;

  // 1. Central differences, entry by entry.
  Buffers moved = inputs;
  for (auto &[index, gradient] : found)
    for (size_t entry = 0; entry < gradient.size(); ++entry) {
      double &x = moved[index].floats[entry], saved = x;
      x = saved + step;
      double above = objective(moved);
      x = saved - step;
      double below = objective(moved);
      x = saved;
      note(result.largestError, gradient[entry], (above - below) / (2 * step));
    }

  // 2. The adjoint identity along a random direction.
  if (testCase.quantum == 0) {
    Buffers above = inputs, below = inputs;
    double product = 0;
    for (auto &[index, gradient] : found) {
      Buffer direction = random.fill(inputs[index].type, -1, 1);
      product += dot(gradient, direction.floats);
      for (size_t entry = 0; entry < gradient.size(); ++entry) {
        above[index].floats[entry] += step * direction.floats[entry];
        below[index].floats[entry] -= step * direction.floats[entry];
      }
    }
    note(result.adjointError, product,
         (objective(above) - objective(below)) / (2 * step));
  }
  return result;
}

std::string penstock::test::getDiagnostic(const GradientCase &testCase) {
  return Program(testCase).differentiate();
}

std::string penstock::test::describeBackward(const GradientCase &testCase) {
  Program program(testCase);
  std::string text = program.differentiate();
  if (!text.empty())
    return text;
  llvm::raw_string_ostream stream(text);
  const Differentiation &backward = program.backward;
  stream << "cotangents";
  for (unsigned index : backward.cotangents)
    stream << " " << index;
  stream << "; residuals";
  for (Value residual : backward.residuals) {
    if (auto argument = dyn_cast<BlockArgument>(residual))
      stream << " argument " << argument.getArgNumber();
    else
      stream << " " << residual.getDefiningOp()->getName();
  }
  stream << "; parameters";
  for (unsigned index : backward.parameters)
    stream << " " << index;
  stream << "; accumulators";
  for (unsigned index : backward.accumulators)
    stream << " " << index;
  return text;
}
