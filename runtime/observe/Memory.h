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

#include "runtime/support/Error.h"

#include <vector>

namespace penstock::runtime {

/// The bytes of a device's arena.
struct ArenaBytes {
  uint32_t device;
  uint64_t bytes;
};

/// Writes bytes by device, and of variables by stage, as JSON; by process what
/// messages to others need besides, unless `transport` is empty; and what holds
/// a checkpoint while it is written.
Error writeMemory(const std::string &path, const penstock_program &program,
                  const std::vector<ArenaBytes> &arenas,
                  const std::vector<uint64_t> &transport = {},
                  uint64_t checkpointBytes = 0);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_OBSERVE_MEMORY_H
