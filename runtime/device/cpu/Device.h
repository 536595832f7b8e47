//===- Device.h - A CPU device: a thread and an arena -----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host addresses its memory, and its calls are done when they return.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_DEVICE_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_DEVICE_H

#include "runtime/device/Kinds.h"
#include "runtime/device/cpu/Arena.h"
#include "runtime/device/cpu/Convolutions.h"
#include "runtime/device/cpu/Gemm.h"
#include "runtime/device/cpu/Worker.h"

namespace penstock::runtime {

class CpuDevice : public penstock_device {
public:
  CpuDevice(Context &context, uint32_t index);

  void start(std::function<void()> job) override;
  bool finish(int milliseconds) override;
  Error open() override;
  void close() override;

  void gemm(uint32_t id, const void *a, const void *b, void *c) override;
  void conv(uint32_t id, const void *input, const void *weights,
            const void *output) override;
  void launch(uint32_t kernel, const uint64_t *parameters) override;
  void *findConstant(uint32_t constant) override;
  void parallel(void (*body)(void *closure, int64_t index), void *closure,
                int64_t count) override;
  bool prepack(uint32_t call, Address weights, Address result) override;
  Statistics statistics() const override;

  void upload(Address at, const void *host, uint64_t bytes) override;
  void download(void *host, Address at, uint64_t bytes) override;
  void copy(Address at, DeviceMemory &from, Address fromAt, uint64_t bytes,
            const Handover &order) override;
  void *hostAddress(Address at) override;

private:
  const uint32_t threads;
  Arena memory;
  Gemms gemms;
  Convolutions convs;
  /// The thread comes last, so that it ends first.
  Worker worker;
};

} // namespace penstock::runtime

/// Registers the kind "cpu".
extern "C" penstock::runtime::DeviceKind penstock_cpu;

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_DEVICE_H
