//===- LibraryCall.h - Calls of the library ---------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface of ops that the vendor library computes, with the attributes
// that it needs; see LibraryCallOpInterface.td.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_NN_LIBRARYCALL_H
#define PENSTOCK_DIALECTS_NN_LIBRARYCALL_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"

#include "dialects/Nn/NnDialect.h.inc"
#include "dialects/Nn/NnEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Nn/NnAttributes.h.inc"

#include "dialects/Nn/LibraryCallOpInterface.h.inc"

#endif // PENSTOCK_DIALECTS_NN_LIBRARYCALL_H
