//===- LiveBytes.h - How small an arena could be ----------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The most bytes that are alive at once on a device: no arena can be smaller,
// wherever its buffers lie.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_MEMORY_LIVEBYTES_H
#define PENSTOCK_PASSES_PROGRAM_MEMORY_LIVEBYTES_H

#include "dialects/Pipeline/Pipeline.h"

#include <map>

namespace penstock {

/// Returns the peak of the live bytes by device, over all schedules of a module
/// at level program. Variables, and all their versions, are always alive; a
/// message from when it is received or computed until it was last read, or the
/// device has waited for its sending.
mlir::FailureOr<std::map<int64_t, int64_t>>
getPeakLiveBytes(mlir::ModuleOp module);

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_MEMORY_LIVEBYTES_H
