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

/// The cost of one execution of an op.
struct OpCost {
  double flops = 0; ///< Multiplies and adds counted apart.
  double bytes = 0; ///< Read and written once each, if nothing stays in cache.
  bool contraction = false; ///< Runs at the rate of matrix products.
  double memoryBytes = 0;   ///< Of `bytes`, those that no cache holds.

  OpCost &operator+=(const OpCost &other) {
    flops += other.flops;
    bytes += other.bytes;
    memoryBytes += other.memoryBytes;
    return *this;
  }
};

/// The rates of one device: operations per second in matrix products, and bytes
/// per second everywhere else. The defaults are those of one server core; only
/// their ratio moves a cut.
struct MachineRates {
  double flopsPerSecond = 200e9;
  double bytesPerSecond = 20e9;
  /// Limits traffic that stays in caches, in bytes per second, which does not
  /// overlap with arithmetic; 0 where all traffic has one rate and overlaps.
  double cachedBytesPerSecond = 0;
  /// Between devices; 0: as memory.
  double linkBytesPerSecond = 0;
  /// Delays the first byte of a transfer, in seconds.
  double latencySeconds = 0;

  double getLink() const {
    return linkBytesPerSecond > 0 ? linkBytesPerSecond : bytesPerSecond;
  }
  double getTransferSeconds(double bytes) const {
    return latencySeconds + bytes / getLink();
  }
};

/// Bytes of a value of this type; 0 for types that are not static tensors.
double getTypeBytes(mlir::Type type);

/// Cost of one execution of `op` (not of ops nested in its body). Ops that only
/// name memory (views, empty tensors, constants) cost nothing.
OpCost getAnalyticCost(mlir::Operation *op);

/// Seconds of one execution, and of forward and backward together: a
/// contraction has two products in the backward, anything else about as much
/// traffic again and once more for the cotangents that it reads.
double getForwardSeconds(const OpCost &cost, const MachineRates &rates);
double getTrainingSeconds(const OpCost &cost, const MachineRates &rates);

} // namespace penstock

#endif // PENSTOCK_COST_ANALYTICCOST_H
