//===- Subnormals.h - Numbers below 1.2e-38 are zero ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Moments of a row without gradients decay through that range, and so do the
// gradients of a model that has learned its data: each such operand costs an
// x86 core more than a hundred cycles, and no result of training a digit.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_SUPPORT_SUBNORMALS_H
#define PENSTOCK_RUNTIME_SUPPORT_SUBNORMALS_H

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace penstock::runtime {

/// Treats subnormal operands and results as zero in the thread that has it, and
/// in those that it starts meanwhile.
class FlushSubnormals {
public:
#if defined(__SSE2__)
  FlushSubnormals() : before(_mm_getcsr()) {
    constexpr unsigned flushToZero = 1u << 15, operandsAreZero = 1u << 6;
    _mm_setcsr(before | flushToZero | operandsAreZero);
  }
  ~FlushSubnormals() { _mm_setcsr(before); }
#else
  FlushSubnormals() {}
#endif
  FlushSubnormals(const FlushSubnormals &) = delete;

private:
#if defined(__SSE2__)
  const unsigned before;
#endif
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_SUPPORT_SUBNORMALS_H
