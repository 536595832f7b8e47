//===- OnnxDialect.cpp - The onnx dialect ---------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers the ops and holds their verifiers and custom syntax.
//===----------------------------------------------------------------------===//

#include "dialects/Onnx/Onnx.h"

using namespace mlir;
using namespace penstock::onnx;

#include "dialects/Onnx/OnnxDialect.cpp.inc"

void OnnxDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Onnx/OnnxOps.cpp.inc"
      >();
}

static ParseResult parseParams(OpAsmParser &parser, DictionaryAttr &params) {
  NamedAttrList attributes;
  if (parser.parseOptionalAttrDict(attributes))
    return failure();
  if (!attributes.empty())
    params = attributes.getDictionary(parser.getContext());
  return success();
}

static void printParams(OpAsmPrinter &printer, Operation *,
                        DictionaryAttr params) {
  if (params && !params.empty())
    printer.printOptionalAttrDict(params.getValue());
}

LogicalResult NodeOp::verify() {
  if (getOpType().empty())
    return emitOpError("needs an operator name");
  if (getOutputs().empty())
    return emitOpError("needs at least one output");
  return success();
}

#define GET_OP_CLASSES
#include "dialects/Onnx/OnnxOps.cpp.inc"
