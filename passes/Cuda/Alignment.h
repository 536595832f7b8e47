//===- Alignment.h - Buffers that begin at whole vectors --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host knows where buffers begin, and kernels have to know.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_CUDA_ALIGNMENT_H
#define PENSTOCK_PASSES_CUDA_ALIGNMENT_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace penstock {

/// Bytes of the longest load and store.
constexpr int64_t kVectorBytes = 16;

/// Returns whether a buffer in a function of the host begins at a multiple of
/// kVectorBytes. Arguments do: they are slots of an arena.
bool beginsAtVector(mlir::Value buffer);

/// Returns whether a parameter of a kernel does, by `llvm.align`.
bool isParameterAligned(mlir::Value buffer);

/// Returns the bytes of an integer or a floating-point number in memory, where
/// a truth value has a byte; 0 for other types.
int64_t getElementBytes(mlir::Type type);

/// Returns whether in a buffer of a kernel each element whose last index is a
/// multiple of `elements` begins a vector of so many.
bool isVectorAligned(mlir::Value buffer, int64_t elements);

} // namespace penstock

#endif // PENSTOCK_PASSES_CUDA_ALIGNMENT_H
