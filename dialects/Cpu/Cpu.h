//===- Cpu.h - The cpu dialect ----------------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declares the dialect and its attributes; see CpuDialect.td.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_DIALECTS_CPU_CPU_H
#define PENSTOCK_DIALECTS_CPU_CPU_H

#include "dialects/Kernel/Kernel.h"
#include "dialects/Pipeline/Pipeline.h"

#include "dialects/Cpu/CpuDialect.h.inc"
#include "dialects/Cpu/CpuEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Cpu/CpuAttributes.h.inc"

#endif // PENSTOCK_DIALECTS_CPU_CPU_H
