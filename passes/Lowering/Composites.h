//===- Composites.h - Expansions of families of nn ops ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The patterns of nn-expand-composites that have files of their own.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_LOWERING_COMPOSITES_H
#define PENSTOCK_PASSES_LOWERING_COMPOSITES_H

#include "mlir/IR/PatternMatch.h"

namespace penstock {

/// nn.normalize and nn.normalize_grad.
void populateExpandNormalize(mlir::RewritePatternSet &patterns);

} // namespace penstock

#endif // PENSTOCK_PASSES_LOWERING_COMPOSITES_H
