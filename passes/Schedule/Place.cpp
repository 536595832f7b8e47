//===- Place.cpp - Gives every stage its device ---------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In a line, a loop or a wave of chunks: neighbors share a chunk where there
// are more stages, and shares differ by one stage at most.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Passes.h"

#include "Common.h"
#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Schedule/Generators.h"
#include "penstock/Support/Assert.h"

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
    FailureOr<Layout> layout = chooseLayout(stages.size());
    if (failed(layout))
      return signalPassFailure();
    auto placeOf = [&](size_t index, int replica) -> int64_t {
      int chunk =
          chunkOfStage(index, stages.size(), layout->places * layout->perPlace);
      return getDevice(layout->placement, chunk, layout->places, replica);
    };

    // 1. The devices of a place: as many as its stages have replicas. Widths
    // are one for all, or one per stage, and then every stage has its place.
    std::vector<int64_t> widths(layout->places, 0);
    for (size_t index : llvm::seq(stages.size())) {
      int64_t &width = widths[placeOf(index, 0)];
      PENSTOCK_ASSERT(!width || width == getWidth(index),
                      "stages that share devices have equally many");
      width = getWidth(index);
    }
    std::vector<int64_t> first(layout->places, 0);
    for (int64_t place = 1; place < layout->places; ++place)
      first[place] = first[place - 1] + widths[place - 1];

    // 2. Those of a stage.
    for (auto [index, stage] : llvm::enumerate(stages)) {
      int64_t place = placeOf(index, 0);
      SmallVector<int64_t, 2> devices;
      if (layout->placement == Placement::Mirror)
        devices = {place, placeOf(index, 1)};
      else
        llvm::append_range(
            devices, llvm::seq(first[place], first[place] + widths[place]));
      stage.setDevices(devices);
    }
  }

  /// Places are devices, or as many as a stage has replicas; each has some
  /// chunks of neighboring stages.
  struct Layout {
    Placement placement;
    int64_t places = 0, perPlace = 1;
  };

  /// That of the schedule, or the one that the options name.
  FailureOr<Layout> chooseLayout(int64_t count) {
    ModuleOp module = getOperation();
    Layout layout{Placement::Line, 0, chunks};
    if (schedule.hasValue()) {
      layout.placement = schedule.placement();
      layout.perPlace = schedule.chunks();
    } else if (placement == "loop") {
      layout.placement = Placement::Loop;
    } else if (placement == "wave") {
      layout.placement = Placement::Wave;
    } else if (placement != "line") {
      return module.emitError("placement '")
             << placement << "' is not known; there are line, loop, wave";
    }

    FailureOr<int64_t> given = countPlaces(count);
    if (failed(given))
      return failure();
    if (layout.placement == Placement::Mirror && !replicas.empty())
      return module.emitError("schedule ")
             << schedule.getText()
             << " has two replicas of every stage by itself";

    if (layout.placement == Placement::Line ||
        layout.placement == Placement::Mirror)
      layout.perPlace = 1;
    else if (layout.perPlace <= 0)
      layout.perPlace = *given > 0 ? std::max<int64_t>(1, count / *given) : 1;
    layout.places =
        *given == 0 ? std::max<int64_t>(1, count / layout.perPlace) : *given;
    if (layout.places >= 0 && layout.places * layout.perPlace <= count)
      return layout;
    InFlightDiagnostic diagnostic = module.emitError("cannot place ");
    diagnostic << count << " stages on " << layout.places << " devices";
    if (layout.perPlace > 1)
      diagnostic << ", each with " << layout.perPlace << ": it takes "
                 << std::max<int64_t>(1, layout.places) * layout.perPlace;
    else
      diagnostic << ": between 1 and " << count << " can be used";
    return diagnostic;
  }

  /// How many replicas stage number `index` has.
  int64_t getWidth(size_t index) const {
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
