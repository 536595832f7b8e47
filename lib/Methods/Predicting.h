//===- Predicting.h - Methods that predict weights --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What SpecTrain, XPipe and PipeOptim share: forward and backward see weights
// moved along the optimizer's direction. They differ in how far.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_METHODS_PREDICTING_H
#define PENSTOCK_LIB_METHODS_PREDICTING_H

#include "penstock/Methods/Method.h"
#include "penstock/Optimizers/Optimizers.h"

namespace penstock {

/// In updates.
struct Horizon {
  double forward = 0, backward = 0;
};

class PredictingMethod : public Method {
public:
  PredictingMethod(const OptimizerSpec &optimizer, const RateSchedule &rates);

protected:
  /// Of the newest weights, unless a method says otherwise.
  Lags lagsOf(const StageFacts &stage) const override;
  virtual Horizon horizonOf(const StageFacts &stage) const = 0;

private:
  mlir::LogicalResult adjust(mlir::ModuleOp module,
                             const StageTasks &stage) const override;

  std::unique_ptr<Optimizer> optimizer;
  RateSchedule rates;
};

} // namespace penstock

#endif // PENSTOCK_LIB_METHODS_PREDICTING_H
