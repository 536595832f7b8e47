//===- RecomputePolicy.h - What backwards compute again ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The policies, and their words on the command lines of penstock-opt.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_TRAINING_RECOMPUTEPOLICY_H
#define PENSTOCK_PASSES_TRAINING_RECOMPUTEPOLICY_H

#include "llvm/Support/CommandLine.h"

namespace penstock {

enum class RecomputePolicy { None, Full, Budget, Matching };

inline llvm::cl::ValuesClass recomputePolicies() {
  return llvm::cl::values(
      clEnumValN(RecomputePolicy::None, "none", "Nothing"),
      clEnumValN(RecomputePolicy::Full, "full", "All from the stage's inputs"),
      clEnumValN(RecomputePolicy::Budget, "budget",
                 "The cheapest until what is stored fits the stage's budget"),
      clEnumValN(RecomputePolicy::Matching, "matching",
                 "What ONNX nodes of matching names keep"));
}

} // namespace penstock

#endif // PENSTOCK_PASSES_TRAINING_RECOMPUTEPOLICY_H
