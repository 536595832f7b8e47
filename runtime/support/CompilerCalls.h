//===- CompilerCalls.h - Calls of LLVM's code generator ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions that a newer C library has, and that of GCC 12 lacks.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_SUPPORT_COMPILERCALLS_H
#define PENSTOCK_RUNTIME_SUPPORT_COMPILERCALLS_H

/// Rounds to the nearest bf16, ties to even, and returns its 16 bits in the
/// lowest bits of the result, as a bf16 is returned; the bits above are zero.
/// Called on processors without AVX512-BF16, also for numbers that are only
/// moved. So what is a bf16 already keeps its bits: unlike roundToBf16, this
/// keeps subnormal numbers and what a NaN says, but for making it quiet. Never
/// fails. Gives way to a function of this name that is not weak.
extern "C" __attribute__((visibility("default"))) float
__truncsfbf2(float value); // NOLINT(bugprone-reserved-identifier)

#endif // PENSTOCK_RUNTIME_SUPPORT_COMPILERCALLS_H
