//===- NnDialect.cpp - The nn dialect -------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers the ops and holds their verifiers.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace penstock::nn;

#include "dialects/Nn/ModeDependentOpInterface.cpp.inc"
#include "dialects/Nn/NnDialect.cpp.inc"
#include "dialects/Nn/NnEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Nn/NnAttributes.cpp.inc"

penstock::nn::TrainingContext::~TrainingContext() = default;

void NnDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Nn/NnAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Nn/NnOps.cpp.inc"
      >();
}

/// Labels have the shape of the logits without the class axis, which is last.
static LogicalResult verifyLabels(Operation *op, RankedTensorType classes,
                                  RankedTensorType labels) {
  if (classes.getRank() < 1)
    return op->emitOpError("M19: needs a class axis, got ") << classes;
  if (classes.getShape().drop_back() != labels.getShape())
    return op->emitOpError("M19: labels ")
           << labels << " do not match " << classes
           << ": their shape is that of the classes without the last axis";
  return success();
}

/// Both change what the mean is of, never that it is one.
static LogicalResult verifyTargets(Operation *op, RankedTensorType classes,
                                   std::optional<APFloat> smoothing,
                                   std::optional<ArrayRef<double>> weights) {
  if (smoothing) {
    double amount = smoothing->convertToDouble();
    if (!(amount >= 0 && amount < 1))
      return op->emitOpError("M22: smoothing ")
             << amount << " is not in [0, 1)";
  }
  if (!weights)
    return success();
  int64_t count = classes.getShape().back();
  if (static_cast<int64_t>(weights->size()) != count)
    return op->emitOpError("M23: has ")
           << weights->size() << " class weights for " << count << " classes";
  for (double weight : *weights)
    if (!std::isfinite(weight) || weight < 0)
      return op->emitOpError("M23: class weight ")
             << weight << " is not a finite number of at least 0";
  return success();
}

LogicalResult CrossEntropyOp::verify() {
  if (failed(verifyLabels(*this, getLogits().getType(), getLabels().getType())))
    return failure();
  if (getProbabilities().getType() != getLogits().getType())
    return emitOpError("M20: probabilities and logits differ in type");
  if (getLoss().getType().getRank() != 0)
    return emitOpError("M21: the loss is a scalar, got ")
           << getLoss().getType();
  return verifyTargets(*this, getLogits().getType(), getSmoothing(),
                       getClassWeights());
}

LogicalResult CrossEntropyGradOp::verify() {
  if (failed(verifyLabels(*this, getProbabilities().getType(),
                          getLabels().getType())))
    return failure();
  if (getResult().getType() != getProbabilities().getType())
    return emitOpError("M20: result and probabilities differ in type");
  if (getSeed().getType().getRank() != 0)
    return emitOpError("M21: the seed is a scalar, got ")
           << getSeed().getType();
  return verifyTargets(*this, getProbabilities().getType(), getSmoothing(),
                       getClassWeights());
}

LogicalResult LogSoftmaxOp::verify() {
  int64_t rank = getInput().getType().getRank();
  if (static_cast<int64_t>(getDim()) >= rank)
    return emitOpError("M15: dim ")
           << getDim() << " is not an axis of " << getInput().getType();
  return success();
}

#define GET_OP_CLASSES
#include "dialects/Nn/NnOps.cpp.inc"
