//===- PlannedCost.h - Cost of ops by what will run -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The analytic cost of an op on devices of one target: convolutions by the
// algorithm that its library takes, traffic by whether caches hold it, and the
// backward by the gradients that are needed.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TARGET_PLANNEDCOST_H
#define PENSTOCK_TARGET_PLANNEDCOST_H

#include "penstock/Target/Target.h"

namespace penstock {

/// Seconds of one microbatch.
struct OpSeconds {
  double forward = 0, backward = 0;
};

class PlannedCost {
public:
  using ValueFilter = llvm::function_ref<bool(mlir::Value)>;

  /// For devices with these rates. Without a target, convolutions are counted
  /// by their definition.
  PlannedCost(TargetAttrInterface target, const MachineRates &rates)
      : target(target), rates(rates) {}

  /// For the devices that a module at level graph is cut for
  /// (kPlanTargetAttr), or devices like them with other rates.
  static PlannedCost get(mlir::ModuleOp module,
                         std::optional<MachineRates> rates = std::nullopt);

  /// For devices with a target, wherever the module says that these have other
  /// rates (kPlanRatesAttr).
  static PlannedCost get(mlir::ModuleOp module, TargetAttrInterface target,
                         std::optional<MachineRates> rates = std::nullopt);

  const MachineRates &getRates() const { return rates; }

  /// Seconds of one execution of an op of any task.
  double getSeconds(mlir::Operation *op) const;

  /// Seconds of an op of the forward function and of its derivative.
  /// `isWeight`: the value is a parameter, or computed from parameters alone;
  /// `needsGradient`: it depends on what trains.
  OpSeconds getSeconds(mlir::Operation *op, ValueFilter isWeight,
                       ValueFilter needsGradient) const;

private:
  OpCost getCost(mlir::Operation *op, ValueFilter isWeight) const;
  double getForwardOnly(mlir::Operation *op) const;

  TargetAttrInterface target;
  MachineRates rates;
};

/// Notes the rates of the devices that a module is planned for, and reads them.
void setPlanRates(mlir::ModuleOp module, const MachineRates &rates);
std::optional<MachineRates> getPlanRates(mlir::ModuleOp module);

} // namespace penstock

#endif // PENSTOCK_TARGET_PLANNEDCOST_H
