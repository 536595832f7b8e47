//===- RateTable.h - Rows of learning-rate schedules ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declares the rows that Rates.def lists, and what their files share: keys, and
// rates that fall from 1 to a final factor.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_OPTIMIZERS_RATES_RATETABLE_H
#define PENSTOCK_LIB_OPTIMIZERS_RATES_RATETABLE_H

#include "penstock/Optimizers/RateSchedule.h"

namespace penstock {

#define PENSTOCK_RATE(NAME) extern const RateKind k##NAME##Rate;
#include "Rates.def"
#undef PENSTOCK_RATE

inline constexpr SpecKey kWarmupSteps = {.name = "warmup-steps",
                                         .type = SpecKey::Whole,
                                         .counts = "updates",
                                         .example = "100"};
inline constexpr SpecKey kTotalSteps = {.name = "total-steps",
                                        .type = SpecKey::Whole,
                                        .least = 1,
                                        .counts = "updates",
                                        .example = "100"};
inline constexpr SpecKey kEndFactor = {.name = "end-factor", .example = "0.5"};

/// Describes what is wrong with a schedule that falls until `total-steps`.
std::string checkFall(const Spec &spec);

/// Emits the share of the fall that is done, at most 1; `since` counts updates
/// from the end of the warm-up.
mlir::Value emitProgress(Arithmetic f, const RateSchedule &rate,
                         mlir::Value since, mlir::Value one);

/// Emits the factor when `remaining` is left of the fall, from 1 to 0.
mlir::Value emitFall(Arithmetic f, const RateSchedule &rate,
                     mlir::Value remaining);

/// Describes that a key has to be given, with an example.
std::string describeMissing(const Spec &spec, llvm::StringRef key,
                            llvm::StringRef why);

} // namespace penstock

#endif // PENSTOCK_LIB_OPTIMIZERS_RATES_RATETABLE_H
