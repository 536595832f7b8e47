//===- TaskUses.cpp - Which variables a task uses -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A task says it in its body or, at level program, in its calls.
//===----------------------------------------------------------------------===//

#include "Rules.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

SmallVector<VariableUse> penstock::getUses(Subject &subject, TaskOp task) {
  SmallVector<VariableUse> uses;
  auto add = [&](Operation *op, FlatSymbolRefAttr name, bool reads,
                 bool writes) {
    if (auto variable = subject.symbols.lookup<VariableOp>(name.getValue()))
      uses.push_back({op, variable, reads, writes});
  };
  if (!task.isBodyless()) {
    for (Operation &op : task.getBody().front()) {
      if (auto read = dyn_cast<ReadOp>(op))
        add(read, read.getVariableAttr(), true, false);
      else if (auto write = dyn_cast<WriteOp>(op))
        add(write, write.getVariableAttr(), false, true);
    }
    return uses;
  }
  if (ArrayAttr calls = task.getCallsAttr())
    for (auto call : calls.getAsRange<CallAttr>())
      for (Attribute term : call.getOperands())
        if (auto operand = dyn_cast<OperandAttr>(term))
          add(task, operand.getSymbol(),
              operand.getAccess() != AccessKind::Write,
              operand.getAccess() != AccessKind::Read);
  return uses;
}
