//===- NodeName.h - Names of ONNX nodes in locations ------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the importer to the last pass, the location of an op names the ONNX node
// that it came from. Cuts, reports and diagnostics read it here.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SUPPORT_NODENAME_H
#define PENSTOCK_SUPPORT_NODENAME_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/SmallVector.h"

namespace penstock {

/// The name of the ONNX node in `location`, or "" when it has none: the
/// outermost name of a chain of names, the first of a fused location.
llvm::StringRef getNodeName(mlir::Location location);

/// Every name in `location`: of the node and of the values that it defines.
llvm::SmallVector<llvm::StringRef> getAllNames(mlir::Location location);

} // namespace penstock

#endif // PENSTOCK_SUPPORT_NODENAME_H
