//===- ForwardProgram.cpp - The forward task and its function -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See ForwardProgram.h.
//===----------------------------------------------------------------------===//

#include "penstock/Partition/ForwardProgram.h"

#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace penstock;

llvm::SetVector<Value> penstock::getUsedValues(Operation *op) {
  llvm::SetVector<Value> values;
  values.insert(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), values);
  return values;
}

FailureOr<ForwardProgram> ForwardProgram::find(ModuleOp module) {
  ForwardProgram program;
  for (pipeline::TaskOp task : module.getOps<pipeline::TaskOp>()) {
    if (program.task)
      return task.emitError()
             << "expected one forward task before the cut into stages, found '"
             << program.task.getSymName() << "' and '" << task.getSymName()
             << "'";
    program.task = task;
  }
  if (!program.task || program.task.isBodyless())
    return module.emitError("expected a forward task to cut into stages");
  for (func::CallOp call : program.task.getBody().getOps<func::CallOp>()) {
    if (program.call)
      return call.emitError("expected one call in the forward task");
    program.call = call;
  }
  if (!program.call)
    return program.task.emitError("expected a call in the forward task");
  program.function =
      module.lookupSymbol<func::FuncOp>(program.call.getCallee());
  if (!program.function || program.function.isDeclaration() ||
      !llvm::hasSingleElement(program.function.getBody()))
    return program.call.emitError(
        "expected to call a function of this module with one block");
  program.stage =
      module.lookupSymbol<pipeline::StageOp>(program.task.getStage());
  if (!program.stage)
    return program.task.emitError("its stage is not in this module");
  program.findRecomputable();
  return program;
}

void ForwardProgram::findRecomputable() {
  llvm::DenseSet<Value> parameters;
  for (auto [index, argument] : llvm::enumerate(function.getArguments()))
    if (getRead(index))
      parameters.insert(argument);
  for (Operation &op : function.getBody().front().without_terminator()) {
    if (!isMemoryEffectFree(&op) || op.hasAttr(pipeline::kSentAttr))
      continue;
    if (llvm::all_of(getUsedValues(&op), [&](Value value) {
          return parameters.contains(value) ||
                 recomputable.contains(value.getDefiningOp());
        }))
      recomputable.insert(&op);
  }
}

pipeline::ReadOp ForwardProgram::getRead(unsigned argument) {
  return call.getOperand(argument).getDefiningOp<pipeline::ReadOp>();
}

llvm::SetVector<Operation *> ForwardProgram::getUsersInFunction(Value value) {
  llvm::SetVector<Operation *> users;
  Block *block = &function.getBody().front();
  for (Operation *user : value.getUsers())
    users.insert(block->findAncestorOpInBlock(*user));
  return users;
}
