//===- Version.cpp - What this compiler is made of ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Version.h.
//===----------------------------------------------------------------------===//

#include "Version.h"

#include "penstock/Import/OperatorRegistry.h"

#include "llvm/Config/llvm-config.h"

#include <oneapi/dnnl/dnnl_version.h>

using namespace penstock;

void penstock::printVersion(llvm::StringRef tool, llvm::raw_ostream &stream) {
  stream << tool << " " << PENSTOCK_VERSION;
  if (llvm::StringRef commit = PENSTOCK_COMMIT; !commit.empty())
    stream << " (commit " << commit << ")";
  stream << "\nLLVM " << LLVM_VERSION_STRING << "\noneDNN "
         << DNNL_VERSION_MAJOR << "." << DNNL_VERSION_MINOR << "."
         << DNNL_VERSION_PATCH << "\nONNX opsets " << onnx::kOldestOpset
         << " to " << onnx::kNewestOpset << "\n";
}
