//===- OptimizerTable.h - Rows of optimizers --------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declares the rows that Optimizers.def lists, and what their files share.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_OPTIMIZERS_OPTIMIZERTABLE_H
#define PENSTOCK_LIB_OPTIMIZERS_OPTIMIZERTABLE_H

#include "penstock/Optimizers/Optimizers.h"

namespace penstock {

#define PENSTOCK_OPTIMIZER(NAME) extern const OptimizerKind k##NAME;
#include "Optimizers.def"
#undef PENSTOCK_OPTIMIZER

/// The decay of the moving average of the weights, which every row has.
inline constexpr SpecKey kAverage = {.name = "ema",
                                     .below = 1,
                                     .wants = "a decay from 0 (off) to below 1",
                                     .example = "0.999"};

/// gradient + decay * weight
inline mlir::Value addDecay(Arithmetic f, double decay, mlir::Value gradient,
                            mlir::Value weight) {
  if (decay == 0)
    return gradient;
  return f.add(gradient, f.mul(f.constant(decay), weight));
}

} // namespace penstock

#endif // PENSTOCK_LIB_OPTIMIZERS_OPTIMIZERTABLE_H
