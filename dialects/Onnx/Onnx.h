//===- Onnx.h - The onnx dialect --------------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declares the dialect and its ops; see OnnxOps.td.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_ONNX_ONNX_H
#define PENSTOCK_DIALECTS_ONNX_ONNX_H

#include "dialects/Onnx/DiscardableAttributes.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Onnx/OnnxDialect.h.inc"

#define GET_OP_CLASSES
#include "dialects/Onnx/OnnxOps.h.inc"

#endif // PENSTOCK_DIALECTS_ONNX_ONNX_H
