//===- LibraryCalls.h - Which library calls a device makes ------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// And where in its arena their scratch is.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_LIBRARYCALLS_H
#define PENSTOCK_RUNTIME_DEVICE_LIBRARYCALLS_H

#include "penstock/abi.h"

namespace penstock::runtime {

/// Returns true if a device runs the library call of this descriptor.
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

#endif // PENSTOCK_RUNTIME_DEVICE_LIBRARYCALLS_H
