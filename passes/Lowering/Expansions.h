//===- Expansions.h - Expansions of composite ops ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The patterns of nn-expand-composites, by the family of ops.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_LOWERING_EXPANSIONS_H
#define PENSTOCK_PASSES_LOWERING_EXPANSIONS_H

#include "mlir/IR/PatternMatch.h"

namespace penstock {

void populateNormalizeExpansions(mlir::RewritePatternSet &patterns);

} // namespace penstock

#endif // PENSTOCK_PASSES_LOWERING_EXPANSIONS_H
