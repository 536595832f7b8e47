//===- VerifyZeros.cpp - Updates leave gradients at zero ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rule C45: what an update task writes to a gradient last is zero. Backwards
// add to it, and on several replicas or stages each adds what was left.
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

/// Returns true if a structured op stores zero into one of its inits.
static bool storesZero(linalg::LinalgOp op, unsigned init) {
  if (auto fill = dyn_cast<linalg::FillOp>(op.getOperation()))
    return matchPattern(fill.getInputs()[0], m_AnyZeroFloat());
  auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
  return generic &&
         matchPattern(generic.getBody()->getTerminator()->getOperand(init),
                      m_AnyZeroFloat());
}

/// A result of a function on tensors.
static bool isZero(Value result) {
  if (matchPattern(result, m_AnyZeroFloat()))
    return true;
  auto op = result.getDefiningOp<linalg::LinalgOp>();
  return op && storesZero(op, cast<OpResult>(result).getResultNumber());
}

/// The last op of a function on buffers that writes this argument.
static bool leavesZero(BlockArgument buffer) {
  for (Operation &op : llvm::reverse(*buffer.getOwner())) {
    if (!llvm::is_contained(op.getOperands(), buffer))
      continue;
    auto structured = dyn_cast<linalg::LinalgOp>(op);
    if (!structured)
      return false;
    for (OpOperand &init : structured.getDpsInitsMutable())
      if (init.get() == buffer)
        return storesZero(structured, init.getOperandNumber() -
                                          structured.getNumDpsInputs());
  }
  return false;
}

static bool isGradient(Subject &subject, FlatSymbolRefAttr name) {
  auto variable = subject.symbols.lookup<VariableOp>(name.getValue());
  return variable && variable.getRole() == Role::Gradient;
}

static InFlightDiagnostic report(Operation *op, FlatSymbolRefAttr variable,
                                 StringRef callee) {
  return op->emitOpError("C45: leaves in ")
         << variable << " what @" << callee
         << " makes, which is not zero; a backward adds to it";
}

static LogicalResult verifyBody(Subject &subject, TaskOp task) {
  for (auto write : task.getBody().getOps<WriteOp>()) {
    if (!isGradient(subject, write.getVariableAttr()))
      continue;
    auto call = write.getValue().getDefiningOp<func::CallOp>();
    auto callee = call ? subject.symbols.lookup<func::FuncOp>(call.getCallee())
                       : func::FuncOp();
    if (!callee || callee.isDeclaration())
      continue;
    unsigned index = cast<OpResult>(write.getValue()).getResultNumber();
    if (!isZero(callee.front().getTerminator()->getOperand(index)))
      return report(write, write.getVariableAttr(), call.getCallee());
  }
  return success();
}

/// At level program, by the calls that the task states.
static LogicalResult verifyStatedZeros(Subject &subject, TaskOp task) {
  llvm::DenseSet<Attribute> known;
  auto calls = llvm::to_vector(task.getCallsAttr().getAsRange<CallAttr>());
  for (CallAttr call : llvm::reverse(calls)) {
    auto callee =
        subject.symbols.lookup<func::FuncOp>(call.getCallee().getValue());
    for (auto [position, term] : llvm::enumerate(call.getOperands())) {
      auto operand = dyn_cast<OperandAttr>(term);
      if (!operand || operand.getAccess() == AccessKind::Read ||
          !isGradient(subject, operand.getSymbol()) ||
          !known.insert(operand.getSymbol()).second || !callee ||
          callee.isDeclaration() || position >= callee.getNumArguments())
        continue;
      if (!leavesZero(callee.getArgument(position)))
        return report(task, operand.getSymbol(), call.getCallee().getValue());
    }
  }
  return success();
}

LogicalResult penstock::verifyZeros(Subject &subject) {
  if (!subject.isFrom(Level::Training))
    return success();
  for (TaskOp task : subject.module.getOps<TaskOp>()) {
    if (task.getKind() != TaskKind::Update)
      continue;
    if (!task.isBodyless()
            ? failed(verifyBody(subject, task))
            : task.getCallsAttr() && failed(verifyStatedZeros(subject, task)))
      return failure();
  }
  return success();
}
