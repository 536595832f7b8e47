//===- KernelSize.cpp - How long the code of a kernel becomes -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See KernelSize.h.
//===----------------------------------------------------------------------===//

#include "passes/Kernels/KernelSize.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

int64_t penstock::countOperations(linalg::GenericOp op) {
  constexpr int64_t kFunction = 16;
  int64_t count = 0;
  for (Operation &inner : *op.getBody()) {
    bool isFunction = isa_and_nonnull<math::MathDialect>(inner.getDialect()) &&
                      !isa<math::FmaOp, math::AbsFOp>(inner);
    count += isFunction ? kFunction : 1;
  }
  return count;
}
