//===- Run.h - A node test through the compiler -----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Imports the model, lowers it to level graph and its function to machine code
// as a stage's forward is, and calls it.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_NODETESTS_RUN_H
#define PENSTOCK_TEST_UNIT_NODETESTS_RUN_H

#include "Case.h"

#include "mlir/IR/MLIRContext.h"

namespace penstock::test {

struct Outcome {
  enum Kind : char { Passed = 'p', Refused = 'r', Wrong = 'w', Crashed = 'c' };
  Kind kind = Crashed;
  /// True if it passed, and the importer could compute it as well.
  bool folded = false;
  std::string message;
};

/// A context for any number of cases.
std::unique_ptr<mlir::MLIRContext> makeContext();

/// Runs the case of `folder`; `scratch` is a folder for files.
Outcome runCase(mlir::MLIRContext &context, const std::string &folder,
                const std::string &scratch, NodeTestCase &testCase);

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_NODETESTS_RUN_H
