//===- Compilation.h - One run of the compiler --------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a run of penstockc holds while it takes a module from level to level.
// Its steps stand in Compiler.cpp (the levels), ProgramFacts.cpp,
// PlanChoice.cpp, PlanChecks.cpp and Product.cpp. Where several settings are
// tried, there is one for each of them (PlanFastest.cpp).
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_DRIVER_COMPILATION_H
#define PENSTOCK_LIB_DRIVER_COMPILATION_H

#include "penstock/Driver/Compiler.h"
#include "penstock/Driver/OutputFile.h"
#include "penstock/Driver/Registration.h"
#include "penstock/Driver/Report.h"
#include "penstock/Methods/MethodSpec.h"
#include "penstock/Support/CommandLine.h"
#include "penstock/one_line.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>

namespace penstock {

struct ReplicaProposals;
struct ReplicaRequest;
struct StagePlan;
struct StageSearchProblem;
struct StageSearchResult;

class Compilation {
public:
  explicit Compilation(const CompileOptions &options,
                       llvm::raw_ostream &log = llvm::errs())
      : options(options), log(log), context(makeRegistry()) {
    context.printOpOnDiagnostic(false);
  }

  int run();
  /// Prints the nodes of the model, and compiles nothing.
  int listNodes();

  /// Decides what the options leave open, down to level `target`: the exit
  /// status. Stops early where it is sure that an update takes longer than
  /// `toBeat` seconds by simulation, and then says that it is beaten.
  int plan(Level target, std::optional<double> toBeat = std::nullopt);
  /// In place of a plan: stages and replicas that might be fast.
  mlir::FailureOr<ReplicaProposals> proposeReplicas();
  /// The same, for plans that are compiled to their memory: see
  /// CompiledMemory.h.
  std::optional<StageSearchResult>
  searchPlans(const StageSearchProblem &problem, std::string &reason);
  std::optional<std::vector<int64_t>>
  measurePlan(const StagePlan &plan, int64_t units, std::string &reason);
  /// Writes the requested product from the plan. Returns the exit code.
  int finish();
  bool isBeaten() const { return beaten; }
  /// Returns a lower bound of the seconds of its updates, if it is pruned.
  double getLeastSeconds() const { return leastSeconds; }
  /// The level of what is asked for; code is made when all is decided.
  Level getTarget() const {
    return options.product == Product::Ir ? options.level : Level::Llvm;
  }
  const Report &getReport() const { return report; }
  const CompileOptions &getOptions() const { return options; }
  /// How many plans were compiled to their memory.
  int64_t getTrials() const { return trials; }
  /// Returns, if the plan does not fit, the least bytes that the device needs
  /// that is the furthest over the limit.
  std::optional<int64_t> getSmallestNeed() const { return smallestNeed; }

private:
  static mlir::DialectRegistry makeRegistry() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }

  /// Prints one error, with the file that it is about, and what else the user
  /// asked to hear.
  void installDiagnostics();
  int fail(const llvm::Twine &message, int code = kUserError) {
    reportError("penstockc", message, log);
    return code;
  }
  /// Returns true if this is one of several candidates, of which one will be
  /// finished.
  bool isCandidate() const { return toBeat.has_value(); }
  /// Returns true if nothing can come of it that is faster than the best so
  /// far.
  bool checkBeaten();

  int checkFiles();
  int checkWeightFiles();
  bool load();
  /// Takes over what a printed program was made with; false after an error if a
  /// flag contradicts it.
  bool adoptFacts();
  /// False after an error if a flag decides nothing at the program's level.
  bool checkEffects();
  bool checkInference();
  template <typename Value>
  bool adopt(llvm::StringRef flag, Value &option, const Value &value);
  /// Writes into the module what is decided about its training at `target`.
  void recordTraining(Level target);
  /// The same of the devices of the program.
  bool agreesWithDevices();
  void recordConvolution();
  /// The target of devices that the command line asks for, as text.
  std::string getTargetText();
  /// The same of the stages of a worker with these cuts, if they are unlike.
  std::string getStageTargets(size_t worker, llvm::ArrayRef<std::string> cuts);
  mlir::FailureOr<llvm::SetVector<mlir::Attribute>> collectTargets();
  using Build = llvm::function_ref<void(mlir::OpPassManager &)>;
  bool runPasses(Build build) { return runPasses(*module, build); }
  bool runPasses(mlir::ModuleOp target, Build build);
  /// Verifies the ops of the module, then the rules of its level.
  bool checkLevel() { return checkLevel(*module); }
  bool checkLevel(mlir::ModuleOp target);
  /// Takes the module from `level` to the next one.
  bool lower(Level from);
  bool cut(mlir::ModuleOp target, size_t worker);
  bool lowerLines(Build build);
  bool lowerTo(Level target);
  bool lowerToLlvm(llvm::ArrayRef<mlir::Attribute> targets);
  bool lowerToProgram(Level target);
  /// Decides what `auto` leaves open.
  int choosePlan(Level target);
  int chooseWithin(int64_t limit);
  /// At level graph: whether as many nodes compute as are expected.
  bool loadUnits(int64_t expected, std::string &reason);
  /// Until level stages: notes what kind of device cuts are made for.
  void notePlanTarget();
  /// With --profile, at level graph.
  void measureNodes();
  /// With --profile, once the stages are decided.
  void measureStages();
  /// The plan of a candidate; the module stays as it is. Where what its
  /// schedule keeps does not fit already, that is what a stage is said to need,
  /// unless it shall be exact.
  std::optional<Report> tryPlan(const StagePlan &plan,
                                llvm::ArrayRef<int64_t> budgets,
                                bool isExact = false);
  void adoptReplicas(const StagePlan &plan);
  void warnOfFewerDevices(const StagePlan &plan);
  int checkRecompute();
  int checkDevices();
  /// Names parameters that no gradient reaches from the loss.
  void warnOfUnreached();
  int writeSchedule();
  int chooseReplicas();
  int failWithoutReplicas();
  /// Returns true if cuts are planned for stages with replicas.
  bool plansReplicas() const {
    return options.choosesReplicas ||
           (options.choosesStages && !options.replicas.empty());
  }
  ReplicaRequest getReplicaRequest() const;
  int cutByWidths();
  bool cutAsPlanned(const StagePlan &plan);
  bool cutAsPlanned(const StagePlan &plan, const ReplicaRequest *request);
  bool fitsMemory() const;
  int checkMemory();
  int writeObject(llvm::ArrayRef<mlir::Attribute> targets,
                  llvm::raw_pwrite_stream &stream);
  int writeKernelCode(llvm::ArrayRef<mlir::Attribute> targets);
  int writeProduct();
  int writeExecutable(llvm::ArrayRef<mlir::Attribute> targets,
                      llvm::ArrayRef<std::string> embedded);
  int writeReports();

  CompileOptions options;
  /// Where nothing is compiled: for weights that are no bytes in the model.
  std::string binaryCopy;
  llvm::raw_ostream &log; ///< Errors, warnings and remarks.
  mlir::MLIRContext context;
  std::unique_ptr<mlir::ScopedDiagnosticHandler> diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  bool isModel = false; ///< Not a printed program.
  bool hasError = false;
  bool isParsing = false;
  bool splitsBackward = false;
  bool isTrial = false; ///< What goes wrong is no mistake of the user.
  bool beaten = false;
  std::optional<double> toBeat;
  double leastSeconds = 0;
  int64_t askedDevices = 0;
  std::optional<int64_t> smallestNeed;
  int64_t trials = 0;
  Level level = Level::Onnx;
  Report report;
  std::optional<OutputFile> output;
};

} // namespace penstock

#endif // PENSTOCK_LIB_DRIVER_COMPILATION_H
