//===- Compiler.cpp - From a model to an executable -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One step per level change: its pipeline, the verifier of the level that it
// reaches, and what the report can learn there. The input enters at the level
// that it is at.
//===----------------------------------------------------------------------===//

#include "Compilation.h"

#include "passes/Frontend/Passes.h"
#include "passes/Partition/Passes.h"
#include "passes/Program/Passes.h"
#include "passes/Schedule/Passes.h"
#include "passes/Training/Passes.h"
#include "passes/Verify/Passes.h"
#include "penstock/Driver/Schedules.h"
#include "penstock/Import/Import.h"
#include "penstock/Training/OptimizerSpec.h"
#include "penstock/Training/RateSchedule.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;
using namespace penstock;

void Compilation::installDiagnostics() {
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

bool Compilation::load() {
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

bool Compilation::runPasses(llvm::function_ref<void(OpPassManager &)> build) {
  PassManager manager(&context, ModuleOp::getOperationName());
  build(manager);
  return succeeded(manager.run(*module));
}

bool Compilation::lower(Level from) {
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
bool Compilation::lowerTo(Level target) {
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

int Compilation::run() {
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
  report.clipGradNorm = options.clipGradNorm;
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
        if (level == Level::Program)
          manager.addPass(createPipelineVerifyProgram());
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

int penstock::compile(const CompileOptions &options) {
  // A textual model gets a binary copy beside the output; it goes with it.
  std::string copy = options.output + ".onnx";
  bool hadCopy = llvm::sys::fs::exists(copy);
  int code = Compilation(options).run();
  if (code != kDone && !hadCopy)
    llvm::sys::fs::remove(copy);
  return code;
}
