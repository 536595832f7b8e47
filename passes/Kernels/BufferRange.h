//===- BufferRange.h - Which bytes a buffer is ------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The temporaries of a kernel are views of one block. Two of them touch each
// other where their bytes do, not because the block is the same.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_KERNELS_BUFFERRANGE_H
#define PENSTOCK_PASSES_KERNELS_BUFFERRANGE_H

#include "mlir/IR/Value.h"

namespace penstock {

/// Bytes [begin, end) of the buffer that others are views of, or all of it.
struct BufferRange {
  mlir::Value root;
  int64_t begin = 0, end = INT64_MAX;

  static BufferRange of(mlir::Value buffer);
  /// Returns true if the two may share memory, different roots not being views
  /// of one another.
  bool overlaps(const BufferRange &other) const {
    return root == other.root && begin < other.end && other.begin < end;
  }
};

} // namespace penstock

#endif // PENSTOCK_PASSES_KERNELS_BUFFERRANGE_H
