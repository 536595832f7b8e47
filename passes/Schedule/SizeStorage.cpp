//===- SizeStorage.cpp - The least slots, staging and versions ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Walks every schedule with unlimited storage and keeps the most that was used.
// A channel that two schedules share has the larger size.
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Passes.h"

#include "Common.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace penstock::schedule;
namespace pipeline = penstock::pipeline;

namespace penstock {
#define GEN_PASS_DEF_PIPELINESIZESTORAGE
#include "passes/Schedule/Passes.h.inc"

/// Sets the depth of a variable's ring, or removes a ring of one.
static LogicalResult sizeVersions(ModuleOp module, StringRef variable,
                                  int64_t versions) {
  for (Operation &op : llvm::make_early_inc_range(module.getOps())) {
    auto storage = dyn_cast<pipeline::VersionStorageOpInterface>(op);
    if (!storage || storage.getVariableAttr().getValue() != variable)
      continue;
    if (auto stash = dyn_cast<pipeline::WeightStashOp>(op)) {
      if (versions > 1)
        stash.setDepth(versions);
      else
        stash.erase();
      return success();
    }
    if (versions > storage.getVersions())
      return op.emitError("S3: @")
             << variable << " needs " << versions << " versions";
    return success();
  }
  if (versions > 1)
    return module.lookupSymbol(variable)->emitError("S3: needs ")
           << versions << " versions, and has no weight_stash";
  return success();
}

LogicalResult sizeStorage(ModuleOp module) {
  // 1. What each schedule needs.
  struct Size {
    int64_t slots = 0, staging = 0;
  };
  llvm::MapVector<pipeline::ChannelOp, Size> sizes;
  llvm::MapVector<StringRef, int64_t> versions;
  for (auto schedule : module.getOps<pipeline::ScheduleOp>()) {
    FailureOr<Imported> imported = importSchedule(schedule, Sizes::Ignore);
    if (failed(imported))
      return failure();
    Proof proof = verifyOrders(imported->model, imported->orders);
    if (proof.violation)
      return reportViolation(schedule, *imported, *proof.violation);
    for (auto [id, op] : llvm::enumerate(imported->channels)) {
      Size &size = sizes[op];
      size.slots = std::max(size.slots, proof.needs.slots[id]);
      int64_t staging = proof.needs.staging[id];
      // So that a worker may be as far ahead as it may know of the others.
      if (staging > 0 && imported->model.channels[id].ownQueue)
        staging = std::max(staging, imported->model.distance + 1);
      size.staging = std::max(size.staging, staging);
    }
    for (auto [id, op] : llvm::enumerate(imported->variables)) {
      int64_t &most = versions[op.getSymName()];
      most = std::max(most, proof.needs.versions[id]);
    }
  }

  // 2. Into the IR.
  for (auto [op, size] : sizes) {
    auto set = [&](int64_t value) {
      return value > 0 ? std::optional<uint64_t>(value) : std::nullopt;
    };
    op.setSlots(set(size.slots));
    op.setStaging(set(size.staging));
  }
  for (auto [variable, most] : versions)
    if (failed(sizeVersions(module, variable, most)))
      return failure();
  return success();
}

} // namespace penstock

namespace {

struct SizeStoragePass
    : penstock::impl::PipelineSizeStorageBase<SizeStoragePass> {
  void runOnOperation() override {
    if (failed(penstock::sizeStorage(getOperation())))
      signalPassFailure();
  }
};

} // namespace
