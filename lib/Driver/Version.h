//===- Version.h - What this compiler is made of ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a report of a problem needs to say.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_DRIVER_VERSION_H
#define PENSTOCK_LIB_DRIVER_VERSION_H

#include "llvm/Support/raw_ostream.h"

namespace penstock {

/// Prints the version of a tool, the commit that the build was configured at,
/// and versions of LLVM, oneDNN and ONNX.
void printVersion(llvm::StringRef tool, llvm::raw_ostream &stream);

} // namespace penstock

#endif // PENSTOCK_LIB_DRIVER_VERSION_H
