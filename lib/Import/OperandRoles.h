//===- OperandRoles.h - Initializers that are no weights --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which values of the main graph some node reads as running statistics or as
// the size of its result, as the table of operators says.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_LIB_IMPORT_OPERANDROLES_H
#define PENSTOCK_LIB_IMPORT_OPERANDROLES_H

#include "Proto.h"

#include "llvm/ADT/StringSet.h"

namespace penstock::onnx {

struct OperandRoles {
  llvm::StringSet<> statistics, extents;
  /// Operands that a node reads as anything else than running statistics.
  llvm::StringSet<> others;

  /// Looks into functions and branches, too.
  explicit OperandRoles(const ::onnx::ModelProto &model);
};

} // namespace penstock::onnx

#endif // PENSTOCK_LIB_IMPORT_OPERANDROLES_H
