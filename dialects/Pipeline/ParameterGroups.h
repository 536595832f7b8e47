//===- ParameterGroups.h - Parameters that update differently ---*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Discardable attributes of parameters, which the optimizer reads: what other
// frameworks call parameter groups.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_PIPELINE_PARAMETERGROUPS_H
#define PENSTOCK_DIALECTS_PIPELINE_PARAMETERGROUPS_H

#include "llvm/ADT/StringRef.h"

namespace penstock::pipeline {

/// f64, on a parameter: its learning rate is that of the update times this. On
/// a function: it is rate -> rate times this.
inline constexpr llvm::StringLiteral kRateScaleAttr = "pipeline.rate_scale";
/// On a parameter: no weight decay.
inline constexpr llvm::StringLiteral kNoDecayAttr = "pipeline.no_decay";

} // namespace penstock::pipeline

#endif // PENSTOCK_DIALECTS_PIPELINE_PARAMETERGROUPS_H
