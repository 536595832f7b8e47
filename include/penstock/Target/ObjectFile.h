//===- ObjectFile.h - From the LLVM dialect to machine code -----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM IR, and machine code for one CPU. No fast-math anywhere: the bits were
// decided before.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TARGET_OBJECTFILE_H
#define PENSTOCK_TARGET_OBJECTFILE_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

#include <functional>
#include <memory>
#include <string>

namespace llvm {
class Module;
class OptimizationLevel;
class TargetMachine;
} // namespace llvm

namespace penstock {

/// The CPU to generate code for.
struct TargetOptions {
  /// "native", or a CPU that LLVM knows, e.g. "x86-64-v3" or "znver4"; empty:
  /// any.
  std::string march = "native";
  /// 1 or 2.
  unsigned optimization = 2;
  /// Adds code to the module after it was optimized, with the data layout and
  /// triple of the module. What it adds is compiled as it is.
  std::function<mlir::LogicalResult(llvm::Module &)> addCode;
  /// Symbols that stay visible; all other definitions become internal.
  llvm::SmallVector<std::string> exported = {"penstock_program"};
};

/// The CPU that `march` names on this machine.
struct TargetCpu {
  std::string triple;
  std::string name;
  /// As LLVM has it, "+avx2,+fma,-avx512f".
  std::string features;
  /// Lanes of f32 in the vectors that this CPU prefers: 16, 8 or 4.
  int64_t vectorWidth = 4;
  /// Lanes of f32 that are computed at a time: half of a vector on Zen 4.
  int64_t unitWidth = 4;
  /// The features that code for this CPU may use and that the runtime checks
  /// before it starts: "+avx,+avx2".
  std::string required;
};

/// Resolves `march`; on an unknown name emits an error at `loc` that names it.
mlir::FailureOr<TargetCpu> resolveTargetCpu(llvm::StringRef march,
                                            mlir::Location loc);

/// Runs LLVM's optimizer at a level for a target.
void optimizeModule(llvm::Module &module, llvm::TargetMachine &machine,
                    llvm::OptimizationLevel level);

/// Compiles a module in the LLVM dialect to an object file.
mlir::LogicalResult emitObject(mlir::ModuleOp module,
                               const TargetOptions &options,
                               llvm::raw_pwrite_stream &output);

} // namespace penstock

#endif // PENSTOCK_TARGET_OBJECTFILE_H
