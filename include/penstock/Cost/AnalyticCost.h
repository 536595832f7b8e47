//===- AnalyticCost.h - Cost of ops without measuring them ------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Floating-point operations and bytes of an op on static tensors, and a model
// of the seconds they take. Good enough to balance stages; a profile replaces
// it.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_COST_ANALYTICCOST_H
#define PENSTOCK_COST_ANALYTICCOST_H

#include "mlir/IR/Operation.h"

namespace penstock {

/// What one execution of an op takes.
struct OpCost {
  double flops = 0; ///< Multiplies and adds counted apart.
  double bytes = 0; ///< Read and written once each, if nothing stays in cache.
  bool contraction = false; ///< Runs at the rate of matrix products.

  OpCost &operator+=(const OpCost &other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

/// The rates of one device: operations per second in matrix products, and bytes
/// per second everywhere else. The defaults are those of one server core; only
/// their ratio moves a cut.
struct MachineRates {
  double flopsPerSecond = 200e9;
  double bytesPerSecond = 20e9;
};

/// Bytes of a value of this type; 0 for types that are not static tensors.
double getTypeBytes(mlir::Type type);

/// Cost of one execution of `op` (not of ops nested in its body). Ops that only
/// name memory (views, empty tensors, constants) cost nothing.
OpCost getAnalyticCost(mlir::Operation *op);

/// Seconds of the forward of `op`, and of forward and backward together: a
/// contraction has two products in the backward, anything else about as much
/// traffic again and once more for the cotangents that it reads.
double getForwardSeconds(const OpCost &cost, const MachineRates &rates);
double getTrainingSeconds(const OpCost &cost, const MachineRates &rates);

} // namespace penstock

#endif // PENSTOCK_COST_ANALYTICCOST_H
