//===- ActionTable.h - Calls that a device may record -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers the actions of a program and of its replay, which have one table.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_RUNTIME_ACTIONTABLE_H
#define PENSTOCK_PASSES_RUNTIME_ACTIONTABLE_H

#include "dialects/Kernel/Kernel.h"
#include "passes/Runtime/Constants.h"
#include "passes/Runtime/RuntimeCalls.h"

#include "llvm/ADT/MapVector.h"

#include <vector>

namespace penstock {

class ActionTable {
public:
  /// Numbers all actions. Fails where two have one name, or an action has fewer
  /// scalars than are used of it.
  mlir::LogicalResult collect(mlir::ModuleOp root);

  /// Puts calls of the runtime around the calls of actions, and into the place
  /// of scalars. Device functions are not converted yet.
  mlir::LogicalResult convert(RuntimeCalls &runtime) const;

  std::vector<Constant> getActions(ConstantBuilder &constants) const;

private:
  mlir::Value getNumber(mlir::OpBuilder &builder, mlir::Location loc,
                        RuntimeCalls &runtime, mlir::StringAttr name) const;
  void convert(RuntimeCalls &runtime, kernel::ActionOp action) const;
  void convert(RuntimeCalls &runtime, kernel::ScalarOp scalar) const;

  struct Action {
    int64_t keys, scalars;
  };
  llvm::MapVector<mlir::StringAttr, Action> actions; // by name
};

} // namespace penstock

#endif // PENSTOCK_PASSES_RUNTIME_ACTIONTABLE_H
