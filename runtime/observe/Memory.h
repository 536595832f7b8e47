//===- Memory.h - What was allocated ----------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arenas that exist, and what lies in them for good, to compare with what
// the compiler planned.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_OBSERVE_MEMORY_H
#define PENSTOCK_RUNTIME_OBSERVE_MEMORY_H

#include "runtime/run/Instance.h"

namespace penstock::runtime {

/// Bytes by device, and of variables by stage, as JSON.
Error writeMemory(const std::string &path, const Instance &instance);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_OBSERVE_MEMORY_H
