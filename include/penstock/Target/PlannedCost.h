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

/// Seconds of one microbatch, and what the op adds to an update.
struct OpSeconds {
  double forward = 0, backward = 0, update = 0;
};

/// An update, as far as it matters where stages are cut.
struct PlannedUpdate {
  /// Microbatches that it adds up; 0: not known, and updates cost nothing.
  int64_t microbatches = 0;
  /// Reads and writes of a whole buffer of the size of a weight.
  int64_t passes = 0;
};

class PlannedCost {
public:
  using ValueFilter = llvm::function_ref<bool(mlir::Value)>;

  /// For devices with these rates. Without a target, convolutions are counted
  /// by their definition.
  PlannedCost(TargetAttrInterface target, const MachineRates &rates,
              PlannedUpdate update = {})
      : target(target), rates(rates), update(update) {}

  /// For the devices that a module at level graph is cut for
  /// (kPlanTargetAttr), or devices like them with other rates.
  static PlannedCost get(mlir::ModuleOp module,
                         std::optional<MachineRates> rates = std::nullopt);

  /// For devices with a target, wherever the module says that these have other
  /// rates (kPlanRatesAttr).
  static PlannedCost get(mlir::ModuleOp module, TargetAttrInterface target,
                         std::optional<MachineRates> rates = std::nullopt);

  const MachineRates &getRates() const { return rates; }
  const PlannedUpdate &getUpdate() const { return update; }

  /// Seconds in which an update moves weights of so many bytes.
  double getUpdateSeconds(double bytes) const {
    return static_cast<double>(update.passes) * bytes / rates.bytesPerSecond;
  }

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
  double getPackingSeconds(std::optional<PackedWeights> weights) const;

  TargetAttrInterface target;
  MachineRates rates;
  PlannedUpdate update;
};

/// Notes the rates of the devices that a module is planned for, and reads them.
void setPlanRates(mlir::ModuleOp module, const MachineRates &rates);
std::optional<MachineRates> getPlanRates(mlir::ModuleOp module);

/// Notes the updates that a module is planned for.
void setPlannedUpdate(mlir::ModuleOp module, const PlannedUpdate &update);

} // namespace penstock

#endif // PENSTOCK_TARGET_PLANNEDCOST_H
