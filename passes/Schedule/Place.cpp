//===- Place.cpp - Gives every stage its device ---------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In a line, a loop or a wave of chunks: neighbours share a chunk where there
// are more stages, and shares differ by one stage at most.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Passes.h"

#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Schedule/Generators.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace penstock::schedule;

namespace penstock {
#define GEN_PASS_DEF_PIPELINEPLACE
#include "passes/Schedule/Passes.h.inc"
} // namespace penstock

namespace {

struct PlacePass : penstock::impl::PipelinePlaceBase<PlacePass> {
  using PipelinePlaceBase::PipelinePlaceBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto stages = llvm::to_vector(module.getOps<penstock::pipeline::StageOp>());
    int64_t count = stages.size();
    Placement layout;
    int64_t perDevice = chunks;
    if (!schedule.empty()) {
      std::string error;
      std::optional<ScheduleSpec> spec = parseScheduleSpec(schedule, error);
      if (!spec) {
        module.emitError(error);
        return signalPassFailure();
      }
      layout = spec->placement();
      perDevice = spec->chunks();
    } else if (placement == "line") {
      layout = Placement::Line;
    } else if (placement == "loop") {
      layout = Placement::Loop;
    } else if (placement == "wave") {
      layout = Placement::Wave;
    } else {
      module.emitError("placement '")
          << placement << "' is not known; there are line, loop, wave";
      return signalPassFailure();
    }

    // How many devices, and stages that share a chunk of one.
    if (layout == Placement::Line || layout == Placement::Mirror)
      perDevice = 1;
    else if (perDevice <= 0)
      perDevice = devices > 0 ? std::max<int64_t>(1, count / devices) : 1;
    int64_t wanted = devices == 0 ? std::max<int64_t>(1, count / perDevice)
                                  : int64_t(devices);
    if (wanted < 0 || wanted * perDevice > count) {
      InFlightDiagnostic diagnostic = module.emitError("cannot place ");
      diagnostic << count << " stages on " << wanted << " devices";
      if (perDevice > 1)
        diagnostic << ", each with " << perDevice << ": it takes "
                   << (wanted > 0 ? wanted : 1) * perDevice;
      else
        diagnostic << ": between 1 and " << count << " can be used";
      return signalPassFailure();
    }
    for (auto [index, stage] : llvm::enumerate(stages)) {
      int chunk = chunkOfStage(index, count, wanted * perDevice);
      SmallVector<int64_t, 2> places = {deviceOf(layout, chunk, wanted)};
      if (layout == Placement::Mirror)
        places.push_back(deviceOf(layout, chunk, wanted, 1));
      stage.setDevices(places);
    }
  }
};

} // namespace
