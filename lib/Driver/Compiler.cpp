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
#include "DeviceSpeeds.h"
#include "PlanFastest.h"

#include "passes/Frontend/Passes.h"
#include "passes/Partition/Passes.h"
#include "passes/Program/Passes.h"
#include "passes/Runtime/FileTable.h"
#include "passes/Schedule/Passes.h"
#include "passes/Training/Passes.h"
#include "passes/Verify/Passes.h"
#include "penstock/Driver/Schedules.h"
#include "penstock/Import/Import.h"
#include "penstock/Methods/Method.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;
using namespace penstock;

/// The symbol that the object code of a program exports.
static constexpr llvm::StringLiteral kProgramSymbol = "penstock_program";

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
        auto describePlace = [&](Location location) {
          auto place = dyn_cast<FileLineColLoc>(location);
          return place && !isModel ? ":" + std::to_string(place.getLine()) +
                                         ":" + std::to_string(place.getColumn())
                                   : std::string();
        };
        std::string message = diagnostic.str();
        StringRef text = message;
        if (isParsing) // The parser prints ops into it.
          text = text.split('\n').first.rtrim();
        // What is wrong with the order of a table is the table's mistake.
        bool isTable = level == Level::Training && isModel &&
                       !options.scheduleFile.empty();
        beginMessage(log,
                     (isTable ? options.scheduleFile : options.input) +
                         describePlace(diagnostic.getLocation()),
                     severity == DiagnosticSeverity::Error ? Severity::Error
                     : severity == DiagnosticSeverity::Warning
                         ? Severity::Warning
                         : Severity::Note)
            << toOneLine(text);
        // A drawing (of a deadlock) has a line per note, a sentence has one.
        // The parser's notes say nothing without the text that they point at.
        auto notes = diagnostic.getNotes();
        bool isSentence = severity == DiagnosticSeverity::Error &&
                          llvm::hasSingleElement(notes);
        for (Diagnostic &note : notes) {
          if (isParsing)
            break;
          log << (isSentence ? "; " : "\n") << toOneLine(note.str());
          if (isSentence && note.getLocation() != diagnostic.getLocation())
            log << describePlace(note.getLocation());
        }
        log << "\n";
        return success();
      });
}

bool Compilation::load() {
  isModel = !StringRef(options.input).ends_with(".mlir");
  if (!isModel) {
    ParserConfig config(&context);
    isParsing = true;
    module = parseSourceFile<ModuleOp>(options.input, config);
    isParsing = false;
    if (!module)
      return false;
    level = detectLevel(*module);
    if (level == Level::Llvm && !module->lookupSymbol(kProgramSymbol)) {
      fail(options.input + ": there is no program in it: no task, and no " +
           kProgramSymbol);
      return false;
    }
    if (!adoptFacts())
      return false;
    if (level != Level::Llvm)
      recordTraining(level);
    return true;
  }
  ImportOptions import;
  import.dims = options.dims;
  import.microbatchSize = options.microbatchSize;
  // Nodes can be listed without a loss, those of all outputs.
  bool needsNoLoss = options.listNodes && options.loss == "output" &&
                     options.lossInput.empty() && !options.infer;
  import.onlyLossOutput = !options.infer && !needsNoLoss;
  import.lossInput = options.lossInput;
  import.trainRegex = options.trainRegex;
  import.freezeRegex = options.freezeRegex;
  import.noDecayRegex = options.noDecayRegex;
  import.rateScales = options.rateScales;
  import.ties = options.ties;
  import.allowFolded = options.allowFolded;
  import.binaryCopy = binaryCopy;
  if (options.output != "-")
    import.binaryCopy = options.output + ".onnx";
  module = importModel(&context, options.input, import);
  if (!module)
    return false;
  auto complete = [&](ModuleOp target) {
    return runPasses(target, [&](OpPassManager &manager) {
      LowerOnnxToGraphOptions frontend;
      frontend.loss = options.loss;
      frontend.lossInput = options.lossInput;
      frontend.classAxis = options.classAxis;
      frontend.ignoreLabel = options.ignoreLabel;
      frontend.labelSmoothing = options.labelSmoothing;
      for (double weight : options.classWeights)
        frontend.classWeights.push_back(weight);
      frontend.infer = options.infer;
      buildCompleteOnnxPipeline(manager, frontend);
    });
  };
  if (needsNoLoss) {
    // Unless the model's only output is one.
    isTrial = true;
    OwningOpRef<ModuleOp> copy = module->clone();
    options.infer = !complete(*copy);
    isTrial = false;
    if (options.infer)
      beginMessage(log, options.input, Severity::Note)
          << "without --loss, times are those of inference\n";
  }
  bool isComplete = complete(*module) && checkLevel();
  if (isComplete) {
    recordConvolution();
    recordTraining(level);
  }
  return isComplete;
}

bool Compilation::runPasses(ModuleOp target, Build build) {
  PassManager manager(&context, ModuleOp::getOperationName());
#ifndef PENSTOCK_ASSERTIONS
  // Verifying after each pass would take a sixth of the time to compile. Each
  // level is verified as a whole.
  manager.enableVerifier(false);
#endif
  build(manager);
  return succeeded(manager.run(target));
}

bool Compilation::checkLevel(ModuleOp target) {
  return succeeded(verify(target)) &&
         runPasses(target, [](OpPassManager &manager) {
           manager.addPass(createPipelineVerify());
         });
}

static std::string printTargets(MLIRContext *context,
                                ArrayRef<pipeline::TargetAttrInterface> list) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << Builder(context).getArrayAttr(
      SmallVector<Attribute>(list.begin(), list.end()));
  return text;
}

std::string Compilation::getTargetText() {
  return printTargets(&context, getTargets(&context, options));
}

/// The targets of the stages of a worker's line, where devices are of several
/// kinds; empty: they are alike, or what a device has is not known before the
/// cut.
std::string Compilation::getStageTargets(size_t worker,
                                         ArrayRef<std::string> cuts) {
  const std::vector<std::string> &kinds = options.deviceTargets;
  bool isKnown = options.replicas.empty() &&
                 options.generator.replicas() == 1 &&
                 options.scheduleFile.empty() && !llvm::all_equal(kinds);
  auto stages =
      cuts.empty() ? options.stages : static_cast<int64_t>(cuts.size()) + 1;
  auto waves = options.method.getMethod().getWaves(options.method);
  int64_t chunks = options.infer ? 1 : chunksPerDevice(options),
          lines = waves ? waves->workers : 1,
          devices = static_cast<int64_t>(kinds.size()) / lines;
  if (!isKnown || stages != devices * chunks)
    return "";
  SmallVector<pipeline::TargetAttrInterface> targets;
  for (int64_t stage : llvm::seq(stages)) {
    auto device = static_cast<size_t>(options.generator.getDevice(
        static_cast<int>(stage), static_cast<int>(devices)));
    targets.push_back(penstock::getTarget(&context, options,
                                          kinds[worker * devices + device]));
  }
  return printTargets(&context, targets);
}

bool Compilation::cut(ModuleOp target, size_t worker) {
  auto build = [&](OpPassManager &manager) {
    const std::vector<std::string> &cuts =
        worker == 0 ? options.splitAt : options.workerCuts[worker - 1];
    LowerGraphToStagesOptions partition;
    partition.stages = worker == 0 ? options.stages : 0;
    for (const std::string &name : cuts)
      partition.splitAt.push_back(name);
    partition.targets = getStageTargets(worker, cuts);
    // Speeds decide where nobody has said it.
    if (worker < options.deviceSpeeds.size() && cuts.empty()) {
      const std::vector<double> &speeds = options.deviceSpeeds[worker];
      partition.stages = static_cast<int64_t>(speeds.size());
      for (double speed : speeds)
        partition.speeds.push_back(speed);
    }
    // Copies that are kept equal need a flush; a method without one sends
    // the owner's version along.
    partition.sendParameters = options.method.isAsynchronous();
    buildLowerGraphToStagesPipeline(manager, partition);
  };
  return runPasses(target, build) && checkLevel(target);
}

/// Workers that are cut for themselves have a module each, inside of that of
/// the first one, with which it is checked.
bool Compilation::lowerLines(Build build) {
  return llvm::all_of(module->getOps<ModuleOp>(),
                      [&](ModuleOp line) { return runPasses(line, build); });
}

bool Compilation::lower(Level from) {
  recordTraining(static_cast<Level>(static_cast<int>(from) + 1));
  if (from == Level::Graph) {
    std::vector<OwningOpRef<ModuleOp>> lines;
    for (size_t worker : llvm::seq(options.workerCuts.size()))
      if (!cut(*lines.emplace_back(module->clone()), worker + 1))
        return false;
    if (!cut(*module, /*worker=*/0))
      return false;
    for (OwningOpRef<ModuleOp> &line : lines)
      module->push_back(line.release());
    return true;
  }
  auto build = [&](OpPassManager &manager) {
    switch (from) {
    case Level::Onnx:
      // Shapes and the loss are there since the model was loaded.
      manager.addPass(createConvertOnnxToGraph());
      manager.addPass(createCanonicalizerPass());
      manager.addPass(createCSEPass());
      manager.addPass(createFoldTransposes());
      manager.addPass(createCSEPass());
      break;
    case Level::Stages: {
      LowerStagesToTrainingOptions training;
      training.splitBackward = splitsBackward;
      training.recompute =
          llvm::StringSwitch<RecomputePolicy>(options.recompute)
              .Case("none", RecomputePolicy::None)
              .Case("full", RecomputePolicy::Full)
              .Case("auto", RecomputePolicy::Budget)
              .Default(RecomputePolicy::Matching);
      training.recomputeNodes = options.recompute;
      for (int64_t bytes : options.recomputeBudgets)
        training.recomputeBudgets.push_back(bytes);
      for (const std::string &name : options.metrics)
        training.metrics.push_back(name);
      buildLowerStagesToTrainingPipeline(manager, training);
      break;
    }
    case Level::Training: {
      ScheduleOptions schedule;
      schedule.devices = options.devices;
      for (int64_t width : options.replicas)
        schedule.replicas.push_back(width);
      schedule.schedule = options.generator;
      schedule.scheduleFile = options.scheduleFile;
      schedule.targets = getTargetText();
      for (double speed : report.speeds)
        schedule.speeds.push_back(speed);
      buildSchedulePipeline(manager, schedule);
      break;
    }
    case Level::Schedule: {
      // A program that was written by hand need not say what its devices are.
      manager.addPass(createPipelineDeclareDevices({getTargetText()}));
      LowerScheduleToProgramOptions program;
      // A plan that is tried needs to fit without.
      program.prepack = isTrial
                            ? PrepackPolicy::None
                            : llvm::StringSwitch<PrepackPolicy>(options.prepack)
                                  .Case("none", PrepackPolicy::None)
                                  .Case("all", PrepackPolicy::All)
                                  .Default(PrepackPolicy::Auto);
      buildLowerScheduleToProgramPipeline(manager, program);
      break;
    }
    case Level::Graph:
      break; // See above.
    case Level::Program:
    case Level::Llvm:
      return; // Needs the target: see writeProduct.
    }
  };
  return (from != Level::Stages || lowerLines(build)) && runPasses(build) &&
         checkLevel();
}

/// No output takes the place of an input or of another output.
int Compilation::checkFiles() {
  const std::pair<StringRef, StringRef> files[] = {
      {"the input", options.input},
      {"--schedule-file", options.scheduleFile},
      {"class-weights", options.classWeightsFile},
      {"-o", options.output},
      {"--emit-schedule", options.emitSchedule},
      {"--report-json", options.reportJson}};
  constexpr unsigned kFirstOutput = 3;
  for (unsigned i : llvm::seq<unsigned>(kFirstOutput, std::size(files)))
    for (unsigned j : llvm::seq(i))
      if (OutputFile::wouldReplace(files[i].second, files[j].second))
        return fail(files[i].first + " " + files[i].second + ": it is " +
                    (j < kFirstOutput ? "" : "also ") + files[j].first +
                    ", which it would replace; choose another name");
  return kDone;
}

/// Nor of what the program takes its weights from.
int Compilation::checkWeightFiles() {
  llvm::SetVector<StringRef> files = FileTable::findNames(*module);
  for (StringRef output :
       {options.output, options.emitSchedule, options.reportJson})
    for (StringRef file : files)
      if (OutputFile::wouldReplace(output, file))
        return fail(output + ": the program takes its weights from this file, "
                             "which would be replaced; choose another name");
  return kDone;
}

/// Goes down to `target`, collecting for the report on the way.
bool Compilation::lowerTo(Level target) {
  while (level < target) {
    if (!lower(level))
      return false;
    level = static_cast<Level>(static_cast<int>(level) + 1);
    if (level == Level::Stages) {
      measureStages();
      report.collectStages(*module);
    } else if (level == Level::Schedule) {
      report.collectSchedule(*module);
      (*module)->removeAttr(pipeline::kPlanRatesAttr);
    } else if (level == Level::Program)
      report.collectProgram(*module);
  }
  return true;
}

/// Prepacked weights are given up where a device has no room for them.
bool Compilation::lowerToProgram(Level target) {
  bool mayNotFit = options.prepack == "auto" && options.deviceMemory;
  OwningOpRef<ModuleOp> before;
  if (mayNotFit && level < Level::Program && target >= Level::Program)
    before = module->clone();
  Level from = level;
  if (!lowerTo(std::min(target, Level::Program)))
    return false;
  if (!before || fitsMemory())
    return true;
  module = std::move(before);
  level = from;
  options.prepack = "none";
  return lowerTo(Level::Program);
}

int Compilation::run() {
  if (int code = plan(getTarget()))
    return code;
  return finish();
}

int Compilation::plan(Level target, std::optional<double> least) {
  toBeat = least;
  askedDevices = options.devices;
  installDiagnostics();
  std::string error;
  // Planned replicas are as many as the method takes: of one that wants a
  // certain number, a replica for every microbatch.
  std::vector<int64_t> widths = options.replicas;
  if (options.choosesReplicas)
    widths = {options.microbatches};
  if (failed(checkMethod(options.method, options.microbatches, widths,
                         options.optimizer, error)))
    return fail("--method=" + options.method.getText() + ": " + error);
  if (!llvm::sys::fs::exists(options.input))
    return fail(options.input + ": no such file");
  if (int code = checkFiles())
    return code;
  // An output that cannot be written is better known before the work is done.
  output.emplace(options.output);
  if (!output->check(log))
    return kUserError;
  if (!adoptSchedule(options, splitsBackward, error))
    return fail(error);
  if (!load())
    return kUserError;
  if (int code = checkWeightFiles())
    return code;
  report.model = options.input;
  report.infer = options.infer;
  report.method = options.method;
  report.schedule = options.schedule;
  report.optimizer = options.optimizer.getText();
  report.clipGradNorm = options.clipGradNorm;
  report.recompute = options.recompute;
  report.speeds = listDeviceSpeeds(options);

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
  if (beaten)
    return kDone;
  // Mistakes of a model or a plan show by level training; what fails later is
  // ours, unless the user wrote the program.
  if (!lowerTo(std::min(target, Level::Training)))
    return kUserError;
  if (level == Level::Training && target > level) {
    if (int code = checkDevices())
      return code;
    if (int code = checkRecompute())
      return code;
    warnOfUnreached();
  }
  bool isOurs =
      isModel && !restrictsOrders(options) && options.deviceTargets.empty();
  if (!lowerTo(std::min(target, Level::Schedule)))
    return isOurs ? kDefect : kUserError;
  if (checkBeaten())
    return kDone;
  if (int code = isCandidate() ? kDone : writeSchedule())
    return code;
  if (!lowerToProgram(target))
    return isModel ? kDefect : kUserError;
  return checkMemory();
}

int Compilation::finish() {
  if (int code = writeReports())
    return code;
  return writeProduct();
}

int penstock::compile(const CompileOptions &options) {
  if (options.listNodes)
    return Compilation(options).listNodes();
  // A textual model gets a binary copy beside the output; it goes with it.
  std::string copy = options.output + ".onnx";
  bool hadCopy = llvm::sys::fs::exists(copy);
  int code = options.choosesMicrobatches || options.choosesReplicas
                 ? compileFastest(options)
                 : Compilation(options).run();
  if (code != kDone && !hadCopy)
    (void)llvm::sys::fs::remove(copy);
  return code;
}
