//===- Nn.h - The nn dialect ------------------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declares the dialect and its ops; see NnOps.td.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_NN_NN_H
#define PENSTOCK_DIALECTS_NN_NN_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Nn/ModeDependent.h"

#include "dialects/Nn/NnDialect.h.inc"
#include "dialects/Nn/NnEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Nn/NnAttributes.h.inc"

#define GET_OP_CLASSES
#include "dialects/Nn/NnOps.h.inc"

#endif // PENSTOCK_DIALECTS_NN_NN_H
