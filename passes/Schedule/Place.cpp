//===- Place.cpp - Gives every stage its device ---------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In a line: neighbours stay neighbours, and shares differ by one stage at
// most.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Passes.h"

#include "dialects/Pipeline/Pipeline.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace penstock {
#define GEN_PASS_DEF_PIPELINEPLACE
#include "passes/Schedule/Passes.h.inc"
} // namespace penstock

namespace {

struct PlacePass : penstock::impl::PipelinePlaceBase<PlacePass> {
  using PipelinePlaceBase::PipelinePlaceBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (placement != "line") {
      module.emitError("placement '")
          << placement << "' is not known; there is: line";
      return signalPassFailure();
    }
    auto stages = llvm::to_vector(module.getOps<penstock::pipeline::StageOp>());
    int64_t count = stages.size();
    int64_t wanted = devices == 0 ? count : int64_t(devices);
    if (wanted < 0 || wanted > count) {
      module.emitError("cannot place ")
          << count << " stages on " << wanted << " devices: between 1 and "
          << count << " can be used";
      return signalPassFailure();
    }
    // The first `count mod wanted` devices have one stage more.
    for (auto [index, stage] : llvm::enumerate(stages)) {
      int64_t share = count / wanted, longer = count % wanted;
      int64_t split = longer * (share + 1), i = index;
      int64_t device =
          i < split ? i / (share + 1) : longer + (i - split) / share;
      stage.setDevices(ArrayRef<int64_t>{device});
    }
  }
};

} // namespace
