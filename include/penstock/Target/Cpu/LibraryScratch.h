//===- LibraryScratch.h - What a library call needs -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Asks the vendor library, at compile time, what the runtime will ask it when
// the program opens: whether it has a fast implementation, and how much scratch
// memory that one needs.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TARGET_CPU_LIBRARYSCRATCH_H
#define PENSTOCK_TARGET_CPU_LIBRARYSCRATCH_H

#include "dialects/Pipeline/Pipeline.h"
#include "penstock/abi.h"

#include <optional>

namespace penstock {

/// As the runtime gets it, without the device and scratch. None where it has no
/// place for it.
std::optional<penstock_gemm_descriptor> describeProduct(pipeline::GemmOp gemm);

/// The call that packs panels.
penstock_gemm_descriptor describePacking(pipeline::PanelsAttr panels);

/// How a product reads its right operand fastest.
struct ProductPanels {
  pipeline::PanelsAttr panels;
  int64_t floats;
  /// It is faster so than as it lies in memory.
  bool gains;
};

/// None where its bits would be others.
std::optional<ProductPanels> choosePanels(pipeline::GemmOp gemm);

/// Bytes of scratch that the product needs on a device of `threads` threads.
/// Fails, without a diagnostic, when the library cannot be loaded or has no
/// fast implementation; `reason`, if given, says which.
mlir::FailureOr<int64_t> gemmScratchBytes(pipeline::GemmOp gemm,
                                          int64_t threads,
                                          std::string *reason = nullptr);

/// The same for any op: nothing when it is not computed by the library.
mlir::FailureOr<std::optional<int64_t>>
libraryScratchBytes(mlir::Operation *op, int64_t threads,
                    std::string *reason = nullptr);

} // namespace penstock

#endif // PENSTOCK_TARGET_CPU_LIBRARYSCRATCH_H
