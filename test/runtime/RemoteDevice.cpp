//===- RemoteDevice.cpp - A device that the host cannot address -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A CPU device whose addresses lead nowhere: outside of it they are 2^46 bytes
// from what they name, and only the device takes that off. Whoever reads or
// writes an arena without the device faults at once, on any machine. Programs
// of tests are linked with it in place of the CPU's kind; see CONTRIBUTING.md.
//===----------------------------------------------------------------------===//

#include "runtime/device/HostFeatures.h"
#include "runtime/device/cpu/Device.h"

using namespace penstock::runtime;

namespace {

constexpr Address kDistance = Address(1) << 46;

class RemoteDevice final : public CpuDevice {
public:
  using CpuDevice::CpuDevice;

  Error open() override {
    if (Error error = CpuDevice::open())
      return error;
    origin += kDistance;
    return {};
  }
  bool prepack(uint32_t call, Address weights, Address result) override {
    return CpuDevice::prepack(call, weights - kDistance, result - kDistance);
  }
  void upload(Address at, const void *host, uint64_t bytes) override {
    CpuDevice::upload(at - kDistance, host, bytes);
  }
  void download(void *host, Address at, uint64_t bytes) override {
    CpuDevice::download(host, at - kDistance, bytes);
  }
  void copy(Address at, DeviceMemory &from, Address fromAt, uint64_t bytes,
            const Handover &order) override {
    CpuDevice::copy(at - kDistance, from, fromAt, bytes, order);
  }
  void *hostAddress(Address at) override { return nullptr; }
};

} // namespace

/// Takes the place of the CPU's kind, so it has its name.
extern "C" {
DeviceKind penstock_remote(
    "cpu", checkFeatures,
    [](Context &context, uint32_t index) -> std::unique_ptr<penstock_device> {
      return std::make_unique<RemoteDevice>(context, index);
    });
}
