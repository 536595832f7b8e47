//===- penstockc.cpp - The compiler driver ---------------------------------- ===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One command: a model in, an executable out.
//===----------------------------------------------------------------------===//

#include "penstock/Driver/Compiler.h"

#include "llvm/Support/CommandLine.h"

int main(int argc, char **argv) {
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &stream) {
    stream << "penstockc " << PENSTOCK_VERSION << "\n";
  });
  penstock::CompileOptions options;
  if (!penstock::parseCommandLine(argc, argv, options, llvm::errs()))
    return penstock::kUserError;
  return penstock::compile(options);
}
