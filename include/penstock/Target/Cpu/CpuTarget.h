//===- CpuTarget.h - CPU devices --------------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers the implementation of Target for #cpu.target.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TARGET_CPU_CPUTARGET_H
#define PENSTOCK_TARGET_CPU_CPUTARGET_H

#include "dialects/Cpu/Cpu.h"

namespace penstock {

/// Registers the dialect `cpu` and what the compiler asks of its devices.
void registerCpuTarget(mlir::DialectRegistry &registry);

namespace cpu {

/// Returns how many f32 lanes the vectors have that the processor prefers: 16,
/// 8 or 4. Emits an error at `loc` if `march` is unknown.
mlir::FailureOr<int64_t> getVectorWidth(TargetAttr target, mlir::Location loc);

} // namespace cpu
} // namespace penstock

#endif // PENSTOCK_TARGET_CPU_CPUTARGET_H
