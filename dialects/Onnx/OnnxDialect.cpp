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
    return emitOpError("O1: needs an operator name");
  if (getOutputs().empty())
    return emitOpError("O2: needs at least one output");
  return success();
}

LogicalResult LoopOp::verify() {
  constexpr unsigned kTripCountAndCondition = 2;
  if (getInputs().size() < kTripCountAndCondition)
    return emitOpError("O3: needs a trip count and a condition");
  unsigned carried = getInputs().size() - kTripCountAndCondition;
  unsigned scans = getScanAxes().size();
  if (getScanReversed().size() != scans)
    return emitOpError("O4: needs an axis and a direction per scan output");
  if (getOutputs().size() != carried + scans)
    return emitOpError("O5: carries ")
           << carried << " values and scans " << scans << ", but has "
           << getOutputs().size() << " results";
  Block &block = getBody().front();
  if (block.getNumArguments() != getInputs().size())
    return emitOpError("O6: its body takes ")
           << block.getNumArguments() << " values, not " << getInputs().size();
  if (block.getTerminator()->getNumOperands() != 1 + carried + scans)
    return emitOpError("O7: its body yields ")
           << block.getTerminator()->getNumOperands() << " values, not "
           << 1 + carried + scans;
  return success();
}

#define GET_OP_CLASSES
#include "dialects/Onnx/OnnxOps.cpp.inc"
