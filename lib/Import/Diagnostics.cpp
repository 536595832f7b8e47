//===- Diagnostics.cpp - Diagnostics about a model file -------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model has no lines: the file and the node are what a user can look up.
//===----------------------------------------------------------------------===//

#include "penstock/Import/Import.h"
#include "penstock/Support/CommandLine.h"
#include "penstock/one_line.h"

using namespace mlir;
using namespace penstock;

ModelDiagnosticHandler::ModelDiagnosticHandler(MLIRContext *context,
                                               StringRef file,
                                               llvm::raw_ostream &stream)
    : ScopedDiagnosticHandler(context) {
  setHandler([file = file.str(), &stream](Diagnostic &diagnostic) {
    auto print = [&](Diagnostic &line) {
      bool isError = line.getSeverity() == DiagnosticSeverity::Error;
      bool isWarning = line.getSeverity() == DiagnosticSeverity::Warning;
      beginMessage(stream, file,
                   isError     ? Severity::Error
                   : isWarning ? Severity::Warning
                               : Severity::Note)
          << toOneLine(line.str()) << "\n";
    };
    print(diagnostic);
    for (Diagnostic &note : diagnostic.getNotes())
      print(note);
    return success();
  });
}
