//===- Repetition.h - Longer segments repeat what was proved ----*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Segments up to some length are executed. Those that are longer are covered if
// the function of a device, from some iteration on, does the same again and
// again, with numbers that grow evenly, until the end of the segment is near.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_PASSES_PROGRAM_PROOF_REPETITION_H
#define PENSTOCK_PASSES_PROGRAM_PROOF_REPETITION_H

#include "passes/Program/Devices/DeviceCode.h"

namespace penstock {

/// Checks (S8) that what the function does in a segment of more than `updates`
/// updates is what it does in one of so many, with whole periods of its
/// outermost loops repeated. Fails with a diagnostic. The function is one that
/// DeviceRun goes through without an error.
mlir::LogicalResult verifyRepetition(const DeviceCode &code, int64_t updates);

} // namespace penstock

#endif // PENSTOCK_PASSES_PROGRAM_PROOF_REPETITION_H
