//===- RateSchedule.h - The text of --lr-schedule ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The course of the learning rate over the updates, as a checked record and as
// code. The driver and the passes parse with the same function.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_OPTIMIZERS_RATESCHEDULE_H
#define PENSTOCK_OPTIMIZERS_RATESCHEDULE_H

#include "penstock/Optimizers/Arithmetic.h"

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace penstock {

enum class RateKind { Constant, Linear, Cosine, Step, Poly };

/// With t updates done, W = warmup-steps, N = total-steps, E = end-factor and
/// x = min((t - W) / (N - W), 1), the rate is the base rate times
///   (t + 1) / W                            while t < W; then
///   1                                      constant
///   1 + (E - 1) x                          linear
///   E + (1 - E) (1 + cos(pi x)) / 2        cosine
///   gamma ^ floor((t - W) / step-size)     step
///   E + (1 - E) (1 - x) ^ power            poly
struct RateSchedule {
  RateKind kind = RateKind::Constant;
  double warmupSteps = 0;
  double totalSteps = 0;
  double endFactor = 0;
  double stepSize = 0;
  double gamma = 0.1;
  double power = 1;

  bool isConstant() const {
    return kind == RateKind::Constant && warmupSteps == 0;
  }
  /// The rate with `done` updates done, both in the type of `f`.
  mlir::Value emit(Arithmetic f, mlir::Value base, mlir::Value done) const;
  /// The sum of the rates of `steps` updates from `done` on; of the last one
  /// only the fraction that `steps` ends with.
  mlir::Value emitSum(Arithmetic f, mlir::Value base, mlir::Value done,
                      double steps) const;
};

/// Parses NAME[:KEY=VALUE,...]. On failure `error` says what is wrong and what
/// would be right.
mlir::FailureOr<RateSchedule> parseRateSchedule(llvm::StringRef text,
                                                std::string &error);

} // namespace penstock

#endif // PENSTOCK_OPTIMIZERS_RATESCHEDULE_H
