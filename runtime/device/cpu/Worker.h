//===- Worker.h - The thread of a CPU device --------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything of a device happens on one thread and the team that it leads.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_WORKER_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_WORKER_H

#include "runtime/device/DeviceThread.h"

#include <cstdint>

namespace penstock::runtime {

class Worker : public DeviceThread {
public:
  /// Library calls made on it use `threads` threads.
  Worker(uint32_t device, const cpu_set_t &cores, uint32_t threads);
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_WORKER_H
