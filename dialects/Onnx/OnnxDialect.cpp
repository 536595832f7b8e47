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

LogicalResult LoopOp::verify() {
  constexpr unsigned kTripCountAndCondition = 2;
  if (getInputs().size() < kTripCountAndCondition)
    return emitOpError("needs a number of runs and a condition");
  unsigned carried = getInputs().size() - kTripCountAndCondition;
  unsigned scans = getScanAxes().size();
  if (getScanReversed().size() != scans)
    return emitOpError("needs an axis and a direction per scan output");
  if (getOutputs().size() != carried + scans)
    return emitOpError("carries ")
           << carried << " values and scans " << scans << ", but has "
           << getOutputs().size() << " results";
  Block &block = getBody().front();
  if (block.getNumArguments() != getInputs().size())
    return emitOpError("its body takes ")
           << block.getNumArguments() << " values, not " << getInputs().size();
  if (block.getTerminator()->getNumOperands() != 1 + carried + scans)
    return emitOpError("its body yields ")
           << block.getTerminator()->getNumOperands() << " values, not "
           << 1 + carried + scans;
  return success();
}

#define GET_OP_CLASSES
#include "dialects/Onnx/OnnxOps.cpp.inc"
