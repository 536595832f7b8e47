//===- NnBufferization.h - Convolutions on buffers --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What one-shot bufferization needs to know of nn ops.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_BUFFERIZE_NNBUFFERIZATION_H
#define PENSTOCK_PASSES_PROGRAM_BUFFERIZE_NNBUFFERIZATION_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace penstock {

void registerNnBufferization(mlir::DialectRegistry &registry);

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_BUFFERIZE_NNBUFFERIZATION_H
