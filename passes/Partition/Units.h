//===- Units.h - The forward function as a line of ONNX nodes ---*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a planner sees of a module at level graph: units, which are runs of ops
// that came from one ONNX node, what each of them costs, and what a cut between
// two of them carries.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PARTITION_UNITS_H
#define PENSTOCK_PASSES_PARTITION_UNITS_H

#include "passes/Partition/ForwardProgram.h"
#include "penstock/Cost/AnalyticCost.h"
#include "penstock/Planner/LayerGraph.h"
#include "penstock/Planner/LinearPartition.h"

namespace penstock {

/// A run of ops that came from one ONNX node.
struct Unit {
  llvm::StringRef name;
  llvm::SmallVector<mlir::Operation *> ops;
  double forwardSeconds = 0, backwardSeconds = 0;
  /// Of the parameters whose first reader it is, also through expressions of
  /// parameters only, which belong to no unit.
  double weightBytes = 0;
};

struct Units {
  std::vector<Unit> units;
  /// By cut: bytes of what is defined before it and used after it.
  std::vector<double> cutBytes;
  MachineRates rates;

  static Units collect(ForwardProgram &program);

  /// For the dynamic programme over cuts.
  LinearProblem getLinearProblem() const;
  /// For planners that want the edges.
  LayerGraph getLayerGraph(ForwardProgram &program) const;
  /// Says why each cut stands where it does, as remarks.
  void explain(llvm::ArrayRef<int64_t> cuts) const;
};

/// Puts `pipeline.boundary` ops before the units that begin a stage.
void insertBoundaries(ForwardProgram &program, const Units &units,
                      llvm::ArrayRef<int64_t> cuts);

} // namespace penstock

#endif // PENSTOCK_PASSES_PARTITION_UNITS_H
