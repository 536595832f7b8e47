//===- Composites.h - Expansions of families of nn ops ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The patterns of nn-expand-composites that have files of their own.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_KERNELS_COMPOSITES_H
#define PENSTOCK_PASSES_KERNELS_COMPOSITES_H

#include "mlir/IR/PatternMatch.h"

namespace penstock {

/// Replaces nn.conv or one of its gradients, on tensors, by loops.
void expandConvolution(mlir::Operation *op);

/// linalg.softmax, nn.log_softmax, nn.cross_entropy and its gradient.
void populateExpandCrossEntropy(mlir::RewritePatternSet &patterns);

/// nn.max_pool, nn.sum_pool and their gradients.
void populateExpandPooling(mlir::RewritePatternSet &patterns);

/// nn.normalize and nn.normalize_grad.
void populateExpandNormalize(mlir::RewritePatternSet &patterns);

/// nn.random_bits.
void populateExpandRandom(mlir::RewritePatternSet &patterns);

/// nn.gather and nn.scatter.
void populateExpandIndexing(mlir::RewritePatternSet &patterns);

/// nn.cumulative_sum, nn.top_k and nn.log_sum_exp.
void populateExpandAlongAxis(mlir::RewritePatternSet &patterns);

} // namespace penstock

#endif // PENSTOCK_PASSES_KERNELS_COMPOSITES_H
