//===- PrepackPolicy.h - Which weights are reordered ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The policies, and their words on the command lines of penstock-opt.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_BUFFERIZE_PREPACKPOLICY_H
#define PENSTOCK_PASSES_PROGRAM_BUFFERIZE_PREPACKPOLICY_H

#include "llvm/Support/CommandLine.h"

namespace penstock {

enum class PrepackPolicy { Auto, None, All };

inline llvm::cl::ValuesClass prepackPolicies() {
  return llvm::cl::values(
      clEnumValN(PrepackPolicy::Auto, "auto", "Where it pays"),
      clEnumValN(PrepackPolicy::None, "none", "Nowhere"),
      clEnumValN(PrepackPolicy::All, "all", "Wherever it can be"));
}

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_BUFFERIZE_PREPACKPOLICY_H
