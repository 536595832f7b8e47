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
  using Method::Method;

  /// The backward reads others.
  bool keepsForwardWeights(const MethodSpec &) const override { return false; }
  bool predictsWeights() const override { return true; }
  /// Returns the lags of the newest weights, unless a method says otherwise.
  Lags getLags(const MethodSpec &, const StageFacts &stage) const override {
    return {stage.ahead, 0};
  }
  /// The optimizer has a direction.
  std::string checkUse(const MethodSpec &spec, int64_t microbatches,
                       llvm::ArrayRef<int64_t> replicas,
                       const Optimizer &optimizer) const override;
  llvm::ArrayRef<llvm::StringRef> getStateKinds() const override {
    static constexpr llvm::StringRef kKinds[] = {"predicted", "forward",
                                                 "backward"};
    return kKinds;
  }
  mlir::LogicalResult adjust(mlir::ModuleOp module, const StageTasks &stage,
                             const MethodUse &use) const override;

protected:
  virtual Horizon getHorizon(const StageFacts &stage) const = 0;
};

} // namespace penstock

#endif // PENSTOCK_LIB_METHODS_PREDICTING_H
