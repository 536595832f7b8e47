//===- PlanChecks.cpp - Whether a plan can be carried out ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known only once the stages are cut: that devices, method and schedule
// fit them, that every stage fits its device, and, of several plans, that one
// may be faster than what there is.
//===----------------------------------------------------------------------===//

#include "Compilation.h"

#include "dialects/Pipeline/Pipeline.h"
#include "passes/Training/Passes.h"
#include "penstock/Driver/Schedules.h"
#include "penstock/Methods/Method.h"
#include "penstock/Support/CommandLine.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace penstock;

/// Recomputation has to see the weights that the forward saw.
int Compilation::checkRecompute() {
  if (options.method.getMethod().keepsForwardWeights(options.method))
    return kDone;
  for (auto task : module->getOps<pipeline::TaskOp>())
    if (task->hasAttr(pipeline::kRecomputesAttr))
      return fail("--recompute=" + options.recompute +
                  ": --method=" + options.method.getName() +
                  " does not keep the weights that the forward of stage @" +
                  task.getStage() +
                  " saw; use --recompute=none, or a method that keeps them "
                  "(" +
                  listMethodsKeepingWeights() + ")");
  return kDone;
}

/// How many stages there are is known once the cuts are made.
int Compilation::checkDevices() {
  int64_t stages = llvm::range_size(module->getOps<pipeline::StageOp>());
  if (!options.scheduleFile.empty()) {
    // The table has its own devices.
  } else if (options.getPlaces() > stages) {
    return fail(llvm::formatv("--devices={0}: the model has {1} stage{2}, and "
                              "a device needs one; use more --stages",
                              options.devices, stages, stages == 1 ? "" : "s"));
  }
  if (options.infer)
    return kDone;
  if (auto waves = options.method.getMethod().getWaves(options.method);
      waves && waves->workers > 1)
    for (auto variable : module->getOps<pipeline::VariableOp>()) {
      if (variable.getRole() == pipeline::Role::Parameter &&
          !variable.getFrozen() &&
          !variable.getTensorType().getElementType().isF32() &&
          options.precision != "bf16")
        return fail("--method=" + options.method.getText() +
                    ": its waves are of f32, and '" + variable.getSymName() +
                    "' is not; freeze it, or use another method");
    }
  if (std::string wrong = checkSchedule(options, stages); !wrong.empty())
    return fail(wrong);
  std::string error;
  if (failed(checkDepth(options, stages, error)))
    return fail("--method=" + options.method.getText() + ": " + error);
  auto updates = llvm::make_filter_range(
      module->getOps<pipeline::TaskOp>(), [](pipeline::TaskOp task) {
        return task.getKind() == pipeline::TaskKind::Update;
      });
  if (updates.empty())
    beginMessage(log, options.input, Severity::Warning)
        << "nothing is trained: no initializer is left "
           "that has a gradient and is not frozen\n";
  return kDone;
}

void Compilation::warnOfUnreached() {
  constexpr size_t kMostNames = 8;
  std::vector<std::string> names = report.findUnreached(*module);
  if (options.infer || names.empty() || isCandidate())
    return;
  beginMessage(log, options.input, Severity::Warning)
      << "no gradient of the loss reaches " << names.size() << " initializer"
      << (names.size() == 1 ? "" : "s") << ", which "
      << (names.size() == 1 ? "stays as it is" : "stay as they are") << ": "
      << toOneLine(
             llvm::join(llvm::ArrayRef(names).take_front(kMostNames), ", "));
  if (names.size() > kMostNames)
    log << " and " << names.size() - kMostNames << " more (see --report)";
  log << "\n";
}

bool Compilation::fitsMemory() const {
  return !options.deviceMemory ||
         report.getLargestArena() <= *options.deviceMemory;
}

/// Says which stage is the furthest over, and by how much.
int Compilation::checkMemory() {
  if (fitsMemory())
    return kDone;
  auto worst = llvm::max_element(
      report.stages, [](const StageReport &left, const StageReport &right) {
        return left.getLargestArena() < right.getLargestArena();
      });
  smallestNeed = worst->getLargestArena();
  return fail(
      llvm::formatv(
          "--device-memory={0}: stage {1} needs {2} than its device has; "
          "--device-memory={3} would do, and less with more stages, "
          "{4}fewer microbatches in flight or a smaller --microbatch-size",
          *options.deviceMemory, worst - report.stages.begin(),
          formatNeed(*smallestNeed, *options.deviceMemory),
          formatEnough(*smallestNeed),
          options.infer || options.recompute != "none" ? ""
                                                       : "--recompute=auto, "),
      kDoesNotFit);
}

/// Compares with lower bounds of an update: all devices together do its
/// forwards and backwards, and, once its plan is made, its own schedule is
/// simulated. Nodes that are measured one by one are slower than in a stage.
bool Compilation::checkBeaten() {
  if (!toBeat || report.simulatedSeconds == 0 || (isTrial && options.profile))
    return beaten;
  auto devices =
      static_cast<double>(std::max(askedDevices, report.simulatedDevices));
  double seconds =
      isTrial ? report.workSeconds / devices : report.simulatedSeconds;
  if (seconds > *toBeat) {
    beaten = true;
    leastSeconds = seconds;
  }
  return beaten;
}
