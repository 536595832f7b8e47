//===- penstockc.cpp - The compiler driver --------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One command: a model in, an executable out.
//===----------------------------------------------------------------------===//

#include "penstock/Driver/Compiler.h"

int main(int argc, char **argv) {
  penstock::CompileOptions options;
  if (!penstock::parseCommandLine(argc, argv, options, llvm::errs()))
    return penstock::kUserError;
  return penstock::compile(options);
}
