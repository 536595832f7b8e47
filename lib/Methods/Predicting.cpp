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

std::string PredictingMethod::checkUse(const MethodSpec &spec, int64_t,
                                       ArrayRef<int64_t>,
                                       const Optimizer &optimizer) const {
  if (optimizer.hasDirection())
    return "";
  return (spec.getName() + " predicts along the optimizer's direction, and " +
          optimizer.getSpec().getName() +
          " without momentum has none: use --optimizer=sgd:momentum=0.9, adam "
          "or adamw")
      .str();
}

LogicalResult PredictingMethod::adjust(ModuleOp module, const StageTasks &stage,
                                       const MethodUse &use) const {
  Horizon horizon = getHorizon(stage.facts);
  std::unique_ptr<Optimizer> optimizer = Optimizer::create(use.optimizer);
  StageAdjuster adjuster(module, stage);
  bool keeps = getStorage() == VersionStorage::Stash && stage.lags.forward > 0;
  // One copy for both, if they are to see the same of the newest version.
  if (!keeps && horizon.forward == horizon.backward) {
    SmallVector<pipeline::TaskOp> tasks = {stage.forward};
    llvm::append_range(tasks, stage.backward);
    return adjuster.predict(tasks, horizon.forward, *optimizer, use.rates,
                            "predicted");
  }
  if (failed(adjuster.predict(stage.forward, horizon.forward, *optimizer,
                              use.rates, "forward", keeps)))
    return failure();
  return adjuster.predict(stage.backward, horizon.backward, *optimizer,
                          use.rates, "backward");
}
