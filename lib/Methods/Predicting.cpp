//===- Predicting.cpp - Methods that predict weights ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Predicting.h.
//===----------------------------------------------------------------------===//

#include "Predicting.h"

#include "AdjustedReads.h"

using namespace mlir;
using namespace penstock;

PredictingMethod::PredictingMethod(const OptimizerSpec &optimizer,
                                   const RateSchedule &rates)
    : optimizer(Optimizer::create(optimizer)), rates(rates) {}

Lags PredictingMethod::lagsOf(const StageFacts &stage) const {
  return {stage.ahead, 0};
}

LogicalResult PredictingMethod::adjust(ModuleOp module,
                                       const StageTasks &stage) const {
  Horizon horizon = horizonOf(stage.facts);
  StageAdjuster adjuster(module, stage);
  bool keeps = storage() == VersionStorage::Stash && stage.lags.forward > 0;
  // One copy for both, if they are to see the same of the newest version.
  if (!keeps && horizon.forward == horizon.backward) {
    SmallVector<pipeline::TaskOp> tasks = {stage.forward};
    llvm::append_range(tasks, stage.backward);
    return adjuster.predict(tasks, horizon.forward, *optimizer, rates,
                            "predicted");
  }
  if (failed(adjuster.predict(stage.forward, horizon.forward, *optimizer, rates,
                              "forward", keeps)))
    return failure();
  return adjuster.predict(stage.backward, horizon.backward, *optimizer, rates,
                          "backward");
}
