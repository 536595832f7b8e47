//===- Fibers.h - The threads of a block as fibers --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a kernel of an emulated image on the calling thread of the host. Its
// code calls the functions ps_emulated_*, which stand for what only a GPU has.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_EMULATED_FIBERS_H
#define PENSTOCK_RUNTIME_DEVICE_EMULATED_FIBERS_H

#include "penstock/abi.h"

#include <string>

namespace penstock::runtime::emulated {

struct Dimensions {
  uint32_t x = 1, y = 1, z = 1;

  uint64_t count() const { return uint64_t(x) * y * z; }
};

/// Shared memory that a block may have without asking for more.
inline constexpr uint32_t kSharedBytes = 48 << 10;

/// Runs all blocks of a kernel, one after the other. `parameters` are the
/// addresses of its parameters. Shared memory holds NaNs when a block starts;
/// it has what the kernel needs and `sharedBytes` more, kSharedBytes at most.
/// `order` 0 runs blocks and threads upwards, 1 downwards, another in a random
/// order of that seed. Returns what the kernel did wrong, or an empty string.
std::string launch(const penstock_emulated_kernel &kernel, Dimensions grid,
                   Dimensions block, uint32_t sharedBytes, void **parameters,
                   uint64_t order);

} // namespace penstock::runtime::emulated

#endif // PENSTOCK_RUNTIME_DEVICE_EMULATED_FIBERS_H
