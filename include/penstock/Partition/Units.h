//===- Units.h - The forward function as a line of ONNX nodes ---*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a planner sees of a module at level graph: units, which are runs of ops
// that came from one ONNX node, what each of them costs, and what a cut between
// two of them carries.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PARTITION_UNITS_H
#define PENSTOCK_PARTITION_UNITS_H

#include "penstock/Cost/AnalyticCost.h"
#include "penstock/Partition/ForwardProgram.h"
#include "penstock/Planner/LayerGraph.h"
#include "penstock/Planner/LinearPartition.h"

namespace penstock {

class PlannedCost;

/// A run of ops that came from one ONNX node.
struct Unit {
  llvm::StringRef name;
  llvm::SmallVector<mlir::Operation *> ops;
  double forwardSeconds = 0, backwardSeconds = 0;
  /// Seconds of an update; 0 where the microbatches of one are not known.
  double updateSeconds = 0;
  /// Bytes of the parameters whose first reader it is, also through expressions
  /// of parameters only, which belong to no unit.
  double weightBytes = 0;
};

/// The measured seconds of one execution of a unit.
struct UnitSeconds {
  double forward = 0, backward = 0, update = 0;
};

struct Units {
  std::vector<Unit> units;
  /// Bytes of the values that are defined before a cut and used after it, by
  /// cut.
  std::vector<double> cutBytes;
  MachineRates rates;
  /// In an update.
  int64_t microbatches = 1;

  /// Returns the seconds of a unit per microbatch.
  double getSeconds(const Unit &unit) const {
    return unit.forwardSeconds + unit.backwardSeconds +
           unit.updateSeconds / static_cast<double>(microbatches);
  }

  /// With costs of the devices that the module is cut for, or of devices with
  /// these rates.
  static Units collect(ForwardProgram &program,
                       std::optional<MachineRates> rates = std::nullopt);
  static Units collect(ForwardProgram &program, const PlannedCost &costs);

  /// For the dynamic program over cuts.
  LinearProblem getLinearProblem() const;
  /// For planners that want the edges.
  LayerGraph getLayerGraph(ForwardProgram &program) const;
  /// Says why each cut stands where it does, as remarks.
  void explain(llvm::ArrayRef<int64_t> cuts) const;
  /// The same by other times: of a stage, by its number, begin and end.
  using StageSeconds =
      llvm::function_ref<double(int64_t stage, int64_t begin, int64_t end)>;
  void explain(llvm::ArrayRef<int64_t> cuts, StageSeconds getSeconds) const;
};

/// Notes forward, backward and update of every unit, as measured, on the
/// forward function. `Units::collect` takes them in place of the analytic
/// costs.
void setMeasuredSeconds(ForwardProgram &program,
                        llvm::ArrayRef<UnitSeconds> seconds);
/// Notes the same, summed over each stage, on the module (kStageSecondsAttr).
void noteStageSeconds(mlir::ModuleOp module, ForwardProgram &program,
                      const Units &units);

/// Puts `pipeline.boundary` ops before the units that begin a stage.
void insertBoundaries(ForwardProgram &program, const Units &units,
                      llvm::ArrayRef<int64_t> cuts);

} // namespace penstock

#endif // PENSTOCK_PARTITION_UNITS_H
