//===- VerifyLevel.cpp - What may be in a module at a level ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The invariant of each level, as far as it is about which ops and types there
// are.
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include "dialects/Onnx/Onnx.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

static bool isStatic(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  return !shaped || (shaped.hasRank() && shaped.hasStaticShape());
}

/// ONNX nodes end at `graph`, tensors at `program`.
static LogicalResult verifyOp(Subject &subject, Operation *op) {
  if (isa<onnx::NodeOp, onnx::AbsentOp>(op) && subject.isFrom(Level::Graph))
    return op->emitOpError("C43: is left at level ")
           << getLevelName(subject.level);
  if (isa<BoundaryOp>(op) && subject.isFrom(Level::Stages))
    return op->emitOpError("C43: is left at level ")
           << getLevelName(subject.level);
  for (Type type : op->getResultTypes()) {
    if (!isStatic(type))
      return op->emitOpError("C43: has a result of unknown shape, ") << type;
    if (isa<TensorType>(type) && subject.isFrom(Level::Program))
      return op->emitOpError("C43: makes a tensor at level program");
  }
  return success();
}

/// C14: boundaries rise by one within a function.
static LogicalResult verifyBoundaries(func::FuncOp function) {
  int64_t expected = 1;
  for (BoundaryOp boundary : function.getOps<BoundaryOp>())
    if (static_cast<int64_t>(boundary.getIndex()) != expected++)
      return boundary.emitOpError("C14: has number ")
             << boundary.getIndex() << ", expected " << expected - 1
             << ": boundaries rise by one";
  return success();
}

LogicalResult penstock::verifyLevel(Subject &subject) {
  for (func::FuncOp function : subject.module.getOps<func::FuncOp>()) {
    if (failed(verifyBoundaries(function)))
      return failure();
    if (!llvm::all_of(function.getArgumentTypes(), isStatic))
      return function.emitOpError("C43: has an argument of unknown shape");
    auto result = function.walk([&](Operation *op) {
      return failed(verifyOp(subject, op)) ? WalkResult::interrupt()
                                           : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
  }
  if (subject.isFrom(Level::Stages))
    return success();
  auto stages = subject.module.getOps<StageOp>();
  if (!stages.empty() && !llvm::hasSingleElement(stages))
    return (*std::next(stages.begin()))
        .emitOpError("C43: is the second stage before the cut");
  return success();
}
