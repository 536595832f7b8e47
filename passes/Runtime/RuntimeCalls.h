//===- RuntimeCalls.h - The runtime as generated code sees it ---*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declares the functions that generated code calls, and the tables of numbers
// that it reads, in the top-level module.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_RUNTIME_RUNTIMECALLS_H
#define PENSTOCK_PASSES_RUNTIME_RUNTIMECALLS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace penstock {

class RuntimeCalls {
public:
  explicit RuntimeCalls(mlir::ModuleOp root);

  /// Calls `name`, whose type follows from the operands.
  mlir::Value call(mlir::OpBuilder &builder, mlir::Location loc,
                   llvm::StringRef name, mlir::Type result,
                   mlir::ValueRange operands);

  /// The address of the first element of a buffer, the offset of a view
  /// included.
  mlir::Value getPointer(mlir::OpBuilder &builder, mlir::Location loc,
                         mlir::Value buffer);

  /// Emits an error where the function of `op` does not know its device, which
  /// calls take.
  mlir::LogicalResult checkDevice(mlir::Operation *op) const;

  /// A constant table of numbers, one for each content.
  mlir::LLVM::GlobalOp getTable(mlir::DenseI64ArrayAttr numbers);

  mlir::ModuleOp root;
  mlir::Type pointer, none, i32, i64, f64;

private:
  llvm::DenseMap<mlir::Attribute, mlir::LLVM::GlobalOp> tables;
  unsigned tableCount = 0;
};

} // namespace penstock

#endif // PENSTOCK_PASSES_RUNTIME_RUNTIMECALLS_H
