//===- RuleDiagnostics.h - Rules that need more than one op -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MLIR's server parses and verifies ops; the rules C and S of docs/ir.md are
// passes, of which it knows nothing.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TOOLS_LSPSERVER_RULEDIAGNOSTICS_H
#define PENSTOCK_TOOLS_LSPSERVER_RULEDIAGNOSTICS_H

#include "mlir/IR/DialectRegistry.h"
#include "llvm/Support/JSON.h"

namespace penstock {

/// Returns the diagnostics of the language server protocol for the rules that a
/// file breaks, by the parts that `// -----` divides it into. A part that MLIR
/// cannot parse has none: its server says why.
llvm::json::Array findBrokenRules(llvm::StringRef text, llvm::StringRef uri,
                                  const mlir::DialectRegistry &registry);

} // namespace penstock

#endif // PENSTOCK_TOOLS_LSPSERVER_RULEDIAGNOSTICS_H
