//===- RateSchedule.h - The learning rate over the updates ------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A learning-rate schedule is a row of a table (its name, its keys, its code),
// one file each. `--lr-schedule` and `#pipeline.rate` name a row with its
// numbers.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_OPTIMIZERS_RATESCHEDULE_H
#define PENSTOCK_OPTIMIZERS_RATESCHEDULE_H

#include "dialects/Pipeline/Pipeline.h"
#include "penstock/Optimizers/Arithmetic.h"
#include "penstock/Support/SpecOption.h"

namespace penstock {

class RateSchedule;

/// A row of the table of learning-rate schedules.
struct RateKind : SpecKind {
  /// Emits the factor of the base rate `since` updates after the warm-up; `one`
  /// is the constant.
  mlir::Value (*emit)(Arithmetic f, const RateSchedule &rate, mlir::Value since,
                      mlir::Value one) = nullptr;
};

/// With t updates done, W = warmup-steps, N = total-steps, E = end-factor and
/// x = min((t - W) / (N - W), 1), the rate is the base rate times
///   (t + 1) / W                            while t < W; then
///   1                                      constant
///   1 + (E - 1) x                          linear
///   E + (1 - E) (1 + cos(pi x)) / 2        cosine
///   gamma ^ floor((t - W) / step-size)     step
///   E + (1 - E) (1 - x) ^ power            poly
class RateSchedule : public Spec {
public:
  /// `constant`.
  RateSchedule();
  explicit RateSchedule(Spec spec) : Spec(std::move(spec)) {}

  const RateKind &getKind() const {
    return static_cast<const RateKind &>(Spec::getKind());
  }
  /// In updates.
  double getWarmup() const { return get("warmup-steps"); }

  pipeline::RateAttr toAttr(mlir::MLIRContext *context) const;
  /// Without an attribute: `constant`.
  static RateSchedule fromAttr(pipeline::RateAttr attr);

  bool isConstant() const {
    return getName() == "constant" && getWarmup() == 0;
  }
  /// Emits the rate with `done` updates done, both in the type of `f`.
  mlir::Value emit(Arithmetic f, mlir::Value base, mlir::Value done) const;
  /// Emits the sum of the rates of `steps` updates from `done` on; of the last
  /// one only the fraction that `steps` ends with.
  mlir::Value emitSum(Arithmetic f, mlir::Value base, mlir::Value done,
                      double steps) const;
};

/// Parses NAME[:KEY=VALUE,...]. On failure `error` says what is wrong and what
/// would be right.
mlir::FailureOr<RateSchedule> parseRateSchedule(llvm::StringRef text,
                                                std::string &error);

/// The same, for options.
inline mlir::FailureOr<RateSchedule>
parseSpecAs(const RateSchedule *, llvm::StringRef text, std::string &error) {
  return parseRateSchedule(text, error);
}

/// Names of all learning-rate schedules, as in "a, b or c".
std::string listRateSchedules();

} // namespace penstock

PENSTOCK_SPEC_OPTION(penstock::RateSchedule, "schedule")

#endif // PENSTOCK_OPTIMIZERS_RATESCHEDULE_H
