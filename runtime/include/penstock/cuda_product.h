//===- cuda_product.h - Matrix products as calls of cuBLASLt ----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The compiler asks here whether the library computes a product, the runtime
// which calls do. Nothing is loaded for it.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_CUDA_PRODUCT_H
#define PENSTOCK_CUDA_PRODUCT_H

#include "penstock/abi.h"

#include <string>
#include <vector>

namespace penstock::runtime::cuda {

/// A matrix in memory as cuBLASLt sees it: column by column, columns `leading`
/// elements apart. A call takes its transpose where `isTransposed`. The next
/// matrix of a batch is `batchStride` elements further.
struct ColumnMatrix {
  int64_t rows = 0, columns = 0, leading = 0, batchStride = 0;
  bool isTransposed = false;
};

/// A product as calls with the same matrices at other offsets.
struct ProductCalls {
  /// result = left . right.
  ColumnMatrix left, right, result;
  /// B is the left operand: the result is C transposed, which is C by rows.
  bool isExchanged = false;
  /// The matrices that one call multiplies.
  int64_t batch = 1;

  /// Where the operands of a call begin, in elements.
  struct Offsets {
    int64_t a = 0, b = 0, c = 0;
  };
  std::vector<Offsets> offsets;
};

/// More calls than these are slower than loops.
inline constexpr int64_t kMaximumCalls = 64;

/// Finds the calls that compute a product of f32, or of bf16. Returns why there
/// are none, or an empty string.
std::string planProductCalls(const penstock_gemm_descriptor &gemm,
                             ProductCalls &calls);

} // namespace penstock::runtime::cuda

#endif // PENSTOCK_CUDA_PRODUCT_H
