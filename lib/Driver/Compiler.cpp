//===- Compiler.cpp - From a model to an executable -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One step per level change: its pipeline, the verifier of the level that it
// reaches, and what the report can learn there. The input enters at the level
// that it is at.
//===----------------------------------------------------------------------===//

#include "penstock/Driver/Compiler.h"

#include "PlanSearch.h"
#include "dialects/Pipeline/Pipeline.h"
#include "passes/Frontend/Passes.h"
#include "passes/Lowering/Passes.h"
#include "passes/Partition/Passes.h"
#include "passes/Program/Passes.h"
#include "passes/Schedule/Passes.h"
#include "passes/Training/Passes.h"
#include "passes/Verify/Passes.h"
#include "penstock/Codegen/ObjectFile.h"
#include "penstock/Driver/OutputFile.h"
#include "penstock/Driver/Profile.h"
#include "penstock/Driver/Registration.h"
#include "penstock/Driver/Report.h"
#include "penstock/Driver/Schedules.h"
#include "penstock/Import/Import.h"
#include "penstock/Training/MethodSpec.h"
#include "penstock/Training/OptimizerSpec.h"
#include "penstock/Training/RateSchedule.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/TargetSelect.h"

using namespace mlir;
using namespace penstock;

namespace {
class Compiler {
public:
  explicit Compiler(const CompileOptions &options)
      : options(options), context(makeRegistry()) {
    context.printOpOnDiagnostic(false);
  }

  int run();

private:
  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }

  /// Prints one error, with the file that it is about, and what else the user
  /// asked to hear.
  void installDiagnostics();
  int fail(const Twine &message, int code = kUserError) {
    llvm::errs() << "penstockc: " << message << "\n";
    return code;
  }

  bool load();
  /// Printed programs carry the choices that their code was made with.
  bool adoptPlan();
  void recordPlan();
  bool runPasses(llvm::function_ref<void(OpPassManager &)> build);
  /// Takes the module from `level` to the next one.
  bool lower(Level from);
  bool lowerTo(Level target);
  bool isAsynchronous() const {
    std::string error;
    FailureOr<MethodSpec> method = parseMethodSpec(options.method, error);
    return succeeded(method) && method->isAsynchronous();
  }
  /// Decides what `auto` leaves open.
  int choosePlan(Level target);
  int chooseWithin(int64_t limit);
  /// The plan of a candidate; the module stays as it is.
  std::optional<Report> tryPlan(ArrayRef<int64_t> cuts,
                                ArrayRef<int64_t> budgets);
  int checkRecompute();
  int checkDevices();
  int writeSchedule();
  int checkMemory();
  int writeProduct(OutputFile &output);
  int writeReports();

  CompileOptions options;
  MLIRContext context;
  std::unique_ptr<ScopedDiagnosticHandler> diagnostics;
  OwningOpRef<ModuleOp> module;
  bool isModel = false; ///< Not a printed program.
  bool hasError = false;
  bool splitsBackward = false;
  bool isTrial = false; ///< What goes wrong is no mistake of the user.
  Level level = Level::Onnx;
  Report report;
};
} // namespace

void Compiler::installDiagnostics() {
  diagnostics = std::make_unique<ScopedDiagnosticHandler>(
      &context, [this](Diagnostic &diagnostic) {
        DiagnosticSeverity severity = diagnostic.getSeverity();
        if (isTrial)
          return success();
        if (severity == DiagnosticSeverity::Remark && !options.explain)
          return success();
        // A mistake is said in one line: what follows the first is its echo.
        if (severity == DiagnosticSeverity::Error &&
            std::exchange(hasError, true))
          return success();
        llvm::errs() << options.input;
        if (auto place = dyn_cast<FileLineColLoc>(diagnostic.getLocation());
            place && !isModel)
          llvm::errs() << ":" << place.getLine() << ":" << place.getColumn();
        std::string text = diagnostic.str();
        // A drawing (of a deadlock) keeps its lines, a sentence has one.
        llvm::errs() << ": "
                     << (severity == DiagnosticSeverity::Error     ? ""
                         : severity == DiagnosticSeverity::Warning ? "warning: "
                                                                   : "note: ")
                     << text << "\n";
        for (Diagnostic &note : diagnostic.getNotes())
          llvm::errs() << note.str() << "\n";
        return success();
      });
}

bool Compiler::load() {
  isModel = !StringRef(options.input).ends_with(".mlir");
  if (!isModel) {
    ParserConfig config(&context);
    module = parseSourceFile<ModuleOp>(options.input, config);
    if (module)
      level = detectLevel(*module);
    return module && adoptPlan();
  }
  ImportOptions import;
  import.dims = options.dims;
  import.microbatchSize = options.microbatchSize;
  import.onlyLossOutput = !options.infer;
  import.lossInput = options.lossInput;
  import.trainRegex = options.trainRegex;
  import.freezeRegex = options.freezeRegex;
  if (options.output != "-")
    import.binaryCopy = options.output + ".onnx";
  module = importModel(&context, options.input, import);
  if (!module)
    return false;
  bool isComplete = runPasses([&](OpPassManager &manager) {
    LowerOnnxToGraphOptions frontend;
    frontend.loss = options.loss;
    frontend.lossInput = options.lossInput;
    frontend.classAxis = options.classAxis;
    frontend.ignoreLabel = options.ignoreLabel;
    frontend.infer = options.infer;
    buildCompleteOnnxPipeline(manager, frontend);
    manager.addPass(createPipelineVerify());
  });
  if (isComplete)
    recordPlan();
  return isComplete;
}

static constexpr llvm::StringLiteral kPlanAttr = "pipeline.plan";
/// In the plan of what infers only.
static constexpr llvm::StringLiteral kModeName = "mode";

void Compiler::recordPlan() {
  Builder builder(&context);
  NamedAttrList plan;
  if (auto before = (*module)->getAttrOfType<DictionaryAttr>(kPlanAttr))
    plan.append(before.begin(), before.end());
  if (options.infer)
    plan.set(kModeName, builder.getStringAttr("infer"));
  else if (level == Level::Training) {
    plan.set("microbatches", builder.getI64IntegerAttr(options.microbatches));
    plan.set("optimizer", builder.getStringAttr(options.optimizer));
    if (options.batchNorm != "train")
      plan.set("batch-norm", builder.getStringAttr(options.batchNorm));
    plan.set("lr-schedule", builder.getStringAttr(options.rateSchedule));
    plan.set("clip-grad-norm", builder.getF64FloatAttr(options.clipGradNorm));
  } else if (level == Level::Schedule) {
    plan.set("schedule", builder.getStringAttr(options.schedule));
    plan.set("method", builder.getStringAttr(options.method));
  }
  if (!plan.empty())
    (*module)->setAttr(kPlanAttr, plan.getDictionary(&context));
}

bool Compiler::adoptPlan() {
  auto plan = (*module)->getAttrOfType<DictionaryAttr>(kPlanAttr);
  if (!plan)
    return true;
  auto adopt = [&](StringRef flag, auto &option, const auto &value) {
    if (options.given.count(flag.str()) && option != value) {
      fail(llvm::formatv("--{0}={1}: {2} was made with --{0}={3}", flag, option,
                         options.input, value));
      return false;
    }
    option = value;
    return true;
  };
  bool infers = plan.contains(kModeName);
  if (options.infer && !infers) {
    fail("--mode=infer: " + options.input + " was made with --mode=train");
    return false;
  }
  options.infer = infers;
  if (auto value = plan.getAs<IntegerAttr>("microbatches"))
    if (!adopt("microbatches", options.microbatches, value.getInt()))
      return false;
  if (auto value = plan.getAs<FloatAttr>("clip-grad-norm"))
    if (!adopt("clip-grad-norm", options.clipGradNorm,
               value.getValueAsDouble()))
      return false;
  for (auto [flag, option] :
       {std::pair<StringRef, std::string *>("optimizer", &options.optimizer),
        {"batch-norm", &options.batchNorm},
        {"lr-schedule", &options.rateSchedule},
        {"schedule", &options.schedule},
        {"method", &options.method}})
    if (auto value = plan.getAs<StringAttr>(flag))
      if (!adopt(flag, *option, value.str()))
        return false;
  return true;
}

bool Compiler::runPasses(llvm::function_ref<void(OpPassManager &)> build) {
  PassManager manager(&context, ModuleOp::getOperationName());
  build(manager);
  return succeeded(manager.run(*module));
}

bool Compiler::lower(Level from) {
  return runPasses([&](OpPassManager &manager) {
    switch (from) {
    case Level::Onnx:
      // Shapes and the loss are there since the model was loaded.
      manager.addPass(createConvertOnnxToGraph());
      manager.addPass(createCanonicalizerPass());
      manager.addPass(createCSEPass());
      break;
    case Level::Graph: {
      LowerGraphToStagesOptions partition;
      partition.stages = options.stages;
      for (const std::string &name : options.splitAt)
        partition.splitAt.push_back(name);
      // Copies that are kept equal need a flush; a method without one sends
      // the owner's version along.
      std::string error;
      FailureOr<MethodSpec> method = parseMethodSpec(options.method, error);
      partition.sendParameters = succeeded(method) && method->isAsynchronous();
      buildLowerGraphToStagesPipeline(manager, partition);
      break;
    }
    case Level::Stages: {
      LowerStagesToTrainingOptions training;
      training.microbatches = options.microbatches;
      training.optimizer = options.optimizer;
      training.batchNorm = options.batchNorm;
      training.lrSchedule = options.rateSchedule;
      training.clipGradNorm = options.clipGradNorm;
      // What spans all stages is a barrier, which only `sync` has anyway.
      training.clipScope = isAsynchronous() ? "stage" : "global";
      training.splitBackward = splitsBackward;
      training.infer = options.infer;
      training.recompute =
          options.recompute == "auto" ? "budget" : options.recompute;
      for (int64_t bytes : options.recomputeBudgets)
        training.recomputeBudgets.push_back(bytes);
      buildLowerStagesToTrainingPipeline(manager, training);
      break;
    }
    case Level::Training: {
      ScheduleOptions schedule;
      schedule.devices = options.devices;
      schedule.microbatches = options.microbatches;
      schedule.schedule = options.schedule;
      schedule.scheduleFile = options.scheduleFile;
      schedule.method = options.method;
      schedule.optimizer = options.optimizer;
      schedule.lrSchedule = options.rateSchedule;
      buildSchedulePipeline(manager, schedule);
      break;
    }
    case Level::Schedule: {
      LowerScheduleToProgramOptions program;
      program.threads = options.threads;
      buildLowerScheduleToProgramPipeline(manager, program);
      break;
    }
    case Level::Program:
    case Level::Llvm:
      return; // Needs the target: see writeProduct.
    }
    manager.addPass(createPipelineVerify());
  });
}

/// Goes down to `target`, collecting for the report on the way.
bool Compiler::lowerTo(Level target) {
  while (level < target) {
    if (!lower(level))
      return false;
    level = static_cast<Level>(static_cast<int>(level) + 1);
    recordPlan();
    if (level == Level::Stages)
      report.collectStages(*module);
    else if (level == Level::Schedule)
      report.collectSchedule(*module);
    else if (level == Level::Program)
      report.collectProgram(*module);
  }
  return true;
}

std::optional<Report> Compiler::tryPlan(ArrayRef<int64_t> cuts,
                                        ArrayRef<int64_t> budgets) {
  OwningOpRef<ModuleOp> trial = module->clone();
  std::swap(module, trial);
  Level before = level;
  Report reported = report;
  options.recomputeBudgets.assign(budgets.begin(), budgets.end());
  isTrial = true;
  std::optional<Report> result;
  if ((cuts.empty() || succeeded(insertBoundaries(*module, cuts))) &&
      lowerTo(Level::Program))
    result = report;
  isTrial = false;
  report = reported;
  level = before;
  std::swap(module, trial);
  return result;
}

/// Says which stage is how far over what the device has.
int Compiler::chooseWithin(int64_t limit) {
  PlanRequest request;
  request.stages = options.stages;
  request.choosesCuts = options.choosesStages && options.stages > 1;
  request.mayRecompute = options.recompute == "auto";
  request.limit = limit;
  FailureOr<PlanAnswer> answer =
      searchPlan(*module, request, [&](auto cuts, auto budgets) {
        return tryPlan(cuts, budgets);
      });
  if (failed(answer))
    return kUserError;
  options.recomputeBudgets = answer->budgets;
  // A plan that nothing could be compiled for says why when it is compiled.
  if (answer->fits || answer->worstStage < 0)
    return !answer->cuts.empty() &&
                   failed(insertBoundaries(*module, answer->cuts))
               ? kUserError
               : kDone;
  std::string text = llvm::formatv(
      "--device-memory={0}: {1}; stage {2} needs {3} bytes, {4} more than its "
      "device has; use more devices, {5}fewer microbatches in flight or a "
      "smaller --microbatch-size",
      limit,
      !request.choosesCuts ? "the plan does not fit"
      : answer->isProved
          ? "no cut fits, and this is the closest of those that were built"
          : "none of the cuts that were built fits, and this is the closest",
      answer->worstStage, answer->worstBytes, answer->worstBytes - limit,
      request.mayRecompute ? "" : "--recompute=auto, ");
  return fail(text, kDoesNotFit);
}

int Compiler::choosePlan(Level target) {
  bool recomputes = options.recompute != "none";
  if (options.choosesStages && level > Level::Graph)
    return fail("--stages=auto: " + options.input + " is at level " +
                getLevelName(level) + ", where its stages are cut");
  if (recomputes && level > Level::Stages)
    return fail("--recompute=" + options.recompute + ": " + options.input +
                " is at level " + getLevelName(level) +
                ", where its residuals are chosen");
  if (options.profile && level > Level::Graph)
    return fail("--profile: " + options.input + " is at level " +
                getLevelName(level) + ", where nodes are told apart no more");
  if (target <= Level::Graph)
    return kDone;
  if (options.profile) {
    std::string reason;
    if (!lowerTo(Level::Graph))
      return kUserError;
    if (!profileUnits(*module, options, reason))
      llvm::errs() << options.input
                   << ": warning: --profile: costs are not measured, since "
                   << reason << "; analytic ones are used\n";
  }
  if (options.choosesStages) {
    if (!lowerTo(Level::Graph))
      return kUserError;
    FailureOr<int64_t> units = countUnits(*module);
    if (failed(units))
      return kUserError;
    int64_t chunks = chunksPerDevice(options);
    options.stages = options.devices * chunks;
    if (options.stages > *units) {
      int64_t fewer = std::max<int64_t>(*units / chunks, 1);
      llvm::errs() << options.input
                   << ": warning: --devices=" << options.devices
                   << ": the model has " << *units
                   << " nodes that compute, so that it uses " << fewer
                   << " devices\n";
      options.devices = fewer;
      options.stages = options.devices * chunks;
    }
  }
  if (!options.deviceMemory ||
      (!options.choosesStages && options.recompute != "auto"))
    return kDone;
  return chooseWithin(*options.deviceMemory);
}

/// Recomputation has to see the weights that the forward saw.
int Compiler::checkRecompute() {
  std::string error;
  FailureOr<MethodSpec> spec = parseMethodSpec(options.method, error);
  if (failed(spec))
    return kDone; // Said elsewhere.
  StringRef name = spec->getName();
  if (name == "sync" || name == "pipedream" || name == "2bw")
    return kDone;
  for (auto task : module->getOps<pipeline::TaskOp>())
    if (task->hasAttr(kRecomputesAttr))
      return fail("--recompute=" + options.recompute + ": --method=" + name +
                  " does not keep the weights that the forward of stage @" +
                  task.getStage() +
                  " saw; use --recompute=none, or a method that keeps them "
                  "(sync, pipedream, 2bw)");
  return kDone;
}

/// How many stages there are is known once the cuts are made.
int Compiler::checkDevices() {
  int64_t stages = llvm::range_size(module->getOps<pipeline::StageOp>());
  if (!options.scheduleFile.empty()) {
    // The table has its own devices.
  } else if (options.devices > stages) {
    return fail(llvm::formatv("--devices={0}: the model has {1} stage{2}, and "
                              "a device needs one; use more --stages",
                              options.devices, stages, stages == 1 ? "" : "s"));
  }
  if (options.infer)
    return kDone;
  if (std::string wrong = checkSchedule(options, stages); !wrong.empty())
    return fail(wrong);
  std::string error;
  FailureOr<MethodSpec> method = parseMethodSpec(options.method, error);
  if (succeeded(method) &&
      failed(checkMethodDepth(*method,
                              options.devices ? options.devices : stages,
                              options.microbatches, error)))
    return fail("--method=" + options.method + ": " + error);
  auto updates = llvm::make_filter_range(
      module->getOps<pipeline::TaskOp>(), [](pipeline::TaskOp task) {
        return task.getKind() == pipeline::TaskKind::Update;
      });
  if (updates.empty())
    llvm::errs() << options.input
                 << ": warning: nothing is trained: no initializer is left "
                    "that has a gradient and is not frozen\n";
  return kDone;
}

/// The training schedule as a table.
int Compiler::writeSchedule() {
  if (options.emitSchedule.empty())
    return kDone;
  OutputFile file(options.emitSchedule);
  if (!writeScheduleTable(*module, file.stream()))
    return fail("--emit-schedule=" + options.emitSchedule +
                ": there is no training schedule at this level");
  return file.commit(llvm::errs()) ? kDone : kUserError;
}

/// Says which stage does not fit, and by how much.
int Compiler::checkMemory() {
  if (!options.deviceMemory)
    return kDone;
  for (auto [index, stage] : llvm::enumerate(report.stages))
    if (stage.bytes.arena > *options.deviceMemory)
      return fail(
          llvm::formatv(
              "--device-memory={0}: stage {1} needs {2} bytes, {3} more "
              "than its device has; use more stages, fewer microbatches "
              "in flight or a smaller --microbatch-size",
              *options.deviceMemory, index, stage.bytes.arena,
              stage.bytes.arena - *options.deviceMemory),
          kDoesNotFit);
  return kDone;
}

int Compiler::run() {
  installDiagnostics();
  std::string error;
  FailureOr<OptimizerSpec> optimizer =
      parseOptimizerSpec(options.optimizer, error);
  if (failed(optimizer))
    return fail("--optimizer=" + options.optimizer + ": " + error);
  if (failed(parseRateSchedule(options.rateSchedule, error)))
    return fail("--lr-schedule=" + options.rateSchedule + ": " + error);
  FailureOr<MethodSpec> method = parseMethodSpec(options.method, error);
  if (failed(method) ||
      failed(checkMethod(*method, options.microbatches, *optimizer, error)))
    return fail("--method=" + options.method + ": " + error);
  if (!llvm::sys::fs::exists(options.input))
    return fail(options.input + ": no such file");
  // An output that cannot be written is better known before the work is done.
  OutputFile output(options.output);
  if (!output.check(llvm::errs()))
    return kUserError;
  if (!adoptSchedule(options, splitsBackward, error))
    return fail(error);
  if (!load())
    return kUserError;
  report.model = options.input;
  report.infer = options.infer;
  report.method = options.method;
  report.schedule = options.schedule;
  report.optimizer = options.optimizer;
  report.recompute = options.recompute;

  bool wantsCode = options.product != Product::Ir;
  Level target = wantsCode ? Level::Llvm : options.level;
  if (target < level)
    return fail(options.input + " is at level " + getLevelName(level) +
                " already, after --emit=" + getLevelName(target));
  // A printed program is checked before anything is built on it.
  bool isSound =
      isModel || level == Level::Llvm || runPasses([&](OpPassManager &manager) {
        manager.addPass(createPipelineVerify());
        if (level == Level::Schedule)
          manager.addPass(createPipelineVerifySchedule());
      });
  if (!isSound)
    return kUserError;

  if (level >= Level::Stages && level <= Level::Schedule)
    report.collectStages(*module);
  if (level == Level::Schedule)
    report.collectSchedule(*module);
  if (level == Level::Program)
    report.collectProgram(*module);

  if (int code = choosePlan(target))
    return code;
  // Mistakes of a model or a plan show by level training; what fails later is
  // ours, unless the user wrote the program.
  if (!lowerTo(std::min(target, Level::Training)))
    return kUserError;
  if (level == Level::Training && target > level) {
    if (int code = checkDevices())
      return code;
    if (int code = checkRecompute())
      return code;
  }
  bool isOurs = isModel && options.scheduleFile.empty();
  if (!lowerTo(std::min(target, Level::Schedule)))
    return isOurs ? kDefect : kUserError;
  if (int code = writeSchedule())
    return code;
  if (!lowerTo(std::min(target, Level::Program)))
    return isModel ? kDefect : kUserError;
  if (int code = checkMemory())
    return code;
  if (int code = writeReports())
    return code;
  return writeProduct(output);
}

int Compiler::writeReports() {
  if (options.report)
    report.print(llvm::outs());
  if (options.reportJson.empty())
    return kDone;
  OutputFile file(options.reportJson);
  file.stream() << llvm::formatv("{0:2}", report.toJson()) << "\n";
  return file.commit(llvm::errs()) ? kDone : kUserError;
}

/// A library of the runtime, beside the compiler: in an installation, or in a
/// build. Empty when it is not there.
static std::string findRuntimeLibrary(StringRef name) {
  std::string self = llvm::sys::fs::getMainExecutable(
      nullptr, reinterpret_cast<void *>(&findRuntimeLibrary));
  StringRef folder = llvm::sys::path::parent_path(self);
  for (StringRef place : {"../lib", "../runtime"}) {
    llvm::SmallString<256> path(folder);
    llvm::sys::path::append(path, place, name);
    llvm::sys::path::remove_dots(path, /*remove_dot_dot=*/true);
    if (llvm::sys::fs::exists(path))
      return path.str().str();
  }
  return "";
}

int Compiler::writeProduct(OutputFile &output) {
  if (options.product == Product::Ir && options.level != Level::Llvm) {
    // Locations name ONNX nodes: what comes until the stages are cut needs
    // them.
    OpPrintingFlags flags;
    if (level <= Level::Stages)
      flags.enableDebugInfo();
    else
      flags.printNameLocAsPrefix();
    module->print(output.stream(), flags);
    return output.commit(llvm::errs()) ? kDone : kUserError;
  }

  TargetOptions target;
  target.march = options.march;
  FailureOr<TargetCpu> cpu = resolveTargetCpu(options.march, module->getLoc());
  if (failed(cpu))
    return kUserError;
  if (level == Level::Program) {
    bool done = runPasses([&](OpPassManager &manager) {
      LowerProgramToLlvmOptions lowering;
      lowering.threads = options.threads;
      lowering.vectorWidth = cpu->vectorWidth;
      lowering.cpu = cpu->name;
      lowering.features = cpu->required;
      lowering.method = options.method;
      lowering.schedule = options.schedule;
      lowering.plan = llvm::formatv("{0}", report.toJson()).str();
      buildLowerProgramToLlvmPipeline(manager, lowering);
    });
    if (!done)
      return isModel ? kDefect : kUserError;
    level = Level::Llvm;
  }

  if (options.product == Product::Ir) {
    OpPrintingFlags flags;
    module->print(output.stream(), flags);
    return output.commit(llvm::errs()) ? kDone : kUserError;
  }
  if (options.product == Product::Object) {
    if (failed(emitObject(*module, target, output.stream())))
      return kDefect;
    return output.commit(llvm::errs()) ? kDone : kUserError;
  }

  std::string start = findRuntimeLibrary("libpenstock_start.a");
  std::string runtime = findRuntimeLibrary("libpenstock_runtime.a");
  if (start.empty() || runtime.empty())
    return fail(
        "cannot find libpenstock_runtime.a beside the compiler; install "
        "Penstock with cmake --install");
  OutputFile object((output.temporaryPath() + ".o").str());
  if (failed(emitObject(*module, target, object.stream())))
    return kDefect;
  object.flush();
  std::vector<std::string> libraries = {start,    runtime,     "-ldl",
                                        "-lgomp", "-lpthread", "-lm"};
  // A runtime that was built with sanitizers needs theirs.
  if (StringRef sanitize = PENSTOCK_SANITIZE; !sanitize.empty())
    libraries.push_back(("-fsanitize=" + sanitize).str());
  if (failed(linkExecutable({object.temporaryPath().str()},
                            output.temporaryPath(), libraries,
                            module->getLoc())))
    return kUserError;
  return output.commit(llvm::errs()) ? kDone : kUserError;
}

int penstock::compile(const CompileOptions &options) {
  // A textual model gets a binary copy beside the output; it goes with it.
  std::string copy = options.output + ".onnx";
  bool hadCopy = llvm::sys::fs::exists(copy);
  int code = Compiler(options).run();
  if (code != kDone && !hadCopy)
    llvm::sys::fs::remove(copy);
  return code;
}
