//===- FileTable.h - The files of the model ---------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each has its size, and the first, the model, its digest and checksum: a
// program that finds another file says so.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_RUNTIME_FILETABLE_H
#define PENSTOCK_PASSES_RUNTIME_FILETABLE_H

#include "passes/Runtime/Constants.h"

#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <array>

namespace penstock {

/// The files of the model. Those of the replay are the same.
class FileTable {
public:
  /// The model, the files that variables name, and the other external data, in
  /// the order of the table.
  static llvm::SetVector<llvm::StringRef> findNames(mlir::ModuleOp root);
  /// Reads what is to be known about each file.
  mlir::LogicalResult collect(mlir::ModuleOp root);
  int64_t getIndex(llvm::StringRef name) const;
  std::vector<Constant> getTable(ConstantBuilder &constants) const;

private:
  mlir::LogicalResult add(mlir::Operation *op, llvm::StringRef name);
  struct File {
    std::string path;
    int64_t size;
    std::array<uint8_t, 32> digest;
    std::array<uint8_t, 16> checksum;
  };
  llvm::MapVector<llvm::StringRef, File> files;
};

} // namespace penstock

#endif // PENSTOCK_PASSES_RUNTIME_FILETABLE_H
