//===- PlanChoice.cpp - What the flags leave open -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// --stages=auto, --replicas=auto and --recompute=auto: candidates are compiled
// to level program, where their bytes are facts, and the first that fits is
// taken.
//===----------------------------------------------------------------------===//

#include "Compilation.h"

#include "PlanProgress.h"
#include "PlanSearch.h"
#include "PlanSettings.h"
#include "passes/Partition/Passes.h"
#include "penstock/Driver/Profile.h"
#include "penstock/Driver/Registration.h"
#include "penstock/Driver/Schedules.h"
#include "penstock/Optimizers/Optimizers.h"
#include "penstock/Support/CommandLine.h"
#include "penstock/Target/PlannedCost.h"

#include "llvm/Support/FormatVariadic.h"

#include <limits>
#include <numeric>

using namespace mlir;
using namespace penstock;

static int64_t sum(ArrayRef<int64_t> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), int64_t(0));
}

std::optional<Report> Compilation::tryPlan(const StagePlan &plan,
                                           ArrayRef<int64_t> budgets,
                                           bool isExact) {
  PlanProgress progress;
  OwningOpRef<ModuleOp> trial = module->clone();
  std::swap(module, trial);
  Level before = level;
  Report reported = report;
  CompileOptions asked = options;
  adoptReplicas(plan);
  options.recomputeBudgets.assign(budgets.begin(), budgets.end());
  isTrial = true;
  ++trials;
  std::optional<Report> result;
  // What is beaten is built no further, and nor is what comes behind it. Most
  // of the time goes into programs: what does not fit without one has none.
  if (!beaten && cutAsPlanned(plan) && lowerTo(Level::Schedule) &&
      !checkBeaten()) {
    bool mayFit = !options.deviceMemory ||
                  report.getLeastBytes() <= *options.deviceMemory;
    if (isExact || mayFit ? lowerTo(Level::Program) : true)
      result = report;
    if (result && level == Level::Schedule)
      for (StageReport &stage : result->stages)
        stage.arenas = {stage.leastBytes};
  }
  options = asked;
  isTrial = false;
  report = reported;
  level = before;
  std::swap(module, trial);
  return result;
}

/// Buffers of a weight that trains, as far as all methods have them.
static double getWeightCopies(const OptimizerSpec &optimizer) {
  return 2 +
         static_cast<double>(Optimizer::create(optimizer)->getStates().size()) +
         (optimizer.getAverageDecay() > 0 ? 1 : 0);
}

/// Says which stage is how far over what the device has.
int Compilation::chooseWithin(int64_t limit) {
  PlanRequest request;
  request.stages = options.stages;
  if (plansReplicas())
    request.replicas = getReplicaRequest();
  request.choosesCuts =
      request.replicas || (options.choosesStages && options.stages > 1);
  request.chunks = chunksPerDevice(options);
  request.mayRecompute = options.recompute == "auto";
  request.limit = limit;
  request.weightCopies = getWeightCopies(options.optimizer);
  FailureOr<PlanAnswer> answer =
      searchPlan(*module, request, [&](const StagePlan &plan, auto budgets) {
        return tryPlan(plan, budgets);
      });
  if (failed(answer))
    return kUserError;
  if (beaten)
    return kDone;
  options.recomputeBudgets = answer->budgets;
  // A plan that nothing could be compiled for says why when it is compiled.
  if (request.replicas && answer->worstStage < 0)
    return chooseReplicas();
  if (answer->fits)
    warnOfFewerDevices(answer->plan);
  if (answer->fits || answer->worstStage < 0)
    return cutAsPlanned(answer->plan) ? kDone : kUserError;
  // Of what was not built to its end, the message has all bytes.
  if (!isCandidate())
    if (std::optional<Report> exact =
            tryPlan(answer->plan, answer->budgets, /*isExact=*/true)) {
      std::vector<int64_t> needs = getNeeds(*exact);
      answer->worstStage = llvm::max_element(needs) - needs.begin();
      answer->worstBytes = needs[answer->worstStage];
    }
  std::string text = llvm::formatv(
      "--device-memory={0}: {1}; stage {2} needs {3} than its device has; "
      "--device-memory={4} would do, and less with more devices, {5}fewer "
      "microbatches in flight or a smaller --microbatch-size",
      limit,
      !request.choosesCuts ? "the plan does not fit"
      : answer->isProved
          ? "no plan fits, and this is the closest of those that were built"
          : "none of the plans that were built fits, and this is the closest",
      answer->worstStage, formatNeed(answer->worstBytes, limit),
      formatEnough(answer->worstBytes),
      request.mayRecompute ? "" : "--recompute=auto, ");
  smallestNeed = answer->worstBytes;
  return fail(text, kDoesNotFit);
}

void Compilation::notePlanTarget() {
  (*module)->setAttr(pipeline::kPlanTargetAttr,
                     getTargets(&context, options).front());
  if (options.infer)
    return;
  // All buffers are read and written; a gradient that is not added to is only
  // read.
  auto passes = static_cast<int64_t>(2 * getWeightCopies(options.optimizer)) -
                (options.microbatches > 1 ? 0 : 1);
  setPlannedUpdate(*module, {options.microbatches, passes});
}

void Compilation::measureNodes() {
  std::string reason;
  if (options.profile && !profileUnits(*module, options, reason))
    beginMessage(log, options.input, Severity::Warning)
        << "--profile: costs are not measured, since " << reason
        << "; analytic ones are used\n";
}

void Compilation::measureStages() {
  // Without costs of nodes it has been said why nothing can be measured.
  std::string reason;
  if (isTrial || !options.profile ||
      !(*module)->hasAttr(pipeline::kStageSecondsAttr))
    return;
  if (!profileStages(*module, options, reason))
    beginMessage(log, options.input, Severity::Warning)
        << "--profile: stages are not measured, since " << reason
        << "; the sums of their nodes are used\n";
}

ReplicaRequest Compilation::getReplicaRequest() const {
  ReplicaRequest request;
  request.devices = options.devices;
  request.chunks = chunksPerDevice(options);
  request.microbatches = options.microbatches;
  request.widths = options.replicas;
  request.areEqual = request.chunks > 1;
  request.isAllowed = [asked = options,
                       chunks = request.chunks](int64_t width, int64_t places) {
    CompileOptions equal = asked;
    equal.replicas = {width};
    equal.devices = width * places;
    std::string error;
    return checkSchedule(equal, places * chunks).empty() &&
           succeeded(checkDepth(equal, places * chunks, error));
  };
  request.allowsStage = [method = options.method, m = options.microbatches](
                            int64_t width, int64_t after) {
    return allowsStage(method, width, after, m);
  };
  return request;
}

/// Adopts the planned replicas as if the flags had said them.
void Compilation::adoptReplicas(const StagePlan &plan) {
  if (plan.replicas.empty())
    return;
  setReplicas(options, plan.replicas, chunksPerDevice(options));
  options.stages = plan.replicas.size();
  options.choosesStages = false;
}

bool Compilation::cutAsPlanned(const StagePlan &plan) {
  if (!plansReplicas())
    return cutAsPlanned(plan, nullptr);
  ReplicaRequest request = getReplicaRequest();
  return cutAsPlanned(plan, &request);
}

bool Compilation::cutAsPlanned(const StagePlan &plan,
                               const ReplicaRequest *request) {
  adoptReplicas(plan);
  if (plan.cuts.empty() && plan.replicas.empty())
    return true;
  return succeeded(insertBoundaries(*module, plan, request));
}

FailureOr<ReplicaProposals> Compilation::proposeReplicas() {
  // Of a candidate nothing is written.
  if (plan(Level::Graph, std::numeric_limits<double>::infinity()) != kDone)
    return failure();
  measureNodes();
  FailureOr<ReplicaProposals> proposals =
      penstock::proposeReplicas(*module, getReplicaRequest());
  if (succeeded(proposals) && proposals->plans.empty()) {
    failWithoutReplicas();
    return failure();
  }
  return proposals;
}

/// A number of stages that differ in width: a wide one has more to do. Where
/// they cannot be planned, it is said when the model is cut.
int Compilation::cutByWidths() {
  ReplicaRequest request = getReplicaRequest();
  if (options.choosesStages || options.infer || !options.splitAt.empty() ||
      level > Level::Graph || request.chunks > 1 ||
      llvm::all_equal(options.replicas))
    return kDone;
  if (!lowerTo(Level::Graph))
    return kUserError;
  FailureOr<std::optional<StagePlan>> plan = planReplicas(*module, request);
  if (failed(plan))
    return kUserError;
  return !*plan || cutAsPlanned(**plan, &request) ? kDone : kUserError;
}

void Compilation::warnOfFewerDevices(const StagePlan &plan) {
  int64_t used = sum(plan.replicas) / chunksPerDevice(options);
  // Where widths are chosen, it is said when all have been compared.
  if (plan.replicas.empty() || used == options.devices ||
      options.choosesReplicas)
    return;
  beginMessage(log, options.input, Severity::Warning)
      << "--devices=" << options.devices << ": the plan uses " << used
      << ", as the model has too few nodes that compute\n";
}

int Compilation::failWithoutReplicas() {
  return fail("--stages=auto: there is no plan of these replicas for "
              "--schedule=" +
              options.schedule + ", --method=" + options.method.getText() +
              " and --microbatches=" + llvm::Twine(options.microbatches) +
              "; use other --devices or --microbatches");
}

/// The fastest plan, whatever memory it needs.
int Compilation::chooseReplicas() {
  FailureOr<std::optional<StagePlan>> plan =
      planReplicas(*module, getReplicaRequest());
  if (failed(plan))
    return kUserError;
  if (!*plan)
    return failWithoutReplicas();
  warnOfFewerDevices(**plan);
  return cutAsPlanned(**plan) ? kDone : kUserError;
}

int Compilation::choosePlan(Level target) {
  if (target <= Level::Graph)
    return kDone;
  if (level <= Level::Graph)
    notePlanTarget();
  if (options.deviceRates && level <= Level::Training)
    setPlanRates(*module, *options.deviceRates);
  if (options.profile) {
    if (!lowerTo(Level::Graph))
      return kUserError;
    measureNodes();
  }
  if (plansReplicas()) {
    if (!lowerTo(Level::Graph))
      return kUserError;
    if (!options.deviceMemory)
      return chooseReplicas();
  } else if (options.choosesStages) {
    if (!lowerTo(Level::Graph))
      return kUserError;
    FailureOr<int64_t> units = countUnits(*module);
    if (failed(units))
      return kUserError;
    int64_t chunks = chunksPerDevice(options);
    options.stages = options.devices * chunks;
    if (options.stages > *units) {
      int64_t fewer = std::max<int64_t>(*units / chunks, 1);
      beginMessage(log, options.input, Severity::Warning)
          << "--devices=" << options.devices << ": the model has " << *units
          << " nodes that compute, so that it uses " << fewer << " devices\n";
      options.devices = fewer;
      options.stages = options.devices * chunks;
    }
  }
  if (int code = cutByWidths())
    return code;
  if (!options.deviceMemory ||
      (!options.choosesStages && options.recompute != "auto"))
    return kDone;
  return chooseWithin(*options.deviceMemory);
}
