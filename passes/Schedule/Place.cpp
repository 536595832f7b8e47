//===- Place.cpp - Gives every stage its device ---------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In a line, a loop or a wave of chunks: neighbours share a chunk where there
// are more stages, and shares differ by one stage at most.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Passes.h"

#include "Common.h"
#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Schedule/Generators.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

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
    if (!file.empty()) {
      if (failed(penstock::placeByTable(module, file, replicas)))
        signalPassFailure();
      return;
    }
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

    FailureOr<int64_t> placeCount = countPlaces(count);
    if (failed(placeCount))
      return signalPassFailure();
    if (layout == Placement::Mirror && !replicas.empty()) {
      module.emitError("schedule ")
          << schedule << " has two replicas of every stage by itself";
      return signalPassFailure();
    }

    // How many devices, and stages that share a chunk of one.
    if (layout == Placement::Line || layout == Placement::Mirror)
      perDevice = 1;
    else if (perDevice <= 0)
      perDevice =
          *placeCount > 0 ? std::max<int64_t>(1, count / *placeCount) : 1;
    int64_t wanted = *placeCount == 0 ? std::max<int64_t>(1, count / perDevice)
                                      : *placeCount;
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
    // By place, the devices of its replicas.
    std::vector<int64_t> widths(wanted, 0);
    for (auto [index, stage] : llvm::enumerate(stages)) {
      int chunk = chunkOfStage(index, count, wanted * perDevice);
      int64_t &width = widths[deviceOf(layout, chunk, wanted)];
      int64_t own = widthOf(index);
      if (width && width != own) {
        stage.emitError("has ")
            << own << " replicas, and another stage on its device has " << width
            << ": stages that share a device have equally many";
        return signalPassFailure();
      }
      width = own;
    }
    std::vector<int64_t> first(wanted, 0);
    for (int64_t place = 1; place < wanted; ++place)
      first[place] = first[place - 1] + widths[place - 1];
    for (auto [index, stage] : llvm::enumerate(stages)) {
      int chunk = chunkOfStage(index, count, wanted * perDevice);
      int64_t place = deviceOf(layout, chunk, wanted);
      SmallVector<int64_t, 2> places;
      if (layout == Placement::Mirror)
        places = {place, deviceOf(layout, chunk, wanted, 1)};
      else
        llvm::append_range(
            places,
            llvm::seq<int64_t>(first[place], first[place] + widths[place]));
      stage.setDevices(places);
    }
  }

  /// How many replicas stage number `index` has.
  int64_t widthOf(size_t index) const {
    return replicas.empty()       ? 1
           : replicas.size() == 1 ? replicas.front()
                                  : replicas[index];
  }

  /// Devices are those of all replicas; schedules think of one replica.
  FailureOr<int64_t> countPlaces(int64_t stages) {
    ModuleOp module = getOperation();
    if (replicas.empty())
      return int64_t(devices);
    if (llvm::any_of(replicas, [](int64_t width) { return width < 1; }))
      return module.emitError("a number of replicas is at least 1");
    if (replicas.size() == 1) {
      if (devices % replicas.front() != 0)
        return module.emitError("cannot place ")
               << replicas.front() << " replicas of every stage on "
               << int64_t(devices) << " devices: not a multiple";
      return devices / replicas.front();
    }
    if (int64_t(replicas.size()) != stages)
      return module.emitError("there are ")
             << stages << " stages, and numbers of replicas of "
             << replicas.size();
    int64_t sum = 0;
    for (int64_t width : replicas)
      sum += width;
    if (devices != 0 && devices != sum)
      return module.emitError("the stages have ")
             << sum << " replicas, which need as many devices, not "
             << int64_t(devices);
    return stages;
  }
};

} // namespace
