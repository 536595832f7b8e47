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

/// Whether a device runs the library call of this descriptor.
template <typename Descriptor>
bool isCalledOn(const Descriptor &call, uint32_t device) {
  return (call.device == device || call.device == PENSTOCK_EVERY_DEVICE) &&
         !(call.scratch.offsets &&
           call.scratch.offsets[device] == PENSTOCK_NO_OFFSET);
}

/// Where the scratch of a library call begins in the arena of a device.
inline uint64_t scratchOffset(const penstock_scratch &scratch,
                              uint32_t device) {
  return scratch.offsets ? scratch.offsets[device] : 0;
}

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_ARENA_H
