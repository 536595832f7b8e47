//===- Driver.h - The CUDA driver of the emulated GPU -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver's functions on memory of the host. It is as strict as the
// documentation allows a driver to be: work runs late and in an adverse order
// (Streams.h), addresses mean nothing to the host, memory holds NaNs when it is
// allocated, and whatever belongs to another context is an error.
//
// Two things differ. An image of a module is a penstock_image, since emulated
// code does not say where it ends. The addresses of the parameters of a launch
// end with a null pointer, since emulated kernels do not say how many they
// have; each parameter is a word.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_EMULATED_DRIVER_H
#define PENSTOCK_RUNTIME_DEVICE_EMULATED_DRIVER_H

#include "runtime/device/cuda/Driver.h"

namespace penstock::runtime::emulated {

/// Settings of the emulated GPUs, initially from the environment:
/// PENSTOCK_EMULATED_ORDER, PENSTOCK_EMULATED_GPUS, PENSTOCK_EMULATED_MEMORY,
/// PENSTOCK_EMULATED_CAPTURE (0: launches cannot be captured),
/// PENSTOCK_EMULATED_PEERS (0: no GPU reaches another).
struct Settings {
  uint64_t order = 0; // of streams, blocks and threads
  int gpus = 1;
  uint64_t memoryBytes = uint64_t(8) << 30; // of each
  /// Kernels can be launched on a stream that is captured.
  bool capturesLaunches = true;
  /// GPUs may have each other's memory.
  bool arePeers = true;
};

/// Changes them. No context may be retained.
void configure(const Settings &settings);

extern const cuda::Driver driver;

} // namespace penstock::runtime::emulated

#endif // PENSTOCK_RUNTIME_DEVICE_EMULATED_DRIVER_H
