//===- KernelMemory.h - What a kernel has besides its arguments -*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The temporaries and the scratch of library calls in a kernel's last argument,
// and when they are needed, in ops of the entry block.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_MEMORY_KERNELMEMORY_H
#define PENSTOCK_PASSES_PROGRAM_MEMORY_KERNELMEMORY_H

#include "dialects/Kernel/Kernel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace penstock {

/// Bytes of a value of a static memref type.
int64_t getBufferBytes(mlir::Type type);

struct KernelMemory {
  /// A view of the last argument, at a constant offset. Never used: first is
  /// greater than last.
  struct Temporary {
    mlir::memref::ViewOp view;
    int64_t offset = 0, bytes = 0;
    int64_t first = 0, last = -1;
  };
  /// One that takes so many bytes of scratch.
  struct LibraryCall {
    kernel::LibraryCallOpInterface op;
    int64_t position = 0, bytes = 0;
  };
  llvm::SmallVector<Temporary> temporaries;
  llvm::SmallVector<LibraryCall> calls;
  /// Bytes of the last argument, if it is temporary memory.
  int64_t bytes = 0;

  /// Fails, with a diagnostic, when memory is used in another way, or the
  /// library of the kernel's target does not compute a call.
  static mlir::FailureOr<KernelMemory> get(mlir::func::FuncOp kernel);

  /// The most that temporaries and the call at hand take at once.
  int64_t getPeak(int64_t alignment) const;
  /// Rule S9 for what lies in the argument: it is inside, and no temporary that
  /// is alive at a call shares bytes with its scratch.
  mlir::LogicalResult verify() const;
};

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_MEMORY_KERNELMEMORY_H
