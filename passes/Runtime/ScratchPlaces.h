//===- ScratchPlaces.h - Where library calls have their scratch -*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A call is prepared once per device, so its scratch has one address there: the
// temporaries of its kernel, and its place in them.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_RUNTIME_SCRATCHPLACES_H
#define PENSTOCK_PASSES_RUNTIME_SCRATCHPLACES_H

#include "dialects/Kernel/Kernel.h"
#include "passes/Runtime/AbiStructs.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace penstock {

/// The scratch of one library call: its bytes, and its offset in the arena of
/// each device; no offsets where it takes nothing, or none of them runs it.
struct ScratchPlace {
  int64_t bytes = 0;
  llvm::SmallVector<int64_t> program, replay;

  /// All that tells two apart.
  mlir::Attribute getKey(mlir::MLIRContext *context) const;
  /// The field of a descriptor.
  abi::scratch getFields(ConstantBuilder &constants, bool ofReplay) const;
};

/// Those of a program and of the replay in it.
class ScratchPlaces {
public:
  explicit ScratchPlaces(mlir::ModuleOp root);

  ScratchPlace get(kernel::LibraryCallOpInterface call) const;

private:
  /// Offsets by kernel and device.
  struct Program {
    llvm::StringMap<llvm::DenseMap<int64_t, int64_t>> kernels;
    int64_t devices = 0;
  };
  static Program collect(mlir::ModuleOp module);

  Program program, replay;
};

} // namespace penstock

#endif // PENSTOCK_PASSES_RUNTIME_SCRATCHPLACES_H
