//===- StageNumbers.h - Numbers that kernels read in memory -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stage function takes numbers, such as a learning rate or the seed of a
// mask, and passes them, or what it computes from them, to kernels. Here it
// takes the places of those numbers in the memory of the device, and its
// callers compute them.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_CUDA_STAGENUMBERS_H
#define PENSTOCK_PASSES_CUDA_STAGENUMBERS_H

#include "dialects/Kernel/Kernel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace penstock {

/// Returns the type of the place of a number in a kernel.
mlir::MemRefType getNumberInMemory(mlir::Type number);

/// The computations that a caller has made.
struct NumberCache {
  struct Entry {
    mlir::Operation *op; // of a stage function
    llvm::SmallVector<mlir::Value> operands;
    mlir::Operation *clone;
  };
  llvm::SmallVector<Entry> entries;
};

class StageNumbers {
public:
  /// Changes the functions of these calls, of which there are no others, and
  /// their kernels. Each call is to pass places before finish().
  StageNumbers(mlir::ModuleOp module, mlir::SymbolTableCollection &symbols,
               llvm::ArrayRef<mlir::func::CallOp> calls);

  /// Returns why a function keeps its numbers; empty where it has none, or
  /// takes places.
  llvm::StringRef getReason(llvm::StringRef function) const;

  /// Computes the numbers whose places a call has to pass.
  llvm::SmallVector<mlir::Value> computeNumbers(mlir::OpBuilder &builder,
                                                mlir::func::CallOp call,
                                                NumberCache &cache) const;
  /// Passes places instead of numbers.
  void passPlaces(mlir::func::CallOp call, mlir::ValueRange places) const;

  /// Removes the numbers from the functions.
  void finish();

private:
  /// A parameter of a launch that is such a number.
  struct Use {
    kernel::LaunchOp launch;
    unsigned parameter;
    mlir::Value number;
  };
  struct Stage {
    mlir::func::FuncOp function;
    std::string reason;
    llvm::SmallVector<Use> uses;
    llvm::SetVector<mlir::Value> numbers;
    /// The arguments that are numbers; none where they are kept.
    llvm::BitVector arguments;
  };

  void collectUses(Stage &stage);
  void convertKernels();

  mlir::ModuleOp module;
  mlir::SymbolTableCollection &symbols;
  llvm::MapVector<llvm::StringRef, Stage> stages; // by name
};

} // namespace penstock

#endif // PENSTOCK_PASSES_CUDA_STAGENUMBERS_H
