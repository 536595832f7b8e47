//===- Compiler.h - From a model to an executable ---------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Takes a model, or a program printed at any level, down the levels to what the
// options ask for.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DRIVER_COMPILER_H
#define PENSTOCK_DRIVER_COMPILER_H

#include "penstock/Driver/Options.h"

namespace penstock {

/// Exit codes of penstockc; the same as those of penstock/abi.h.
enum ExitCode {
  kDone = 0,
  kUserError = 1,
  kDefect = 2,
  kDoesNotFit = 3,
};

/// Compiles as `options` say. Errors go to stderr, one line; results to the
/// output file, which appears whole or not at all, and reports to stdout.
int compile(const CompileOptions &options);

} // namespace penstock

#endif // PENSTOCK_DRIVER_COMPILER_H
