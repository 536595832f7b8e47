//===- VersionTable.h - Which weights a microbatch reads --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The methods as the literature states them, in closed form: nothing here is
// read off a schedule or asked of what compiles a method. The replay reads by
// this table, so that a mistake in either shows as a difference.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_METHODS_VERSIONTABLE_H
#define PENSTOCK_METHODS_VERSIONTABLE_H

#include "penstock/Methods/MethodSpec.h"

#include "llvm/ADT/ArrayRef.h"

#include <optional>

namespace penstock {

/// Stage i in a line of stages, each with its number of replicas; M
/// microbatches per update. `ahead`: under nF1B, the updates that forwards run
/// ahead at most, without it under 1F1B.
struct PipelinePlace {
  int64_t i = 0;
  llvm::ArrayRef<int64_t> replicas;
  int64_t M = 1;
  std::optional<int64_t> ahead = std::nullopt;
};

/// Microbatch k of a segment reads the weights after max(0, floor((k - age) /
/// M)) of its updates. The update that makes version v blends it with version
/// max(0, v - blended), where that is not 0.
struct WeightAges {
  int64_t forward = 0, backward = 0, blended = 0;
};

/// Computes the ages of a method; `inFlight` are the microbatches of the stage
/// in flight beside the one that each replica begins.
using WeightAgesFormula = WeightAges (*)(const MethodSpec &method,
                                         int64_t inFlight,
                                         const PipelinePlace &place);

/// Adds the formula of a plug-in's method.
void addWeightAges(llvm::StringLiteral method, WeightAgesFormula formula);

/// Returns the ages of a method; nothing if the table has no row for it.
std::optional<WeightAges> getWeightAges(const MethodSpec &method,
                                        const PipelinePlace &place);

/// HetPipe: V workers of waves of N microbatches, clocks at most D apart before
/// they wait. Microbatch k of a worker reads, on all stages and in both
/// directions, what `getOwn(k)` updates of its own have made, and
/// `getWaves(k)` whole waves of every other worker.
struct WaveTable {
  int64_t wave = 1, distance = 0;

  int64_t getOwn(int64_t k) const { return k < wave ? 0 : k - (wave - 1); }
  int64_t getWaves(int64_t k) const {
    int64_t waves = getOwn(k) / wave - distance;
    return waves < 0 ? 0 : waves;
  }
  /// Returns how many own updates are missing at most.
  int64_t getLocalStaleness() const { return wave - 1; }
  /// Returns how many of another worker are missing at most, as the paper
  /// counts them.
  int64_t getGlobalStaleness() const {
    return (distance + 1) * wave + wave - 2;
  }
  /// Returns the maximum number of waves between two clocks.
  int64_t getClockDistance() const { return distance + 1; }
  int64_t getVersions() const { return wave; }
};

} // namespace penstock

#endif // PENSTOCK_METHODS_VERSIONTABLE_H
