//===- Functions.h - The functions of a model -------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What finds the function that a node calls, and how deep calls and subgraphs
// are followed.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_FUNCTIONS_H
#define PENSTOCK_LIB_IMPORT_FUNCTIONS_H

#include "penstock/Import/OperatorRegistry.h"

#include "llvm/ADT/Twine.h"

namespace penstock::onnx {

/// Deeper is an error: a function may call itself.
constexpr unsigned kMaxDepth = 64;

/// The function of this domain and name, in a table.
inline std::string getFunctionKey(llvm::StringRef domain,
                                  llvm::StringRef name) {
  return (normalizeDomain(domain) + ":" + name).str();
}

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_FUNCTIONS_H
