//===- Arena.h - All memory of one device -----------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One zeroed, aligned range whose size was known when the program was compiled.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_ARENA_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_ARENA_H

#include "runtime/support/Error.h"

namespace penstock::runtime {

class Arena {
public:
  Arena() = default;
  Arena(const Arena &) = delete;
  ~Arena();

  Error allocate(uint32_t device, const penstock_device_descriptor &descriptor);
  char *base() const { return aligned; }
  uint64_t size() const { return bytes; }

private:
  void *mapped = nullptr;
  uint64_t mappedBytes = 0, bytes = 0;
  char *aligned = nullptr;
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_ARENA_H
