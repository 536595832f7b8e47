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
#include "llvm/ADT/TypeSwitch.h"

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

  /// Numbers of 32 bits, which calls take, and of 64.
  mlir::Value number(mlir::OpBuilder &builder, mlir::Location loc,
                     int64_t value) const;
  mlir::Value word(mlir::OpBuilder &builder, mlir::Location loc,
                   int64_t value) const;

  /// A dense buffer of this type at `address`: a cast, of which
  /// `pipeline-pass-addresses` makes a descriptor where somebody reads it.
  mlir::Value makeBuffer(mlir::OpBuilder &builder, mlir::Location loc,
                         mlir::MemRefType type, mlir::Value address) const;

  /// The device that the function of `op` takes first.
  static mlir::Value getDevice(mlir::Operation *op);

  /// Calls `convert` with each op of these types. Fails, with an error, where
  /// the function of one does not know its device.
  template <typename... Ops, typename Convert>
  mlir::LogicalResult convertAll(Convert convert) const {
    llvm::SmallVector<mlir::Operation *> ops;
    mlir::ModuleOp(root).walk([&](mlir::Operation *op) {
      if (llvm::isa<Ops...>(op))
        ops.push_back(op);
    });
    for (mlir::Operation *op : ops) {
      if (mlir::failed(checkDevice(op)))
        return mlir::failure();
      llvm::TypeSwitch<mlir::Operation *>(op).Case<Ops...>(convert);
    }
    return mlir::success();
  }

  /// A constant table of numbers, one for each content.
  mlir::LLVM::GlobalOp getTable(mlir::DenseI64ArrayAttr numbers);

  mlir::ModuleOp root;
  mlir::Type pointer, none, i32, i64, f64;

private:
  mlir::LogicalResult checkDevice(mlir::Operation *op) const;

  llvm::DenseMap<mlir::Attribute, mlir::LLVM::GlobalOp> tables;
  unsigned tableCount = 0;
};

} // namespace penstock

#endif // PENSTOCK_PASSES_RUNTIME_RUNTIMECALLS_H
