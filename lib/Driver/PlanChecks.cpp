//===- PlanChecks.cpp - Whether a plan can be carried out ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known only once the stages are cut: that devices, method and schedule
// fit them, and that every stage fits its device.
//===----------------------------------------------------------------------===//

#include "Compilation.h"

#include "dialects/Pipeline/Pipeline.h"
#include "passes/Training/Passes.h"
#include "penstock/Driver/Schedules.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace penstock;

/// Recomputation has to see the weights that the forward saw.
int Compilation::checkRecompute() {
  std::string error;
  FailureOr<MethodSpec> spec = parseMethodSpec(options.method, error);
  if (failed(spec))
    return kDone; // Said elsewhere.
  StringRef name = spec->getName();
  if (name == "sync" || name == "pipedream" || name == "2bw")
    return kDone;
  for (auto task : module->getOps<pipeline::TaskOp>())
    if (task->hasAttr(pipeline::kRecomputesAttr))
      return fail("--recompute=" + options.recompute + ": --method=" + name +
                  " does not keep the weights that the forward of stage @" +
                  task.getStage() +
                  " saw; use --recompute=none, or a method that keeps them "
                  "(sync, pipedream, 2bw)");
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
  if (std::string wrong = checkSchedule(options, stages); !wrong.empty())
    return fail(wrong);
  std::string error;
  if (failed(checkDepth(options, stages, error)))
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

bool Compilation::fitsMemory() const {
  return !options.deviceMemory ||
         llvm::all_of(report.stages, [&](const StageReport &stage) {
           return stage.getLargestArena() <= *options.deviceMemory;
         });
}

/// Says which stage does not fit, and by how much.
int Compilation::checkMemory() {
  if (fitsMemory())
    return kDone;
  for (auto [index, stage] : llvm::enumerate(report.stages)) {
    int64_t need = stage.getLargestArena();
    if (need > *options.deviceMemory)
      return fail(
          llvm::formatv(
              "--device-memory={0}: stage {1} needs {2} bytes, {3} more "
              "than its device has; use more stages, fewer microbatches "
              "in flight or a smaller --microbatch-size",
              *options.deviceMemory, index, need, need - *options.deviceMemory),
          kDoesNotFit);
  }
  return kDone;
}
